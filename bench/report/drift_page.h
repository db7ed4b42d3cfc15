/* The answer of `drift` as a page for a reader, as JSON, and its series as CSV. */
#ifndef BENCH_REPORT_DRIFT_PAGE_H
#define BENCH_REPORT_DRIFT_PAGE_H

#include <stdio.h>

#include "bench/report/json_writer.h"
#include "bench/statistics/trend.h"
#include "sim/drift/drift.h"

/* Two allowances, unless the recording repeats itself:
 * 1. What makes a recording grow may be rare steps, which it has once or twice, and of which the
 *    next are of other sizes. New extremes of independent steps come with probability 1 / t in step
 *    t, so the upper end of a level allows for as much growth with each tenfold of the steps as
 *    there was in the last tenfold of the recording.
 * 2. A growth that was not seen in n runs has a probability of 1 / (n + 2) in a further one
 *    (Laplace). With fewer runs than DRIFT_SURE_RUNS that is above 1 - TREND_LEVEL: the upper end
 *    of the drift allows for one more growth in the last half, where the slope is steepest,
 *    1.5 times the growth over the half. Its size is the mean of growths over the last nine tenths
 *    of the recorded steps, or over the drawn ones.
 * And if reserved memory falls in no run, it is taken never to fall. */
#define DRIFT_SURE_RUNS 9

/* Reserved bytes after a number of steps, in MiB, of the runs that got there. */
struct drift_level {
    uint64_t step;
    size_t runs;
    struct trend_interval reserved, live;
};

/* What the runs of one policy say together. */
struct drift_answer {
    const char *policy;
    const struct drift_run *runs; /* a run for each seed */
    size_t run_count;
    struct drift_level levels[DRIFT_DECADES + 1]; /* after 1, 10, 100, ... and all steps */
    size_t level_count;
    struct trend_interval per_million; /* MiB in 10^6 steps, over the last half */
    struct trend_interval per_day;     /* if the duration of a step is known */
    double p;                          /* of the test for a trend */
    size_t half_samples;               /* that the test had of each run */
    bool has_trend;
    size_t failed_runs;
    struct trend_interval failed;    /* probability */
    uint64_t retries;                /* of all runs */
    double live_per_million, live_p; /* the same of live bytes, which the program determines */
};

struct drift_page {
    const struct trace_info *info; /* of the recording */
    const struct learned_model *model;
    uint64_t steps, capacity_bytes;
    struct drift_answer *answers;
    size_t answer_count;
};

/* Fills the rest of `out`, whose policy and runs are set, for runs of `steps` steps. */
enum ar_status drift_answer_find(const struct learned_model *model, uint64_t steps,
                                 struct drift_answer *out,
                                 struct ar_error *error) AR_STATUS_CHECKED;

enum ar_status drift_page_print(FILE *stream, const struct drift_page *page,
                                struct ar_error *error) AR_STATUS_CHECKED;
void drift_json_write(struct json_writer *json, const struct drift_page *page);
void drift_series_write(FILE *stream, const struct drift_page *page);

#endif
