/* Are the values of one side larger than those of the other? Nothing is assumed of how they are
 * spread.
 *
 * 1. The rank sum of Mann, Whitney and Wilcoxon, ties at their mean rank. Its distribution under
 *    "no difference" is exact, ties included, up to RANK_TEST_EXACT values in all: every way to
 *    choose the ranks of one side is counted by dynamic programming. Beyond that the normal
 *    approximation, with correction for ties and continuity.
 * 2. Effects: Cliff's delta, P(new > old) - P(new < old), from -1 to 1; and the shift by Hodges and
 *    Lehmann on a scale of factors: the median of all quotients new / old, with the interval of
 *    those shifts that the test at 95 % does not rule out (by the distribution without ties, so
 *    that with ties it is a little wide).
 * 3. The smallest effect that the test could have seen is how far the interval reaches from the
 *    estimate: values spread like these, moved by that much, would just have been told apart.
 *
 * Sources: Mann and Whitney 1947; Hodges and Lehmann 1963; Cliff 1993; Lehmann, Nonparametrics. */
#ifndef BENCH_STATISTICS_RANK_TEST_H
#define BENCH_STATISTICS_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

#define RANK_TEST_LEAST 9  /* values a side */
#define RANK_TEST_EXACT 60 /* values in all */

struct rank_test {
    double p;         /* two-sided */
    double delta;     /* Cliff's */
    double ratio;     /* new / old */
    double low, high; /* the interval of it */
    double sees;      /* the smallest change that would be seen, as a fraction: 0.03 is 3 % */
};

/* Values must be above 0; INVALID otherwise, and where a side has none. HOST_MEMORY. */
enum ar_status rank_test(const double *old, size_t old_count, const double *new_, size_t new_count,
                         struct rank_test *out, struct ar_error *error) AR_STATUS_CHECKED;

/* Corrects p-values for being many (Holm 1979): each is raised to what it is worth among all. */
enum ar_status rank_test_holm(double *p, size_t count, struct ar_error *error) AR_STATUS_CHECKED;

#endif
