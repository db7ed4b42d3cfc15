/* The simulated device compared with a card: the same runs on both, call by call and as a whole.
 *
 * 1. Calls are paired by kind, the i-th with the i-th. If the two lists do not have the same calls
 *    (kind, bytes, refused) in the same order, the run says so.
 * 2. A call is met if its modelled time is within a factor of 2 of the measured one. Calls of 1 GiB
 *    or more are listed one by one instead: their time depends on the cleaning of memory that any
 *    process freed before.
 * 3. The sum of a run is the driver's own time over all its calls; waiting for the device is
 *    reported apart.
 * 4. Of a repeated run medians count; of two middle values their mean (the lower one would be the
 *    second fastest of four runs).
 *    a. The sum of a run is the median of the runs' own sums, because each run has its own slow
 *       calls; the sum of the medians of calls would have none of them.
 *    b. A call is the median of the same call in all runs: for rule 2, and for the sums of a kind.
 *    c. For a and b only runs count that made the same calls as the first one; for the figures of
 *       rule 5, steps and device time all runs count.
 *    The repetitions are also compared with the first of them.
 * 5. Policies are ranked by slowdown on both; Spearman's rho is Pearson's correlation of the ranks;
 *    equal values share their mean rank. */
#pragma once

#include "bench/report/run_output.h"

#define MODEL_LARGE_BYTES (UINT64_C(1) << 30)

#define MODEL_NAME_ROOM 4096 /* of a policy or workload, which may name a file; with the NUL */

/* One run in a results file (`run --csv`). Unknown times are NAN. */
struct model_result {
    char policy[MODEL_NAME_ROOM], workload[MODEL_NAME_ROOM];
    bool passed;
    double slowdown, step_ns, device_time_ns;
};

/* Reads it. FORMAT unless all rows are repetitions of one run and names fit their room. */
enum ar_status model_result_read(const char *path, struct model_result *out,
                                 struct ar_error *error);

struct model_kind {
    size_t count;      /* pairs */
    size_t small, met; /* under 1 GiB, and within a factor of 2 of these */
    double card_ns, sim_ns;
    double card_waited_ns, sim_waited_ns;
};

struct model_large {
    struct driver_call card, sim;
};

struct model_cell {
    struct model_result card, sim;
    bool same_calls;
    struct model_kind kinds[AR_DEVICE_CALL_COUNT];
    struct model_kind all; /* the sum of the kinds; card_* of repeated runs by rule 4a */
    struct model_large *large;
    size_t large_count, large_room;
    struct model_kind
        *again;         /* further runs on the card compared with the first, which is `card` here */
    size_t again_count; /* those that made the same calls */
    size_t runs;        /* all on the card */
};

/* Compares the calls; results are filled in by the caller. HOST_MEMORY. */
enum ar_status model_compare(struct model_cell *cell, const struct call_list *card,
                             const struct call_list *sim, struct ar_error *error);
void model_cell_close(struct model_cell *cell);

/* The same for `count` repetitions (1 or more) on the card, by rule 4; leaves the medians of the
 * calls in the first list. Fills in `again` and `runs` too. HOST_MEMORY. */
enum ar_status model_repeat_compare(struct model_cell *cell, struct call_list *runs, size_t count,
                                    const struct call_list *sim, struct ar_error *error);
/* Leaves the medians of the runs' figures in the first. */
enum ar_status model_repeat_results(struct model_result *runs, size_t count,
                                    struct ar_error *error);

/* Of two middle values their mean; NAN for no values. Sorts them. */
double model_median(double *values, size_t count);

/* sim / card - 1; NAN if `card` is 0. */
double model_error(double card, double sim);

/* Spearman's rho; NAN for fewer than three pairs, or if all values of one side are equal. */
double model_rank_correlation(const double *a, const double *b, size_t count);

/* The page in Markdown: sums and their bars, kinds, every run, large calls. `repeated`: also the
 * number of runs that each figure is a median of. */
void model_page(FILE *stream, const struct model_cell *cells, size_t count, bool repeated);
