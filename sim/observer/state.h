/* What the parts of the witness share. */
#ifndef SIM_OBSERVER_STATE_H
#define SIM_OBSERVER_STATE_H

#include "allocators/base/map.h"
#include "allocators/decorators/observe.h"
#include "sim/observer.h"

/* What the policy did to its memory in the call that is running. */
struct observer_act {
    enum observer_kind kind;
    uint64_t address, bytes, now_ns;
    uint32_t stream, pool; /* of pages, where `placed`: their range is gone since */
    bool placed;
};

/* A segment, by its address, or an address range. */
struct observer_area {
    uint64_t address, bytes;
    uint32_t stream, pool;
    bool known; /* for which stream and pool */
};

/* A block that was given and is not complete. */
struct observer_block {
    uint64_t address, bytes;
    uint32_t stream, pool;
    bool free_requested;
};

struct observer {
    struct {
        observer_hear *hear;
        void *argument;
    } listeners[OBSERVER_LISTENERS];
    unsigned listener_count;
    bool over;
    enum ar_status status;
    struct ar_error error;

    struct ar_device *device;
    struct ar_backing backing; /* what the policy sees */
    struct ar_backing_ops backing_ops;
    struct ar_backing *below;
    struct observer_act *acts;
    size_t act_count, act_room;
    struct observer_area *segments; /* at any place; found through `segment_at` */
    size_t segment_count, segment_room;
    struct ar_map segment_at;
    struct observer_area *ranges; /* by address */
    size_t range_count, range_room;

    struct ar_host host; /* its own, so that the policy's metadata are counted without it */
    struct ar_policy *policy;
    struct observer_block *blocks; /* at any place; found through `block_at` */
    size_t block_count, block_room;
    struct ar_map block_at;
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
void observer_no_memory(struct observer *self);
/* Fills in what is the same for all and tells the listeners. */
void observer_tell(struct observer *self, struct observer_event event);
/* Tells what the policy did to its memory since; for that request, or for none. */
void observer_tell_acts(struct observer *self, const struct ar_policy_request *request);
/* Tells which blocks have become complete. */
void observer_tell_complete(struct observer *self);
/* Room for one more in an array. False: no host memory, which is kept. */
bool observer_grow(struct observer *self, void **items, size_t count, size_t *room, size_t bytes);

#endif
