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

#endif
