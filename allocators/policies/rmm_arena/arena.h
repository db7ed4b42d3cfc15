/* What the parts of `rmm-arena` share: its records, and the decisions about memory (arena.c) that
 * the policy's hooks (rmm_arena.c) and its reports (report.c) build on.
 *
 * The one upstream block is tiled by superblocks and each of those by ranges, used or holes; both
 * are lists in address order. The holes of all superblocks that an arena has are one tree by
 * address: the lowest hole that fits is then the first fit in the first superblock that has one,
 * which is what RMM looks for. A superblock changes arenas with all its holes by cutting them out
 * of one tree and joining them to the other, however many there are. */
#ifndef ALLOCATORS_POLICIES_RMM_ARENA_ARENA_H
#define ALLOCATORS_POLICIES_RMM_ARENA_ARENA_H

#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

#define ARENA_ALIGNMENT_BYTES UINT64_C(256)
#define SUPERBLOCK_LEAST      AR_MIB
#define SUPERBLOCK_MOST       (UINT64_C(1) << 40)

#define ARENA_GLOBAL 0u /* a stream's arena has the stream's number + 1 */

struct superblock {
    uint64_t address, bytes;
    uint64_t free_bytes;
    uint32_t arena;
    uint32_t used;                    /* blocks in it */
    uint32_t before, after;           /* in memory; 0: none. Spare records are linked by after */
    uint32_t lent_before, lent_after; /* of the same stream's arena */
};

struct arena {
    uint64_t free_bytes;
    uint32_t free_blocks; /* the tree */
    uint32_t lent;        /* the first superblock of a stream's arena; 0: none */
};

/* `extra` of a range: its superblock below, and of a used one what rounding added above. */
struct rmm_arena {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct ar_range_pool ranges;
    uint32_t first;                 /* the range at the lowest address; 0: nothing obtained yet */
    struct superblock *superblocks; /* record 0 is none */
    uint32_t superblocks_made, superblock_room, superblock_spare;
    uint32_t first_superblock;
    struct arena *arenas;
    uint32_t arena_count;
    uint64_t arena_bytes; /* of the upstream block */
    uint64_t address;     /* of it, once obtained */
    uint32_t streams;     /* those seen are below it */
    uint32_t last_stream;
    struct ar_policy_stats counted; /* its counters only */
};

#define ARENA_USED UINT32_MAX /* `left` of a range in use, which is in no tree */

static inline bool arena_is_used(const struct ar_range_node *range)
{
    return range->left == ARENA_USED;
}

static inline uint32_t arena_superblock_of(const struct ar_range_node *range)
{
    return (uint32_t)range->extra;
}

static inline uint64_t arena_requested(const struct ar_range_node *range)
{
    return range->bytes - (range->extra >> 32);
}

/* Makes sure of all records that one request of `stream` can need. */
bool arena_reserve(struct rmm_arena *self, uint32_t stream);

/* Takes the upstream block, where that is not done yet. After a reserve. */
enum ar_status arena_obtain(struct rmm_arena *self);

/* A block of exactly `bytes` (a multiple of the alignment) for an arena. 0: no room. After a
 * reserve. */
uint32_t arena_take(struct rmm_arena *self, uint32_t arena, uint64_t bytes);
void arena_give(struct rmm_arena *self, uint32_t range);

/* Returns the superblocks of all streams' arenas to the global one. */
void arena_clean(struct rmm_arena *self);

/* report.c */
void arena_stats(const struct ar_policy *base, struct ar_policy_stats *out);
uint64_t arena_servable(const struct ar_policy *base, enum ar_policy_effort effort);
void arena_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status arena_validate(const struct ar_policy *base, struct ar_error *error);

#endif
