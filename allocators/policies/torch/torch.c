/* PyTorch's caching allocator: the order of decisions in malloc and free. The rules are those
 * of c10/cuda/CUDACachingAllocator.cpp as of PyTorch 2.11:
 *
 * malloc  1. poll the events of pending frees
 *         2. round the size up, choose the small or the large pool
 *         3. best fit among the free blocks of the stream
 *         4. collect old blocks if a limit and a threshold are set
 *         5. memory from the device: a segment, or pages of an expandable one
 *         6. give back a cached block too large to be split, then 5 again
 *         7. wait for all pending frees, give everything cached back, then 5 again (a retry)
 *         8. divide the block if what is left is worth it
 * free    counted as let go at once; free for others when no other stream uses it any more,
 *         merged with its neighbours then. Nothing goes back to the device. */
#include <stdio.h>
#include <string.h>

#include "allocators/policies/torch/torch.h"

/* Steps 4 to 7. 0: out of memory. */
static uint32_t obtain(struct torch *self, uint32_t arena, uint64_t rounded_bytes)
{
    if (self->limited && self->settings.gc_threshold > 0)
        torch_collect(self);
    uint32_t block = torch_alloc_block(self, arena, rounded_bytes, false);
    if (!block && !self->fault && torch_release_available(self, arena, rounded_bytes))
        block = torch_alloc_block(self, arena, rounded_bytes, false);
    if (!block && !self->fault) {
        self->flushes++;
        torch_release_cached(self);
        if (!self->fault)
            block = torch_alloc_block(self, arena, rounded_bytes, true);
    }
    return block;
}

/* Step 8, and the statistics of it. `block` is in no set. */
static void divide(struct torch *self, uint32_t block, uint64_t rounded_bytes)
{
    struct span *at = self->spans.at;
    enum torch_kind kind = torch_kind_of(self, at[block].owner);
    bool was_split = at[block].previous || at[block].next;
    bool counted = !torch_is_expandable(self, block);
    if (!torch_should_split(self, block, rounded_bytes)) {
        if (was_split && counted) {
            torch_subtract(self, TORCH_INACTIVE_SPLIT, kind, 1);
            torch_subtract(self, TORCH_INACTIVE_SPLIT_BYTES, kind, at[block].bytes);
        }
        return;
    }
    uint32_t rest =
        torch_block_new(self, at[block].address + rounded_bytes, at[block].bytes - rounded_bytes,
                        at[block].owner, self->blocks[block].segment, true);
    at[rest].previous = block;
    at[rest].next = at[block].next;
    if (at[rest].next)
        at[at[rest].next].previous = rest;
    at[block].next = rest;
    at[block].bytes = rounded_bytes;
    if (counted && was_split) {
        torch_subtract(self, TORCH_INACTIVE_SPLIT_BYTES, kind, rounded_bytes);
    } else if (counted) {
        torch_add(self, TORCH_INACTIVE_SPLIT, kind, 1);
        torch_add(self, TORCH_INACTIVE_SPLIT_BYTES, kind, at[rest].bytes);
    }
    self->splits++;
    torch_free_insert(self, rest);
}

/* Counts a block as handed out. */
static void hand_out(struct torch *self, uint32_t block, uint64_t requested_bytes)
{
    struct span *span = &self->spans.at[block];
    enum torch_kind kind = torch_kind_of(self, span->owner);
    struct policy_totals *totals = &self->base.totals;
    span->used = 1;
    self->blocks[block].requested_bytes = requested_bytes;
    self->blocks[block].retired = false;
    torch_add(self, TORCH_ALLOCATION, kind, 1);
    torch_add(self, TORCH_ALLOCATED_BYTES, kind, span->bytes);
    torch_add(self, TORCH_ACTIVE, kind, 1);
    torch_add(self, TORCH_ACTIVE_BYTES, kind, span->bytes);
    torch_add(self, TORCH_REQUESTED_BYTES, kind, requested_bytes);
    if (span->bytes >= self->settings.max_split_bytes)
        torch_count(&self->oversize_allocations, 1);
    totals->live_bytes += requested_bytes;
    totals->granted_bytes += span->bytes;
    totals->live_blocks++;
}

