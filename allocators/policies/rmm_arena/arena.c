/* Superblocks and blocks of `rmm-arena`; the rules are those in rmm_arena.c. Every step takes time
 * in the logarithm of the holes, a clean besides in the number of superblocks returned. */
#include "allocators/policies/rmm_arena/arena.h"

static struct ar_range_node *range_at(const struct rmm_arena *self, uint32_t range)
{
    return &self->ranges.nodes[range];
}

static struct superblock *superblock_at(const struct rmm_arena *self, uint32_t superblock)
{
    return &self->superblocks[superblock];
}

/* ---- records ---------------------------------------------------------------------------- */

static bool superblocks_reserve(struct rmm_arena *self)
{
    if (self->superblock_spare || self->superblocks_made < self->superblock_room)
        return true;
    uint32_t room = self->superblock_room + self->superblock_room / 4 + 16;
    struct superblock *grown =
        ar_host_grow(self->host, self->superblocks, self->superblock_room, room, sizeof *grown);
    if (!grown)
        return false;
    self->superblocks = grown;
    self->superblock_room = room;
    if (!self->superblocks_made)
        self->superblocks_made = 1;
    return true;
}

bool arena_reserve(struct rmm_arena *self, uint32_t stream)
{
    uint32_t arenas = stream + 2;
    if (arenas > self->arena_count) {
        struct arena *grown =
            ar_host_grow(self->host, self->arenas, self->arena_count, arenas, sizeof *grown);
        if (!grown)
            return false;
        self->arenas = grown;
        self->arena_count = arenas;
    }
    return superblocks_reserve(self) && ar_range_pool_reserve(&self->ranges, 2);
}

/* A superblock in front of `after` (0: the only one). */
static uint32_t superblock_add(struct rmm_arena *self, uint32_t after, uint64_t address,
                               uint64_t bytes)
{
    uint32_t made = self->superblock_spare;
    if (made)
        self->superblock_spare = superblock_at(self, made)->after;
    else
        made = self->superblocks_made++;
    uint32_t before = after ? superblock_at(self, after)->before : 0;
    *superblock_at(self, made) =
        (struct superblock){.address = address, .bytes = bytes, .before = before, .after = after};
    if (after)
        superblock_at(self, after)->before = made;
    if (before)
        superblock_at(self, before)->after = made;
    else
        self->first_superblock = made;
    return made;
}

static void superblock_drop(struct rmm_arena *self, uint32_t superblock)
{
    struct superblock *gone = superblock_at(self, superblock);
    if (gone->before)
        superblock_at(self, gone->before)->after = gone->after;
    else
        self->first_superblock = gone->after;
    if (gone->after)
        superblock_at(self, gone->after)->before = gone->before;
    gone->after = self->superblock_spare;
    self->superblock_spare = superblock;
}

/* A range in front of `next` (0: the only one), in no tree. */
static uint32_t range_add(struct rmm_arena *self, uint32_t next, uint64_t address, uint64_t bytes,
                          uint32_t superblock)
{
    uint32_t made = ar_range_pool_take(&self->ranges);
    struct ar_range_node *added = range_at(self, made);
    added->address = address;
    added->bytes = bytes;
    added->extra = superblock;
    added->next = next;
    added->previous = next ? range_at(self, next)->previous : 0;
    if (next)
        range_at(self, next)->previous = made;
    if (added->previous)
        range_at(self, added->previous)->next = made;
    else
        self->first = made;
    return made;
}

static void range_drop(struct rmm_arena *self, uint32_t range)
{
    const struct ar_range_node *gone = range_at(self, range);
    if (gone->previous)
        range_at(self, gone->previous)->next = gone->next;
    else
        self->first = gone->next;
    if (gone->next)
        range_at(self, gone->next)->previous = gone->previous;
    ar_range_pool_give(&self->ranges, range);
}

/* ---- holes ------------------------------------------------------------------------------ */

static struct arena *count_in(struct rmm_arena *self, const struct ar_range_node *free_block)
{
    struct superblock *superblock = superblock_at(self, arena_superblock_of(free_block));
    struct arena *arena = &self->arenas[superblock->arena];
    superblock->free_bytes += free_block->bytes;
    arena->free_bytes += free_block->bytes;
    ar_policy_free_added(&self->base, free_block->bytes);
    return arena;
}

static struct arena *count_out(struct rmm_arena *self, const struct ar_range_node *free_block)
{
    struct superblock *superblock = superblock_at(self, arena_superblock_of(free_block));
    struct arena *arena = &self->arenas[superblock->arena];
    superblock->free_bytes -= free_block->bytes;
    arena->free_bytes -= free_block->bytes;
    ar_policy_free_removed(&self->base, free_block->bytes);
    return arena;
}

