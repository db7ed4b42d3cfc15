#include "allocators/policies/gmlake/gmlake.h"

#include <stdio.h>

#define SMALL_SEGMENT_BYTES (2 * AR_MIB)
#define LARGE_SEGMENT_BYTES (20 * AR_MIB)
#define MIN_LARGE_BYTES     (10 * AR_MIB) /* from here a request gets its own segment */

static const struct ar_option gmlake_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"defragment", AR_OPTION_BOOL, offsetof(struct gmlake_values, defragment), "true", 0, 0, NULL,
     "stitch at all (vmmDefragment); false: blocks are only cut and merged"},
    {"frag_limit", AR_OPTION_BYTES, offsetof(struct gmlake_values, frag_limit_bytes), "512MiB", 0,
     0, NULL, "bytes: smaller requests are never stitched (fragLimit)"},
    {"reuse_limit", AR_OPTION_FRACTION, offsetof(struct gmlake_values, reuse_limit), "10", 1,
     1000000, NULL, "a free view serves requests down to its size divided by this (reuseLimit)"},
    {"defrag_level", AR_OPTION_COUNT, offsetof(struct gmlake_values, defrag_level), "0", 0, 3, NULL,
     "stitch 0: before new memory is asked for; 1: only when there is none; 2: after the cache was "
     "given back; 3: never (defragLevel)"},
    {"auto_gc", AR_OPTION_BYTES, offsetof(struct gmlake_values, auto_gc_bytes), "1000GiB", 0, 0,
     NULL,
     "address space of all views above which those that are not active are destroyed (autoGC)"},
    {"realloc", AR_OPTION_BOOL, offsetof(struct gmlake_values, realloc_missing), "false", 0, 0,
     NULL, "ask the device only for what the free blocks lack, and stitch (reAlloc)"},
    {"fraction", AR_OPTION_FRACTION, offsetof(struct gmlake_values, fraction), "0", 0, 1, NULL,
     "limit as a fraction of the card's memory (per_process_memory_fraction); 0: none"},
    {NULL, AR_OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

/* Blocks in `deferred` and in cookies: pieces are even, views odd. */
static uint32_t name_of(uint32_t index, bool view)
{
    return 2 * index + view;
}

static bool stream_exists(struct gmlake *self, uint32_t stream)
{
    if (stream < self->stream_room)
        return true;
    struct gmlake_stream *grown =
        ar_host_grow(self->heap.host, self->streams, self->stream_room, stream + 1, sizeof *grown);
    if (!grown)
        return false;
    self->streams = grown;
    self->stream_room = stream + 1;
    return true;
}

static uint64_t segment_bytes(uint64_t bytes)
{
    if (bytes <= GMLAKE_SMALL_BYTES)
        return SMALL_SEGMENT_BYTES;
    return bytes < MIN_LARGE_BYTES ? LARGE_SEGMENT_BYTES : bytes;
}

/* What a request is served with: a piece or a view; both 0: nothing yet. */
struct found {
    uint32_t piece, view;
};

static enum ar_status stitch(struct gmlake *self, unsigned attempt, uint32_t list, uint64_t bytes,
                             struct found *found)
{
    const struct gmlake_values *values = &self->values;
    if (!values->defragment || attempt < values->defrag_level || list % 2 == 1 ||
        bytes < values->frag_limit_bytes)
        return AR_OK;
    return gmlake_stitch(self, list / 2, bytes, &found->view);
}

/* New memory; REFUSED is no error. With `realloc` only what is missing, stitched to the rest. */
static enum ar_status grow(struct gmlake *self, uint32_t list, uint64_t bytes, struct found *found)
{
    uint64_t wanted = segment_bytes(bytes);
    uint64_t free_bytes = self->heap.lists[list]->free_bytes;
    if (self->values.realloc_missing && self->values.defragment && list % 2 == 0 && free_bytes) {
        if (free_bytes >= bytes)
            return AR_OK;
        wanted = segment_bytes(bytes - free_bytes);
    }
    uint32_t piece;
    enum ar_status status = gmlake_grow(self, list, wanted, &piece);
    if (status != AR_OK)
        return status == AR_REFUSED ? AR_OK : status;
    if (wanted >= bytes) {
        found->piece = piece;
        return AR_OK;
    }
    gmlake_give(self, piece);
    return stitch(self, 3, list, bytes, found);
}

/* Rule 4. */
static enum ar_status find(struct gmlake *self, uint32_t list, uint64_t bytes, struct found *found)
{
    enum ar_status status = AR_OK;
    found->piece = heap_take(&self->heap, list, bytes);
    if (!found->piece && list % 2 == 0)
        status = gmlake_reuse(self, list / 2, bytes, &found->view);
    for (unsigned attempt = 0; attempt <= 2 && status == AR_OK; attempt++) {
        if (found->piece || found->view)
            break;
        if (attempt == 2) {
            self->flushes++;
            status = gmlake_release_cached(self);
            self->retries++;
        }
        if (attempt && status == AR_OK)
            status = grow(self, list, bytes, found);
        if (status == AR_OK && !found->piece && !found->view)
            status = stitch(self, attempt, list, bytes, found);
    }
    if (status == AR_OK && self->fault != AR_OK)
        status = self->fault;
    if (status == AR_OK && !found->piece && !found->view)
        status = AR_NO_MEMORY;
    return status;
}

/* Takes what was found for the request. Two spare records are there. */
static void hand_out(struct gmlake *self, struct found found, uint64_t bytes,
                     uint64_t requested_bytes, struct ar_policy_block *out)
{
    if (found.view) {
        struct gmlake_view *view = self->slots[found.view].view;
        view->requested_bytes = requested_bytes;
        out->address = view->address;
        out->granted_bytes = bytes;
        out->cookie = name_of(found.view, true);
    } else {
        struct ar_span *span = &self->heap.spans.at[found.piece];
        uint64_t least = span->owner % 2 ? GMLAKE_UNIT_BYTES : GMLAKE_PAGE_BYTES;
        if (span->bytes - bytes >= least)
            gmlake_split(self, found.piece, bytes);
        span->mark = GMLAKE_HANDED_OUT;
        span->requested_bytes = requested_bytes;
        gmlake_use_pages(self, found.piece);
        out->address = span->address;
        out->granted_bytes = span->bytes;
        out->cookie = name_of(found.piece, false);
    }
    self->base.totals.live_bytes += requested_bytes;
    self->base.totals.granted_bytes += out->granted_bytes;
    self->base.totals.live_blocks++;
}

/* A view that was found and cannot be handed out. */
static void view_unused(struct gmlake *self, uint32_t index)
{
    struct gmlake_view *view = self->slots[index].view;
    view->last_use = ar_backing_fence(self->memory.below, view->stream);
    gmlake_view_freed(self, index);
}

static enum ar_status gmlake_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                   struct ar_policy_block *out)
{
    struct gmlake *self = gmlake_of(base);
    bool small = request->bytes <= GMLAKE_SMALL_BYTES;
    uint64_t bytes =
        ar_size_round_up(request->bytes, small ? GMLAKE_UNIT_BYTES : GMLAKE_PAGE_BYTES);
    uint32_t list = gmlake_list(request->stream, small);
    struct found found = {0, 0};
    deferred_poll(&self->deferred);
    if (!stream_exists(self, request->stream) || !gmlake_reserve_pieces(self, 2))
        return AR_HOST_MEMORY;
    enum ar_status status = heap_reserve(&self->heap, 2, list);
    if (status != AR_OK)
        return status;
    self->last_stream = request->stream;
    status = find(self, list, bytes, &found);
    if (status == AR_OK && !gmlake_reserve_pieces(self, 2)) {
        if (found.view)
            view_unused(self, found.view);
        else
            gmlake_give(self, found.piece);
        status = AR_HOST_MEMORY;
    }
    if (status == AR_OK)
        hand_out(self, found, bytes, request->bytes, out);
    self->failures += status == AR_NO_MEMORY;
    return status;
}

