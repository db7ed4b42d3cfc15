/* Records of blocks, the free sets, split and merge; driver allocations: made, released when memory
 * is short, and collected by age if a threshold is set. The real allocator has one ordered set for
 * each pool, by stream, size and address. Here each stream of each pool has its own index, which
 * gives the same order. */

#include "allocators/base/array.h"
#include "allocators/policies/torch/torch.h"

/* ---- blocks ---------------------------------------------------------------------------------- */

bool torch_grow_blocks(struct torch *self, uint32_t wanted)
{
    if (!ar_spans_reserve(&self->spans, self->host, wanted))
        return false;
    return self->block_room >= self->spans.count ||
           ar_host_extend(self->host, &self->blocks, &self->block_room, self->spans.count,
                          sizeof *self->blocks);
}

/* The bucket of a pool, or the empty bucket for it. There is always an empty one. */
static uint32_t pool_bucket_of(const struct torch *self, uint32_t id)
{
    uint32_t mask = 2 * self->pool_room - 1;
    uint32_t bucket = id * 0x9e3779b1u & mask;
    while (self->pool_buckets[bucket] && self->pools[self->pool_buckets[bucket] - 1].id != id)
        bucket = (bucket + 1) & mask;
    return bucket;
}

/* Room for one more pool, and at least as many empty buckets as full ones. */
static bool grow_pools(struct torch *self)
{
    if (self->pool_count < self->pool_room)
        return true;
    uint32_t old = self->pool_room, room = old ? old * 2 : 2;
    uint32_t *buckets = ar_host_alloc(self->host, 2 * room * sizeof *buckets);
    struct torch_pool *grown =
        buckets ? ar_host_grow(self->host, self->pools, old, room, sizeof *grown) : NULL;
    if (!grown) {
        ar_host_free(self->host, buckets, buckets ? 2 * room * sizeof *buckets : 0);
        return false;
    }
    ar_host_free(self->host, self->pool_buckets, 2 * old * sizeof *buckets);
    self->pools = grown;
    self->pool_room = room;
    self->pool_buckets = buckets;
    for (uint32_t i = 0; i < self->pool_count; i++)
        buckets[pool_bucket_of(self, grown[i].id)] = i + 1;
    return true;
}

static uint32_t pool_of(struct torch *self, uint32_t id, bool *failed)
{
    if (self->pool_room && self->pool_buckets[pool_bucket_of(self, id)])
        return self->pool_buckets[pool_bucket_of(self, id)] - 1;
    if (!grow_pools(self)) {
        *failed = true;
        return 0;
    }
    uint32_t bucket = pool_bucket_of(self, id);
    self->pools[self->pool_count] = (struct torch_pool){.id = id};
    self->pool_buckets[bucket] = self->pool_count + 1;
    return self->pool_count++;
}

/* The bucket of an arena, or the empty bucket for it. There is always an empty one. */
static uint32_t bucket_of(const struct torch *self, uint32_t stream, uint32_t pool, bool small)
{
    uint32_t mask = self->bucket_count - 1;
    uint32_t bucket = (stream * 2 + small + pool * 0x9e3779b1u) & mask;
    for (; self->buckets[bucket]; bucket = (bucket + 1) & mask) {
        const struct torch_arena *arena = self->arenas[self->buckets[bucket] - 1];
        if (arena->stream == stream && arena->small == small && self->pools[arena->pool].id == pool)
            break;
    }
    return bucket;
}

/* Room for one more arena, and at least as many empty buckets as full ones. */
static bool grow_arenas(struct torch *self)
{
    if (self->arena_count < self->arena_room)
        return true;
    uint32_t room = self->arena_room ? self->arena_room * 2 : 4;
    uint32_t *buckets = ar_host_alloc(self->host, 2 * room * sizeof *buckets);
    struct torch_arena **grown =
        buckets ? ar_host_grow(self->host, self->arenas, self->arena_room, room, sizeof *grown)
                : NULL;
    if (!grown) {
        ar_host_free(self->host, buckets, buckets ? 2 * room * sizeof *buckets : 0);
        return false;
    }
    ar_host_free(self->host, self->buckets, self->bucket_count * sizeof *buckets);
    self->arenas = grown;
    self->arena_room = room;
    self->buckets = buckets;
    self->bucket_count = 2 * room;
    for (uint32_t i = 0; i < self->arena_count; i++) {
        const struct torch_arena *arena = self->arenas[i];
        uint32_t id = self->pools[arena->pool].id;
        buckets[bucket_of(self, arena->stream, id, arena->small)] = i + 1;
    }
    return true;
}

