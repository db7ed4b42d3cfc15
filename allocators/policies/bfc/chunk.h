/* Chunks: the pieces that a region of a BFC pool is cut into, used or free.
 *
 * All records of a policy lie in one array and name each other by index, so that the array
 * may move when it grows and a record stays small (40 bytes). Record 0 is no chunk: it
 * stands for "no neighbour" and "no child" and counts as used, which spares the hot paths a
 * test each. A record's priority is drawn once, from its index, and shapes the trees of
 * index.h. */
#ifndef ALLOCATORS_POLICIES_BFC_CHUNK_H
#define ALLOCATORS_POLICIES_BFC_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/host.h"

#define BFC_ROUNDING_BYTES UINT64_C(256)

/* Which end of a two-ended pool a chunk belongs to. Everything is LOWER elsewhere. */
enum bfc_end {
    BFC_LOWER,
    BFC_UPPER,
    BFC_GAP, /* the free span in the middle, which either end may take from */
};

struct bfc_chunk {
    uint64_t address;
    uint64_t bytes; /* a multiple of BFC_ROUNDING_BYTES */
    union {
        uint64_t requested_bytes; /* while used */
        struct {
            uint32_t left, right; /* while free: children in the index */
        };
        uint64_t children; /* both of them, 0 where there is none */
    };
    uint32_t previous, next; /* neighbours in the region; 0 at its ends. Spare records
                                are linked through next */
    uint32_t region;
    uint16_t priority; /* 0 in record 0 only */
    uint8_t used;
    uint8_t end; /* enum bfc_end */
};

struct bfc_chunks {
    struct bfc_chunk *at;
    uint32_t count; /* records in the array, record 0 among them */
    uint32_t spare; /* the first of those that stand for nothing now */
    uint32_t spare_count;
};

/* Makes sure that `wanted` records are spare. Moves the array; false where the host has no
 * memory, and then nothing changed. */
bool bfc_chunks_reserve(struct bfc_chunks *self, struct host *host, uint32_t wanted);
void bfc_chunks_close(struct bfc_chunks *self, struct host *host);

/* Takes a spare record; there must be one. */
static inline uint32_t bfc_chunks_take(struct bfc_chunks *self)
{
    uint32_t taken = self->spare;
    self->spare = self->at[taken].next;
    self->spare_count--;
    return taken;
}

static inline void bfc_chunks_drop(struct bfc_chunks *self, uint32_t chunk)
{
    self->at[chunk].next = self->spare;
    self->spare = chunk;
    self->spare_count++;
}

#endif
