/* What `rmm-arena` tells of itself: figures, every range, and whether its invariants hold. */
#include <inttypes.h>

#include "allocators/policies/rmm_arena/arena.h"

static uint64_t largest_of(const struct rmm_arena *self, uint32_t arena)
{
    return arena < self->arena_count
               ? range_tree_most(&self->ranges, self->arenas[arena].free_blocks)
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
uint64_t arena_servable(const struct policy *base, enum policy_effort effort)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    if (effort >= POLICY_EFFORT_WAIT)
        return largest_cleaned(self);
    uint64_t global = largest_of(self, ARENA_GLOBAL);
    uint64_t own = largest_of(self, self->last_stream + 1);
    own = own < SUPERBLOCK_LEAST ? own : SUPERBLOCK_LEAST;
    return own > global ? own : global;
}

void arena_stats(const struct policy *base, struct policy_stats *out)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    *out = self->counted;
    out->totals = base->totals;
    out->largest_free_block_bytes = arena_servable(base, POLICY_EFFORT_NONE);
    if (self->arena_count)
        out->stranded_by_stream_bytes = policy_free_bytes(&base->totals) -
                                        self->arenas[ARENA_GLOBAL].free_bytes -
                                        self->arenas[self->last_stream + 1].free_bytes;
}

void arena_walk(const struct policy *base, policy_visit *visit, void *argument)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    for (uint32_t at = self->first; at; at = self->ranges.nodes[at].next) {
        const struct range_node *node = &self->ranges.nodes[at];
        uint32_t arena = self->superblocks[arena_superblock_of(node)].arena;
        bool used = arena_is_used(node);
        const struct policy_range range = {
            .address = node->address,
            .bytes = node->bytes,
            .requested_bytes = used ? arena_requested(node) : 0,
            .segment_address = self->address,
            .stream = arena == ARENA_GLOBAL ? 0 : arena - 1,
            .state = used ? POLICY_RANGE_USED : POLICY_RANGE_FREE,
        };
        if (!visit(argument, &range))
            return;
    }
}

/* ---- validate --------------------------------------------------------------------------- */

struct sums {
    struct policy_totals totals;
    uint64_t free_blocks, usable;
};

static enum status broken(struct error *error, const char *what, uint64_t address)
{
    return error_set(error, STATUS_CORRUPT, "rmm-arena: %s, at %" PRIu64, what, address);
}

static enum status check_range(const struct rmm_arena *self, uint32_t index, struct sums *sums,
                               struct error *error)
{
    const struct range_node *range = &self->ranges.nodes[index];
    const struct superblock *superblock = &self->superblocks[arena_superblock_of(range)];
    const struct range_node *next = range->next ? &self->ranges.nodes[range->next] : NULL;
    if (next && next->previous != index)
        return broken(error, "two neighbours do not know each other", range->address);
    if (arena_is_used(range)) {
        sums->totals.live_blocks++;
        sums->totals.live_bytes += arena_requested(range);
        sums->totals.granted_bytes += range->bytes;
        return STATUS_OK;
    }
    if (next && !arena_is_used(next) && arena_superblock_of(next) == arena_superblock_of(range))
        return broken(error, "two free blocks of one superblock touch", next->address);
    if (range_tree_first(&self->ranges, self->arenas[superblock->arena].free_blocks, range->address,
                         range->bytes) != index)
        return broken(error, "a free block is not in its arena's tree", range->address);
    sums->free_blocks++;
    if (self->base.watch)
        sums->usable += range->bytes - range->bytes % self->base.watch->unit_bytes;
    return STATUS_OK;
}

/* The ranges of one superblock, from `*at` on. */
static enum status check_superblock(const struct rmm_arena *self, uint32_t index, uint32_t *at,
                                    struct sums *sums, struct error *error)
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
        enum status status = check_range(self, *at, sums, error);
        if (status != STATUS_OK)
            return status;
        address += self->ranges.nodes[*at].bytes;
    }
    if (address != superblock->address + superblock->bytes)
        return broken(error, "the ranges of a superblock do not fill it", superblock->address);
    if (sums->totals.live_blocks - blocks != superblock->used ||
        superblock->bytes - superblock->free_bytes != sums->totals.granted_bytes - granted)
        return broken(error, "a superblock counts other blocks than it has", superblock->address);
    return STATUS_OK;
}

static enum status check_arenas(const struct rmm_arena *self, uint64_t free_blocks,
                                struct error *error)
{
    for (uint32_t arena = 0; arena < self->arena_count; arena++) {
        uint64_t count;
        uint64_t free_bytes = 0;
        if (!range_tree_check(&self->ranges, self->arenas[arena].free_blocks, RANGE_BY_ADDRESS,
                              &count))
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
               : STATUS_OK;
}

enum status arena_validate(const struct policy *base, struct error *error)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    const struct policy_totals *totals = &base->totals;
    struct sums sums = {0};
    uint32_t at = self->first;
    uint64_t address = self->address;
    for (uint32_t s = self->first_superblock; s; s = self->superblocks[s].after) {
        if (self->superblocks[s].address != address)
            return broken(error, "a superblock does not start where the one before it ends",
                          address);
        enum status status = check_superblock(self, s, &at, &sums, error);
        if (status != STATUS_OK)
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
