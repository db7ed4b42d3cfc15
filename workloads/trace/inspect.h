/* The statistics of a trace, computed in one pass. */
#pragma once

#include "workloads/trace/source.h"

#define INSPECT_BINS 64
#define INSPECT_KEYS 10 /* a bit of `given` each, then all others together */
_Static_assert(TRACE_GIVEN_LAST == 1u << (INSPECT_KEYS - 2), "every key is counted");

/* Bin 0 holds the value 0, bin b > 0 the values from 2^(b-1) up to below 2^b. */
struct inspect_bin {
    uint64_t blocks;
    uint64_t bytes; /* requested, of those blocks */
};

struct inspect_stream {
    uint64_t blocks, bytes; /* requested on it */
    uint64_t uses, kernels, kernel_ns;
};

struct inspect_step {
    uint64_t first_event, events; /* the last is the mark that ends it */
    uint64_t requests, bytes;     /* requested in it */
    uint64_t live_bytes;          /* at its end */
    uint64_t peak_live_bytes;     /* within it */
};                                /* live bytes are those on the card */

struct inspect {
    uint64_t by_kind[TRACE_KIND_LAST + 1];
    struct inspect_bin sizes[INSPECT_BINS];
    /* Blocks whose free was requested, by the number of requests in between. */
    struct inspect_bin lifetimes[INSPECT_BINS];
    uint64_t free_requested_blocks, kept_blocks, kept_bytes; /* kept: never freed */
    uint64_t largest_bytes;
    uint64_t peak_live_bytes, peak_event; /* the first event at which it is reached */
    uint64_t peak_live_blocks;            /* on the card */
    uint64_t peak_pinned_bytes;           /* live in pinned host memory */
    uint64_t kept_pinned_bytes;           /* of kept_bytes */
    uint64_t pending_blocks;              /* free requested, not completed at the end */
    uint64_t kernel_ns, duration_ns;      /* of all kernels; by the last time event */
    uint64_t keys[INSPECT_KEYS];          /* events that have the key */
    struct inspect_stream *streams;
    uint32_t stream_count;
    struct inspect_step *steps; /* events after the last mark are no step */
    size_t step_count;
};

/* "tag", "pool", ... by index; the last is "other". */
const char *inspect_key_name(unsigned index);

/* The smallest value of a bin. */
uint64_t inspect_bin_from(unsigned bin);

/* Pulls `source` to its end. The caller closes `out`, also after a failure. */
enum ar_status inspect_trace(struct trace_source *source, struct inspect *out,
                             struct ar_error *error);
void inspect_close(struct inspect *inspect);