/* A pool that does not split hands out whole blocks (MemPool(no_split=True), since 2.9). */
void torch_arena_rule(const struct torch *self, struct torch_arena *arena)
{
    if (self->pools[arena->pool].mempool & AR_MEMPOOL_NO_SPLIT)
        arena->least_rest_bytes = UINT64_MAX;
    else if (arena->small || torch_is_ranged(self, arena->pool))
        arena->least_rest_bytes = TORCH_MIN_BLOCK_BYTES;
    else
        arena->least_rest_bytes = TORCH_SMALL_BYTES + 1;
}

static uint32_t arena_new(struct torch *self, uint32_t stream, uint32_t pool, bool small,
                          bool *failed)
{
    struct torch_arena *arena = grow_arenas(self) ? ar_host_alloc(self->host, sizeof *arena) : NULL;
    if (!arena) {
        *failed = true;
        return 0;
    }
    arena->stream = stream;
    arena->pool = pool;
    arena->small = small;
    torch_arena_rule(self, arena);
    uint32_t bucket = bucket_of(self, stream, self->pools[pool].id, small);
    self->arenas[self->arena_count] = arena;
    self->buckets[bucket] = self->arena_count + 1;
    return self->arena_count++;
}

uint32_t torch_arena_find(const struct torch *self, uint32_t stream, uint32_t pool, bool small)
{
    if (!self->bucket_count)
        return UINT32_MAX;
    uint32_t found = self->buckets[bucket_of(self, stream, pool, small)];
    return found ? found - 1 : UINT32_MAX;
}

/* The arena of a stream in a pool, which is made when it is first needed. Most requests use the
 * arena of the last request of their size kind and do not call this. */
uint32_t torch_arena_of(struct torch *self, uint32_t stream, uint32_t pool, bool small,
                        bool *failed)
{
    uint32_t found = torch_arena_find(self, stream, pool, small);
    if (found != UINT32_MAX)
        return found;
    uint32_t index = pool_of(self, pool, failed);
    return *failed ? 0 : arena_new(self, stream, index, small, failed);
}

/* A record must be spare: call torch_reserve_blocks first. */
uint32_t torch_block_new(struct torch *self, uint64_t address, uint64_t bytes, uint32_t arena,
                         uint32_t segment, bool mapped)
{
    uint32_t block = ar_spans_new(&self->spans, address, bytes);
    self->spans.at[block].owner = arena;
    self->blocks[block] = (struct torch_block){.segment = segment, .mapped = mapped};
    return block;
}

void torch_block_drop(struct torch *self, uint32_t block)
{
    self->spans.at[block].used = 0;
    ar_spans_drop(&self->spans, block);
}

/* The bytes of whole units in [start, end), and the first of them. */
static inline uint64_t whole_units(uint64_t start, uint64_t end, uint64_t unit, uint64_t *first)
{
    uint64_t last = end / unit;
    *first = (start + unit - 1) / unit;
    return last > *first ? (last - *first) * unit : 0;
}

/* The bytes of whole pages in a free block of an expandable segment, and their first grain. */
uint64_t torch_releasable_from(const struct torch *self, uint32_t block, uint64_t *first)
{
    const struct ar_span *span = &self->spans.at[block];
    const struct torch_segment *segment = &self->segments[self->blocks[block].segment];
    uint64_t start = span->address - segment->address;
    uint64_t grain = torch_grain_bytes(self, self->arenas[span->owner]);
    uint64_t bytes = whole_units(start, start + span->bytes, grain, first);
    return self->divides && bytes ? mosaic_whole_pages(self, segment, bytes, first) : bytes;
}

/* Bytes of a free block that can be released: an undivided segment, or the whole pages in a block
 * of an expandable segment. */
uint64_t torch_releasable(const struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    uint64_t first;
    if (!torch_is_expandable(self, block))
        return span->previous || span->next ? 0 : span->bytes;
    if (__builtin_expect(self->divides, 0))
        return torch_releasable_from(self, block, &first);
    uint64_t start = span->address - self->segments[self->blocks[block].segment].address;
    return whole_units(start, start + span->bytes,
                       torch_page_bytes(self, self->arenas[span->owner]), &first);
}

