/* What the files of the library share. */
#pragma once

#include "bench/library/allocrig.h"

/* `catalog` points to both lists, which end with NULL. */
struct ar_library {
    struct ar_catalog catalog;
    const struct ar_policy_ops **policies;
    const struct ar_device_kind **devices;
    size_t policy_count, policy_room, device_count, device_room;
};

/* Copies a sized struct: what the caller's does not have is left out, what it has more is 0. */
static inline void library_fill(void *out, size_t out_bytes, const void *value, size_t value_bytes)
{
    memset(out, 0, out_bytes);
    memcpy(out, value, out_bytes < value_bytes ? out_bytes : value_bytes);
}

/* INVALID where `index` is not below `count`. */
static inline enum ar_status library_row(size_t index, size_t count, struct ar_error *error)
{
    return index < count ? AR_OK : ar_invalid(error, "there is no row %zu of %zu", index, count);
}
