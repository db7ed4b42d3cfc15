/* Medians of repeated runs, their intervals, and places by them.
 *
 * 1. The median is a measured value: of two middle ones the lower.
 * 2. The interval of the median is between two of the sorted values, the k-th from below and from
 *    above, and assumes no distribution: it misses the true median with probability 2 P(X < k),
 *    X binomial (n, 1/2). k is the greatest for which the interval holds at 95 % or more; the level
 *    stated is the true one. Fewer than six values have no interval.
 * 3. Percentiles of different runs are never averaged: each run has its own, and the median of
 *    these is one of them.
 * 4. Replicates form pairs: what a seed does to all policies alike is in both values of a pair and
 *    not in their difference. So the interval of the median difference can tell policies apart
 *    (0 is outside of it) whose own intervals overlap. If ranges do not overlap it always does.
 *
 * Source: H. A. David, H. N. Nagaraja, Order Statistics, 3rd edition, 7.1. */
#ifndef BENCH_STATISTICS_STATISTICS_H
#define BENCH_STATISTICS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

#define STATISTIC_LEVEL 0.95

struct statistic {
    size_t count; /* of values; 0: none, and nothing below is set */
    double median, least, most;
    bool has_interval;
    double low, high; /* of the interval */
    double level;     /* at which it holds */
};

/* In rising order. */
void statistic_sort(double *values, size_t count);
/* The mean of the two middle ones, or the middle one, of sorted values. */
static inline double statistic_middle(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Sorts the values. */
struct statistic statistic_of(double *values, size_t count);

/* The place of a row among others. */
struct statistic_place {
    size_t place; /* from 1; 0: none */
    bool shared;  /* with a row that it is not told apart from */
};

/* Places by intervals: one more than the number of intervals wholly below. Two whose intervals
 * overlap are not told apart. Rows without an interval have no place. */
void statistic_places(const struct statistic *of, size_t count, struct statistic_place *places);

/* Compares `a` with `b`, `count` values each, in pairs: -1 below, 1 above, 0 not told apart. By the
 * interval of the median of their differences; if there are too few values for one, by their
 * ranges, which must not overlap. `room` is for `count` values. */
int statistic_pair_order(const double *a, const double *b, size_t count, double *room);

/* Places by pairs, of `count` rows of `values` values each, row by row. A row that begins with NaN
 * has no place. `room` is for a row. */
void statistic_places_paired(const double *rows, size_t count, size_t values, double *room,
                             struct statistic_place *places);

/* ---- rank test of two samples -------------------------------------------------------------- */

/* Whether the values of one side are larger than those of the other, without assuming a
 * distribution.
 *
 * 1. The rank sum of Mann, Whitney and Wilcoxon, ties at their mean rank. Its distribution under
 *    "no difference" is exact, also with ties, for up to RANK_TEST_EXACT values in total: dynamic
 *    programming counts every way to choose the ranks of one side. Beyond that the normal
 *    approximation with corrections for ties and continuity.
 * 2. Effects: Cliff's delta, P(new > old) - P(new < old), from -1 to 1; and the shift by Hodges and
 *    Lehmann on a scale of factors: the median of all quotients new / old, with the interval of the
 *    shifts that the test at 95 % does not exclude (by the distribution without ties, so with ties
 *    it is slightly wide).
 * 3. The smallest effect that the test could detect is the distance of the interval's far end from
 *    the estimate: values spread like these and shifted by that much would just be told apart.
 *
 * Sources: Mann and Whitney 1947; Hodges and Lehmann 1963; Cliff 1993; Lehmann, Nonparametrics. */

#define RANK_TEST_LEAST 9  /* values on each side */
#define RANK_TEST_EXACT 60 /* values in total */

struct rank_test {
    double p;         /* two-sided */
    double delta;     /* Cliff's */
    double ratio;     /* new / old */
    double low, high; /* the interval of it */
    double sees;      /* the smallest change that can be detected, as a fraction: 0.03 is 3 % */
};

/* INVALID if a value is not above 0, or a side has no values. HOST_MEMORY. */
enum ar_status rank_test(const double *old, size_t old_count, const double *new_, size_t new_count,
                         struct rank_test *out, struct ar_error *error) AR_STATUS_CHECKED;

/* Corrects p-values for their number (Holm 1979), in place. */
enum ar_status rank_test_holm(double *p, size_t count, struct ar_error *error) AR_STATUS_CHECKED;

#endif
