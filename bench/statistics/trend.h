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
#ifndef BENCH_STATISTICS_TREND_H
#define BENCH_STATISTICS_TREND_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

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
                               struct trend_interval *out,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* The interval of Clopper and Pearson for a probability, at TREND_LEVEL. */
struct trend_interval trend_of_count(size_t hits, size_t count);

#endif
