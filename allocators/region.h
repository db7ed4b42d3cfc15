/* The memory of policies that place blocks in one range of fixed size, as engines do with one
 * allocation of the driver. The range is obtained at the first request. */
#ifndef ALLOCATORS_REGION_H
#define ALLOCATORS_REGION_H

#include "allocators/policy.h"

/* More than any device has: what a device without a limit gives. */
#define REGION_MOST_BYTES (UINT64_C(1) << 40)

struct region {
    uint64_t address, bytes; /* 0 bytes: not obtained yet */
    uint64_t given_bytes;    /* the size that the user gave; 0: what the device has */
    uint64_t most_bytes;     /* at most this much, by the limit and by the policy */
};

#define REGION_OPTION(values)                                                                      \
    {                                                                                              \
        "size", AR_OPTION_BYTES, offsetof(struct values, region_bytes), "0", 0, 0x1p60, NULL,      \
            "bytes of the region; 0: all that the device has at the first request"                 \
    }

/* Obtains the range in multiples of `unit` bytes, with room for `least_bytes`, and counts it as
 * reserved. Its size is the given one, or what the device has; if the device refuses that, 31/32
 * of it, and so on. NO_MEMORY: there is no such range. */
enum ar_status region_obtain(struct region *self, struct ar_policy *policy,
                             struct ar_backing *backing, uint64_t unit,
                             uint64_t least_bytes) AR_STATUS_CHECKED;

static inline void region_open(struct region *self, uint64_t given_bytes,
                               const struct ar_policy_common *values)
{
    self->given_bytes = given_bytes;
    self->most_bytes = ar_policy_limit(values);
    if (!given_bytes && self->most_bytes > REGION_MOST_BYTES)
        self->most_bytes = REGION_MOST_BYTES;
}

/* In destroy. */
static inline void region_close(struct region *self, struct ar_backing *backing)
{
    if (self->bytes)
        (void)ar_backing_segment_free(backing, self->address);
}

#endif
