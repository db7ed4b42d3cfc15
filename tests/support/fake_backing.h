/* A backing for tests of policies alone: driver allocations at a bump address that is never
 * used again, a cap on the allocated bytes, and any call can be made to fail. No streams:
 * every fence is done at once. Optionally virtual memory: ranges at bump addresses,
 * handles that count against the cap while they exist. */
#pragma once

#include "allocators/backing.h"

#define FAKE_SEGMENTS 65536

struct fake_backing {
    struct ar_backing base;
    uint64_t next;      /* address of the next segment */
    uint64_t cap_bytes; /* limit of the allocated bytes; UINT64_MAX: none */
    uint64_t held_bytes;
    uint64_t calls, fail_at; /* the segment_alloc with this number (from 1) is refused */
    uint64_t attempts[64];   /* the sizes of the first calls, with refused ones */
    uint64_t made;
    uint64_t total_bytes; /* that memory() reports; 0: the cap */
    uint64_t handle_count;
    uint64_t maps, unmaps;
    char problem[160];
    /* The first `made` and `handle_count` of these are valid; opening does not clear them. */
    struct {
        uint64_t address, bytes; /* bytes 0: freed */
    } segments[FAKE_SEGMENTS];
    uint64_t handles[FAKE_SEGMENTS]; /* bytes of each; 0: destroyed */
};

/* granule 1, page 0. The caller owns the struct (static or on the heap: it is large). */
void fake_backing_open(struct fake_backing *self, uint64_t cap_bytes);

/* Gives it virtual memory with pages of that size. */
void fake_backing_virtual(struct fake_backing *self, uint64_t page_bytes, uint64_t total_bytes);
