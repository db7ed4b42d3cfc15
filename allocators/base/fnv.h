/* FNV-1a (G. Fowler, L. C. Noll, P. Vo): a hash of bytes, and a check sum. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint32_t ar_fnv32(const void *bytes, size_t count)
{
    const uint8_t *at = (const uint8_t *)bytes;
    uint32_t hash = UINT32_C(0x811c9dc5);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT32_C(0x01000193);
    return hash;
}

#define AR_FNV64_SEED UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash`, which begins with AR_FNV64_SEED. */
static inline uint64_t ar_fnv64(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = (const uint8_t *)bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}