static uint32_t arena_for(struct torch *self, const struct policy_request *request, bool small,
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
        self->last_stream = request->stream;
        self->last_pool = request->pool;
        self->last_arena[small] = arena;
    }
    return self->last_arena[small];
}

static enum status torch_alloc(struct policy *base, const struct policy_request *request,
                               struct policy_block *out)
{
    struct torch *self = torch_of(base);
    deferred_poll(&self->deferred);
    uint64_t rounded_bytes = torch_round(&self->settings, request->bytes);
    bool failed = !torch_reserve_blocks(self, 2);
    uint32_t arena =
        failed ? 0 : arena_for(self, request, rounded_bytes <= TORCH_SMALL_BYTES, &failed);
    if (failed)
        return STATUS_HOST_MEMORY;
    uint32_t block = torch_find(self, arena, rounded_bytes);
    if (!block) {
        block = obtain(self, arena, rounded_bytes);
        if (self->fault)
            return self->fault;
        if (!block || !torch_reserve_blocks(self, 1)) {
            if (block)
                torch_free_insert(self, block);
            self->num_ooms++;
            return STATUS_NO_MEMORY;
        }
    }
    divide(self, block, rounded_bytes);
    hand_out(self, block, request->bytes);
    out->address = self->spans.at[block].address;
    out->granted_bytes = self->spans.at[block].bytes;
    out->cookie = block;
    return STATUS_OK;
}

/* The program let go of the block: no longer allocated, still active. */
static void torch_retire(struct policy *base, const struct policy_block *given)
{
    struct torch *self = torch_of(base);
    uint32_t block = (uint32_t)given->cookie;
    struct torch_block *extra = &self->blocks[block];
    if (extra->retired)
        return;
    uint64_t bytes = self->spans.at[block].bytes;
    enum torch_kind kind = torch_kind_of(self, self->spans.at[block].owner);
    struct policy_totals *totals = &self->base.totals;
    extra->retired = true;
    torch_subtract(self, TORCH_ALLOCATION, kind, 1);
    torch_subtract(self, TORCH_ALLOCATED_BYTES, kind, bytes);
    self->oversize_allocations.current -= bytes >= self->settings.max_split_bytes;
    totals->live_bytes -= extra->requested_bytes;
    totals->granted_bytes -= bytes;
    totals->pending_bytes += bytes;
    totals->live_blocks--;
}

/* Nobody uses the block any more: it is free, merged with its neighbours. */
void torch_complete(void *torch, uint32_t block)
{
    struct torch *self = torch;
    struct span *at = self->spans.at;
    enum torch_kind kind = torch_kind_of(self, at[block].owner);
    uint64_t bytes = at[block].bytes;
    uint64_t requested_bytes = self->blocks[block].requested_bytes;
    int64_t net_blocks = 0;
    int64_t net_bytes = 0;
    at[block].used = 0;
    self->base.totals.pending_bytes -= bytes;
    uint64_t before = torch_merge(self, block, at[block].previous);
    uint64_t after = torch_merge(self, block, at[block].next);
    net_blocks -= (before != 0) + (after != 0);
    net_bytes -= (int64_t)(before + after);
    if (at[block].previous || at[block].next) {
        net_blocks++;
        net_bytes += (int64_t)at[block].bytes;
    }
    torch_free_insert(self, block);
    if (!torch_is_expandable(self, block)) {
        torch_change(self, TORCH_INACTIVE_SPLIT, kind, net_blocks);
        torch_change(self, TORCH_INACTIVE_SPLIT_BYTES, kind, net_bytes);
    }
    torch_subtract(self, TORCH_ACTIVE, kind, 1);
    torch_subtract(self, TORCH_ACTIVE_BYTES, kind, bytes);
    torch_subtract(self, TORCH_REQUESTED_BYTES, kind, requested_bytes);
}

