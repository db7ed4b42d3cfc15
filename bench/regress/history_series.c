#include "bench/regress/history_series.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "bench/report/json_writer.h"

/* A cell, while series are made. */
struct cell {
    const struct history_run *run;  /* the last one */
    size_t epoch, outcome_epoch;    /* go up where a series begins anew */
    size_t heads[METRIC_COUNT + 1]; /* its series of each metric and of the outcome; 0: none, else
                                       one more than the index */
    bool timed[METRIC_COUNT];
};

struct making {
    struct history_judged *out;
    const struct history *history;
    const struct history_rules *rules;
    struct cell *cells;
    size_t cell_count, cell_room;
    struct ar_error *error;
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the history");
}

/* All texts of a history are kept once. */
static bool same_cell(const struct history_run *a, const struct history_run *b)
{
    return a->policy == b->policy && a->workload == b->workload && a->device == b->device &&
           a->frees == b->frees && a->host == b->host && a->seed == b->seed;
}

static bool fits(const char *pattern, const char *text)
{
    return !pattern || fnmatch(pattern, text, 0) == 0;
}

static bool is_wanted(const struct history_rules *rules, const char *policy, const char *workload,
                      const char *name)
{
    return fits(rules->policy, policy) &&
           (fits(rules->workload, workload) || fits(rules->workload, name));
}

/* The index of the run's cell, which is made where it is not there; SIZE_MAX: no host memory. */
static size_t cell_of(struct making *self, const struct history_run *run, size_t near)
{
    /* Lines mostly have the same order. */
    for (size_t i = 0; i < self->cell_count; i++) {
        size_t at = (near + i) % self->cell_count;
        if (same_cell(self->cells[at].run, run))
            return at;
    }
    struct cell *cells =
        ar_array_grow(self->cells, self->cell_count, &self->cell_room, sizeof *cells);
    if (!cells)
        return SIZE_MAX;
    self->cells = cells;
    self->cells[self->cell_count] = (struct cell){.run = run};
    return self->cell_count++;
}

static struct history_series *add_series(struct history_judged *out,
                                         const struct history_series *like)
{
    struct history_series *series =
        ar_array_grow(out->series, out->count, &out->room, sizeof *series);
    if (!series)
        return NULL;
    out->series = series;
    out->series[out->count] = *like;
    return &out->series[out->count++];
}

static enum ar_status add_point(struct making *self, struct history_series *series, size_t line,
                                double value, size_t epoch)
{
    if (!series)
        return no_memory(self->error);
    struct history_point *points =
        ar_array_grow(series->points, series->count, &series->room, sizeof *points);
    if (!points)
        return no_memory(self->error);
    series->points = points;
    series->points[series->count] =
        (struct history_point){line, value, series->count == 0 || series->epoch != epoch, value};
    series->count++;
    series->epoch = epoch;
    return AR_OK;
}

/* The series of that cell and metric, of that machine and those flags (NULL: exact); they are a chain. */
static struct history_series *series_of(struct history_judged *out, size_t *head,
                                        struct history_series *like)
{
    for (size_t at = *head; at; at = out->series[at - 1].other)
        if (out->series[at - 1].machine == like->machine &&
            out->series[at - 1].flags == like->flags)
            return &out->series[at - 1];
    like->other = *head;
    struct history_series *added = add_series(out, like);
    *head = added ? out->count : *head;
    return added;
}

static double outcome_of(const struct history_run *run)
{
    return run->passed   ? HISTORY_PASSED
           : run->played ? (double)run->first_failed_event
                         : HISTORY_NO_RUN;
}

static bool differ(double a, double b)
{
    return a < b || a > b;
}

