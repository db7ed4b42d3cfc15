/* The order of decisions of PyTorch's caching allocator in malloc and free. The rules are those of
 * c10/cuda/CUDACachingAllocator.cpp as of PyTorch 2.11:
 *
 * malloc
 * 1. Poll the events of pending frees.
 * 2. Round the size up, choose the small or the large pool.
 * 3. Best fit among the free blocks of the stream.
 * 4. Collect old blocks if a limit and a threshold are set.
 * 5. Memory from the device: a segment, or pages of an expandable one.
 * 6. Best fit in each MemPool with use_on_oom, for requests of the common pool.
 * 7. Release a cached block too large to be split, then 5 again.
 * 8. Wait for all pending frees, release all cached memory, then 5 again (a retry).
 * 9. Split the block if the rest is worth it.
 *
 * free: the block is no longer allocated at once; it is free, and merged with its neighbours, when
 * no other stream uses it. Nothing is released to the device.
 *
 * A request in a private pool (of a graph that is captured, or within torch.cuda.use_mem_pool)
 * leaves out 6, and before 2.13 also 1 and 8: `captures_underway` is not empty then. The memory of
 * a private pool is not released while the pool lives: see torch_end_pool and torch_release_pool.
 * settings.c has what other releases do otherwise. */

#include "allocators/policies/torch/torch.h"

/* Step 6: `use_on_oom`, since 2.8. Free blocks of expandable segments are not found, because
 * try_mempool_fallback looks for others only. */
static uint32_t from_mempools(struct torch *self, const struct torch_arena *arena,
                              uint64_t rounded_bytes)
{
    for (uint32_t i = 0; i < self->pool_count; i++) {
        const struct torch_pool *pool = &self->pools[i];
        if (!(pool->mempool & AR_MEMPOOL_USE_ON_OOM) || pool->ended || torch_is_ranged(self, i))
            continue;
        uint32_t found = torch_arena_find(self, arena->stream, pool->id, arena->small);
        uint32_t block = found == UINT32_MAX ? 0 : torch_find(self, found, rounded_bytes);
        if (block)
            return block;
    }
    return 0;
}

/* Whether a request that needs memory raises an exception because of its pool: settings.c, 7. */
static bool pool_fails(const struct torch *self, const struct torch_pool *pool)
{
    enum torch_user_pools rule = self->settings.user_pools;
    return self->settings.expandable &&
           ((rule == TORCH_POOLS_FAIL && pool->mempool & AR_MEMPOOL_ALLOCATOR) ||
            (rule == TORCH_POOLS_FAIL_ALL && pool->mempool));
}

/* Whether a request in a pool leaves out steps 1 and 8: before 2.13, or in a capture. */
static inline bool skips(const struct torch *self, uint32_t pool, uint8_t mempool)
{
    return pool && (self->settings.pools_fail || mempool & AR_MEMPOOL_CAPTURED);
}

/* Steps 4 to 8. 0: out of memory. */
static uint32_t obtain(struct torch *self, uint32_t arena, uint64_t rounded_bytes)
{
    bool stopped = false;
    bool is_private = self->pools[self->arenas[arena]->pool].id != 0;
    bool overflow_last = self->settings.overflow_last;
    if (self->collects)
        torch_collect(self);
    if (self->settings.rejects && torch_is_beyond_limit(self, rounded_bytes))
        return 0;
    if (pool_fails(self, &self->pools[self->arenas[arena]->pool]))
        return 0;
    uint32_t block = torch_alloc_block(self, arena, rounded_bytes, false);
    if (!block && !self->fault && !is_private && !overflow_last)
        block = from_mempools(self, self->arenas[arena], rounded_bytes);
    if (!block && !self->fault && torch_release_available(self, arena, rounded_bytes, &stopped))
        block = torch_alloc_block(self, arena, rounded_bytes, false);
    stopped |= skips(self, is_private, self->pools[self->arenas[arena]->pool].mempool);
    if (!block && !self->fault && !stopped) {
        bool divides = self->divides && !is_private;
        self->flushes++;
        if (!divides || !self->tight) {
            torch_release_cached(self);
            if (!self->fault)
                block = torch_alloc_block(self, arena, rounded_bytes, true);
        }
        if (!block && !self->fault && divides)
            block = torch_divide(self, arena, rounded_bytes);
    }
    if (!block && !self->fault && !is_private && overflow_last)
        block = from_mempools(self, self->arenas[arena], rounded_bytes);
    return block;
}

