/* RAPIDS RMM's arena_memory_resource (as of 2026), without its size classes, which are off there.
 *
 * 1. One block is obtained from the device: `arena_size` bytes, else half of the free memory,
 *    rounded down to 256. It is one empty superblock of the global arena. Superblocks have 1 MiB to
 *    1 TiB. (RMM obtains the block when the resource is made. Here the first request does, so that
 *    a device without enough memory makes requests fail and not the set-up.)
 * 2. Sizes round up to 256 bytes. A request above 1 MiB goes to the global arena, to the first
 *    superblock by address with a free block that is large enough. If this superblock is empty and
 *    at least 1 MiB larger than the request, a head of exactly the request becomes a superblock of
 *    its own. In the superblock the first free block that is large enough is cut to size.
 * 3. Other requests go to the arena of their stream: first superblock, first block. If none is
 *    large enough, one superblock with room moves from the global arena to that of the stream,
 *    found by the same rule: of an empty one a head of 1 MiB, if at least 1 MiB is left, else all
 *    of it.
 * 4. If no arena has room, wait for the device, return all superblocks of all streams, used or not,
 *    to the global arena (RMM calls this defragment), and try once more.
 * 5. A block is freed into its superblock and merges with free neighbours there. In the global
 *    arena empty superblocks that touch become one. Those of streams stay until rule 4. A block
 *    above 1 MiB, and one in a superblock of another arena than that of the stream, is freed after
 *    the host has waited for the stream.
 * 6. Nothing is released to the device.
 *
 * The block from the device is tiled by superblocks and each superblock by ranges, used or free.
 * Both are lists in the order of addresses. The free blocks of all superblocks of an arena are one
 * tree by address: the lowest free block that is large enough is then the first fit in the first
 * superblock that has one, which is what RMM searches for. A superblock changes arenas with all its
 * free blocks by a cut of one tree and a join to the other. Every step takes time in the logarithm
 * of the free blocks; a clean also in the number of superblocks that it returns. With many streams,
 * or many superblocks in their arenas (`struct many_arenas`), no step looks at all of them. */
#include "allocators/base/most_tree.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

#define ARENA_ALIGNMENT_BYTES UINT64_C(256)
#define SUPERBLOCK_LEAST      AR_MIB
#define SUPERBLOCK_MOST       (UINT64_C(1) << 40)

#define ARENA_GLOBAL 0u /* the arena of stream s has the number s + 1 */

struct superblock {
    uint64_t address, bytes;
    uint64_t free_bytes;
    uint32_t arena;
    uint32_t used;          /* blocks in it */
    uint32_t before, after; /* by address; 0: none. `after` links spare records */
    uint32_t lent_after;    /* list of the same stream */
};

struct arena {
    uint64_t free_bytes;
    uint32_t free_blocks; /* the tree */
    uint32_t lent;        /* first superblock of the arena of a stream; 0: none */
};

/* Up to these numbers arenas, and superblocks of streams, are looked at one by one. */
#define FEW_ARENAS      64u
#define FEW_SUPERBLOCKS 1024u

/* What is kept if there are many of them and the host has memory for it. */
struct many_arenas {
    struct ar_most_tree largest; /* free block, by arena */
    struct ar_most_tree lends;   /* 1 if the arena has a superblock in its list, by arena */
    struct ar_run_tree empty;    /* superblocks, by address in units of their least size */
};

/* `extra` of a range: its superblock in the lower half; in the upper half of a used one the bytes
 * that rounding added. */
struct rmm_arena {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct ar_range_pool ranges;
    uint32_t first; /* the range at the lowest address; 0: no memory yet */
    uint32_t arena_count;
    struct superblock *superblocks; /* record 0 is not used */
    uint32_t superblocks_made, superblock_room, superblock_spare;
    uint32_t first_superblock;
    struct arena *arenas;
    struct many_arenas *many; /* NULL: none */
    uint64_t arena_bytes;     /* of the block from the device */
    uint64_t address;         /* of this block */
    uint32_t streams;         /* above all streams seen so far */
    uint32_t last_stream;
    struct ar_policy_stats counted; /* its counters only */
};