static void free_block_add(struct rmm_arena *self, uint32_t free_block)
{
    struct arena *arena = count_in(self, range_at(self, free_block));
    ar_range_tree_insert(&self->ranges, &arena->free_blocks, AR_RANGE_BY_ADDRESS, free_block);
}

static void free_block_remove(struct rmm_arena *self, uint32_t free_block)
{
    struct arena *arena = count_out(self, range_at(self, free_block));
    ar_range_tree_remove(&self->ranges, &arena->free_blocks, AR_RANGE_BY_ADDRESS, free_block);
}

/* A hole grows or shrinks at either end and keeps its place in the tree. */
static void free_block_change(struct rmm_arena *self, uint32_t free_block, uint64_t address,
                              uint64_t bytes)
{
    const struct arena *arena = count_out(self, range_at(self, free_block));
    ar_range_tree_change(&self->ranges, arena->free_blocks, free_block, address, bytes);
    count_in(self, range_at(self, free_block));
}

/* ---- superblocks change hands ----------------------------------------------------------- */

static void move(struct rmm_arena *self, uint32_t index, uint32_t arena)
{
    struct superblock *superblock = superblock_at(self, index);
    struct arena *from = &self->arenas[superblock->arena];
    struct arena *to = &self->arenas[arena];
    uint32_t free_blocks = ar_range_tree_cut(&self->ranges, &from->free_blocks, superblock->address,
                                             superblock->address + superblock->bytes);
    ar_range_tree_join(&self->ranges, &to->free_blocks, free_blocks);
    from->free_bytes -= superblock->free_bytes;
    to->free_bytes += superblock->free_bytes;
    superblock->arena = arena;
}

static void enlist(struct rmm_arena *self, uint32_t index)
{
    struct superblock *superblock = superblock_at(self, index);
    struct arena *arena = &self->arenas[superblock->arena];
    superblock->lent_before = 0;
    superblock->lent_after = arena->lent;
    if (arena->lent)
        superblock_at(self, arena->lent)->lent_before = index;
    arena->lent = index;
}

static bool is_empty_global(const struct rmm_arena *self, uint32_t superblock)
{
    return superblock && !superblock_at(self, superblock)->used &&
           superblock_at(self, superblock)->arena == ARENA_GLOBAL;
}

/* Two empty superblocks that touch become one; each is one hole. */
static void absorb(struct rmm_arena *self, uint32_t left, uint32_t right)
{
    uint64_t bytes = range_at(self, right)->bytes;
    uint32_t gone = arena_superblock_of(range_at(self, right));
    free_block_remove(self, right);
    range_drop(self, right);
    superblock_drop(self, gone);
    superblock_at(self, arena_superblock_of(range_at(self, left)))->bytes += bytes;
    free_block_change(self, left, range_at(self, left)->address,
                      range_at(self, left)->bytes + bytes);
    self->counted.count.merges++;
}

/* Joins an empty superblock of the global arena, which is `hole`, with such neighbours. */
static void join_neighbours(struct rmm_arena *self, uint32_t free_block)
{
    const struct superblock *superblock =
        superblock_at(self, arena_superblock_of(range_at(self, free_block)));
    uint32_t before = superblock->before;
    if (is_empty_global(self, superblock->after))
        absorb(self, free_block, range_at(self, free_block)->next);
    if (is_empty_global(self, before))
        absorb(self, range_at(self, free_block)->previous, free_block);
}

void arena_clean(struct rmm_arena *self)
{
    for (uint32_t arena = ARENA_GLOBAL + 1; arena < self->arena_count; arena++) {
        for (uint32_t index; (index = self->arenas[arena].lent) != 0;) {
            struct superblock *superblock = superblock_at(self, index);
            self->arenas[arena].lent = superblock->lent_after;
            move(self, index, ARENA_GLOBAL);
            if (!superblock->used)
                join_neighbours(self, ar_range_tree_first(&self->ranges,
                                                          self->arenas[ARENA_GLOBAL].free_blocks,
                                                          superblock->address, 1));
        }
    }
}

/* ---- blocks ----------------------------------------------------------------------------- */

enum ar_status arena_obtain(struct rmm_arena *self)
{
    if (self->first)
        return AR_OK;
    enum ar_status status =
        ar_backing_segment_alloc(self->backing, self->arena_bytes, &self->address);
    if (status != AR_OK)
        return status;
    uint32_t superblock = superblock_add(self, 0, self->address, self->arena_bytes);
    free_block_add(self, range_add(self, 0, self->address, self->arena_bytes, superblock));
    self->base.totals.reserved_bytes = self->arena_bytes;
    self->base.totals.releasable_bytes = self->arena_bytes;
    self->counted.count.segments_made++;
    return AR_OK;
}

