/* Repetitions of the same run on a card. What is measured of a call is the median of them: one that
 * was interrupted on the way does not count. How far the repetitions are from one another is how
 * near a model can come to any one of them. */
#include <math.h>
#include <stdlib.h>

#include "bench/report/model.h"
#include "bench/report/statistics.h"

static uint64_t median_of(double *values, size_t count)
{
    return (uint64_t)(statistic_of(values, count).median + 0.5);
}

enum status model_repeat_calls(struct model_cell *cell, struct call_list *runs, size_t count,
                               struct error *error)
{
    double *ns = calloc(count, sizeof *ns), *waited_ns = calloc(count, sizeof *waited_ns);
    size_t *alike = calloc(count, sizeof *alike), alike_count = 0;
    cell->again = calloc(count, sizeof *cell->again);
    enum status status = ns && waited_ns && alike && cell->again
                             ? STATUS_OK
                             : error_set(error, STATUS_HOST_MEMORY, "no host memory left for runs");
    for (size_t run = 0; run < count && !status; run++) {
        struct model_cell one = {.large = NULL};
        if (run && !(status = model_compare(&one, &runs[0], &runs[run], error)) && one.same_calls)
            cell->again[cell->again_count++] = one.all;
        if (!status && (!run || one.same_calls))
            alike[alike_count++] = run;
        model_cell_close(&one);
    }
    for (size_t i = 0; i < runs[0].count && !status; i++) {
        for (size_t run = 0; run < alike_count; run++) {
            ns[run] = (double)runs[alike[run]].items[i].ns;
            waited_ns[run] = (double)runs[alike[run]].items[i].waited_ns;
        }
        runs[0].items[i].ns = median_of(ns, alike_count);
        runs[0].items[i].waited_ns = median_of(waited_ns, alike_count);
    }
    free(ns);
    free(waited_ns);
    free(alike);
    return status;
}

/* Of the values that are known, whose order goes. */
static double median_or_nan(double *values, size_t count)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[known++] = values[i];
    return known ? statistic_of(values, known).median : (double)NAN;
}

enum status model_repeat_results(struct model_result *runs, size_t count, struct error *error)
{
    double *values = calloc(count, sizeof *values);
    if (!values)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory left for runs");
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].slowdown;
    runs[0].slowdown = median_or_nan(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].step_ns;
    runs[0].step_ns = median_or_nan(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].device_time_ns;
    runs[0].device_time_ns = median_or_nan(values, count);
    for (size_t i = 1; i < count; i++)
        runs[0].passed = runs[0].passed && runs[i].passed;
    free(values);
    return STATUS_OK;
}
