/* Repetitions of the same run on a card. Of a call the median of them is what it takes: one that was
 * interrupted on the way does not count. Of a run's sum it is the median too, but of the sums: each
 * run has calls that take long, and which ones is chance, so the medians of single calls have none
 * of that time, and their sum would be less than any run takes. How far the repetitions are from one
 * another is how near a model can come to any one of them. */
#include <math.h>
#include <stdlib.h>

#include "bench/report/model.h"
#include "bench/statistics/statistics.h"

double model_median(double *values, size_t count)
{
    /* What it calls the median is the lower of two; it leaves the values in order. */
    return count ? (statistic_of(values, count).median + values[count / 2]) / 2 : (double)NAN;
}

/* The runs that made the same calls as the first one, which comes first; with room for all. */
struct alike {
    const struct call_list **runs;
    size_t count;
    double *ns, *waited_ns; /* a value of each, for a median */
};

static void alike_close(struct alike *self)
{
    free(self->runs);
    free(self->ns);
    free(self->waited_ns);
}

/* Fills in `again`, which is how far each is from the first. */
static enum ar_status alike_find(struct alike *self, struct model_cell *cell,
                                 const struct call_list *runs, size_t count, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    self->runs = calloc(count, sizeof(*self->runs));
    self->ns = calloc(count, sizeof *self->ns);
    self->waited_ns = calloc(count, sizeof *self->waited_ns);
    cell->again = calloc(count, sizeof *cell->again);
    if (!self->runs || !self->ns || !self->waited_ns || !cell->again)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for runs");
    cell->runs = count;
    self->runs[self->count++] = &runs[0];
    for (size_t run = 1; run < count && !status; run++) {
        struct model_cell one = {.large = NULL};
        status = model_compare(&one, &runs[0], &runs[run], error);
        if (!status && one.same_calls) {
            cell->again[cell->again_count++] = one.all;
            self->runs[self->count++] = &runs[run];
        }
        model_cell_close(&one);
    }
    return status;
}

/* The medians of the sums of the calls that have one on `sim` to be held against. */
static enum ar_status sum_runs(struct alike *self, const struct call_list *sim,
                               struct model_kind *sums, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t run = 0; run < self->count && !status; run++) {
        struct model_cell one = {.large = NULL};
        status = model_compare(&one, self->runs[run], sim, error);
        self->ns[run] = one.all.card_ns;
        self->waited_ns[run] = one.all.card_waited_ns;
        model_cell_close(&one);
    }
    sums->card_ns = model_median(self->ns, self->count);
    sums->card_waited_ns = model_median(self->waited_ns, self->count);
    return status;
}

/* To whole ns. */
static uint64_t whole_median(double *values, size_t count)
{
    double ns = model_median(values, count) + 0.5;
    return ns < (double)UINT64_MAX ? (uint64_t)ns : UINT64_MAX;
}

/* Of each call its median over the runs, left in the first of them. */
static void take_medians(struct alike *self, struct call_list *first)
{
    for (size_t i = 0; i < first->count; i++) {
        for (size_t run = 0; run < self->count; run++) {
            self->ns[run] = (double)self->runs[run]->items[i].ns;
            self->waited_ns[run] = (double)self->runs[run]->items[i].waited_ns;
        }
        first->items[i].ns = whole_median(self->ns, self->count);
        first->items[i].waited_ns = whole_median(self->waited_ns, self->count);
    }
}

enum ar_status model_repeat_compare(struct model_cell *cell, struct call_list *runs, size_t count,
                                    const struct call_list *sim, struct ar_error *error)
{
    struct alike alike = {.runs = NULL};
    struct model_kind sums = {0};
    enum ar_status status = alike_find(&alike, cell, runs, count, error);
    bool several = alike.count > 1; /* one run is its own median */
    if (!status && several)
        status = sum_runs(&alike, sim, &sums, error);
    if (!status && several)
        take_medians(&alike, &runs[0]);
    if (!status)
        status = model_compare(cell, &runs[0], sim, error);
    if (!status && several) {
        cell->all.card_ns = sums.card_ns;
        cell->all.card_waited_ns = sums.card_waited_ns;
    }
    alike_close(&alike);
    return status;
}

/* Of the values that are known, whose order goes. */
static double median_of_known(double *values, size_t count)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[known++] = values[i];
    return model_median(values, known);
}

enum ar_status model_repeat_results(struct model_result *runs, size_t count, struct ar_error *error)
{
    double *values = calloc(count, sizeof *values);
    if (!values)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for runs");
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].slowdown;
    runs[0].slowdown = median_of_known(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].step_ns;
    runs[0].step_ns = median_of_known(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].device_time_ns;
    runs[0].device_time_ns = median_of_known(values, count);
    for (size_t i = 1; i < count; i++)
        runs[0].passed = runs[0].passed && runs[i].passed;
    free(values);
    return AR_OK;
}
