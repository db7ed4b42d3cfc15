/* What `rmm-arena` tells of itself: figures, every range, and whether its invariants hold. */
#include <inttypes.h>

#include "allocators/policies/rmm_arena/arena.h"

static uint64_t largest_of(const struct rmm_arena *self, uint32_t arena)
{
    return arena < self->arena_count
               ? ar_range_tree_most(&self->ranges, self->arenas[arena].free_blocks)
               : 0;
}

static bool is_empty(const struct rmm_arena *self, uint32_t superblock)
{
    return superblock && !self->superblocks[superblock].used;
}

/* Bytes of the empty superblocks around a lent one, which a clean makes one; 0 where an earlier
 * lent one is among them, and is asked too. Those of the global arena never touch each other. */
static uint64_t joined_around(const struct rmm_arena *self, uint32_t superblock)
{
    uint64_t bytes = 0;
    if (!is_empty(self, superblock))
        return 0;
    if (is_empty(self, self->superblocks[superblock].before)) {
        superblock = self->superblocks[superblock].before;
        if (self->superblocks[superblock].arena != ARENA_GLOBAL ||
            is_empty(self, self->superblocks[superblock].before))
            return 0;
    }
    for (; is_empty(self, superblock); superblock = self->superblocks[superblock].after)
        bytes += self->superblocks[superblock].bytes;
    return bytes;
}

/* After a clean. */
static uint64_t largest_cleaned(const struct rmm_arena *self)
{
    uint64_t largest = largest_of(self, ARENA_GLOBAL);
    for (uint32_t arena = ARENA_GLOBAL + 1; arena < self->arena_count; arena++) {
        if (largest_of(self, arena) > largest)
            largest = largest_of(self, arena);
        for (uint32_t lent = self->arenas[arena].lent; lent;
             lent = self->superblocks[lent].lent_after) {
            uint64_t bytes = joined_around(self, lent);
            largest = bytes > largest ? bytes : largest;
        }
    }
    return largest;
}

/* A stream's own arena serves up to 1 MiB; all else comes from the global one. */
uint64_t arena_servable(const struct ar_policy *base, enum ar_policy_effort effort)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    if (effort >= AR_POLICY_EFFORT_WAIT)
        return largest_cleaned(self);
    uint64_t global = largest_of(self, ARENA_GLOBAL);
    uint64_t own = largest_of(self, self->last_stream + 1);
    own = own < SUPERBLOCK_LEAST ? own : SUPERBLOCK_LEAST;
    return own > global ? own : global;
}

void arena_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    *out = self->counted;
    out->totals = base->totals;
    out->largest_free_block_bytes = arena_servable(base, AR_POLICY_EFFORT_NONE);
    if (self->arena_count)
        out->stranded_by_stream_bytes = ar_policy_free_bytes(&base->totals) -
                                        self->arenas[ARENA_GLOBAL].free_bytes -
                                        self->arenas[self->last_stream + 1].free_bytes;
}

void arena_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    for (uint32_t at = self->first; at; at = self->ranges.nodes[at].next) {
        const struct ar_range_node *node = &self->ranges.nodes[at];
        uint32_t arena = self->superblocks[arena_superblock_of(node)].arena;
        bool used = arena_is_used(node);
        const struct ar_policy_range range = {
            .address = node->address,
            .bytes = node->bytes,
            .requested_bytes = used ? arena_requested(node) : 0,
            .segment_address = self->address,
            .stream = arena == ARENA_GLOBAL ? 0 : arena - 1,
            .state = used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
        };
        if (!visit(argument, &range))
            return;
    }
}

/* ---- validate --------------------------------------------------------------------------- */

struct sums {
    struct ar_policy_totals totals;
    uint64_t free_blocks, usable;
};

static enum ar_status broken(struct ar_error *error, const char *what, uint64_t address)
{
    return ar_error_set(error, AR_CORRUPT, "rmm-arena: %s, at %" PRIu64, what, address);
}

static enum ar_status check_range(const struct rmm_arena *self, uint32_t index, struct sums *sums,
                                  struct ar_error *error)
{
    const struct ar_range_node *range = &self->ranges.nodes[index];
    const struct superblock *superblock = &self->superblocks[arena_superblock_of(range)];
    const struct ar_range_node *next = range->next ? &self->ranges.nodes[range->next] : NULL;
    if (next && next->previous != index)
        return broken(error, "two neighbours do not know each other", range->address);
    if (arena_is_used(range)) {
        sums->totals.live_blocks++;
        sums->totals.live_bytes += arena_requested(range);
        sums->totals.granted_bytes += range->bytes;
        return AR_OK;
    }
    if (next && !arena_is_used(next) && arena_superblock_of(next) == arena_superblock_of(range))
        return broken(error, "two free blocks of one superblock touch", next->address);
    if (ar_range_tree_first(&self->ranges, self->arenas[superblock->arena].free_blocks,
                            range->address, range->bytes) != index)
        return broken(error, "a free block is not in its arena's tree", range->address);
    sums->free_blocks++;
    if (self->base.watch)
        sums->usable += range->bytes - range->bytes % self->base.watch->unit_bytes;
    return AR_OK;
}

