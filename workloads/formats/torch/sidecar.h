/* The .json of a recorded CSV: the settings and the card of the recording. */
#pragma once

#include "workloads/trace/source.h"

struct sidecar_stream {
    uint64_t allocator,
        profiler; /* the allocator's name of a stream, the profiler's number of it */
};

struct sidecar_segment {
    uint64_t address;
    uint32_t pool; /* 0: the common pool; private ones from 1 by first appearance */
};

struct sidecar {
    struct sidecar_stream *streams;
    size_t stream_count;
    struct sidecar_segment *segments; /* in the order of their requests; none: pools are unknown */
    size_t segment_count;
};

/* "x.json" for "x.csv.gz", "x.csv.zst" and "x.csv". The caller frees it; NULL: no host memory. */
char *sidecar_path(const char *csv_path);

/* Reads the .json of `csv_path` into `info` and `out`; without one both stay unchanged. FORMAT if
 * it is no such file. The caller closes `out`. */
enum ar_status sidecar_read(const char *csv_path, struct trace_info *info, struct sidecar *out,
                            struct ar_error *error);
void sidecar_close(struct sidecar *sidecar);

/* The integers in `stats` of the .json of `csv_path`; none if there is no such file. FORMAT. The
 * caller closes `out`, also after a failure. */
enum ar_status sidecar_stats_read(const char *csv_path, struct trace_stats *out,
                                  struct ar_error *error);
