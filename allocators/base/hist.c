#include "allocators/base/hist.h"

#include <string.h>

uint32_t ar_hist_bucket(uint64_t value)
{
    if (value < 2 * AR_HIST_SUB)
        return (uint32_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - AR_HIST_SUB_BITS;
    return (uint32_t)(shift * AR_HIST_SUB + (value >> shift));
}

uint64_t ar_hist_bucket_least(uint32_t bucket)
{
    if (bucket < 2 * AR_HIST_SUB)
        return bucket;
    unsigned shift = bucket / AR_HIST_SUB - 1;
    return (uint64_t)(AR_HIST_SUB + bucket % AR_HIST_SUB) << shift;
}

uint64_t ar_hist_bucket_most(uint32_t bucket)
{
    return bucket + 1 < AR_HIST_BUCKETS ? ar_hist_bucket_least(bucket + 1) - 1 : UINT64_MAX;
}

void ar_hist_clear(struct ar_hist *hist)
{
    memset(hist, 0, sizeof *hist);
}

void ar_hist_add(struct ar_hist *hist, uint64_t value, uint64_t count)
{
    if (!count)
        return;
    if (!hist->total || value < hist->least)
        hist->least = value;
    if (!hist->total || value > hist->most)
        hist->most = value;
    hist->count[ar_hist_bucket(value)] += count;
    hist->total += count;
}

void ar_hist_merge(struct ar_hist *into, const struct ar_hist *from)
{
    if (!from->total)
        return;
    if (!into->total || from->least < into->least)
        into->least = from->least;
    if (!into->total || from->most > into->most)
        into->most = from->most;
    for (uint32_t i = 0; i < AR_HIST_BUCKETS; i++)
        into->count[i] += from->count[i];
    into->total += from->total;
}

uint64_t ar_hist_quantile(const struct ar_hist *hist, double fraction)
{
    if (!hist->total)
        return 0;
    double exact = fraction * (double)hist->total;
    uint64_t rank = exact <= 1 ? 1 : (uint64_t)exact;
    rank += (double)rank < exact; /* rounded up */
    if (rank >= hist->total)
        return hist->most;
    uint32_t bucket = 0;
    for (uint64_t seen = hist->count[0]; seen < rank; seen += hist->count[bucket])
        bucket++;
    uint64_t least = ar_hist_bucket_least(bucket);
    uint64_t middle = least + (ar_hist_bucket_most(bucket) - least) / 2;
    return middle < hist->least ? hist->least : middle > hist->most ? hist->most : middle;
}
