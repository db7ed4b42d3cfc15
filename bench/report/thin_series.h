/* A series made small enough for a figure, without losing its peaks. */
#ifndef BENCH_REPORT_THIN_SERIES_H
#define BENCH_REPORT_THIN_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "sim/replay.h"

/* Neighbouring samples share a bucket, which keeps those with the fewest and the most live
 * bytes, and the most physical bytes. When all buckets are full, pairs become one and buckets
 * are twice as wide from then on: at most 3 * 660 samples stay, however long the series. */
#define THIN_BUCKETS 660u

struct thin_bucket {
    struct replay_sample least_live, most_live, most_physical;
};

struct thin_series {
    uint64_t width; /* samples in a full bucket; 0 before the first sample */
    uint64_t in_last;
    size_t count;
    struct replay_sample last;
    struct thin_bucket buckets[THIN_BUCKETS];
};

/* Of the form that the engine calls: `argument` is a zeroed struct thin_series. */
enum ar_status thin_series_add(void *argument, const struct replay_sample *sample,
                               struct ar_error *error);

/* Calls `take` for the samples that were kept, in the order of events, each once. */
typedef void thin_series_take(void *argument, const struct replay_sample *sample);
void thin_series_each(const struct thin_series *self, thin_series_take *take, void *argument);

#endif