/* Cuts `block` after `bytes`. The rest is in no set. */
static inline uint32_t split(struct torch *self, uint32_t block, uint64_t bytes)
{
    self->splits++;
    return torch_cut(self, block, bytes, true);
}

/* Counts the inactive parts of divided segments when `taken_bytes` of a free block are handed out
 * and `rest_bytes` stay. */
static inline void count_taken(struct torch *self, enum torch_kind kind, bool was_divided,
                               uint64_t taken_bytes, uint64_t rest_bytes)
{
    if (was_divided) {
        torch_subtract(self, TORCH_INACTIVE_SPLIT, kind, rest_bytes == 0);
        torch_subtract(self, TORCH_INACTIVE_SPLIT_BYTES, kind, taken_bytes);
    } else if (rest_bytes) {
        torch_add(self, TORCH_INACTIVE_SPLIT, kind, 1);
        torch_add(self, TORCH_INACTIVE_SPLIT_BYTES, kind, rest_bytes);
    }
}

/* Steps 3 and 9 if segments do not grow. The rest of the block takes its place in the free set if
 * possible. 0: no block. */
static inline uint32_t take(struct torch *self, uint32_t arena_index, uint64_t rounded_bytes)
{
    struct torch_arena *arena = self->arenas[arena_index];
    enum torch_kind kind = arena->small ? TORCH_SMALL : TORCH_LARGE;
    struct ar_span *at = self->spans.at;
    struct ar_span_place place;
    if (self->ages)
        self->pools[arena->pool].calls[arena->small] += self->collects;
    if (!ar_span_index_best(&arena->index, at, rounded_bytes, &place))
        return 0;
    uint32_t block = *place.link;
    uint64_t bytes = at[block].bytes;
    if (!torch_accepts(&self->settings, rounded_bytes, bytes))
        return 0;
    bool was_divided = (at[block].previous | at[block].next) != 0;
    if (!was_divided)
        self->base.totals.releasable_bytes -= bytes;
    ar_policy_free_removed(&self->base, bytes);
    if (torch_should_split(self, arena, rounded_bytes, bytes)) {
        uint32_t rest = split(self, block, rounded_bytes);
        if (self->ages)
            self->blocks[rest].collected_at = self->pools[arena->pool].calls[arena->small];
        ar_span_index_replace(&arena->index, at, &place, rest);
        ar_policy_free_added(&self->base, bytes - rounded_bytes);
        count_taken(self, kind, was_divided, rounded_bytes, bytes - rounded_bytes);
        arena->free_bytes -= rounded_bytes;
    } else {
        ar_span_index_unlink(&arena->index, at, &place);
        count_taken(self, kind, was_divided, bytes, 0);
        arena->free_bytes -= bytes;
    }
    return block;
}

/* Step 9 for a block that is in no set. */
static void divide(struct torch *self, uint32_t block, uint64_t rounded_bytes)
{
    const struct ar_span *span = &self->spans.at[block];
    const struct torch_arena *arena = self->arenas[span->owner];
    bool was_divided = (span->previous | span->next) != 0;
    uint64_t bytes = span->bytes;
    uint64_t rest_bytes = 0;
    if (torch_should_split(self, arena, rounded_bytes, bytes)) {
        torch_free_insert(self, split(self, block, rounded_bytes));
        rest_bytes = bytes - rounded_bytes;
    }
    if (!torch_is_expandable(self, block))
        count_taken(self, torch_kind_of(self, span->owner), was_divided, bytes - rest_bytes,
                    rest_bytes);
}

