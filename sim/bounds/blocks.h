/* The requests of a trace as an offline problem: who lives when. */
#ifndef SIM_BOUNDS_BLOCKS_H
#define SIM_BOUNDS_BLOCKS_H

#include "allocators/planning/packing.h"
#include "sim/replay.h"

/* One request with bytes of device memory, as the trace names it. */
struct bound_request {
    uint64_t id;
    const char *tag;      /* the name that stands for the id in lifetimes of another program, or
                             NULL; the source's */
    int64_t lower, upper; /* its life as plans have it: see below */
    bool foreign;         /* the trace keeps the lifetime that another program gave */
    uint64_t bytes;       /* asked for */
};

struct bound_options {
    enum replay_frees frees; /* RECORDED: a block lives until it is complete; else to the let-go */
    uint64_t granule_bytes;  /* sizes and offsets are multiples of it, a power of two; 0: 1 */
    /* A probe counts where it leaves live bytes within this: beyond it no card serves it. */
    uint64_t card_bytes;
};

/* Requests in the order of the trace. Blocks live in events, [born, dies); `lower` and `upper`
 * are the same numbers, except where the trace keeps lifetimes of another program in keys of
 * those names: then they are those. Requests one behind the other that begin at one moment of those
 * lifetimes are born at one event, the first of them. Blocks never freed die after the last event. */
struct bound_blocks {
    struct ar_host host;
    struct packing_block *blocks; /* sizes rounded up to the granule */
    struct bound_request *requests;
    size_t count, room;
    struct packing packing; /* of `blocks` */
    uint64_t granule_bytes;
    uint64_t live_peak_bytes; /* of what was asked for */
    uint64_t live_peak_event; /* the first at which so much is live */
};

/* Rewinds the source and reads it to its end; it must outlive the blocks. INVALID for an adaptive
 * source: what it asks for depends on who answers. The blocks stay where they are. */
enum ar_status bound_blocks_open(struct bound_blocks *self, struct trace_source *source,
                                 const struct bound_options *options,
                                 struct ar_error *error) AR_STATUS_CHECKED;
void bound_blocks_close(struct bound_blocks *self);

/* What the request is called in plans. Returns `text`. */
const char *bound_request_name(const struct bound_request *request, char *text, size_t text_bytes);

#endif