/* Private pools keep their memory until the program has ended them. */
bool torch_is_released(const struct torch_pool *pool)
{
    return pool->id == 0 || pool->ended;
}

void torch_free_insert(struct torch *self, uint32_t block)
{
    struct ar_span *span = &self->spans.at[block];
    struct torch_arena *arena = self->arenas[span->owner];
    struct torch_block *extra = &self->blocks[block];
    span->used = 0;
    if (self->ages)
        extra->collected_at = self->pools[arena->pool].calls[arena->small];
    ar_span_index_insert(&arena->index, self->spans.at, block);
    arena->free_bytes += span->bytes;
    if (__builtin_expect(self->divides, 0))
        mosaic_count(self, block, true);
    self->base.totals.releasable_bytes += torch_releasable(self, block);
    ar_policy_free_added(&self->base, span->bytes);
}

void torch_free_remove(struct torch *self, uint32_t block)
{
    struct ar_span *span = &self->spans.at[block];
    struct torch_arena *arena = self->arenas[span->owner];
    ar_span_index_remove(&arena->index, self->spans.at, block);
    arena->free_bytes -= span->bytes;
    if (__builtin_expect(self->divides, 0))
        mosaic_count(self, block, false);
    self->base.totals.releasable_bytes -= torch_releasable(self, block);
    ar_policy_free_removed(&self->base, span->bytes);
}

/* Merges `other`, a neighbour, into `block` if it is free and also mapped or unmapped. `block` is
 * in no set. */
void torch_merge(struct torch *self, uint32_t block, uint32_t other)
{
    struct ar_span *at = self->spans.at;
    if (!other || at[other].used || self->blocks[other].mapped != self->blocks[block].mapped)
        return;
    uint64_t bytes = at[other].bytes;
    if (self->blocks[other].mapped)
        torch_free_remove(self, other);
    else
        torch_unmapped_remove(self, other);
    if (at[block].previous == other) {
        at[block].address = at[other].address;
        at[block].previous = at[other].previous;
        if (at[block].previous)
            at[at[block].previous].next = block;
        else
            self->segments[self->blocks[block].segment].first = block;
    } else {
        at[block].next = at[other].next;
        if (at[block].next)
            at[at[block].next].previous = block;
    }
    at[block].bytes += bytes;
    torch_block_drop(self, other);
    self->merges++;
}

/* The bytes of a block with the unmapped block after it. */
static uint64_t expandable_bytes(const struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    uint64_t bytes = span->bytes;
    if (span->next && !self->blocks[span->next].mapped)
        bytes += self->spans.at[span->next].bytes;
    return bytes;
}

/* The free block for a request of that size, which stays in its set; 0: none. */
uint32_t torch_fitting(const struct torch *self, uint32_t arena_index, uint64_t rounded_bytes)
{
    struct torch_arena *arena = self->arenas[arena_index];
    const struct torch_settings *settings = &self->settings;
    uint64_t bytes = rounded_bytes, address = 0;
    uint32_t block = ar_span_index_next(&arena->index, self->spans.at, &bytes, &address);
    if (!block)
        return 0;
    /* A block that cannot grow and follows in size is taken before a block that can. If segments do
     * not grow any more, blocks of those that do are passed over. */
    while (torch_is_expandable(self, block)) {
        uint32_t next = ar_span_index_next(&arena->index, self->spans.at, &bytes, &address);
        if (self->settings.expandable &&
            (!next || expandable_bytes(self, next) >= expandable_bytes(self, block)))
            break;
        if (!next)
            return 0;
        block = next;
    }
    return torch_accepts(settings, rounded_bytes, self->spans.at[block].bytes) ? block : 0;
}

/* The same, removed from its set. */
uint32_t torch_find(struct torch *self, uint32_t arena_index, uint64_t rounded_bytes)
{
    const struct torch_arena *arena = self->arenas[arena_index];
    if (self->collects)
        self->pools[arena->pool].calls[arena->small]++;
    uint32_t block = torch_fitting(self, arena_index, rounded_bytes);
    if (block)
        torch_free_remove(self, block);
    return block;
}