/* Steps 3 to 9 if segments grow, else steps 4 to 9. */
static __attribute__((noinline)) enum ar_status find_slowly(struct torch *self, uint32_t arena,
                                                            uint64_t rounded_bytes, uint32_t *block)
{
    *block = self->has_ranges ? torch_find(self, arena, rounded_bytes) : 0;
    if (!*block) {
        *block = obtain(self, arena, rounded_bytes);
        if (*block && !self->fault && !torch_reserve_blocks(self, 1)) {
            torch_free_insert(self, *block);
            return AR_HOST_MEMORY;
        }
        enum ar_status fault = self->fault;
        if (fault == AR_HOST_MEMORY)
            self->fault = AR_OK; /* a later request may be served */
        self->num_ooms += !*block && !fault;
        if (!*block || fault)
            return fault ? fault : AR_NO_MEMORY;
    }
    divide(self, *block, rounded_bytes);
    return AR_OK;
}

/* What the program said of a MemPool when it made it. */
static void set_mempool(struct torch *self, uint32_t pool, uint8_t mempool)
{
    if (self->pools[pool].mempool == mempool)
        return;
    self->pools[pool].mempool = mempool;
    for (uint32_t i = 0; i < self->arena_count; i++)
        if (self->arenas[i]->pool == pool)
            torch_arena_rule(self, self->arenas[i]);
}

static uint32_t arena_for(struct torch *self, const struct ar_policy_request *request, bool small,
                          bool *failed)
{
    if (request->stream != self->last_stream || request->pool != self->last_pool ||
        self->last_arena[small] == UINT32_MAX) {
        if (request->stream != self->last_stream || request->pool != self->last_pool)
            self->last_arena[!small] = UINT32_MAX;
        self->last_arena[small] = UINT32_MAX;
        uint32_t arena = torch_arena_of(self, request->stream, request->pool, small, failed);
        if (*failed)
            return 0;
        if (request->mempool)
            set_mempool(self, self->arenas[arena]->pool, request->mempool);
        self->last_stream = request->stream;
        self->last_pool = request->pool;
        self->last_arena[small] = arena;
    }
    return self->last_arena[small];
}

/* Marks the block as handed out and counts it. */
static inline void hand_out(struct torch *self, uint32_t block,
                            const struct ar_policy_request *request, enum torch_kind kind,
                            struct ar_policy_block *out)
{
    struct ar_span *span = &self->spans.at[block];
    struct torch_block *extra = &self->blocks[block];
    uint64_t bytes = span->bytes;
    span->used = 1;
    extra->requested_bytes = request->bytes;
    extra->retired = false;
    torch_usage_add(self->usage, kind, bytes, request->bytes);
    if (bytes >= self->settings.max_split_bytes)
        torch_count(&self->oversize_allocations, 1);
    ar_policy_grant(&self->base, out, span->address, bytes, block);
}

static enum ar_status torch_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct torch *self = (struct torch *)base;
    if (self->deferred.pending_events && !skips(self, request->pool, request->mempool))
        deferred_poll_all(&self->deferred);
    uint64_t rounded_bytes = torch_round(&self->settings, request->bytes);
    bool small = rounded_bytes <= TORCH_SMALL_BYTES;
    bool failed = !torch_reserve_blocks(self, 2);
    uint32_t arena = failed ? 0 : arena_for(self, request, small, &failed);
    if (failed)
        return AR_HOST_MEMORY;
    uint32_t block = self->has_ranges ? 0 : take(self, arena, rounded_bytes);
    if (!block)
        AR_TRY(find_slowly(self, arena, rounded_bytes, &block));
    hand_out(self, block, request, small ? TORCH_SMALL : TORCH_LARGE, out);
    return AR_OK;
}