static void give_back(struct gmlake *self, uint32_t name)
{
    if (name % 2) {
        gmlake_view_freed(self, name / 2);
    } else {
        gmlake_free_pages(self, name / 2);
        gmlake_give(self, name / 2);
    }
}

static uint64_t pending_bytes(const struct gmlake *self, uint32_t name)
{
    return name % 2 ? self->slots[name / 2].view->used * GMLAKE_PAGE_BYTES
                    : self->heap.spans.at[name / 2].bytes;
}

/* A deferred_complete. */
static void complete(void *argument, uint32_t name)
{
    struct gmlake *self = argument;
    self->base.totals.pending_bytes -= pending_bytes(self, name);
    give_back(self, name);
}

static enum ar_status gmlake_free(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream)
{
    struct gmlake *self = gmlake_of(base);
    uint32_t name = (uint32_t)block->cookie;
    (void)stream; /* a block returns to the stream that it came from */
    base->totals.live_bytes -= block->requested_bytes;
    base->totals.granted_bytes -= block->granted_bytes;
    base->totals.live_blocks--;
    if (name % 2) {
        struct gmlake_view *view = self->slots[name / 2].view;
        view->last_use = ar_backing_fence(self->memory.below, view->stream);
    }
    if (!deferred_free(&self->deferred, name)) {
        give_back(self, name);
        return self->fault;
    }
    base->totals.pending_bytes += block->granted_bytes;
    if (name % 2) {
        self->slots[name / 2].view->pending = true;
    } else {
        self->heap.spans.at[name / 2].mark = GMLAKE_PENDING;
        self->heap.spans.at[name / 2].requested_bytes = 0;
    }
    return AR_OK;
}