static enum status torch_free(struct policy *base, const struct policy_block *given,
                              uint32_t stream)
{
    struct torch *self = torch_of(base);
    uint32_t block = (uint32_t)given->cookie;
    bool told = self->blocks[block].retired; /* then the caller says when it is complete */
    (void)stream;
    torch_retire(base, given);
    if (told)
        deferred_forget(&self->deferred, block);
    else if (deferred_let_go(&self->deferred, block))
        return STATUS_OK;
    torch_complete(self, block);
    return self->fault;
}

static enum status torch_use(struct policy *base, const struct policy_block *given, uint32_t stream)
{
    struct torch *self = torch_of(base);
    uint32_t block = (uint32_t)given->cookie;
    uint32_t own = self->arenas[self->spans.at[block].owner]->stream;
    return deferred_use(&self->deferred, block, own, stream) ? STATUS_OK : STATUS_HOST_MEMORY;
}

/* empty_cache(): all or nothing, whatever should be kept. */
static enum status torch_trim(struct policy *base, uint64_t keep_bytes)
{
    struct torch *self = torch_of(base);
    (void)keep_bytes;
    torch_release_cached(self);
    return self->fault;
}

/* Steps 1 to 5 as a dry run: would something go back to the device before it is asked? */
static bool torch_would_release(struct policy *base, const struct policy_request *request)
{
    struct torch *self = torch_of(base);
    deferred_poll(&self->deferred);
    uint64_t rounded_bytes = torch_round(&self->settings, request->bytes);
    bool small = rounded_bytes <= TORCH_SMALL_BYTES;
    for (uint32_t i = 0; i < self->arena_count; i++) {
        const struct torch_arena *arena = self->arenas[i];
        if (arena->stream == request->stream && arena->small == small &&
            self->pools[arena->pool].id == request->pool && torch_fitting(self, i, rounded_bytes))
            return false;
    }
    uint64_t bytes = torch_device_request(&self->settings, rounded_bytes);
    return torch_would_collect(self) ||
           (self->limited && self->base.totals.reserved_bytes + bytes > self->allowed_bytes);
}

static void torch_end_pool(struct policy *base, uint32_t pool)
{
    struct torch *self = torch_of(base);
    for (uint32_t i = 0; i < self->pool_count; i++)
        self->pools[i].ended |= self->pools[i].id == pool;
}

static bool torch_setting(const struct policy *base, char *text, size_t text_bytes)
{
    const struct torch_settings *s = &((const struct torch *)base)->settings;
    char list[256] = "";
    size_t used = 0;
    if (s->expandable)
        used += (size_t)snprintf(list + used, sizeof list - used, ",expandable_segments:True");
    if (s->max_split_bytes != UINT64_MAX)
        used += (size_t)snprintf(list + used, sizeof list - used, ",max_split_size_mb:%llu",
                                 (unsigned long long)(s->max_split_bytes / MIB));
    if (s->gc_threshold > 0)
        used += (size_t)snprintf(list + used, sizeof list - used,
                                 ",garbage_collection_threshold:%g", s->gc_threshold);
    if (s->has_divisions)
        (void)snprintf(list + used, sizeof list - used, ",roundup_power2_divisions:%llu",
                       (unsigned long long)s->divisions[0]);
    snprintf(text, text_bytes, "PYTORCH_CUDA_ALLOC_CONF=%s", list[0] ? list + 1 : "backend:native");
    return true;
}