/* The totals of a block whose free is requested. */
static inline void free_requested(struct torch *self, uint64_t bytes, uint64_t requested_bytes)
{
    self->oversize_allocations.current -= bytes >= self->settings.max_split_bytes;
    ar_policy_ungrant(&self->base, requested_bytes, bytes);
}

/* The free is requested: the block is no longer allocated, but still active. */
static void torch_retire(struct ar_policy *base, const struct ar_policy_block *given)
{
    struct torch *self = (struct torch *)base;
    uint32_t block = (uint32_t)given->cookie;
    struct torch_block *extra = &self->blocks[block];
    if (extra->retired)
        return;
    uint64_t bytes = self->spans.at[block].bytes;
    extra->retired = true;
    free_requested(self, bytes, extra->requested_bytes);
    torch_usage_retire(self->usage, torch_kind_of(self, self->spans.at[block].owner), bytes);
    self->base.totals.pending_bytes += bytes;
}

/* Takes `right` out of the chain. `left` before it has the bytes of both. */
static inline void link_past(struct torch *self, uint32_t left, uint32_t right)
{
    (void)ar_spans_join(&self->spans, left, right);
    self->merges++;
}

/* Counts the inactive parts of divided segments, by the net as in PyTorch, when a block was freed
 * and merged with `joined` neighbours. */
static inline void count_freed(struct torch *self, enum torch_kind kind, bool is_divided,
                               int joined, uint64_t own_bytes, uint64_t joined_bytes)
{
    torch_change(self, TORCH_INACTIVE_SPLIT, kind, is_divided - joined);
    if (is_divided)
        torch_add(self, TORCH_INACTIVE_SPLIT_BYTES, kind, own_bytes);
    else
        torch_subtract(self, TORCH_INACTIVE_SPLIT_BYTES, kind, joined_bytes);
}

/* Frees a block in a segment that does not grow. It merges with a free neighbour, which keeps its
 * place in the free set if possible. */
static inline void put_back(struct torch *self, uint32_t block, enum torch_kind kind)
{
    struct ar_span *at = self->spans.at;
    struct torch_arena *arena = self->arenas[at[block].owner];
    uint32_t next = at[block].next;
    uint32_t previous = at[block].previous;
    uint64_t own_bytes = at[block].bytes;
    uint64_t bytes = own_bytes;
    bool joins_next = !at[next].used; /* record 0 counts as used */
    bool joins_previous = !at[previous].used;
    uint32_t into = joins_previous ? previous : block;
    at[block].used = 0;
    arena->free_bytes += own_bytes;
    if (joins_previous) {
        ar_policy_free_removed(&self->base, at[previous].bytes);
        bytes += at[previous].bytes;
        if (joins_next)
            ar_span_index_remove(&arena->index, at, next);
    }
    if (joins_next) {
        ar_policy_free_removed(&self->base, at[next].bytes);
        bytes += at[next].bytes;
    }
    if (joins_previous || joins_next)
        ar_span_index_move(&arena->index, at, joins_previous ? previous : next, into, bytes);
    else
        ar_span_index_insert(&arena->index, at, block);
    if (joins_next)
        link_past(self, block, next);
    if (joins_previous)
        link_past(self, previous, block);
    if (self->ages)
        self->blocks[into].collected_at = self->pools[arena->pool].calls[arena->small];
    bool is_divided = (at[into].previous | at[into].next) != 0;
    if (!is_divided)
        self->base.totals.releasable_bytes += bytes;
    ar_policy_free_added(&self->base, bytes);
    count_freed(self, kind, is_divided, joins_previous + joins_next, own_bytes, bytes - own_bytes);
}

