/* What the parts of the witness share. */
#ifndef SIM_OBSERVER_STATE_H
#define SIM_OBSERVER_STATE_H

#include "allocators/decorators/observe.h"
#include "sim/observer.h"
#include "workloads/trace/id_map.h"

/* What the policy did to its memory in the call that is running. */
struct witness_act {
    enum witness_kind kind;
    uint64_t address, bytes, now_ns;
    uint32_t stream, pool; /* of pages, where `placed`: their range is gone since */
    bool placed;
};

/* A segment, by its address, or an address range. */
struct witness_area {
    uint64_t address, bytes;
    uint32_t stream, pool;
    bool known; /* for which stream and pool */
};

/* A block that was given and is not complete. */
struct witness_block {
    uint64_t address, bytes;
    uint32_t stream, pool;
    bool let_go;
};

struct witness {
    struct {
        witness_hear *hear;
        void *argument;
    } listeners[WITNESS_LISTENERS];
    unsigned listener_count;
    bool over;
    enum status status;
    struct error error;

    struct device *device;
    struct backing backing; /* what the policy sees */
    struct backing_ops backing_ops;
    struct backing *below;
    struct witness_act *acts;
    size_t act_count, act_room;
    struct witness_area *segments; /* at any place; found through `segment_at` */
    size_t segment_count, segment_room;
    struct id_map segment_at;
    struct witness_area *ranges; /* by address */
    size_t range_count, range_room;

    struct host host; /* its own, so that the policy's metadata are counted without it */
    struct policy *policy;
    struct witness_block *blocks; /* at any place; found through `block_at` */
    size_t block_count, block_room;
    struct id_map block_at;
    uint64_t *pending; /* addresses of blocks let go, in that order */
    size_t pending_count, pending_room;
    uint64_t pending_bytes; /* as the policy counted them last */

    struct trace_source source; /* what the engine sees */
    struct trace_source *trace;
    const struct trace_event *span;
    size_t span_left;
    const struct trace_event *current; /* that is replayed now; NULL: none yet */
    uint64_t event;
};

/* Keeps that the host had no memory. */
void witness_no_memory(struct witness *self);
/* Fills in what is the same for all and tells the listeners. */
void witness_tell(struct witness *self, struct witness_event event);
/* Tells what the policy did to its memory since; for that request, or for none. */
void witness_tell_acts(struct witness *self, const struct policy_request *request);
/* Tells which blocks have become complete. */
void witness_tell_complete(struct witness *self);
/* Room for one more in an array. False: no host memory, which is kept. */
bool witness_grow(struct witness *self, void **items, size_t count, size_t *room, size_t bytes);

#endif