/* The first `bytes` of a hole as a block. */
static uint32_t cut(struct rmm_arena *self, uint32_t free_block, uint64_t bytes)
{
    uint64_t address = range_at(self, free_block)->address;
    uint64_t rest = range_at(self, free_block)->bytes - bytes;
    uint32_t superblock = arena_superblock_of(range_at(self, free_block));
    uint32_t block = free_block;
    if (rest) {
        free_block_change(self, free_block, address + bytes, rest);
        block = range_add(self, free_block, address, bytes, superblock);
        self->counted.count.splits++;
    } else {
        free_block_remove(self, free_block);
    }
    range_at(self, block)->left = ARENA_USED;
    superblock_at(self, superblock)->used++;
    return block;
}

/* Splits a head of `head_bytes` off an empty superblock, which is `hole`, for an arena; the block
 * is the head's first `bytes`. */
static uint32_t cut_head(struct rmm_arena *self, uint32_t free_block, uint32_t arena,
                         uint64_t head_bytes, uint64_t bytes)
{
    uint32_t tail = arena_superblock_of(range_at(self, free_block));
    uint64_t address = range_at(self, free_block)->address;
    free_block_change(self, free_block, address + head_bytes,
                      range_at(self, free_block)->bytes - head_bytes);
    superblock_at(self, tail)->address += head_bytes;
    superblock_at(self, tail)->bytes -= head_bytes;
    uint32_t head = superblock_add(self, tail, address, head_bytes);
    superblock_at(self, head)->arena = arena;
    superblock_at(self, head)->used = 1;
    if (arena != ARENA_GLOBAL)
        enlist(self, head);
    if (head_bytes > bytes) {
        free_block = range_add(self, free_block, address + bytes, head_bytes - bytes, head);
        free_block_add(self, free_block);
        self->counted.count.splits++;
    }
    self->counted.count.splits++;
    uint32_t block = range_add(self, free_block, address, bytes, head);
    range_at(self, block)->left = ARENA_USED;
    return block;
}

uint32_t arena_take(struct rmm_arena *self, uint32_t arena, uint64_t bytes)
{
    if (bytes > SUPERBLOCK_LEAST)
        arena = ARENA_GLOBAL;
    uint32_t free_block =
        ar_range_tree_first(&self->ranges, self->arenas[arena].free_blocks, 0, bytes);
    if (free_block && arena != ARENA_GLOBAL)
        return cut(self, free_block, bytes);
    if (arena != ARENA_GLOBAL)
        free_block =
            ar_range_tree_first(&self->ranges, self->arenas[ARENA_GLOBAL].free_blocks, 0, bytes);
    if (!free_block)
        return 0;
    uint32_t index = arena_superblock_of(range_at(self, free_block));
    const struct superblock *superblock = superblock_at(self, index);
    uint64_t head_bytes = bytes > SUPERBLOCK_LEAST ? bytes : SUPERBLOCK_LEAST;
    if (!superblock->used && superblock->bytes >= head_bytes + SUPERBLOCK_LEAST)
        return cut_head(self, free_block, arena, head_bytes, bytes);
    if (arena != ARENA_GLOBAL) {
        move(self, index, arena);
        enlist(self, index);
    }
    return cut(self, free_block, bytes);
}

void arena_give(struct rmm_arena *self, uint32_t range)
{
    const struct ar_range_node *freed = range_at(self, range);
    uint32_t index = arena_superblock_of(freed);
    uint32_t free_block = range;
    range_at(self, range)->extra = index;
    uint32_t next = freed->next;
    uint32_t previous = freed->previous;
    bool joins_next = next && !arena_is_used(range_at(self, next)) &&
                      arena_superblock_of(range_at(self, next)) == index;
    bool joins_previous = previous && !arena_is_used(range_at(self, previous)) &&
                          arena_superblock_of(range_at(self, previous)) == index;
    uint64_t address = joins_previous ? range_at(self, previous)->address : freed->address;
    uint64_t bytes = freed->bytes + (joins_previous ? range_at(self, previous)->bytes : 0) +
                     (joins_next ? range_at(self, next)->bytes : 0);
    self->counted.count.merges += (joins_next ? 1u : 0u) + (joins_previous ? 1u : 0u);
    if (joins_next && joins_previous) {
        free_block_remove(self, next);
        range_drop(self, next);
    }
    if (joins_next || joins_previous) {
        range_drop(self, range);
        free_block = joins_previous ? previous : next;
        free_block_change(self, free_block, address, bytes);
    } else {
        free_block_add(self, free_block);
    }
    struct superblock *superblock = superblock_at(self, index);
    if (--superblock->used == 0 && superblock->arena == ARENA_GLOBAL)
        join_neighbours(self, free_block);
}
