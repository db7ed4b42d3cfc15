/* A slab allocator for device memory, as one policy in several files:
 *
 *   classes.c  size classes and their slabs
 *   supply.c   where slabs and large blocks come from, and what is done when memory is short
 *   pages.c    a backing whose segments are made of pages that move (virtual=true)
 *   report.c   statistics, walk, validate, servable
 *   slab.c     options and the order of decisions
 *
 * 1. Sizes have classes in steps of 256 bytes up to 4 KiB and eight to a doubling above, so
 *    that less than an eighth of a block is wasted. Requests above the largest class are large
 *    and rounded to 256 bytes.
 * 2. A slab is a run of up to 32 blocks of one class; a bitmap says which are free. A request
 *    gets the lowest free block of the fullest slab of its class, told apart by eighths, so that
 *    emptier ones drain. The more blocks of a class are live, the more a new slab holds, so that
 *    what lies idle in the last slab stays a fraction of what is used.
 * 3. Slabs and large blocks are cut, best fit, from segments of their own kind each; a segment
 *    that has become empty serves both, unless a new segment for the request would be less than
 *    a 32nd of it: what is small never pins a giant.
 * 4. An empty slab is kept for its class, up to `keep` of them; all are returned before memory
 *    is asked from below.
 * 5. On a miss the supply grows. What is held stays below the greatest use so far and `slack`
 *    of it, as far as giving empty segments back achieves that. Where the device or the limit
 *    refuses, empty segments are given back, first as many as are needed, then all; then the
 *    other kind's holes serve. With virtual=true pages move instead of being given back.
 *
 * The design follows the slab allocator (Bonwick 1994) and the pages of mimalloc; the metadata
 * lies on the host because device memory cannot be touched. */
#ifndef ALLOCATORS_POLICIES_SLAB_SLAB_H
#define ALLOCATORS_POLICIES_SLAB_SLAB_H

#include "allocators/base/size.h"
#include "allocators/heap.h"

#define SLAB_UNIT_BYTES    UINT64_C(256)
#define SLAB_MOST_BLOCKS   32u
#define SLAB_CLASSES       112u /* up to 16 MiB */
#define SLAB_LARGEST_BYTES (16 * AR_MIB)
#define SLAB_PAGE_BYTES    (2 * AR_MIB) /* the driver charges multiples of it */

#define SLAB_EIGHTHS 9u /* empty, up to one eighth, .. up to all but one block */

/* The lists of the heap: holes in segments of either kind, and empty segments. */
enum slab_list { SLAB_SMALL, SLAB_LARGE, SLAB_EMPTY, SLAB_LISTS };

struct slab {
    uint64_t address;
    struct slab *previous, *next; /* in its list */
    uint32_t piece;               /* of the heap */
    uint32_t free_mask;           /* bit b: block b is free */
    uint16_t scale;               /* eighths of all blocks that one is, in 256ths */
    uint8_t class, blocks, live;
    uint8_t eighth;    /* which list of its class it is in */
    uint32_t wasted[]; /* by block: granted less requested bytes */
};

struct slab_class {
    uint64_t bytes;                   /* of a block */
    uint64_t live_blocks;             /* in all slabs */
    uint32_t partial;                 /* bit e: a slab with a free block is in list e */
    uint32_t empty_slabs;             /* kept */
    struct slab *slabs[SLAB_EIGHTHS]; /* by how full they are; full ones are in no list */
};

struct slab_values {
    struct ar_policy_common common;
    uint64_t largest_class_bytes;
    uint64_t keep;
    double slack;
    bool virtual;
};

struct slab_pages;

struct slab_policy {
    struct ar_policy base;
    struct heap heap;         /* used pieces are large blocks and slabs, which are marked */
    struct slab_pages *pages; /* NULL: not over virtual memory */
    struct slab_class *classes[SLAB_CLASSES];
    uint64_t available[2]; /* bit c: class c has a free block in a slab */
    uint64_t emptied[2];   /* bit c: class c keeps an empty slab */
    uint64_t limit_bytes;  /* UINT64_MAX: none */
    uint64_t largest_class_bytes;
    uint64_t kind_bytes[2];   /* in used pieces of slabs, of large blocks */
    uint64_t most_used_bytes; /* the most that both were */
    uint32_t keep;
    uint32_t last_stream; /* the highest that was heard of: work may be queued on all up to it */
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

static inline struct slab_policy *slab_of(struct ar_policy *base)
{
    return (struct slab_policy *)base;
}

/* The record of a slab, kept in the requested bytes of its piece. */
static inline struct slab *slab_record(const struct ar_span *piece)
{
    return (struct slab *)(uintptr_t)piece->requested_bytes;
}

static inline void slab_note_stream(struct slab_policy *self, uint32_t stream)
{
    if (stream > self->last_stream)
        self->last_stream = stream;
}

/* Fills in a block and counts it. */
static inline void slab_handed_out(struct slab_policy *self, uint64_t address, uint64_t bytes,
                                   uint64_t cookie, struct ar_policy_block *out)
{
    out->address = address;
    out->granted_bytes = bytes;
    out->cookie = cookie;
    self->base.totals.live_bytes += out->requested_bytes;
    self->base.totals.granted_bytes += bytes;
    self->base.totals.live_blocks++;
}

/* classes.c */
enum ar_status slab_take(struct slab_policy *self, uint64_t requested_bytes,
                         struct ar_policy_block *out);
void slab_give(struct slab_policy *self, const struct ar_policy_block *block);
void slab_return_empty(struct slab_policy *self);
void slab_close_classes(struct slab_policy *self);

/* supply.c: a used piece of `bytes` for a kind. Where `least_bytes` is less than that, a piece
 * of any size between them is as welcome as asking the device. NO_MEMORY, HOST_MEMORY.. */
enum ar_status slab_supply(struct slab_policy *self, enum slab_list kind, uint64_t least_bytes,
                           uint64_t bytes, uint32_t *piece);
void slab_restore(struct slab_policy *self, uint32_t piece);
enum ar_status slab_take_large(struct slab_policy *self, uint64_t requested_bytes,
                               struct ar_policy_block *out);
enum ar_status slab_release(struct slab_policy *self, uint64_t bytes);

/* report.c */
void slab_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void slab_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status slab_validate(const struct ar_policy *base, struct ar_error *error);
uint64_t slab_servable(const struct ar_policy *base, enum ar_policy_effort effort);

/* pages.c: UNSUPPORTED where there is no virtual memory. */
enum ar_status slab_pages_open(const struct ar_policy_context *context, const uint32_t *last_stream,
                               struct slab_pages **out);
void slab_pages_close(struct slab_pages *self);
struct ar_backing *slab_pages_backing(struct slab_pages *self);
uint64_t slab_pages_pooled(const struct slab_pages *self); /* bytes mapped nowhere */
uint64_t slab_pages_moved(const struct slab_pages *self);
void slab_pages_drain(struct slab_pages *self); /* those in the pool go back to the device */

#endif