#define ARENA_USED UINT32_MAX /* `left` of a used range, which is in no tree */

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

/* ---- records --------------------------------------------------------------------------------- */

static struct ar_range_node *range_at(const struct rmm_arena *self, uint32_t range)
{
    return &self->ranges.nodes[range];
}

static struct superblock *superblock_at(const struct rmm_arena *self, uint32_t superblock)
{
    return &self->superblocks[superblock];
}

static bool superblocks_reserve(struct rmm_arena *self)
{
    if (self->superblock_spare || self->superblocks_made < self->superblock_room)
        return true;
    if (!ar_host_extend(self->host, &self->superblocks, &self->superblock_room,
                        self->superblock_room + self->superblock_room / 4 + 16,
                        sizeof *self->superblocks))
        return false;
    if (!self->superblocks_made)
        self->superblocks_made = 1;
    return true;
}

/* Makes sure of all records that one request of `stream` can need. */
static bool arena_reserve(struct rmm_arena *self, uint32_t stream)
{
    uint32_t arenas = stream + 2;
    if (arenas > self->arena_count && !ar_host_extend(self->host, &self->arenas, &self->arena_count,
                                                      arenas, sizeof *self->arenas))
        return false;
    return superblocks_reserve(self) && ar_range_pool_reserve(&self->ranges, 2);
}

/* ---- many arenas ----------------------------------------------------------------------------- */

static void many_close(struct rmm_arena *self)
{
    struct many_arenas *many = self->many;
    if (!many)
        return;
    ar_most_tree_close(&many->largest, self->host);
    ar_most_tree_close(&many->lends, self->host);
    ar_run_tree_close(&many->empty, self->host);
    ar_host_free(self->host, many, sizeof *many);
    self->many = NULL;
}

static uint64_t largest_of(const struct rmm_arena *self, uint32_t arena)
{
    return arena < self->arena_count
               ? ar_range_tree_most(&self->ranges, self->arenas[arena].free_blocks)
               : 0;
}

/* Called after every change of the free blocks, or of the list, of an arena. */
static inline void arena_changed(struct rmm_arena *self, uint32_t arena)
{
    if (__builtin_expect(self->many != NULL, 0)) {
        ar_most_tree_set(&self->many->largest, arena, largest_of(self, arena));
        ar_most_tree_set(&self->many->lends, arena, self->arenas[arena].lent != 0);
    }
}

/* A superblock is as long as the unit or longer, so each has a number of its own. */
static uint32_t superblock_number(const struct rmm_arena *self, uint64_t address)
{
    return (uint32_t)((address - self->address) / SUPERBLOCK_LEAST);
}

/* Called after every change of a superblock's size and of whether it is empty. */
static inline void superblock_changed(struct rmm_arena *self, uint32_t index)
{
    const struct superblock *superblock = superblock_at(self, index);
    if (__builtin_expect(self->many == NULL, 1))
        return;
    uint32_t number = superblock_number(self, superblock->address);
    if (superblock->used)
        ar_run_tree_use(&self->many->empty, number);
    else
        ar_run_tree_free(&self->many->empty, number, superblock->bytes);
}

/* Called before the start of a superblock changes, or it goes. */
static inline void superblock_leaves(struct rmm_arena *self, uint32_t index)
{
    if (__builtin_expect(self->many != NULL, 0))
        ar_run_tree_free(&self->many->empty,
                         superblock_number(self, superblock_at(self, index)->address), 0);
}

