/* The outermost policy of a process: it forwards every call, and keeps the bytes of each owner and
 * the peaks up to date, so that the engine can divide the memory of the card at any call. */
#ifndef SIM_TWIN_WATCH_H
#define SIM_TWIN_WATCH_H

#include "allocators/policy.h"
#include "sim/device.h"
#include "sim/twin/feed.h"

struct regions;

/* What an owner has in one process. */
struct account {
    uint32_t owner; /* number of the run */
    uint64_t live_bytes;
    uint64_t asleep_live_bytes, asleep_granted_bytes; /* the part that is in sleeping segments */
    uint64_t outside_bytes;
    uint64_t pinned_bytes; /* requested, of all requests so far */
};

struct watch {
    struct feed *feed;
    struct regions *regions;
    const struct ar_device *device;
    struct account *accounts; /* of the process; moves when one is added */
    /* In this phase, and since the program's last reset. */
    uint64_t phase_allocated_bytes, phase_reserved_bytes;
    uint64_t allocated_bytes, reserved_bytes;
    /* Called after a request if the process has more on the card than `high_bytes`, which the
     * callee raises. */
    uint64_t high_bytes;
    void (*higher)(void *argument);
    void *argument;
    bool sleeper_used; /* a request got a block in a sleeping segment */
};

/* Makes the policy around `inner`, which it owns. HOST_MEMORY: `inner` is the caller's. */
enum ar_status watch_open(struct watch *watch, struct ar_host *host, struct ar_policy *inner,
                          struct ar_policy **out, struct ar_error *error) AR_STATUS_CHECKED;

/* The policy inside. */
struct ar_policy *watch_inside(const struct ar_policy *outer);

/* The bytes of the card that the process has. */
static inline uint64_t watch_used(const struct watch *self)
{
    return self->device->counters.physical_bytes + self->device->counters.outside_bytes;
}

#endif
