/* The simulated device held against a card: the same runs on both, call by call and as a whole.
 *
 * 1. Calls are paired by kind, the i-th with the i-th. Where the lists do not name the same calls
 *    (kind, bytes, refused) in the same order, the cell says so.
 * 2. A call is met where its modelled time is within a factor of 2 of the measured one. Calls of
 *    1 GiB or more are told one by one instead: cleaning of memory freed before, by whomever,
 *    decides them.
 * 3. A cell's sum is the driver's own time over all its calls; waiting for the device is apart.
 * 4. Of a repeated run medians count, of two middle values their mean (not the lower one: of four
 *    runs that would be the second fastest).
 *    a. A cell's sum is the median of the runs' own sums, as each run has its slow calls, and no two
 *       the same; the sum of the calls' medians would have none.
 *    b. A call is the median of the same call in all runs: for rule 2, and for the sums of a kind.
 *    c. For a and b only runs count that made the same calls as the first one; for the figures of
 *       rule 5, steps and device time all count.
 *    The repetitions are also held against the first of them.
 * 5. Policies are ranked by slowdown on both; Spearman's rho is Pearson's correlation of the ranks,
 *    equal ones sharing their mean. */
#ifndef BENCH_REPORT_MODEL_H
#define BENCH_REPORT_MODEL_H

#include "bench/report/calls_csv.h"

#define MODEL_LARGE_BYTES (UINT64_C(1) << 30)

#define MODEL_NAME_ROOM 4096 /* of a policy or workload, which may name a file; with its end */

/* What a results file (`run --csv`) says of one run. Times not known are NAN. */
struct model_result {
    char policy[MODEL_NAME_ROOM], workload[MODEL_NAME_ROOM];
    bool passed;
    double slowdown, step_ns, device_time_ns;
};

/* Reads it. Several rows must be repetitions of one run, and names fit their room: FORMAT
 * otherwise. */
enum ar_status model_result_read(const char *path, struct model_result *out,
                                 struct ar_error *error) AR_STATUS_CHECKED;

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
    struct model_kind all; /* the sum of the kinds; of repeated runs card_* are by rule 4a */
    struct model_large *large;
    size_t large_count;
    struct model_kind *again; /* further runs on the card against the first, which is `card` here */
    size_t again_count;       /* of those that made the same calls */
    size_t runs;              /* on the card, with the first and those that did not */
};

/* Compares the calls; results are filled in by the caller. HOST_MEMORY. */
enum ar_status model_compare(struct model_cell *cell, const struct call_list *card,
                             const struct call_list *sim, struct ar_error *error) AR_STATUS_CHECKED;
void model_cell_close(struct model_cell *cell);

/* The same for `count` runs (1 or more) of the same on the card, by rule 4; the calls' medians are
 * left in the first list. Fills in `again` and `runs` too. HOST_MEMORY. model_repeat.c */
enum ar_status model_repeat_compare(struct model_cell *cell, struct call_list *runs, size_t count,
                                    const struct call_list *sim,
                                    struct ar_error *error) AR_STATUS_CHECKED;
/* The medians of the runs' figures, left in the first. */
enum ar_status model_repeat_results(struct model_result *runs, size_t count,
                                    struct ar_error *error) AR_STATUS_CHECKED;

/* Of two middle values their mean; NAN of none. Sorts them. */
double model_median(double *values, size_t count);

/* Adds what `part` has to `whole`. */
void model_kind_add(struct model_kind *whole, const struct model_kind *part);

/* sim / card - 1; NAN where there is nothing to divide by. */
double model_error(double card, double sim);

/* Spearman's rho; NAN for fewer than three pairs, or where one side has a single value. */
double model_rank_correlation(const double *a, const double *b, size_t count);

/* The page, in Markdown: sums against their bars, kinds, every cell, larger calls. `repeated` where
 * repetitions were asked for: then it says how many runs there are. */
void model_page(FILE *stream, const struct model_cell *cells, size_t count, bool repeated);

#endif