/* There is memory, and there are many arenas or superblocks, all of which must be covered. */
static __attribute__((noinline)) void many_cover(struct rmm_arena *self)
{
    bool is_new = !self->many;
    if (is_new && (!(self->many = ar_host_alloc(self->host, sizeof *self->many)) ||
                   !ar_run_tree_open(&self->many->empty, self->host,
                                     (uint32_t)(self->arena_bytes / SUPERBLOCK_LEAST) + 1))) {
        many_close(self);
        return;
    }
    if (!ar_most_tree_reserve(&self->many->largest, self->host, self->arena_count) ||
        !ar_most_tree_reserve(&self->many->lends, self->host, self->arena_count)) {
        many_close(self);
        return;
    }
    for (uint32_t arena = 0; is_new && arena < self->arena_count; arena++)
        arena_changed(self, arena);
    for (uint32_t at = self->first_superblock; is_new && at; at = superblock_at(self, at)->after)
        superblock_changed(self, at);
}

/* If there were `before` arenas before this request. */
static inline void many_ready(struct rmm_arena *self, uint32_t before)
{
    if (__builtin_expect(self->arena_count != before, 0) &&
        (self->many || self->arena_count > FEW_ARENAS))
        many_cover(self);
}

/* ---- superblocks and ranges ------------------------------------------------------------------ */

/* Inserts a superblock before `after`; 0: it is the only one. */
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

/* Inserts a range before `next`, in no tree; 0: it is the only one. */
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

/* ---- free blocks ----------------------------------------------------------------------------- */

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
    arena_changed(self, (uint32_t)(arena - self->arenas));
}

static void free_block_remove(struct rmm_arena *self, uint32_t free_block)
{
    struct arena *arena = count_out(self, range_at(self, free_block));
    ar_range_tree_remove(&self->ranges, &arena->free_blocks, AR_RANGE_BY_ADDRESS, free_block);
    arena_changed(self, (uint32_t)(arena - self->arenas));
}

/* A free block grows or shrinks at either end and keeps its place in the tree. */
static void free_block_change(struct rmm_arena *self, uint32_t free_block, uint64_t address,
                              uint64_t bytes)
{
    const struct arena *arena = count_out(self, range_at(self, free_block));
    ar_range_tree_change(&self->ranges, arena->free_blocks, free_block, address, bytes);
    count_in(self, range_at(self, free_block));
    arena_changed(self, (uint32_t)(arena - self->arenas));
}

/* ---- superblocks move between arenas --------------------------------------------------------- */

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
    arena_changed(self, superblock->arena);
    superblock->arena = arena;
    arena_changed(self, arena);
}

/* Enters the superblock in the list of its arena. */
static void enlist(struct rmm_arena *self, uint32_t index)
{
    struct superblock *superblock = superblock_at(self, index);
    struct arena *arena = &self->arenas[superblock->arena];
    superblock->lent_after = arena->lent;
    arena->lent = index;
    if (self->superblocks_made > FEW_SUPERBLOCKS && !self->many)
        many_cover(self);
    arena_changed(self, superblock->arena);
}

static bool is_empty_global(const struct rmm_arena *self, uint32_t superblock)
{
    return superblock && !superblock_at(self, superblock)->used &&
           superblock_at(self, superblock)->arena == ARENA_GLOBAL;
}

/* Two empty superblocks that touch become one. Each is one free block. */
static void absorb(struct rmm_arena *self, uint32_t left, uint32_t right)
{
    uint64_t bytes = range_at(self, right)->bytes;
    uint32_t gone = arena_superblock_of(range_at(self, right));
    free_block_remove(self, right);
    range_drop(self, right);
    superblock_leaves(self, gone);
    superblock_drop(self, gone);
    uint32_t grown = arena_superblock_of(range_at(self, left));
    superblock_at(self, grown)->bytes += bytes;
    superblock_changed(self, grown);
    free_block_change(self, left, range_at(self, left)->address,
                      range_at(self, left)->bytes + bytes);
    self->counted.count.merges++;
}

/* Joins an empty superblock of the global arena, which is `free_block`, with empty neighbours. */
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