static enum ar_status gmlake_use(struct ar_policy *base, const struct ar_policy_block *block,
                                 uint32_t stream)
{
    struct gmlake *self = gmlake_of(base);
    uint32_t name = (uint32_t)block->cookie;
    uint32_t own =
        name % 2 ? self->slots[name / 2].view->stream : self->heap.spans.at[name / 2].owner / 2;
    if (!stream_exists(self, stream) || !deferred_use(&self->deferred, name, own, stream))
        return AR_HOST_MEMORY;
    return AR_OK;
}

static void gmlake_progress(struct ar_policy *base)
{
    deferred_poll(&gmlake_of(base)->deferred);
}

/* empty_cache() gives back all it can, whatever should be kept. */
static enum ar_status gmlake_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    (void)keep_bytes;
    return gmlake_release_cached(gmlake_of(base));
}

static bool gmlake_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    const struct gmlake_values *values = &((const struct gmlake *)base)->values;
    snprintf(
        text, text_bytes,
        "vmmDefragment=%d fragLimit=%llu reuseLimit=%g defragLevel=%llu autoGC=%llu reAlloc=%d",
        values->defragment, (unsigned long long)values->frag_limit_bytes, values->reuse_limit,
        (unsigned long long)values->defrag_level,
        (unsigned long long)(values->auto_gc_bytes / AR_GIB), values->realloc_missing);
    return true;
}

static const char *gmlake_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct gmlake *)base)->memory.below);
}

static void gmlake_destroy(struct ar_policy *base)
{
    struct gmlake *self = gmlake_of(base);
    struct ar_host *host = self->heap.host;
    gmlake_wait(self);
    gmlake_views_close(self);
    heap_close(&self->heap);
    gmlake_memory_close(&self->memory);
    deferred_close(&self->deferred);
    ar_range_pool_close(&self->nodes);
    ar_host_free(host, self->pieces, self->piece_room * sizeof *self->pieces);
    ar_host_free(host, self->streams, self->stream_room * sizeof *self->streams);
    ar_host_free(host, self, sizeof *self);
}

static enum ar_status gmlake_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops gmlake_policy;
    const struct gmlake_values *values = given;
    uint64_t page_bytes = context->backing->page_bytes;
    if (!page_bytes || GMLAKE_PAGE_BYTES % page_bytes)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy gmlake: it maps pages of 2 MiB, and this device has no virtual "
                            "memory, or larger pages");
    struct gmlake *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "policy gmlake: the host has no memory left");
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    self->base.ops = &gmlake_policy;
    self->values = *values;
    self->limit_bytes = values->common.limit_bytes ? values->common.limit_bytes
                        : values->fraction > 0 ? (uint64_t)(values->fraction * (double)total_bytes)
                                               : UINT64_MAX;
    gmlake_memory_open(&self->memory, context);
    heap_open(&self->heap, &self->base, context);
    self->heap.backing = &self->memory.base;
    ar_range_pool_open(&self->nodes, context->host);
    deferred_open(&self->deferred, context->backing, context->host, complete, self);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops gmlake_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "gmlake",
    .summary = "PyTorch's allocator with free blocks stitched together in virtual memory",
    .reference = "GMLake, CUDACachingAllocator.cpp of 2024; Guo et al., ASPLOS 2024",
    .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_NEEDS_MAPPING | AR_POLICY_WATCHES_FREE,
    .options = gmlake_options,
    .values_bytes = sizeof(struct gmlake_values),
    .create = gmlake_create,
    .destroy = gmlake_destroy,
    .alloc = gmlake_alloc,
    .free = gmlake_free,
    .stats = gmlake_stats,
    .walk = gmlake_walk,
    .validate = gmlake_validate,
    .servable = gmlake_servable,
    .use = gmlake_use,
    .progress = gmlake_progress,
    .trim = gmlake_trim,
    .setting = gmlake_setting,
    .problem = gmlake_problem,
};