/* The free is completed: the block is free, merged with its neighbours. */
static inline void make_free(struct torch *self, uint32_t block, enum torch_kind kind,
                             uint64_t bytes)
{
    torch_usage_remove(self->usage, kind, bytes, self->blocks[block].requested_bytes);
    if (!torch_is_expandable(self, block)) {
        put_back(self, block, kind);
        return;
    }
    self->spans.at[block].used = 0;
    torch_merge(self, block, self->spans.at[block].previous);
    torch_merge(self, block, self->spans.at[block].next);
    torch_free_insert(self, block);
}

/* The same for a pending block. */
void torch_complete(void *torch, uint32_t block)
{
    struct torch *self = torch;
    enum torch_kind kind = torch_kind_of(self, self->spans.at[block].owner);
    uint64_t bytes = self->spans.at[block].bytes;
    self->base.totals.pending_bytes -= bytes;
    torch_usage_unretire(self->usage, kind, bytes);
    make_free(self, block, kind, bytes);
}

static enum ar_status torch_free(struct ar_policy *base, const struct ar_policy_block *given,
                                 uint32_t stream AR_UNUSED)
{
    struct torch *self = (struct torch *)base;
    uint32_t block = (uint32_t)given->cookie;
    const struct torch_block *extra = &self->blocks[block];
    if (extra->retired) { /* then the free is completed now */
        deferred_forget(&self->deferred, block);
        torch_complete(self, block);
    } else if (!deferred_is_used(&self->deferred, block)) {
        const struct ar_span *span = &self->spans.at[block];
        free_requested(self, span->bytes, extra->requested_bytes);
        make_free(self, block, torch_kind_of(self, span->owner), span->bytes);
    } else {
        torch_retire(base, given);
        if (!deferred_free(&self->deferred, block))
            torch_complete(self, block);
    }
    return self->fault;
}

static enum ar_status torch_use(struct ar_policy *base, const struct ar_policy_block *given,
                                uint32_t stream)
{
    struct torch *self = (struct torch *)base;
    uint32_t block = (uint32_t)given->cookie;
    uint32_t own = self->arenas[self->spans.at[block].owner]->stream;
    return deferred_use(&self->deferred, block, own, stream) ? AR_OK : AR_HOST_MEMORY;
}

/* empty_cache() releases all it can and keeps nothing. */
static enum ar_status torch_trim(struct ar_policy *base, uint64_t keep_bytes AR_UNUSED)
{
    struct torch *self = (struct torch *)base;
    torch_release_cached(self);
    self->tight = false;
    return self->fault;
}

/* Steps 1 to 3 as a dry run. */
static bool torch_would_fit(struct ar_policy *base, const struct ar_policy_request *request)
{
    struct torch *self = (struct torch *)base;
    if (!skips(self, request->pool, request->mempool))
        deferred_poll(&self->deferred);
    uint64_t rounded_bytes = torch_round(&self->settings, request->bytes);
    bool small = rounded_bytes <= TORCH_SMALL_BYTES;
    uint32_t arena = torch_arena_find(self, request->stream, request->pool, small);
    return arena != UINT32_MAX && torch_fitting(self, arena, rounded_bytes) != 0;
}

/* Whether steps 4 or 5 would release memory before the device is asked. */
static bool torch_would_release(struct ar_policy *base, const struct ar_policy_request *request)
{
    struct torch *self = (struct torch *)base;
    if (torch_would_fit(base, request))
        return false;
    uint64_t rounded_bytes = torch_round(&self->settings, request->bytes);
    uint64_t bytes = torch_device_request(&self->settings, rounded_bytes);
    return torch_would_collect(self) ||
           (self->limited && self->base.totals.reserved_bytes + bytes > self->allowed_bytes);
}

void torch_end_pool(struct ar_policy *base, uint32_t pool)
{
    struct torch *self = (struct torch *)base;
    if (self->divides)
        mosaic_end_pool(self, pool);
    for (uint32_t i = 0; i < self->pool_count; i++)
        self->pools[i].ended |= self->pools[i].id == pool;
}

static enum ar_status torch_delete_pool(struct ar_policy *base, uint32_t pool)
{
    struct torch *self = (struct torch *)base;
    if (pool)
        torch_release_pool(self, pool);
    return self->fault;
}