/* The next arena of a stream, from `arena` on, that has superblocks; the number of arenas: none. */
static uint32_t next_lender(const struct rmm_arena *self, uint32_t arena)
{
    if (self->many) {
        arena = ar_most_tree_next(&self->many->lends, arena, 1);
        return arena < self->arena_count ? arena : self->arena_count;
    }
    while (arena < self->arena_count && !self->arenas[arena].lent)
        arena++;
    return arena;
}

/* Returns the superblocks of all streams to the global arena. */
static void arena_clean(struct rmm_arena *self)
{
    for (uint32_t arena = ARENA_GLOBAL;
         (arena = next_lender(self, arena + 1)) < self->arena_count;) {
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

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Rule 1, if it is not done yet. After a reserve. */
static enum ar_status arena_obtain(struct rmm_arena *self)
{
    if (self->first)
        return AR_OK;
    AR_TRY(ar_backing_segment_alloc(self->backing, self->arena_bytes, &self->address));
    uint32_t superblock = superblock_add(self, 0, self->address, self->arena_bytes);
    free_block_add(self, range_add(self, 0, self->address, self->arena_bytes, superblock));
    self->base.totals.reserved_bytes = self->arena_bytes;
    self->base.totals.releasable_bytes = self->arena_bytes;
    self->counted.count.segments_made++;
    return AR_OK;
}

/* Uses the first `bytes` of a free block. */
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
    if (!superblock_at(self, superblock)->used++)
        superblock_changed(self, superblock);
    return block;
}

/* Splits a head of `head_bytes` off an empty superblock, which is `free_block`, for an arena. The
 * used block is the first `bytes` of the head. */
static uint32_t cut_head(struct rmm_arena *self, uint32_t free_block, uint32_t arena,
                         uint64_t head_bytes, uint64_t bytes)
{
    uint32_t tail = arena_superblock_of(range_at(self, free_block));
    uint64_t address = range_at(self, free_block)->address;
    free_block_change(self, free_block, address + head_bytes,
                      range_at(self, free_block)->bytes - head_bytes);
    superblock_leaves(self, tail);
    superblock_at(self, tail)->address += head_bytes;
    superblock_at(self, tail)->bytes -= head_bytes;
    superblock_changed(self, tail);
    uint32_t head = superblock_add(self, tail, address, head_bytes);
    superblock_at(self, head)->arena = arena;
    superblock_at(self, head)->used = 1;
    superblock_changed(self, head);
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

/* A block of exactly `bytes`, a multiple of the alignment, for an arena. 0: no room. After a
 * reserve. */
static uint32_t arena_take(struct rmm_arena *self, uint32_t arena, uint64_t bytes)
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

static void arena_give(struct rmm_arena *self, uint32_t range)
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
    if (--superblock->used == 0)
        superblock_changed(self, index);
    if (superblock->used == 0 && superblock->arena == ARENA_GLOBAL)
        join_neighbours(self, free_block);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void note(struct rmm_arena *self, uint32_t stream)
{
    if (stream >= self->streams && stream != UINT32_MAX)
        self->streams = stream + 1;
}

static void wait_for(struct rmm_arena *self, uint32_t stream)
{
    ar_backing_wait(self->backing, ar_backing_fence(self->backing, stream));
}

/* Rule 4. */
static void defragment(struct rmm_arena *self)
{
    ar_backing_wait_streams(self->backing, self->streams);
    arena_clean(self);
    self->counted.count.flushes++;
    self->counted.count.retries++;
}

static enum ar_status arena_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct rmm_arena *self = (struct rmm_arena *)base;
    uint64_t bytes = ar_size_round_up(request->bytes, ARENA_ALIGNMENT_BYTES);
    uint32_t arena = request->stream + 1;
    uint32_t arenas = self->arena_count;
    AR_TRY_HOST(arena_reserve(self, request->stream));
    note(self, request->stream);
    self->last_stream = request->stream;
    enum ar_status status = arena_obtain(self);
    if (status != AR_OK) {
        self->counted.count.failures += status == AR_REFUSED;
        return status == AR_REFUSED ? AR_NO_MEMORY : status;
    }
    many_ready(self, arenas);
    uint32_t block = arena_take(self, arena, bytes);
    if (!block) {
        defragment(self);
        block = arena_take(self, arena, bytes);
    }
    if (!block) {
        self->counted.count.failures++;
        return AR_NO_MEMORY;
    }
    struct ar_range_node *range = &self->ranges.nodes[block];
    range->extra |= (bytes - request->bytes) << 32;
    base->totals.releasable_bytes = 0;
    ar_policy_grant(base, out, range->address, bytes, block);
    return AR_OK;
}

static enum ar_status arena_free(struct ar_policy *base, const struct ar_policy_block *block,
                                 uint32_t stream)
{
    struct rmm_arena *self = (struct rmm_arena *)base;
    uint32_t index = (uint32_t)block->cookie;
    const struct ar_range_node *range = &self->ranges.nodes[index];
    uint32_t arena = self->superblocks[arena_superblock_of(range)].arena;
    note(self, stream);
    if (range->bytes > SUPERBLOCK_LEAST || arena != stream + 1)
        wait_for(self, stream);
    ar_policy_ungrant(base, arena_requested(range), range->bytes);
    if (base->totals.live_blocks == 0)
        base->totals.releasable_bytes = self->arena_bytes;
    arena_give(self, index);
    return AR_OK;
}

static enum ar_status arena_use(struct ar_policy *base,
                                const struct ar_policy_block *block AR_UNUSED, uint32_t stream)
{
    note((struct rmm_arena *)base, stream);
    return AR_OK;
}

static void arena_destroy(struct ar_policy *base)
{
    struct rmm_arena *self = (struct rmm_arena *)base;
    if (self->first)
        (void)ar_backing_segment_free(self->backing, self->address);
    many_close(self);
    ar_range_pool_close(&self->ranges);
    ar_host_free(self->host, self->superblocks, self->superblock_room * sizeof *self->superblocks);
    ar_host_free(self->host, self->arenas, self->arena_count * sizeof *self->arenas);
    ar_host_free(self->host, self, sizeof *self);
}

/* ---- inspection ------------------------------------------------------------------------------ */

static bool is_empty(const struct rmm_arena *self, uint32_t superblock)
{
    return superblock && !self->superblocks[superblock].used;
}

/* Bytes of the empty superblocks around a lent one, which a clean joins; 0 if an earlier lent one
 * is among them, which is counted itself. Empty ones of the global arena never touch each other. */
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

/* The largest free block after a clean. With many arenas it is known, see below. */
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

static uint64_t largest_indexed(const struct rmm_arena *self)
{
    uint64_t largest = ar_most_tree_top(&self->many->largest);
    uint64_t run = ar_run_tree_most(&self->many->empty);
    return run > largest ? run : largest;
}

/* The arena of a stream serves up to 1 MiB. Larger requests come from the global arena. */
static void arena_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    uint64_t global = largest_of(self, ARENA_GLOBAL), stranded = 0;
    uint64_t own = largest_of(self, self->last_stream + 1);
    own = own < SUPERBLOCK_LEAST ? own : SUPERBLOCK_LEAST;
    if (self->arena_count)
        stranded = ar_policy_free_bytes(&base->totals) - self->arenas[ARENA_GLOBAL].free_bytes -
                   self->arenas[self->last_stream + 1].free_bytes;
    uint64_t cleaned = self->many ? largest_indexed(self) : largest_cleaned(self);
    ar_policy_room_fill(out, own > global ? own : global, stranded, 0);
    out->servable_bytes[AR_POLICY_EFFORT_WAIT] = cleaned;
    out->servable_bytes[AR_POLICY_EFFORT_TRIM] = cleaned;
}