/* The ranges of one superblock, from `*at` on. */
static enum ar_status check_superblock(const struct rmm_arena *self, uint32_t index, uint32_t *at,
                                       struct sums *sums, struct ar_error *error)
{
    const struct superblock *superblock = &self->superblocks[index];
    uint64_t address = superblock->address;
    uint64_t blocks = sums->totals.live_blocks;
    uint64_t granted = sums->totals.granted_bytes;
    if (superblock->bytes < SUPERBLOCK_LEAST)
        return broken(error, "a superblock is too small", address);
    if (superblock->arena == ARENA_GLOBAL && is_empty(self, index) &&
        is_empty(self, superblock->after) &&
        self->superblocks[superblock->after].arena == ARENA_GLOBAL)
        return broken(error, "two empty superblocks of the global arena touch", address);
    for (; *at && arena_superblock_of(&self->ranges.nodes[*at]) == index;
         *at = self->ranges.nodes[*at].next) {
        if (self->ranges.nodes[*at].address != address || !self->ranges.nodes[*at].bytes)
            return broken(error, "a range does not start where the one before it ends", address);
        enum ar_status status = check_range(self, *at, sums, error);
        if (status != AR_OK)
            return status;
        address += self->ranges.nodes[*at].bytes;
    }
    if (address != superblock->address + superblock->bytes)
        return broken(error, "the ranges of a superblock do not fill it", superblock->address);
    if (sums->totals.live_blocks - blocks != superblock->used ||
        superblock->bytes - superblock->free_bytes != sums->totals.granted_bytes - granted)
        return broken(error, "a superblock counts other blocks than it has", superblock->address);
    return AR_OK;
}

static enum ar_status check_arenas(const struct rmm_arena *self, uint64_t free_blocks,
                                   struct ar_error *error)
{
    for (uint32_t arena = 0; arena < self->arena_count; arena++) {
        uint64_t count;
        uint64_t free_bytes = 0;
        if (!ar_range_tree_check(&self->ranges, self->arenas[arena].free_blocks,
                                 AR_RANGE_BY_ADDRESS, &count))
            return broken(error, "the tree of free blocks is broken in the arena numbered", arena);
        free_blocks -= count;
        for (uint32_t lent = self->arenas[arena].lent; lent;
             lent = self->superblocks[lent].lent_after) {
            if (self->superblocks[lent].arena != arena)
                return broken(error, "a superblock is in another arena's list",
                              self->superblocks[lent].address);
            free_bytes += self->superblocks[lent].free_bytes;
        }
        if (arena != ARENA_GLOBAL && free_bytes != self->arenas[arena].free_bytes)
            return broken(error,
                          "the free bytes are not those of the superblocks in the arena "
                          "numbered",
                          arena);
    }
    return free_blocks
               ? broken(error, "the trees hold other free blocks than there are", self->address)
               : AR_OK;
}

enum ar_status arena_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    const struct ar_policy_totals *totals = &base->totals;
    struct sums sums = {0};
    uint32_t at = self->first;
    uint64_t address = self->address;
    for (uint32_t s = self->first_superblock; s; s = self->superblocks[s].after) {
        if (self->superblocks[s].address != address)
            return broken(error, "a superblock does not start where the one before it ends",
                          address);
        enum ar_status status = check_superblock(self, s, &at, &sums, error);
        if (status != AR_OK)
            return status;
        address += self->superblocks[s].bytes;
    }
    if (at || address != self->address + totals->reserved_bytes)
        return broken(error, "the superblocks do not fill the arena, which starts", self->address);
    if (sums.totals.live_bytes != totals->live_bytes ||
        sums.totals.granted_bytes != totals->granted_bytes ||
        sums.totals.live_blocks != totals->live_blocks || totals->pending_bytes ||
        totals->releasable_bytes != (totals->live_blocks ? 0 : totals->reserved_bytes))
        return broken(error, "the totals are not those of the ranges in the arena", self->address);
    if (base->watch && base->watch->usable_bytes != sums.usable)
        return broken(error, "the hole watch is not the sum of the holes in the arena",
                      self->address);
    return check_arenas(self, sums.free_blocks, error);
}
