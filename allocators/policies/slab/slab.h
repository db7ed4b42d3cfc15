/* A slab allocator for device memory.
 *
 *   slab.c    options and decisions, size classes and their slabs, inspection
 *   supply.c  the pieces of slabs and large blocks, the steps when memory is short, and a backing
 *             whose segments are made of pages that move (virtual=true)
 *
 * 1. There are size classes in steps of 256 bytes up to 4 KiB, and eight for each power of two
 *    above, so less than an eighth of a block is wasted. Requests above the largest class are
 *    large. They are rounded to 256 bytes.
 * 2. A slab is a run of up to 32 blocks of one class. A bitmap says which are free. A request gets
 *    the lowest free block of the fullest slab of its class, by eighths, so that emptier slabs
 *    become empty. The more blocks of a class are live, the more blocks a new slab has, so the free
 *    blocks of the last slab stay a fraction of the used ones.
 * 3. Slabs and large blocks are cut, best fit, from segments of their own kind. A segment that has
 *    become empty serves both kinds, unless a new segment for the request would be less than a 32nd
 *    of it: a small block must not keep a large segment from being released.
 * 4. A class keeps up to `keep` empty slabs. All empty slabs are returned before memory is
 *    requested from the backing.
 * 5. If no piece is large enough, the supply grows. Reserved memory stays below the greatest use so
 *    far plus `slack` of it, as far as the release of empty segments can achieve that. If the
 *    device or the limit refuses, empty segments are released, first as many as needed, then all;
 *    then free pieces of the other kind are used. With virtual=true pages move and are not
 *    released.
 *
 * The design follows the slab allocator (Bonwick 1994) and the pages of mimalloc. The metadata is
 * in host memory, because the host cannot access device memory. */
#pragma once

#include "allocators/base/size.h"
#include "allocators/heap.h"

#define SLAB_UNIT_BYTES  UINT64_C(256)
#define SLAB_MOST_BLOCKS 32u
#define SLAB_CLASSES     112u         /* up to 16 MiB */
#define SLAB_PAGE_BYTES  (2 * AR_MIB) /* the driver allocates multiples of it */

#define SLAB_EIGHTHS 9u /* empty, up to one eighth, .. up to all but one block */

/* The lists of the heap: free pieces in segments of both kinds, and empty segments. */
enum slab_list { SLAB_SMALL, SLAB_LARGE, SLAB_EMPTY, SLAB_LISTS };

struct slab {
    uint64_t address;
    struct slab *previous, *next; /* in its list */
    uint32_t piece;               /* of the heap */
    uint32_t free_mask;           /* bit b: block b is free */
    uint16_t scale;               /* 2048 / blocks: eighths per block, in 256ths */
    uint8_t class, blocks, live;
    uint8_t eighth;    /* the list of its class */
    uint32_t wasted[]; /* by block: granted less requested bytes */
};

struct slab_class {
    uint64_t bytes;                   /* of a block */
    uint64_t live_blocks;             /* in all slabs */
    uint32_t partial;                 /* bit e: a slab with a free block is in list e */
    uint32_t empty_slabs;             /* kept */
    struct slab *slabs[SLAB_EIGHTHS]; /* by fill; full slabs are in no list */
};

struct slab_values {
    struct ar_policy_common common;
    uint64_t largest_class_bytes;
    uint64_t keep;
    double slack;
    bool virtual;
};

struct slab_pages;

/* What the supply would have where empty slabs are, with the free pieces around them, if they were
 * returned. */
struct slab_returned {
    bool known;             /* no slab was made, dropped, emptied or filled since */
    uint64_t segment_bytes; /* of segments that would be empty */
    uint64_t piece_bytes;   /* of the largest piece in another segment */
};

struct slab_policy {
    struct ar_policy base;
    struct heap heap;         /* used pieces are large blocks, or slabs, which are marked */
    struct slab_pages *pages; /* NULL: virtual=false */
    struct slab_class *classes[SLAB_CLASSES];
    uint64_t available[2]; /* bit c: class c has a free block in a slab */
    uint64_t emptied[2];   /* bit c: class c keeps an empty slab */
    uint64_t limit_bytes;  /* UINT64_MAX: none */
    uint64_t largest_class_bytes;
    uint64_t kind_bytes[2];        /* in used pieces of slabs, of large blocks */
    uint64_t most_used_bytes;      /* the maximum of both together */
    struct slab_returned returned; /* for slab_room */
    bool borrows; /* a piece was taken from the other kind: its segments are mixed */
    uint32_t keep;
    uint32_t last_stream; /* the highest seen so far: all up to it may have pending work */
    double slack;
    uint64_t flushes, retries, failures;
};

static inline unsigned slab_class_of(uint64_t bytes)
{
    uint64_t units = (bytes - 1) / SLAB_UNIT_BYTES;
    if (units < 8)
        return (unsigned)units;
    unsigned shift = 60u - (unsigned)__builtin_clzll(units);
    return shift * 8 + (unsigned)(units >> shift);
}

static inline uint64_t slab_class_bytes(unsigned class)
{
    return class < 8 ? (class + 1) * SLAB_UNIT_BYTES
                     : (class % 8 + 9) * SLAB_UNIT_BYTES << (class / 8 - 1);
}

/* The record of a slab is kept in the requested bytes of its piece. */
static inline struct slab *slab_record(const struct ar_span *piece)
{
    return (struct slab *)(uintptr_t)piece->requested_bytes;
}

static inline void slab_note_stream(struct slab_policy *self, uint32_t stream)
{
    if (stream > self->last_stream)
        self->last_stream = stream;
}

/* supply.c: a used piece of `bytes` for a kind. If `least_bytes` is less, a piece of any size
 * between them is taken before the device is asked. NO_MEMORY, HOST_MEMORY or a fault of the
 * backing. */
enum ar_status slab_supply(struct slab_policy *self, enum slab_list kind, uint64_t least_bytes,
                           uint64_t bytes, uint32_t *piece);
void slab_restore(struct slab_policy *self, uint32_t piece);
enum ar_status slab_take_large(struct slab_policy *self, uint64_t requested_bytes,
                               struct ar_policy_block *out);
enum ar_status slab_release(struct slab_policy *self, uint64_t bytes);

/* The pages of virtual=true. UNSUPPORTED: the device has no virtual memory. */
enum ar_status slab_pages_open(const struct ar_policy_context *context, const uint32_t *last_stream,
                               struct slab_pages **out);
void slab_pages_close(struct slab_pages *self);
struct ar_backing *slab_pages_backing(struct slab_pages *self);
uint64_t slab_pages_moved(const struct slab_pages *self);
void slab_pages_drain(struct slab_pages *self); /* releases the pages in the pool */

/* slab.c */
void slab_return_empty(struct slab_policy *self);