/* Appends "key:value" to the list. */
static void add_setting(char *list, size_t list_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_setting(char *list, size_t list_bytes, const char *format, ...)
{
    size_t used = strlen(list);
    if (used + 1 < list_bytes && used)
        list[used++] = ',';
    AR_PRINT(list + used, list_bytes - used, format);
}

/* Appends the divisions: one number if all sizes have the same, else a list by MiB. */
static void add_divisions(char *list, size_t list_bytes, const uint64_t *divisions)
{
    char text[256] = "";
    bool same = true;
    for (unsigned i = 0; i < TORCH_DIVISION_INTERVALS; i++) {
        size_t used = strlen(text);
        same &= divisions[i] == divisions[0];
        snprintf(text + used, sizeof text - used, "%s%llu:%llu", i ? "," : "", 1ull << i,
                 (unsigned long long)divisions[i]);
    }
    if (same)
        add_setting(list, list_bytes, "roundup_power2_divisions:%llu",
                    (unsigned long long)divisions[0]);
    else
        add_setting(list, list_bytes, "roundup_power2_divisions:[%s]", text);
}

static bool torch_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    const struct torch *self = (const struct torch *)base;
    const struct torch_settings *s = &self->settings;
    char list[512] = "";
    if (s->expandable)
        add_setting(list, sizeof list, "expandable_segments:True");
    if (s->max_split_bytes != UINT64_MAX)
        add_setting(list, sizeof list, "max_split_size_mb:%llu",
                    (unsigned long long)(s->max_split_bytes / AR_MIB));
    if (s->max_non_split_rounding_bytes != s->large_segment_bytes)
        add_setting(list, sizeof list, "max_non_split_rounding_mb:%llu",
                    (unsigned long long)(s->max_non_split_rounding_bytes / AR_MIB));
    if (s->gc_threshold > 0)
        add_setting(list, sizeof list, "garbage_collection_threshold:%g", s->gc_threshold);
    if (s->fraction > 0)
        add_setting(list, sizeof list, "per_process_memory_fraction:%g", s->fraction);
    if (s->rejects)
        add_setting(list, sizeof list, "throw_on_cudamalloc_oom:True");
    if (s->range > 0)
        add_setting(list, sizeof list, "expandable_segments_reserve:%g", s->range);
    if (s->range < 0)
        add_setting(list, sizeof list, "expandable_segments_reserve:%gG", -s->range);
    if (s->has_divisions)
        add_divisions(list, sizeof list, s->divisions);
    if (s->large_segment_bytes != (20 * AR_MIB))
        add_setting(list, sizeof list, "large_segment_size_mb:%llu",
                    (unsigned long long)(s->large_segment_bytes / AR_MIB));
    snprintf(text, text_bytes, "PYTORCH_CUDA_ALLOC_CONF=%s", list[0] ? list : "backend:native");
    return true;
}

static void torch_destroy(struct ar_policy *base)
{
    struct torch *self = (struct torch *)base;
    for (uint32_t i = 0; i < self->order_count; i++) {
        struct torch_segment *segment = &self->segments[self->order[i]];
        if (!segment->expandable) {
            (void)ar_backing_segment_free(self->backing, segment->address);
            continue;
        }
        uint64_t grain = torch_grain_bytes(self, self->arenas[segment->arena]);
        uint32_t stream = self->arenas[segment->arena]->stream;
        ar_backing_wait(self->backing, ar_backing_fence(self->backing, stream));
        for (uint32_t p = 0, end; p < segment->page_count; p = end) {
            end = torch_handle_end(self, segment->pages, p, segment->page_count);
            if (!segment->pages[p])
                continue;
            (void)ar_backing_unmap(self->backing, segment->address + p * grain, (end - p) * grain);
            (void)ar_backing_destroy(self->backing, segment->pages[p] - 1);
        }
        (void)ar_backing_release(self->backing, segment->address);
        ar_host_free(self->host, segment->pages, segment->page_count * sizeof *segment->pages);
    }
    if (self->divides && mosaic_of(self)->scratch_address)
        (void)ar_backing_release(self->backing, mosaic_of(self)->scratch_address);
    ar_host_free(self->host, self->order, self->order_room * sizeof *self->order);
    ar_host_free(self->host, self->segments, self->segment_room * sizeof *self->segments);
    deferred_close(&self->deferred);
    torch_blocks_close(self);
    ar_host_free(self->host, self, self->divides ? sizeof(struct mosaic) : sizeof *self);
}

