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
#pragma once

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
                         struct rank_test *out, struct ar_error *error);

/* Corrects p-values for their number (Holm 1979), in place. */
enum ar_status rank_test_holm(double *p, size_t count, struct ar_error *error);

/* Where a series of figures, one for each commit, changes.
 *
 * Exact figures: wherever a value differs from the previous one.
 *
 * Counts (instructions): where a value differs by more than `effect` from the first one since the
 * last change. A slow drift is found when it adds up to that.
 *
 * Times, whose values vary:
 * 1. Every place with at least CHANGE_LEAST values on both sides is tested, in a window of at most
 *    CHANGE_WINDOW values to each side. The candidate is the place with the greatest standardised
 *    rank sum (Mann, Whitney) between the two sides.
 * 2. Its exact p-value (statistics.h), multiplied by the number of places, must be at most `alpha`:
 *    the chance that any of n places has a p-value of a is at most n a, however the candidate is
 *    chosen. The only assumption on the noise is that values of one level may come in any order.
 * 3. If it holds, both parts are searched in the same way (binary segmentation).
 * 4. Ranks detect that there is a step, but locate it badly: close to an end they prefer the
 *    middle. So each change moves to the place where the two levels fit best: the sum of the
 *    distances of all values from the median of their side is least.
 * 5. Each change is tested again between its neighbours, which were not known when it was found.
 *    Changes whose shift (Hodges and Lehmann) is less than `effect`, or that are no longer
 *    significant, are dropped, the weakest first.
 *
 * Sources: Scott and Knott 1974, Vostrikova 1981 (binary segmentation); Pettitt 1979 (rank sums
 * over places); Matteson and James 2014, Daly and others 2020, and Fleming and others 2023 (Hunter)
 * for change points in the results of benchmarks and for the tests between neighbours. */

#define CHANGE_LEAST  5  /* values on each side of a change of a time */
#define CHANGE_WINDOW 30 /* values on each side that the test uses; twice that is tested exactly */

enum change_kind { CHANGE_EXACT, CHANGE_COUNT, CHANGE_TIMED };

struct change_rules {
    double effect; /* the least change, as a fraction; not used for exact figures */
    double alpha;  /* chance of a false alarm in this series; times only */
};

struct change_point {
    size_t at;            /* the first value of the new level; at least 1 */
    double before, after; /* the two values; of times the medians of the two levels */
    double p;             /* of times, corrected for all places; else 0 */
};

/* Finds the changes in order; `points` has room for `count`. Times must be above 0. INVALID,
 * HOST_MEMORY. */
enum ar_status change_points_find(const double *values, size_t count, enum change_kind kind,
                                  const struct change_rules *rules, struct change_point *points,
                                  size_t *found, struct ar_error *error);

/* The number of values of a new level after which a clear change of a time is found, with `before`
 * values before it; 0: not within the window. */
size_t change_points_delay(size_t before, double alpha);

/* The drift of series over a long run: its slope, whether there is a trend, and intervals.
 *
 * 1. The slope of a series is that of least squares over its last half.
 * 2. Trend: the test of Mann and Kendall on the last half of each series, with the correction for
 *    ties. The series are independent (a seed each), so their statistics and variances add up
 *    (Helsel and Frans 2006, the regional test). Values of one series that are close are dependent,
 *    so a series is first reduced to TREND_BLOCKS means of blocks.
 * 3. The interval for a further run, from those of several seeds: mean - and + t s sqrt(1 + 1 / n)
 *    with Student's t, widened to contain all values of the seeds. From one series: a moving-block
 *    bootstrap of its increments over the last half (Kuensch 1989).
 * Sources: Mann 1945, Kendall 1975; Hahn and Meeker, Statistical Intervals, 1991. */

#define TREND_LEVEL  0.90 /* of intervals */
#define TREND_ALPHA  0.05 /* of the test */
#define TREND_BLOCKS 16

struct trend_interval {
    double estimate, low, high;
};

/* The slope of least squares of `count` points, at least 2 of different x; else 0. */
double trend_slope(const double *x, const double *y, size_t count);

/* The two-sided p-value that `series` series of `count` values each, one after the other, have no
 * common trend. 1 if no value differs from its neighbours. */
double trend_test(const double *values, size_t series, size_t count);

/* Rule 3 for `count` seeds, at least 1. With one value, it is all three numbers. */
struct trend_interval trend_of_seeds(const double *values, size_t count);

/* The same on the logarithms of values above 0, for levels of memory; the estimate is the mean. */
struct trend_interval trend_of_levels(const double *values, size_t count);

/* Rule 3 for one series: its slope by x, of which points are equally far apart. `seed` of the
 * bootstrap. HOST_MEMORY. */
enum ar_status trend_of_series(const double *x, const double *y, size_t count,
                               struct trend_interval *out, struct ar_error *error);

/* The interval of Clopper and Pearson for a probability, at TREND_LEVEL. */
struct trend_interval trend_of_count(size_t hits, size_t count);
