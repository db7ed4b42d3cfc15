/* What repetitions of one run say together.
 *
 * 1. The median is a value that was measured: of two middle ones the lower.
 * 2. The interval of the median is between two of the values in order, the k-th from below and
 *    from above, and assumes nothing of how they are spread: it misses the true median with
 *    probability 2 P(X < k), X binomial (n, 1/2). k is the greatest with which it is held at 95 %
 *    or more; the level that is stated is the true one. Under six values there is none.
 * 3. Percentiles of different runs are never averaged: each run has its own, and the median of
 *    these is one of them.
 * 4. Draws come in pairs: what a draw does to all policies alike is in both of a pair, and not in
 *    their difference. So the interval of the differences' median tells policies apart (0 lies
 *    outside it) whose own intervals overlap. Where ranges do not overlap it always does.
 *
 * Source: H. A. David, H. N. Nagaraja, Order Statistics, 3rd edition, 7.1. */
#ifndef BENCH_STATISTICS_STATISTICS_H
#define BENCH_STATISTICS_STATISTICS_H

#include "bench/report/run_record.h"

#define STATISTIC_LEVEL 0.95

struct statistic {
    size_t count; /* of values; 0: none, and nothing below is set */
    double median, least, most;
    bool has_interval;
    double low, high; /* of the interval */
    double level;     /* at which it holds */
};

/* Sorts the values. */
struct statistic statistic_of(double *values, size_t count);

/* True where both are repetitions of one run. */
bool statistic_same_run(const struct run_record *a, const struct run_record *b);

/* Over the runs from `first` to before `end` that repeat `first` and passed. `values` has room for
 * as many. */
struct statistic statistic_gather(const struct run_record *first, const struct run_record *end,
                                  enum metric metric, double *values);

/* Over the runs from `first` to before `end`, all of one group, that have its policy and passed:
 * draws and repetitions. */
struct statistic statistic_over_draws(const struct run_record *first, const struct run_record *end,
                                      enum metric metric, double *values);

/* All repetitions as one record: medians for figures; not passed where one of them has not, and
 * then as the first of those. */
struct run_record statistic_record(const struct run_record *first, const struct run_record *end,
                                   double *values);

/* Each run once, its repetitions as one, in the order given; `kept` is how many. The caller frees
 * them; NULL: no host memory. */
struct run_record *statistic_condense(const struct run_record *records, size_t count, size_t *kept);

/* The place of each of `count` intervals, from 1: one more than how many lie wholly below it.
 * `shared[i]`: it overlaps another one, so that no order between the two is stated. Those without
 * an interval have place 0. */
void statistic_places(const struct statistic *of, size_t count, size_t *places, bool *shared);

/* How `a` lies to `b`, `count` values each, which were drawn in pairs: -1 below, 1 above, 0 not told
 * apart. By the interval of the median of their differences; too few for one: by their ranges, which
 * must not overlap. `room` is for as many. */
int statistic_pair_order(const double *a, const double *b, size_t count, double *room);

/* The same places, of `count` rows of `draws` values each, row by row, by the order of pairs. A row
 * that begins with NaN has place 0. `room` is for a row. */
void statistic_places_paired(const double *rows, size_t count, size_t draws, double *room,
                             size_t *places, bool *shared);

#endif