static void arena_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    *out = ((const struct rmm_arena *)base)->counted;
    out->totals = base->totals;
}

static void arena_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
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

/* ---- validate -------------------------------------------------------------------------------- */

static const char *range_fault(const struct rmm_arena *self, uint32_t index, uint64_t address)
{
    const struct ar_range_node *range = &self->ranges.nodes[index];
    const struct superblock *superblock = &self->superblocks[arena_superblock_of(range)];
    const struct ar_range_node *next = range->next ? &self->ranges.nodes[range->next] : NULL;
    if (range->address != address || !range->bytes)
        return "a range does not start where the one before it ends";
    if (next && next->previous != index)
        return "the links of two neighbours differ";
    if (arena_is_used(range))
        return NULL;
    if (next && !arena_is_used(next) && arena_superblock_of(next) == arena_superblock_of(range))
        return "two free blocks of one superblock touch";
    return ar_range_tree_first(&self->ranges, self->arenas[superblock->arena].free_blocks,
                               range->address, range->bytes) == index
               ? NULL
               : "a free block is not in the tree of its arena";
}

/* Checks the ranges of one superblock, from `*at` on, and counts the free ones. */
static enum ar_status check_superblock(const struct rmm_arena *self, uint32_t index, uint32_t *at,
                                       uint64_t *free_blocks, struct ar_error *error)
{
    const struct superblock *superblock = &self->superblocks[index];
    uint64_t address = superblock->address, used = 0, free_bytes = 0;
    const char *fault = NULL;
    if (superblock->bytes < SUPERBLOCK_LEAST)
        fault = "a superblock is too small";
    if (superblock->arena == ARENA_GLOBAL && is_empty(self, index) &&
        is_empty(self, superblock->after) &&
        self->superblocks[superblock->after].arena == ARENA_GLOBAL)
        fault = "two empty superblocks of the global arena touch";
    for (; !fault && *at && arena_superblock_of(&self->ranges.nodes[*at]) == index;
         *at = self->ranges.nodes[*at].next) {
        const struct ar_range_node *range = &self->ranges.nodes[*at];
        fault = range_fault(self, *at, address);
        used += arena_is_used(range);
        free_bytes += arena_is_used(range) ? 0 : range->bytes;
        *free_blocks += !arena_is_used(range);
        address += range->bytes;
    }
    if (!fault && address != superblock->address + superblock->bytes)
        fault = "the ranges of a superblock do not fill it";
    if (!fault && (used != superblock->used || free_bytes != superblock->free_bytes))
        fault = "a superblock counts other blocks than it has";
    return fault ? ar_policy_broken(&self->base, fault, address, error) : AR_OK;
}

