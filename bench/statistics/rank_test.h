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
#ifndef BENCH_STATISTICS_RANK_TEST_H
#define BENCH_STATISTICS_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

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
