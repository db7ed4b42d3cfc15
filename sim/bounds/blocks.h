/* The requests of a trace as an offline placement problem: blocks with lifetimes. */
#ifndef SIM_BOUNDS_BLOCKS_H
#define SIM_BOUNDS_BLOCKS_H

#include "allocators/planning/packing.h"
#include "sim/replay.h"

/* One request with bytes of device memory, as the trace names it. */
struct bound_request {
    uint64_t id;
    const char *tag;      /* replaces the id if another program gave the lifetime, else NULL;
                             owned by the source */
    int64_t lower, upper; /* lifetime as in plans: see below */
    bool foreign;         /* the lifetime comes from another program */
    uint64_t bytes;       /* requested */
};

struct bound_options {
    enum replay_frees
        frees; /* RECORDED: blocks live until free completed; else until free requested */
    uint64_t granule_bytes; /* sizes and offsets are multiples of it; a power of two; 0: 1 */
    /* A probe counts only if live bytes stay within this: no card serves more. */
    uint64_t card_bytes;
};

/* Requests in the order of the trace. Lifetimes are counted in events, [born, dies). `lower` and
 * `upper` are the same numbers unless the trace has keys of those names with the lifetimes of
 * another program. Consecutive requests that begin at the same moment of those lifetimes are born
 * at the event of the first. Blocks that are never freed die after the last event. */
struct bound_blocks {
    struct ar_host host;
    struct packing_block *blocks; /* sizes rounded up to the granule */
    struct bound_request *requests;
    size_t count, room;
    struct packing packing; /* of `blocks` */
    uint64_t granule_bytes;
    uint64_t live_peak_bytes; /* of requested bytes */
    uint64_t live_peak_event; /* the first event with that many live bytes */
};

/* Rewinds the source and reads it to its end. The source must outlive the blocks, and `self` must
 * not move. INVALID for an adaptive source, whose requests depend on the policy. */
enum ar_status bound_blocks_open(struct bound_blocks *self, struct trace_source *source,
                                 const struct bound_options *options,
                                 struct ar_error *error) AR_STATUS_CHECKED;
void bound_blocks_close(struct bound_blocks *self);

/* Writes the name of the request in plans. Returns `text`. */
const char *bound_request_name(const struct bound_request *request, char *text, size_t text_bytes);

#endif