static enum ar_status check_arenas(const struct rmm_arena *self, uint64_t free_blocks,
                                   struct ar_error *error)
{
    for (uint32_t arena = 0; arena < self->arena_count; arena++) {
        uint64_t count, free_bytes = 0;
        const char *fault = NULL;
        if (!ar_range_tree_check(&self->ranges, self->arenas[arena].free_blocks,
                                 AR_RANGE_BY_ADDRESS, &count))
            fault = "the tree of free blocks is broken; arena";
        free_blocks -= count;
        for (uint32_t lent = self->arenas[arena].lent; lent;
             lent = self->superblocks[lent].lent_after) {
            if (self->superblocks[lent].arena != arena)
                fault = "a superblock is in the list of another arena; arena";
            free_bytes += self->superblocks[lent].free_bytes;
        }
        if (arena != ARENA_GLOBAL && free_bytes != self->arenas[arena].free_bytes)
            fault = "the free bytes differ from those of the superblocks; arena";
        if (self->many && (ar_most_tree_next(&self->many->lends, arena, 1) == arena) !=
                              (self->arenas[arena].lent != 0))
            fault = "the index of arenas with superblocks is wrong; arena";
        if (fault)
            return ar_policy_broken(&self->base, fault, arena, error);
    }
    if (self->many && largest_indexed(self) != largest_cleaned(self))
        return ar_policy_broken(&self->base, "the index of arenas has another largest block",
                                largest_cleaned(self), error);
    return free_blocks
               ? ar_policy_broken(&self->base, "the trees hold other free blocks than exist",
                                  self->address, error)
               : AR_OK;
}

