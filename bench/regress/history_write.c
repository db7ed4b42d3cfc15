/* Results as a line of the history: history.h has the form. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/json_writer.h"
#include "bench/statistics/statistics.h"

#include "bench/regress/history.h"

/* Which metrics have a column: those of which any run has a value. */
struct columns {
    bool exact[METRIC_COUNT], timed[METRIC_COUNT];
};

static bool is_timed(const struct side_cell *cell, enum metric metric)
{
    return side_is_timed(cell, metric) || side_differs(cell, metric);
}

static bool is_kept(enum metric metric)
{
    return metric_info(metric)->better != METRIC_NEITHER && metric != METRIC_first_failed_event;
}

static bool has_value(const struct side_cell *cell, enum metric metric)
{
    for (size_t i = 0; i < cell->run_count; i++)
        if (cell->runs[i].metrics.at[metric].kind != METRIC_NULL)
            return true;
    return false;
}

static struct columns columns_of(const struct side *results)
{
    struct columns columns = {{false}, {false}};
    for (size_t i = 0; i < results->cell_count; i++) {
        const struct side_cell *cell = &results->cells[i];
        for (int m = 0; m < METRIC_COUNT; m++) {
            enum metric metric = (enum metric)m;
            if (is_kept(metric) && has_value(cell, metric))
                (is_timed(cell, metric) ? columns.timed : columns.exact)[m] = true;
        }
    }
    return columns;
}

/* The middle value of the repetitions; of two the lower, so that it is one that was measured. */
static double middle(const struct side_cell *cell, enum metric metric)
{
    double *values = calloc(cell->run_count, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; values && i < cell->run_count; i++)
        if (cell->runs[i].metrics.at[metric].kind != METRIC_NULL)
            values[count++] = metric_number(&cell->runs[i].metrics, metric, 0);
    double median = count ? statistic_of(values, count).median : (double)NAN;
    free(values);
    return median;
}

static void put_values(struct json_writer *writer, const char *key, const struct side_cell *cell,
                       const bool *columns, bool timed)
{
    json_begin_array(writer, key);
    for (int m = 0; m < METRIC_COUNT; m++) {
        const struct metric_value *value = &cell->runs[0].metrics.at[m];
        if (!columns[m])
            continue;
        if (is_timed(cell, (enum metric)m) != timed)
            json_put_null(writer, NULL);
        else if (timed)
            json_put_real(writer, NULL, middle(cell, (enum metric)m));
        else if (value->kind == METRIC_INTEGER)
            json_put_integer(writer, NULL, value->integer);
        else
            json_put_real(writer, NULL, value->kind == METRIC_REAL ? value->real : (double)NAN);
    }
    json_end_array(writer);
}

static void put_run(struct json_writer *writer, const struct side_cell *cell,
                    const struct columns *columns)
{
    const struct side_run *run = side_least_far(cell);
    json_begin_object(writer, NULL);
    json_put_text(writer, "policy", cell->policy);
    json_put_text(writer, "workload", cell->workload);
    json_put_text(writer, "device", cell->device);
    json_put_text(writer, "frees", cell->frees);
    json_put_text(writer, "host", cell->host);
    json_put_integer(writer, "seed", cell->seed);
    json_put_bool(writer, "passed", run->passed);
    if (run->played)
        json_put_integer(writer, "first_failed_event", run->first_failed_event);
    else
        json_put_null(writer, "first_failed_event");
    json_put_text(writer, "cause", run->cause);
    put_values(writer, "exact", cell, columns->exact, false);
    put_values(writer, "timed", cell, columns->timed, true);
    json_end_object(writer);
}

static void put_names(struct json_writer *writer, const char *key, const bool *columns)
{
    json_begin_array(writer, key);
    for (int m = 0; m < METRIC_COUNT; m++)
        if (columns[m])
            json_put_text(writer, NULL, metric_info((enum metric)m)->name);
    json_end_array(writer);
}

static void put_workloads(struct json_writer *writer, const struct side *results)
{
    json_begin_object(writer, "workloads");
    for (size_t i = 0; i < results->cell_count; i++) {
        const struct side_cell *cell = &results->cells[i];
        size_t first = 0;
        while (strcmp(results->cells[first].workload, cell->workload) != 0)
            first++;
        if (first < i)
            continue;
        json_begin_object(writer, cell->workload);
        json_put_text(writer, "name", cell->workload_name);
        json_put_text(writer, "sha256", cell->sha256);
        json_end_object(writer);
    }
    json_end_object(writer);
}

static void put_counts(struct json_writer *writer, const struct side *results)
{
    json_begin_array(writer, "instructions");
    for (size_t i = 0; i < results->count_count; i++) {
        const struct side_count *count = &results->counts[i];
        json_begin_object(writer, NULL);
        json_put_text(writer, "policy", count->policy);
        json_put_text(writer, "trace", count->trace);
        json_put_text(writer, "kind", count->kind);
        json_put_text(writer, "measure", count->measure);
        json_put_text(writer, "compiler", count->compiler);
        json_put_real(writer, "instructions", count->value);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void history_write_line(FILE *stream, const struct side *results, const struct history_stamp *stamp)
{
    /* As if within two levels that share one line: so no line is broken, and no end is written. */
    struct json_writer writer = {.stream = stream, .depth = 2, .lean_from = 1};
    const struct columns columns = columns_of(results);
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "schema", HISTORY_SCHEMA);
    json_put_text(&writer, "commit", stamp->commit);
    json_put_text(&writer, "time", stamp->time);
    json_put_text(&writer, "machine", results->machine);
    json_put_text(&writer, "flags", results->flags);
    json_begin_object(&writer, "metrics");
    put_names(&writer, "exact", columns.exact);
    put_names(&writer, "timed", columns.timed);
    json_end_object(&writer);
    put_workloads(&writer, results);
    json_begin_array(&writer, "runs");
    for (size_t i = 0; i < results->cell_count; i++)
        put_run(&writer, &results->cells[i], &columns);
    json_end_array(&writer);
    put_counts(&writer, results);
    json_end_object(&writer);
    fputc('\n', stream);
}