/* PyTorch has only a fraction of the memory of the card, in double precision. A limit in bytes is
 * converted to it and may become a byte lower. */
static uint64_t allowed(uint64_t limit_bytes, double fraction, uint64_t total_bytes)
{
    if (limit_bytes)
        fraction = (double)limit_bytes / (double)total_bytes;
    return fraction > 0 && (fraction < 1 || limit_bytes)
               ? (uint64_t)(fraction * (double)total_bytes)
               : UINT64_MAX;
}

/* Whether the device has the pages that segments need to grow. */
static enum ar_status check_pages(const struct torch_settings *settings, uint64_t page_bytes,
                                  const char *name, bool divides, struct ar_error *error)
{
    if (settings->expandable && (!page_bytes || TORCH_SMALL_SEGMENT_BYTES % page_bytes))
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy %s: %sneeds virtual memory in pages of at most 2 MiB, which "
                            "this device does not have; use another profile%s",
                            name, divides ? "it " : "expandable_segments ",
                            divides ? "" : " or leave the option out");
    if (settings->expandable && settings->large_segment_bytes % page_bytes)
        return ar_invalid(error,
                          "policy torch: large_segment_size_mb is not a multiple of the device's "
                          "page; with expandable_segments write an even number of MiB");
    return AR_OK;
}

/* Blocks that were free all the time have no age yet. */
static void set_collects(struct torch *self)
{
    self->collects = self->limited && self->settings.gc_threshold > 0;
    if (!self->collects || self->ages)
        return;
    self->ages = true;
    for (uint32_t i = 0; i < self->block_room; i++)
        self->blocks[i].collected_at = 0;
}

static void set_current(struct torch_counter *counter, uint64_t current)
{
    if (current > counter->current)
        torch_count(counter, current - counter->current);
    counter->current = current;
}

/* Counts the blocks and segments that are too large to be split by the settings in force. */
static void count_oversize(struct torch *self)
{
    uint64_t least = self->settings.max_split_bytes;
    uint64_t allocations = 0, segments = 0;
    for (uint32_t i = 0; i < self->order_count; i++) {
        const struct torch_segment *segment = &self->segments[self->order[i]];
        segments += !segment->expandable && segment->bytes >= least;
        for (uint32_t block = segment->first; block; block = self->spans.at[block].next)
            allocations += self->spans.at[block].used && !self->blocks[block].retired &&
                           self->spans.at[block].bytes >= least;
    }
    set_current(&self->oversize_allocations, allocations);
    set_current(&self->oversize_segments, segments);
}

static enum ar_status change_settings(struct torch *self, const char *conf, struct ar_error *error)
{
    struct torch_settings settings = self->settings;
    AR_TRY(torch_settings_again(&settings, conf, error));
    AR_TRY(check_pages(&settings, self->backing->page_bytes, self->base.ops->name, false, error));
    if (settings.large_segment_bytes != self->settings.large_segment_bytes && self->has_ranges)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy torch: large_segment_size_mb changes in the middle of a run "
                            "with expandable_segments; that is not modelled, because ranges have "
                            "pages of one size");
    self->settings = settings;
    self->has_ranges |= settings.expandable;
    for (uint32_t i = 0; i < self->arena_count; i++)
        torch_arena_rule(self, self->arenas[i]);
    set_collects(self);
    count_oversize(self);
    return AR_OK;
}