static void torch_destroy(struct policy *base)
{
    struct torch *self = torch_of(base);
    for (uint32_t i = 0; i < self->order_count; i++) {
        struct torch_segment *segment = &self->segments[self->order[i]];
        if (!segment->expandable) {
            (void)backing_segment_free(self->backing, segment->address);
            continue;
        }
        uint64_t page = torch_page_bytes(self, self->arenas[segment->arena]);
        uint32_t stream = self->arenas[segment->arena]->stream;
        backing_wait(self->backing, backing_fence(self->backing, stream));
        for (uint32_t p = 0; p < segment->page_count; p++) {
            if (!segment->pages[p])
                continue;
            (void)backing_unmap(self->backing, segment->address + p * page, page);
            (void)backing_destroy(self->backing, segment->pages[p] - 1);
        }
        (void)backing_release(self->backing, segment->address);
        host_free(self->host, segment->pages, segment->page_count * sizeof *segment->pages);
    }
    host_free(self->host, self->order, self->order_room * sizeof *self->order);
    host_free(self->host, self->segments, self->segment_room * sizeof *self->segments);
    deferred_close(&self->deferred);
    torch_blocks_close(self);
    host_free(self->host, self, sizeof *self);
}

/* PyTorch only knows a fraction of the card's memory, in double precision: a limit in bytes
 * goes through that form and may come out a byte lower. */
static uint64_t allowed(uint64_t limit_bytes, double fraction, uint64_t total_bytes)
{
    if (limit_bytes)
        fraction = (double)limit_bytes / (double)total_bytes;
    return fraction > 0 ? (uint64_t)(fraction * (double)total_bytes) : UINT64_MAX;
}

static enum status torch_create(const struct policy_context *context, const void *given,
                                struct policy **out, struct error *error)
{
    extern const struct policy_ops torch_policy;
    const struct torch_values *values = given;
    struct torch_settings settings;
    enum status status = torch_settings_read(values, &settings, error);
    if (status != STATUS_OK)
        return status;
    if (settings.expandable && !context->backing->page_bytes)
        return error_set(error, STATUS_UNSUPPORTED,
                         "policy torch: expandable_segments needs virtual memory, which this "
                         "device does not have; use another profile or leave the option out");
    if (settings.expandable && settings.large_segment_bytes % context->backing->page_bytes)
        return error_set(error, STATUS_INVALID,
                         "policy torch: large_segment_size_mb is no multiple of the device's page");
    struct torch *self = host_alloc(context->host, sizeof *self);
    if (!self)
        return error_set(error, STATUS_HOST_MEMORY, "policy torch: the host has no memory left");
    uint64_t free_bytes;
    uint64_t total_bytes;
    backing_memory(context->backing, &free_bytes, &total_bytes);
    self->base.ops = &torch_policy;
    self->backing = context->backing;
    self->host = context->host;
    self->settings = settings;
    deferred_open(&self->deferred, context->backing, context->host, torch_complete, self);
    self->spare_segment = UINT32_MAX;
    self->last_arena[0] = UINT32_MAX;
    self->last_arena[1] = UINT32_MAX;
    self->limited = values->common.limit_bytes || settings.fraction > 0;
    self->allowed_bytes = allowed(values->common.limit_bytes, settings.fraction, total_bytes);
    *out = &self->base;
    return STATUS_OK;
}

static const char *const torch_recorders[] = {"torch", NULL};

const struct policy_ops torch_policy = {
    .abi = POLICY_ABI,
    .ops_bytes = sizeof(struct policy_ops),
    .name = "torch",
    .summary = "PyTorch's caching allocator: two pools per stream, segments cut into blocks",
    .reference = "PyTorch 2.11, c10/cuda/CUDACachingAllocator.cpp",
    .recorders = torch_recorders,
    .capabilities = POLICY_STREAM_ORDERED | POLICY_WATCHES_HOLES,
    .options = torch_options,
    .values_bytes = sizeof(struct torch_values),
    .create = torch_create,
    .destroy = torch_destroy,
    .alloc = torch_alloc,
    .free = torch_free,
    .stats = torch_stats,
    .walk = torch_walk,
    .validate = torch_validate,
    .servable = torch_servable,
    .use = torch_use,
    .retire = torch_retire,
    .trim = torch_trim,
    .setting = torch_setting,
    .would_release = torch_would_release,
    .report = torch_report,
    .end_pool = torch_end_pool,
};
