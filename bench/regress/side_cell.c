/* What the repetitions of a cell say together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/regress/side.h"
#include "bench/report/json_writer.h"

const struct side_run *side_least_far(const struct side_cell *cell)
{
    const struct side_run *least = &cell->runs[0];
    for (size_t i = 1; i < cell->run_count; i++) {
        const struct side_run *run = &cell->runs[i];
        if (least->passed
                ? !run->passed
                : !run->passed && least->played &&
                      (!run->played || run->first_failed_event < least->first_failed_event))
            least = run;
    }
    return least;
}

bool side_same_value(const struct metric_value *a, const struct metric_value *b)
{
    if (a->kind == METRIC_NULL || b->kind == METRIC_NULL)
        return a->kind == b->kind;
    if (a->kind == METRIC_INTEGER && b->kind == METRIC_INTEGER)
        return a->integer == b->integer;
    double left = a->kind == METRIC_INTEGER ? (double)a->integer : a->real;
    double right = b->kind == METRIC_INTEGER ? (double)b->integer : b->real;
    return left <= right && left >= right;
}

bool side_same_count(const struct side_count *a, const struct side_count *b)
{
    return strcmp(a->policy, b->policy) == 0 && strcmp(a->trace, b->trace) == 0 &&
           strcmp(a->kind, b->kind) == 0 && strcmp(a->measure, b->measure) == 0;
}

void side_value_text(const struct metric_value *value, char text[40])
{
    if (value->kind == METRIC_INTEGER)
        snprintf(text, 40, "%" PRIu64, value->integer);
    else if (value->kind == METRIC_REAL)
        (void)real_print(value->real, text);
    else
        snprintf(text, 40, "null");
}

const struct side_run *side_differs(const struct side_cell *cell, enum metric metric)
{
    for (size_t i = 1; i < cell->run_count; i++)
        if (!side_same_value(&cell->runs[0].metrics.at[metric], &cell->runs[i].metrics.at[metric]))
            return &cell->runs[i];
    return NULL;
}

const struct side_run *side_ends_apart(const struct side_cell *cell)
{
    const struct side_run *first = &cell->runs[0];
    for (const struct side_run *run = first + 1; run < first + cell->run_count; run++)
        if (run->passed != first->passed || run->played != first->played ||
            run->first_failed_event != first->first_failed_event)
            return run;
    return NULL;
}

bool side_is_timed(const struct side_cell *cell, enum metric metric)
{
    const struct metric_info *info = metric_info(metric);
    if (info->class == METRIC_TIMED)
        return true;
    return cell->on_card && (strcmp(info->unit, "ns") == 0 || strcmp(info->unit, "1/s") == 0 ||
                             metric == METRIC_slowdown || metric == METRIC_steady_slowdown);
}