static enum ar_status torch_configure(struct ar_policy *base, const char *change,
                                      struct ar_error *error)
{
    struct torch *self = (struct torch *)base;
    const char *value = strchr(change, ',') + 1;
    uint64_t bytes;
    if (change[0] == 's')
        return change_settings(self, value, error);
    if (ar_count_parse(value, &bytes, NULL) != AR_OK)
        return ar_invalid(error, "policy torch: the note limit,%.40s: write the bytes, 0 for none",
                          value);
    self->limited = bytes != 0;
    self->allowed_bytes = bytes ? bytes : UINT64_MAX;
    set_collects(self);
    return AR_OK;
}

enum ar_status torch_open(const struct ar_policy_context *context, const struct ar_policy_ops *ops,
                          const struct torch_values *values, bool divides, struct ar_policy **out,
                          struct ar_error *error)
{
    struct torch_settings settings;
    AR_TRY(torch_settings_read(values, &settings, error));
    AR_TRY(check_pages(&settings, context->backing->page_bytes, ops->name, divides, error));
    struct torch *self =
        ar_policy_new(context, ops, divides ? sizeof(struct mosaic) : sizeof *self, error);
    AR_TRY_HOST(self);
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    self->backing = context->backing;
    self->host = context->host;
    self->settings = settings;
    self->divides = divides;
    deferred_open(&self->deferred, context->backing, context->host, torch_complete, self);
    self->spare_segment = UINT32_MAX;
    self->last_arena[0] = UINT32_MAX;
    self->last_arena[1] = UINT32_MAX;
    /* From 2.10 on, which has this key, a fraction of 1 is no limit (setMemoryFraction). */
    self->limited = values->common.limit_bytes || (settings.fraction > 0 && settings.fraction < 1);
    self->has_ranges = settings.expandable;
    set_collects(self);
    self->allowed_bytes = allowed(values->common.limit_bytes, settings.fraction, total_bytes);
    *out = &self->base;
    return AR_OK;
}

static enum ar_status torch_create(const struct ar_policy_context *context, const void *given,
                                   struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops torch_policy;
    return torch_open(context, &torch_policy, given, false, out, error);
}

static const char *const torch_recorders[] = {"torch", NULL};

/* What torch and mosaic have. */
#define TORCH_HOOKS(needs)                                                                         \
    AR_POLICY_HOOKS(torch),                                                                        \
        .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_WATCHES_FREE | (needs),               \
        .room = torch_room, .use = torch_use, .retire = torch_retire, .trim = torch_trim,          \
        .would_release = torch_would_release, .report = torch_report, .end_pool = torch_end_pool,  \
        .would_fit = torch_would_fit, .reset_peaks = torch_reset_peaks,                            \
        .delete_pool = torch_delete_pool

const struct ar_policy_ops torch_policy = {
    TORCH_HOOKS(0),
    .name = "torch",
    .summary = "PyTorch's caching allocator: two pools per stream, segments cut into blocks",
    .reference = "PyTorch 2.11, c10/cuda/CUDACachingAllocator.cpp",
    .recorders = torch_recorders,
    .options = torch_options,
    .values_bytes = sizeof(struct torch_values),
    .create = torch_create,
    .adopt = torch_adopt,
    .setting = torch_setting,
    .change = torch_configure,
};

const struct ar_policy_ops mosaic_policy = {
    TORCH_HOOKS(AR_POLICY_NEEDS_MAPPING),
    .name = "mosaic",
    .summary = "PyTorch's expandable segments, and pages that are divided when memory runs out (of "
               "this project)",
    .reference = "this project; until memory runs out, PyTorch 2.11",
    .options = mosaic_options,
    .values_bytes = sizeof(struct mosaic_values),
    .create = mosaic_create,
    .problem = mosaic_problem,
};
