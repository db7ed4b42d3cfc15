/* A backing that forwards every call to another backing, for code that observes, refuses or
 * prepares the calls of a policy. */
#pragma once

#include "allocators/backing.h"

enum relay_hook {
    RELAY_SEGMENT_ALLOC,
    RELAY_SEGMENT_FREE,
    RELAY_RESERVE,
    RELAY_RELEASE,
    RELAY_CREATE,
    RELAY_DESTROY,
    RELAY_MAP,
    RELAY_ACCESS,
    RELAY_UNMAP,
    RELAY_FENCE,
    RELAY_DONE,
    RELAY_WAIT,
    RELAY_ORDER,
    RELAY_COPY,
    RELAY_MEMORY,
    RELAY_POOL_OPEN,
    RELAY_POOL_ALLOC,
    RELAY_POOL_FREE,
    RELAY_POOL_TRIM,
    RELAY_POOL_MEMORY,
};

/* A call that the inner backing has answered. */
struct relay_call {
    enum relay_hook hook;
    enum ar_status status;   /* OK if the hook returns no status */
    uint64_t address, bytes; /* of the call or its result; 0 if it has none */
};

struct relay {
    struct ar_backing base;
    struct ar_backing_ops ops; /* base.ops points here; after relay_open a hook may be replaced */
    struct ar_backing *inner;
    /* Optional. A status other than OK is the result of the call, which is not forwarded; hooks
     * that return no status ignore it. */
    enum ar_status (*before)(struct relay *self, enum relay_hook hook);
    /* Optional: after a call that was forwarded. */
    void (*after)(struct relay *self, const struct relay_call *call);
};

/* Fills in `base`, `ops` and `inner`, and leaves `before` and `after`. Hooks that `inner` lacks
 * stay NULL. `inner` must outlive `self`, which must not move. There is nothing to close. */
void relay_open(struct relay *self, struct ar_backing *inner);
