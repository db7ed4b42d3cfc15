/* Offline placement: all lifetimes are known, each block gets an offset in one arena, and blocks
 * that live at the same time must not overlap. The goal is a low top (dynamic storage
 * allocation). Here: the problem, its lower bound, and placing blocks one after the other. */
#ifndef ALLOCATORS_PLANNING_PACKING_H
#define ALLOCATORS_PLANNING_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/host.h"
#include "allocators/base/status.h"

/* Live in [born, dies), in whatever unit. `bytes` > 0, born < dies. */
struct packing_block {
    uint64_t bytes, born, dies;
    uint64_t alignment; /* of the offset: a power of two; 0 and 1: none */
};

/* Sums of live bytes and offsets stay below this. */
#define PACKING_LIMIT (UINT64_C(1) << 62)

#define PACKING_NOWHERE UINT64_MAX /* the offset of a block without a place */

/* The problem, prepared. Time is divided into slots, one for each moment at which a block is
 * born: two blocks meet exactly if they share a slot. */
struct packing {
    struct ar_host *host;
    const struct packing_block *blocks; /* the caller's */
    uint32_t count, slots;
    uint32_t *first, *end; /* of each block, its slots [first, end) */
    uint32_t *by_birth;    /* blocks by first slot, then as given */
    uint32_t *slot_begin;  /* of each slot, where its blocks begin in by_birth; slots + 1 */
    uint64_t *slot_born;   /* of each slot, its moment */
    uint64_t *slot_bytes;  /* of each slot, the live bytes */
    uint64_t peak_bytes;   /* the most of them: no plan has a lower top */
    uint32_t peak_slot;    /* the first slot with so many */
};

/* INVALID where a block is no block, or live bytes pass PACKING_LIMIT; HOST_MEMORY. On failure
 * nothing is left. Takes its memory from `host`; O(n log n). */
enum ar_status packing_open(struct packing *self, struct ar_host *host,
                            const struct packing_block *blocks, size_t count,
                            struct ar_error *error) AR_STATUS_CHECKED;
void packing_close(struct packing *self);

/* Places all blocks in that order, each at the lowest offset at which it meets no block placed
 * before it. `offsets` has an entry for each block. `*top_bytes` is the greatest end, or
 * PACKING_NOWHERE where a block would end above `most_bytes`: the plan is given up then.
 * `*steps`, which may be NULL, grows by what it took, the same number on every machine: with few
 * gaps between the blocks n log n, at worst the pairs of blocks that meet. HOST_MEMORY. */
enum ar_status packing_place(const struct packing *self, const uint32_t *order, uint64_t most_bytes,
                             uint64_t *offsets, uint64_t *top_bytes,
                             uint64_t *steps) AR_STATUS_CHECKED;

#endif