void torch_blocks_close(struct torch *self)
{
    for (uint32_t i = 0; i < self->arena_count; i++) {
        struct torch_arena *arena = self->arenas[i];
        ar_host_free(self->host, arena->unmapped, arena->unmapped_room * sizeof *arena->unmapped);
        ar_host_free(self->host, arena, sizeof *arena);
    }
    ar_host_free(self->host, self->arenas, self->arena_room * sizeof *self->arenas);
    ar_host_free(self->host, self->buckets, self->bucket_count * sizeof *self->buckets);
    ar_host_free(self->host, self->pools, self->pool_room * sizeof *self->pools);
    ar_host_free(self->host, self->pool_buckets, 2 * self->pool_room * sizeof *self->pool_buckets);
    ar_host_free(self->host, self->blocks, self->block_room * sizeof *self->blocks);
    ar_spans_close(&self->spans, self->host);
}

/* ---- driver allocations ---------------------------------------------------------------------- */

/* The place of the first segment at or above `address`. */
static uint32_t order_place(const struct torch *self, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = self->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->segments[self->order[middle]].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* UINT32_MAX: no host memory. */
uint32_t torch_segment_new(struct torch *self, uint64_t address, uint64_t bytes, uint32_t arena,
                           bool expandable)
{
    uint32_t *order_room = &self->order_room, *room = &self->segment_room;
    if (self->order_count == *order_room &&
        !ar_host_extend(self->host, &self->order, order_room,
                        *order_room ? *order_room + *order_room / 2 + 1 : 16, sizeof *self->order))
        return UINT32_MAX;
    uint32_t segment = self->spare_segment;
    if (segment == UINT32_MAX) {
        if (self->segment_count == *room &&
            !ar_host_extend(self->host, &self->segments, room, *room ? *room + *room / 2 : 16,
                            sizeof *self->segments))
            return UINT32_MAX;
        segment = self->segment_count++;
    } else {
        self->spare_segment = self->segments[segment].first;
    }
    self->segments[segment] = (struct torch_segment){
        .address = address, .bytes = bytes, .arena = arena, .expandable = expandable};
    uint32_t place = order_place(self, address);
    AR_ARRAY_INSERT(self->order, self->order_count, place, segment);
    return segment;
}

void torch_segment_drop(struct torch *self, uint32_t segment)
{
    struct torch_segment *dropped = &self->segments[segment];
    uint32_t place = order_place(self, dropped->address);
    AR_ARRAY_REMOVE(self->order, self->order_count, place);
    ar_host_free(self->host, dropped->pages, dropped->page_count * sizeof *dropped->pages);
    *dropped = (struct torch_segment){.first = self->spare_segment};
    self->spare_segment = segment;
}

/* A status other than OK and REFUSED is a fault of the backing that stops the run. */
static bool granted(struct torch *self, enum ar_status status)
{
    if (status != AR_OK && status != AR_REFUSED)
        self->fault = status;
    return status == AR_OK;
}

bool torch_is_beyond_limit(const struct torch *self, uint64_t rounded_bytes)
{
    uint64_t bytes = torch_device_request(&self->settings, rounded_bytes);
    const struct ar_backing_ops *ops = self->backing->ops;
    return (self->limited && self->base.totals.reserved_bytes + bytes > self->allowed_bytes) ||
           (ops->limits && ops->limits(self->backing, bytes));
}

/* Memory from the device for a request; the block is in no set. 0: refused. */
uint32_t torch_alloc_block(struct torch *self, uint32_t arena, uint64_t rounded_bytes, bool retry)
{
    uint64_t bytes = torch_device_request(&self->settings, rounded_bytes);
    self->num_alloc_retries += retry;
    bool grows = torch_grows(self, arena);
    if (!(grows && self->tight) && torch_is_beyond_limit(self, rounded_bytes))
        return 0; /* see map_block for what is tight */
    if (grows)
        return torch_expand(self, arena, rounded_bytes);
    uint64_t address;
    if (!torch_reserve_blocks(self, 2))
        return torch_no_host(self);
    if (!granted(self, ar_backing_segment_alloc(self->backing, bytes, &address)))
        return 0;
    uint32_t segment = torch_segment_new(self, address, bytes, arena, false);
    if (segment == UINT32_MAX)
        return granted(self, ar_backing_segment_free(self->backing, address)) ? torch_no_host(self)
                                                                              : 0;
    uint32_t block = torch_block_new(self, address, bytes, arena, segment, true);
    enum torch_kind kind = torch_kind_of(self, arena);
    self->segments[segment].first = block;
    self->base.totals.reserved_bytes += bytes;
    torch_add(self, TORCH_SEGMENT, kind, 1);
    torch_add(self, TORCH_RESERVED_BYTES, kind, bytes);
    self->num_device_alloc++;
    if (bytes >= self->settings.max_split_bytes)
        torch_count(&self->oversize_segments, 1);
    return block;
}

/* Releases the segment of a free, undivided block. */
static void release_segment(struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    enum torch_kind kind = torch_kind_of(self, span->owner);
    uint64_t bytes = span->bytes;
    torch_free_remove(self, block);
    (void)granted(self, ar_backing_segment_free(self->backing, span->address));
    self->base.totals.reserved_bytes -= bytes;
    torch_subtract(self, TORCH_SEGMENT, kind, 1);
    torch_subtract(self, TORCH_RESERVED_BYTES, kind, bytes);
    self->num_device_free++;
    self->oversize_segments.current -= bytes >= self->settings.max_split_bytes;
    torch_segment_drop(self, self->blocks[block].segment);
    torch_block_drop(self, block);
}

static bool undivided(const struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    return !span->previous && !span->next;
}

/* Steps through the free blocks of an arena: see ar_span_index_next. */
static uint32_t next_free(const struct torch *self, struct torch_arena *arena, uint64_t *bytes,
                          uint64_t *address)
{
    return ar_span_index_next(&arena->index, self->spans.at, bytes, address);
}

/* Whether a program of PyTorch stops because it releases `block` as a segment of its own: a block
 * of a range in some releases; or a part of a segment, which it divided before max_split_size_mb
 * became smaller. */
static bool stops_program(const struct torch *self, uint32_t block)
{
    return torch_is_expandable(self, block) ? self->settings.stops : !undivided(self, block);
}

/* Releases blocks too large to be split: one that is large enough, or the largest ones until their
 * sum is. They stay released if they do not suffice. `*stopped`: see stops_program. */
bool torch_release_available(struct torch *self, uint32_t arena_index, uint64_t rounded_bytes,
                             bool *stopped)
{
    uint64_t least = self->settings.max_split_bytes;
    if (least == UINT64_MAX)
        return false;
    struct torch_arena *arena = self->arenas[arena_index];
    uint64_t key = rounded_bytes > least ? rounded_bytes : least;
    uint64_t from = key;
    uint64_t after = 0;
    uint32_t large = next_free(self, arena, &from, &after);
    *stopped = large && stops_program(self, large);
    if (*stopped)
        return false;
    if (large && !torch_is_expandable(self, large)) {
        release_segment(self, large);
        return true;
    }
    uint64_t released = 0;
    uint64_t below_bytes = key;
    uint64_t below_address = 0;
    while (released < key) {
        uint32_t block =
            ar_span_index_before(&arena->index, self->spans.at, below_bytes, below_address);
        if (!block || self->spans.at[block].bytes < least)
            break;
        below_bytes = self->spans.at[block].bytes;
        below_address = self->spans.at[block].address;
        *stopped = stops_program(self, block);
        if (*stopped)
            return false;
        if (!torch_is_expandable(self, block)) {
            released += below_bytes;
            release_segment(self, block);
        }
    }
    return released >= key;
}

/* Releases a free block that is a whole segment, or its whole pages in an expandable one. */
void torch_release_block(struct torch *self, uint32_t block)
{
    if (torch_is_expandable(self, block))
        torch_unmap_free(self, block);
    else if (undivided(self, block))
        release_segment(self, block);
}

static void release_arena(struct torch *self, struct torch_arena *arena)
{
    uint64_t bytes = 0;
    uint64_t address = 0;
    /* An unmap leaves parts of pages in the set. They are visited again at most once, and have no
     * whole page then. */
    for (uint32_t block; (block = next_free(self, arena, &bytes, &address)) != 0;)
        torch_release_block(self, block);
}

void torch_release_cached(struct torch *self)
{
    self->num_sync_all_streams++;
    deferred_wait_all(&self->deferred);
    /* With many streams there are many arenas, and on a full card each request calls this. */
    for (int small = 0; small <= 1; small++)
        for (uint32_t i = 0; self->base.totals.releasable_bytes && i < self->arena_count; i++)
            if (self->arenas[i]->small == (small != 0) &&
                torch_is_released(&self->pools[self->arenas[i]->pool]))
                release_arena(self, self->arenas[i]);
}

struct pool_of_block {
    const struct torch *torch;
    uint32_t pool;
};

static bool is_of_pool(void *argument, uint32_t block)
{
    const struct pool_of_block *of = argument;
    const struct torch *self = of->torch;
    return self->arenas[self->spans.at[block].owner]->pool == of->pool;
}

/* The destructor of a MemPool: the pool ends, and an empty_cache of that pool alone waits for its
 * pending frees and releases its free memory (ATen/cuda/MemPool.cpp; release_cached_blocks with the
 * id of a pool). */
void torch_release_pool(struct torch *self, uint32_t id)
{
    for (uint32_t i = 0; i < self->pool_count; i++) {
        struct pool_of_block of = {self, i};
        if (self->pools[i].id != id)
            continue;
        torch_end_pool(&self->base, id);
        self->num_sync_all_streams++;
        deferred_wait_for(&self->deferred, is_of_pool, &of);
        for (int small = 1; small >= 0; small--)
            for (uint32_t k = 0; k < self->arena_count; k++)
                if (self->arenas[k]->pool == i && self->arenas[k]->small == (small != 0))
                    release_arena(self, self->arenas[k]);
    }
}

/* Steps through the undivided free blocks of the common large pool, of any stream. */
struct aging {
    uint32_t arena;
    uint64_t bytes, address; /* of the block */
};

static uint32_t next_aging(const struct torch *self, struct aging *at)
{
    for (; at->arena < self->arena_count; *at = (struct aging){.arena = at->arena + 1}) {
        struct torch_arena *arena = self->arenas[at->arena];
        uint32_t block = 0;
        if (arena->small || self->pools[arena->pool].id != 0)
            continue;
        do {
            block = next_free(self, arena, &at->bytes, &at->address);
        } while (block && !undivided(self, block));
        if (block)
            return block;
    }
    return 0;
}

static uint64_t age_of(const struct torch *self, const struct aging *at, uint32_t block)
{
    return self->pools[self->arenas[at->arena]->pool].calls[0] - self->blocks[block].collected_at;
}

/* The sum of ages, and the number of blocks. */
static uint64_t ages(const struct torch *self, uint64_t *count)
{
    struct aging at = {0};
    uint64_t total = 0;
    for (uint32_t block; (block = next_aging(self, &at)) != 0; ++*count)
        total += age_of(self, &at, block);
    return total;
}

/* Whether the block is released if the average age is total / count. */
static bool is_old(const struct torch *self, const struct aging *at, uint32_t block, uint64_t total,
                   uint64_t count)
{
    return !torch_is_expandable(self, block) &&
           (double)age_of(self, at, block) >= (double)total / (double)count;
}

/* One pass: releases every undivided block that is at least as old as the average. */
static uint64_t collect_pass(struct torch *self, uint64_t total, uint64_t count, bool *freed)
{
    struct aging at = {0};
    uint64_t reclaimed = 0;
    for (uint32_t block; (block = next_aging(self, &at)) != 0;) {
        if (!is_old(self, &at, block, total, count))
            continue;
        reclaimed += at.bytes;
        release_segment(self, block);
        *freed = true;
    }
    return reclaimed;
}

static uint64_t collect_above(const struct torch *self)
{
    return (uint64_t)(self->settings.gc_threshold * (double)self->allowed_bytes);
}

/* Whether the first pass would release anything. The oldest block is never younger than the
 * average, so only expandable blocks, which count but stay, can prevent it. */
bool torch_would_collect(const struct torch *self)
{
    if (!self->collects || self->base.totals.reserved_bytes <= collect_above(self))
        return false;
    uint64_t count = 0;
    uint64_t total = ages(self, &count);
    struct aging at = {0};
    for (uint32_t block; count && (block = next_aging(self, &at)) != 0;)
        if (is_old(self, &at, block, total, count))
            return true;
    return false;
}

void torch_collect(struct torch *self)
{
    uint64_t threshold = collect_above(self);
    uint64_t reserved = self->base.totals.reserved_bytes;
    if (reserved <= threshold)
        return;
    uint64_t target = reserved - threshold;
    uint64_t reclaimed = 0;
    bool freed = true;
    while (reclaimed < target && freed) {
        uint64_t count = 0;
        uint64_t total = ages(self, &count);
        if (!count)
            return;
        freed = false;
        reclaimed += collect_pass(self, total, count, &freed);
    }
}