static enum ar_status add_run(struct making *self, size_t line, const struct history_run *run,
                              size_t index)
{
    struct cell *cell = &self->cells[index];
    bool another = strcmp(cell->run->sha256, run->sha256) != 0;
    cell->outcome_epoch += another;
    cell->epoch += another || differ(outcome_of(cell->run), outcome_of(run));
    cell->run = run;
    struct history_series like = {.policy = run->policy,
                                  .workload = run->workload,
                                  .workload_name = run->workload_name,
                                  .where = run->device,
                                  .figure = "outcome",
                                  .unit = "event",
                                  .better = METRIC_HIGHER,
                                  .cell = index};
    enum ar_status status = AR_OK;
    if (fits(self->rules->figure, like.figure))
        status = add_point(self, series_of(self->out, &cell->heads[METRIC_COUNT], &like), line,
                           outcome_of(run), cell->outcome_epoch);
    for (int m = 0; m < METRIC_COUNT && !status; m++) {
        const struct metric_info *info = metric_info((enum metric)m);
        if (isnan(run->values[m]) || !fits(self->rules->figure, info->name))
            continue;
        like.figure = info->name;
        like.unit = info->unit;
        like.better = info->better;
        like.kind = cell->timed[m] ? CHANGE_TIMED : CHANGE_EXACT;
        like.machine = cell->timed[m] ? self->history->lines[line].machine : NULL;
        like.flags = cell->timed[m] ? self->history->lines[line].flags : NULL;
        status = add_point(self, series_of(self->out, &cell->heads[m], &like), line, run->values[m],
                           cell->epoch);
    }
    return status;
}

/* Which metrics are timed must be known before any series is made. */
static enum ar_status find_timed(struct making *self)
{
    for (size_t i = 0; i < self->history->count; i++) {
        const struct history_line *line = &self->history->lines[i];
        for (size_t j = 0, near = 0; j < line->run_count; j++) {
            const struct history_run *run = &line->runs[j];
            if (!is_wanted(self->rules, run->policy, run->workload, run->workload_name))
                continue;
            size_t cell = cell_of(self, run, near);
            if (cell == SIZE_MAX)
                return no_memory(self->error);
            for (int m = 0; m < METRIC_COUNT; m++)
                self->cells[cell].timed[m] |= run->timed[m];
            near = cell + 1;
        }
    }
    return AR_OK;
}

static enum ar_status add_runs(struct making *self)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->history->count && !status; i++) {
        const struct history_line *line = &self->history->lines[i];
        for (size_t j = 0, near = 0; j < line->run_count && !status; j++) {
            const struct history_run *run = &line->runs[j];
            if (!is_wanted(self->rules, run->policy, run->workload, run->workload_name))
                continue;
            size_t cell = cell_of(self, run, near);
            status = add_run(self, i, run, cell);
            near = cell + 1;
        }
    }
    return status;
}

static enum ar_status add_count(struct making *self, size_t line, const struct side_count *count,
                                size_t first)
{
    struct history_judged *out = self->out;
    const struct history_series like = {
        .policy = count->policy,
        .workload = count->trace,
        .workload_name = count->trace,
        .where = count->kind,
        .figure = strcmp(count->measure, "exact") == 0 ? "instructions_exact" : "instructions",
        .unit = "count",
        .better = METRIC_LOWER,
        .kind = CHANGE_COUNT,
        .flags = count->compiler,
        .cell = SIZE_MAX};
    if (!is_wanted(self->rules, like.policy, like.workload, like.workload_name) ||
        !fits(self->rules->figure, like.figure))
        return AR_OK;
    size_t at = first;
    while (at < out->count &&
           !(out->series[at].policy == like.policy && out->series[at].workload == like.workload &&
             out->series[at].where == like.where && out->series[at].flags == like.flags &&
             strcmp(out->series[at].figure, like.figure) == 0))
        at++;
    if (at == out->count && !add_series(out, &like))
        return no_memory(self->error);
    return add_point(self, &out->series[at], line, count->value, 0);
}

enum ar_status history_series_make(struct history_judged *self, const struct history *history,
                                   const struct history_rules *rules, struct ar_error *error)
{
    struct making making = {.out = self, .history = history, .rules = rules, .error = error};
    enum ar_status status = find_timed(&making);
    if (!status)
        status = add_runs(&making);
    size_t first = self->count;
    for (size_t i = 0; i < history->count && !status; i++)
        for (size_t j = 0; j < history->lines[i].count_count && !status; j++)
            status = add_count(&making, i, &history->lines[i].counts[j], first);
    free(making.cells);
    return status;
}

const char *history_value_text(const struct history_series *series, double value, char text[40])
{
    if (strcmp(series->figure, "outcome") != 0)
        snprintf(text, 40, value >= 1e15 || differ(value, floor(value)) ? "%.6g" : "%.0f", value);
    else if (isinf(value))
        snprintf(text, 40, "passed");
    else if (value < 0)
        snprintf(text, 40, "no run");
    else
        snprintf(text, 40, "DNF @ %.0f", value);
    return text;
}
