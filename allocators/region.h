/* The memory of policies that place blocks in one range of fixed size, as engines do with one
 * allocation of the driver. The range is obtained at the first request. */
#pragma once

#include "allocators/policy.h"

/* More than any device has: what a device without a limit gives. */
#define REGION_MOST_BYTES (UINT64_C(1) << 40)

struct region {
    uint64_t address, bytes; /* 0 bytes: not obtained yet */
    uint64_t given_bytes;    /* the size that the user gave; 0: a part of what the device has */
    uint64_t most_bytes;     /* at most this much, by the limit and by the policy */
    double fraction;         /* that part */
};

/* The options of the region, in the struct of values of a policy. */
struct region_values {
    uint64_t bytes;
    double fraction;
};

#define REGION_OPTIONS(values, field)                                                              \
    {"size",                                                                                       \
     AR_OPTION_BYTES,                                                                              \
     offsetof(struct values, field.bytes),                                                         \
     "0",                                                                                          \
     0,                                                                                            \
     0x1p60,                                                                                       \
     NULL,                                                                                         \
     "bytes of the region; 0: by fraction"},                                                       \
    {                                                                                              \
        "fraction", AR_OPTION_FRACTION, offsetof(struct values, field.fraction), "0.9", 0.01, 1,   \
            NULL,                                                                                  \
            "region as a fraction of the memory that is free at the first request; the rest is "   \
            "left to libraries"                                                                    \
    }

static inline void region_open(struct region *self, const struct region_values *values,
                               const struct ar_policy_common *common)
{
    self->given_bytes = values->bytes;
    self->fraction = values->fraction;
    self->most_bytes = ar_policy_limit(common);
    if (!values->bytes && self->most_bytes > REGION_MOST_BYTES)
        self->most_bytes = REGION_MOST_BYTES;
}

/* Obtains the range in multiples of `unit` bytes, with room for `least_bytes`, and counts it as
 * reserved. Its size is the given one, or by fraction; if the device refuses that, 31/32 of it, and
 * so on. NO_MEMORY: there is no such range. */
enum ar_status region_obtain(struct region *self, struct ar_policy *policy,
                             struct ar_backing *backing, uint64_t unit, uint64_t least_bytes);

/* In destroy. */
static inline void region_close(struct region *self, struct ar_backing *backing)
{
    if (self->bytes)
        (void)ar_backing_segment_free(backing, self->address);
}
