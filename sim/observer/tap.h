/* The tap of an observed run: it stands between policy and device and turns what passes there into
 * driver calls and memory events for the observers.
 *
 * The session opens it when an observer wants one of the two, gives its backing to the policy, and
 * closes it after the policy. The engine tells it where the trace is (tap_at_event) and of each
 * call to the policy (tap_policy_call). tap.c holds the connections, tap_backing.c the policy's
 * side of the device and its segments, tap_blocks.c the blocks. */
#ifndef SIM_OBSERVER_TAP_H
#define SIM_OBSERVER_TAP_H

#include "allocators/base/map.h"
#include "allocators/relay.h"
#include "sim/observer.h"

/* A change of the policy's memory in the call that is in progress. */
struct tap_change {
    enum observer_kind kind;
    uint64_t address, bytes, now_ns;
    uint32_t stream, pool; /* of pages if `placed`: their range is released since */
    bool placed;
};

/* A segment, an address range, or a block that is served and not completed. */
struct tap_area {
    uint64_t address, bytes;
    uint32_t stream, pool;
    bool known;          /* of a range: stream and pool */
    bool free_requested; /* of a block */
};

/* The words of a segment or block in its map. */
enum { TAP_BYTES, TAP_STREAM_AND_POOL, TAP_FREE_REQUESTED, TAP_WORDS };

struct tap {
    const struct observer *observers;
    struct observer_wants wants;
    bool over;             /* nothing is reported any more */
    enum ar_status status; /* of the first memory callback that failed */
    struct ar_error error;
    uint64_t event; /* number of the trace's event */

    struct ar_device *device;
    struct relay relay; /* its base is the backing of the policy */
    uint64_t begun_ns;  /* of the driver call in progress */
    struct tap_change *changes;
    size_t change_count, change_room;
    struct ar_map segments;  /* by address */
    struct tap_area *ranges; /* by address */
    size_t range_count, range_room;

    const struct ar_policy *policy; /* NULL while it is created */
    struct ar_policy_totals totals; /* after the last call to the policy */
    struct ar_map blocks;           /* by address */
    uint64_t *pending;              /* addresses of blocks that are free requested, in that order */
    size_t pending_count, pending_room;
    uint64_t pending_bytes; /* the policy's count after its last call */
};

/* Opens a tap on a device, unless no observer of the list needs one: then `*out` is NULL. */
enum ar_status tap_open(struct tap **out, const struct observer *observers,
                        struct ar_device *device, struct ar_error *error) AR_STATUS_CHECKED;
/* After the policy is destroyed and before the device is closed. NULL is fine. */
void tap_close(struct tap *self);

/* The backing to make the policy with. */
struct ar_backing *tap_backing(struct tap *self);
/* The policy that was made with it. */
void tap_set_policy(struct tap *self, const struct ar_policy *policy);

/* The engine begins an event, or has called the policy without a report of the call. */
void tap_at_event(struct tap *self, uint64_t event);
void tap_policy_call(struct tap *self, const struct observer_policy_call *call);
/* A mark of the program with its label and the keys that the format does not know, or NULL. */
void tap_mark(struct tap *self, const char *label, const char *keys);

/* The run is over: reports what is left. After this nothing is reported, whatever is closed. */
enum ar_status tap_end(struct tap *self, struct ar_error *error) AR_STATUS_CHECKED;

/* Shared by the files of the tap. */
static inline uint64_t tap_now(const struct tap *self)
{
    return self->device->ops->now(self->device);
}
void tap_no_memory(struct tap *self);
/* Adds what all events have, and reports the event. */
void tap_report(struct tap *self, struct observer_event event);
/* Reports what the policy did to its memory since the last call; for that request, or for none. */
void tap_report_changes(struct tap *self, const struct ar_policy_request *request);
/* Makes space for one more item in an array. False: no host memory, which is noted. */
bool tap_grow(struct tap *self, void **items, size_t count, size_t *room, size_t bytes);
/* In the map of the segments or of the blocks: add one; find one; remove one. False: there is
 * none. */
void tap_add(struct tap *self, struct ar_map *map, const struct tap_area *area);
bool tap_find(const struct ar_map *map, uint64_t address, struct tap_area *out);
bool tap_take(struct ar_map *map, uint64_t address, struct tap_area *out);
/* Opens the relay. */
void tap_backing_open(struct tap *self);
/* Reports the blocks that are completed. */
void tap_report_completed(struct tap *self);

#endif
