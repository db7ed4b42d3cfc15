/* A histogram of unsigned numbers with a bounded relative error, for latencies and sizes.
 *
 * Log-linear, as in HdrHistogram and fio: below 128 every number has its own bucket; above, each
 * power of two is divided into 64 buckets of equal width. A bucket is never wider than 1/64 of its
 * smallest number, and a quantile is the middle of a bucket, so its error is at most 1/128 (0.78
 * %). The minimum and the maximum are exact. The size is fixed, histograms can be added, and the
 * counts do not depend on the order of the numbers. */
#ifndef ALLOCATORS_BASE_HIST_H
#define ALLOCATORS_BASE_HIST_H

#include <stdint.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

#define AR_HIST_SUB_BITS 6u
#define AR_HIST_SUB      (1u << AR_HIST_SUB_BITS)
#define AR_HIST_BUCKETS  ((64u - AR_HIST_SUB_BITS + 1u) * AR_HIST_SUB)

struct ar_hist {
    uint64_t count[AR_HIST_BUCKETS];
    uint64_t total;       /* the sum of the counts */
    uint64_t least, most; /* exact; valid if total is not 0 */
};

/* The bucket of a number, and the smallest and largest number of a bucket. */
AR_API uint32_t ar_hist_bucket(uint64_t value);
AR_API uint64_t ar_hist_bucket_least(uint32_t bucket);
AR_API uint64_t ar_hist_bucket_most(uint32_t bucket);

AR_API void ar_hist_clear(struct ar_hist *hist);
/* Adds the number `count` times. */
AR_API void ar_hist_add(struct ar_hist *hist, uint64_t value, uint64_t count);
/* Adds all of `from` to `into`. */
AR_API void ar_hist_merge(struct ar_hist *into, const struct ar_hist *from);

/* The smallest number such that at least `fraction` (0 to 1) of all numbers are not above it, with
 * the error stated above; 0 if the histogram is empty. */
AR_API uint64_t ar_hist_quantile(const struct ar_hist *hist, double fraction);

AR_END_DECLS

#endif
