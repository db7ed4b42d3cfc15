/* What an import report says beside what its reader found: counted in the trace. */
#ifndef WORKLOADS_FORMATS_IMPORT_COUNTS_H
#define WORKLOADS_FORMATS_IMPORT_COUNTS_H

#include "workloads/trace/source.h"

#define IMPORT_SIZES 10 /* sizes of blocks never freed that are told apart */

struct import_size {
    uint64_t bytes, blocks; /* of one block; how many */
};

struct import_counts {
    uint64_t start_blocks, start_bytes; /* live before the first event */
    uint64_t end_blocks, end_bytes;     /* never let go */
    uint64_t end_start_blocks;          /* of these, live before the first event */
    uint64_t peak_bytes, peak_event;    /* live; the first event at which it is reached */
    uint64_t held_peak_bytes;           /* by the recorded allocator; 0: not told */
    /* Of the blocks never let go, by all bytes of a size, the most first. */
    struct import_size sizes[IMPORT_SIZES];
    size_t size_count;
    uint64_t other_sizes, other_bytes; /* that found no place there */
};

/* Pulls all of `source` from its first event, where it stands again then. HOST_MEMORY, or what the
 * source says. */
enum ar_status import_count(struct trace_source *source, struct import_counts *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

#endif
