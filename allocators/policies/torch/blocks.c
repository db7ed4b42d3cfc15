/* Records of blocks, the free sets, split and merge. The real allocator keeps one ordered set
 * per pool, keyed by stream, size and address; here each stream of each pool has an index of
 * its own, which gives the same order. */
#include "allocators/policies/torch/torch.h"

bool torch_grow_blocks(struct torch *self, uint32_t wanted)
{
    if (!ar_spans_reserve(&self->spans, self->host, wanted))
        return false;
    if (self->block_room < self->spans.count) {
        struct torch_block *grown = ar_host_grow(self->host, self->blocks, self->block_room,
                                                 self->spans.count, sizeof *grown);
        if (!grown)
            return false;
        self->blocks = grown;
        self->block_room = self->spans.count;
    }
    return true;
}

static uint32_t pool_of(struct torch *self, uint32_t id, bool *failed)
{
    for (uint32_t i = 0; i < self->pool_count; i++)
        if (self->pools[i].id == id)
            return i;
    if (self->pool_count == self->pool_room) {
        uint32_t room = self->pool_room ? self->pool_room * 2 : 2;
        struct torch_pool *grown =
            ar_host_grow(self->host, self->pools, self->pool_room, room, sizeof *grown);
        if (!grown) {
            *failed = true;
            return 0;
        }
        self->pools = grown;
        self->pool_room = room;
    }
    self->pools[self->pool_count] = (struct torch_pool){.id = id};
    return self->pool_count++;
}

/* The bucket of an arena, or the empty one where it would go. There is always an empty one. */
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

/* The arena of a stream in a pool; made when it is first asked for. Most requests ask for the
 * one that the last request of their size kind asked for, and do not come here. */
uint32_t torch_arena_of(struct torch *self, uint32_t stream, uint32_t pool, bool small,
                        bool *failed)
{
    uint32_t found = torch_arena_find(self, stream, pool, small);
    if (found != UINT32_MAX)
        return found;
    uint32_t index = pool_of(self, pool, failed);
    return *failed ? 0 : arena_new(self, stream, index, small, failed);
}

/* There must be a spare record: torch_reserve_blocks comes first. */
uint32_t torch_block_new(struct torch *self, uint64_t address, uint64_t bytes, uint32_t arena,
                         uint32_t segment, bool mapped)
{
    uint32_t block = ar_spans_take(&self->spans);
    struct ar_span *span = &self->spans.at[block];
    span->address = address;
    span->bytes = bytes;
    span->previous = 0;
    span->next = 0;
    span->owner = arena;
    span->used = 0;
    self->blocks[block] = (struct torch_block){.segment = segment, .mapped = mapped};
    return block;
}

void torch_block_drop(struct torch *self, uint32_t block)
{
    self->spans.at[block].used = 0;
    ar_spans_drop(&self->spans, block);
}

/* Bytes of a free block that could go back to the device: all of a segment that nobody
 * divided, or the whole pages inside a block of an expandable one. */
uint64_t torch_releasable(const struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    if (!torch_is_expandable(self, block))
        return span->previous || span->next ? 0 : span->bytes;
    const struct torch_segment *segment = &self->segments[self->blocks[block].segment];
    uint64_t page = torch_page_bytes(self, self->arenas[span->owner]);
    uint64_t start = span->address - segment->address;
    uint64_t first = (start + page - 1) / page;
    uint64_t last = (start + span->bytes) / page;
    return last > first ? (last - first) * page : 0;
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
    self->base.totals.releasable_bytes += torch_releasable(self, block);
    ar_policy_free_added(&self->base, span->bytes);
}

void torch_free_remove(struct torch *self, uint32_t block)
{
    struct ar_span *span = &self->spans.at[block];
    struct torch_arena *arena = self->arenas[span->owner];
    ar_span_index_remove(&arena->index, self->spans.at, block);
    arena->free_bytes -= span->bytes;
    self->base.totals.releasable_bytes -= torch_releasable(self, block);
    ar_policy_free_removed(&self->base, span->bytes);
}

/* Takes `other`, a neighbour of `block`, into it, if it is free and of the same kind.
 * Returns its bytes, 0 where nothing was merged. `block` itself is in no set. */
uint64_t torch_merge(struct torch *self, uint32_t block, uint32_t other)
{
    if (!other)
        return 0;
    struct ar_span *at = self->spans.at;
    if (at[other].used || self->blocks[other].mapped != self->blocks[block].mapped)
        return 0;
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
    return bytes;
}

/* The bytes that a block could reach by mapping what follows it. */
static uint64_t expandable_bytes(const struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    uint64_t bytes = span->bytes;
    if (span->next && !self->blocks[span->next].mapped)
        bytes += self->spans.at[span->next].bytes;
    return bytes;
}

/* The free block after `block` in its arena's order; 0: none. */
static uint32_t next_free(const struct torch *self, struct torch_arena *arena, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    struct ar_span_place place;
    return ar_span_index_find(&arena->index, self->spans.at, span->bytes, span->address + 1, &place)
               ? *place.link
               : 0;
}

/* The free block for a request of that size, which stays in its set; 0: a miss. */
uint32_t torch_fitting(const struct torch *self, uint32_t arena_index, uint64_t rounded_bytes)
{
    struct torch_arena *arena = self->arenas[arena_index];
    const struct torch_settings *settings = &self->settings;
    struct ar_span_place place;
    if (!ar_span_index_find(&arena->index, self->spans.at, rounded_bytes, 0, &place))
        return 0;
    uint32_t block = *place.link;
    if (settings->expandable) {
        /* A bounded hole that follows in size is taken before the tail that can grow. */
        for (uint32_t next; (next = next_free(self, arena, block)) != 0; block = next)
            if (expandable_bytes(self, next) >= expandable_bytes(self, block))
                break;
    }
    return torch_accepts(settings, rounded_bytes, self->spans.at[block].bytes) ? block : 0;
}

/* The same, taken out of its set. */
uint32_t torch_find(struct torch *self, uint32_t arena_index, uint64_t rounded_bytes)
{
    const struct torch_arena *arena = self->arenas[arena_index];
    if (self->ages)
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
    ar_host_free(self->host, self->blocks, self->block_room * sizeof *self->blocks);
    ar_spans_close(&self->spans, self->host);
}