static enum ar_status arena_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct rmm_arena *self = (const struct rmm_arena *)base;
    const struct ar_policy_totals *totals = &base->totals;
    uint64_t address = self->address, free_blocks = 0;
    uint32_t at = self->first;
    enum ar_status status = AR_OK;
    for (uint32_t s = self->first_superblock; s && !status; s = self->superblocks[s].after) {
        if (self->superblocks[s].address != address)
            return ar_policy_broken(base, "two superblocks do not follow each other", address,
                                    error);
        status = check_superblock(self, s, &at, &free_blocks, error);
        address += self->superblocks[s].bytes;
    }
    if (!status && (at || address != self->address + totals->reserved_bytes))
        return ar_policy_broken(base, "the superblocks do not fill the arena", self->address,
                                error);
    AR_THEN(status, check_arenas(self, free_blocks, error));
    return status ? status
                  : ar_policy_check_totals(base, totals->live_blocks ? 0 : totals->reserved_bytes,
                                           error);
}

/* ---- create ---------------------------------------------------------------------------------- */

struct arena_values {
    struct ar_policy_common common;
    uint64_t arena_bytes;
};

static const struct ar_option arena_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"arena_size", AR_OPTION_BYTES, offsetof(struct arena_values, arena_bytes), "0", 0, 0, NULL,
     "bytes of the arena, 1 MiB to 1 TiB; 0: the limit, else half of the free memory"},
    {0},
};

static const char *arena_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct rmm_arena *)base)->backing);
}

/* Rule 1. 0: the size is out of bounds, and the sentence is written. */
static uint64_t size_wanted(const struct ar_policy_context *context,
                            const struct arena_values *values, struct ar_error *error)
{
    uint64_t limit = values->common.limit_bytes;
    uint64_t wanted = values->arena_bytes ? values->arena_bytes : limit;
    if (limit && wanted > limit) {
        (void)ar_invalid(error, "policy rmm-arena: arena_size is above the limit");
        return 0;
    }
    if (!wanted) {
        uint64_t free_bytes;
        uint64_t total_bytes;
        ar_backing_memory(context->backing, &free_bytes, &total_bytes);
        wanted = free_bytes / 2 < SUPERBLOCK_MOST ? free_bytes / 2 : SUPERBLOCK_MOST;
    }
    wanted = ar_size_round_down(wanted, ARENA_ALIGNMENT_BYTES);
    if (wanted >= SUPERBLOCK_LEAST && wanted <= SUPERBLOCK_MOST)
        return wanted;
    (void)ar_invalid(error,
                     "policy rmm-arena: an arena of %llu bytes is not between 1 MiB and 1 TiB; "
                     "give arena_size, or a device with 2 MiB free",
                     (unsigned long long)wanted);
    return 0;
}

static enum ar_status arena_create(const struct ar_policy_context *context, const void *values,
                                   struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops rmm_arena_policy;
    uint64_t bytes = size_wanted(context, values, error);
    if (!bytes)
        return AR_INVALID;
    struct rmm_arena *self = ar_policy_new(context, &rmm_arena_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    self->arena_bytes = bytes;
    ar_range_pool_open(&self->ranges, context->host);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops rmm_arena_policy = {
    .name = "rmm-arena",
    .summary = "RAPIDS RMM's arena: first fit by address, superblocks lent to streams",
    .reference = "RMM 26.10, arena_memory_resource",
    .recorders = (const char *const[]){"rmm-arena", NULL},
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = arena_options,
    .values_bytes = sizeof(struct arena_values),
    .create = arena_create,
    AR_POLICY_HOOKS(arena),
    .room = arena_room,
    .use = arena_use,
    .problem = arena_problem,
};
