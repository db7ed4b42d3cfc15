#include "allocators/policies/gmlake/gmlake.h"

#define SMALL_SEGMENT_BYTES (2 * AR_MIB)
#define LARGE_SEGMENT_BYTES (20 * AR_MIB)
#define MIN_LARGE_BYTES     (10 * AR_MIB) /* from here a request gets its own segment */
#define FEW_LISTS           128u          /* up to this number lists are looked at one by one */

static const struct ar_option gmlake_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"defragment", AR_OPTION_BOOL, offsetof(struct gmlake_values, defragment), "true", 0, 0, NULL,
     "stitch at all (vmmDefragment); false: blocks are only cut and merged"},
    {"frag_limit", AR_OPTION_BYTES, offsetof(struct gmlake_values, frag_limit_bytes), "512MiB", 0,
     0, NULL, "bytes; smaller requests are never stitched (fragLimit)"},
    {"reuse_limit", AR_OPTION_FRACTION, offsetof(struct gmlake_values, reuse_limit), "10", 1,
     1000000, NULL, "a free view serves requests down to its size divided by this (reuseLimit)"},
    {"defrag_level", AR_OPTION_COUNT, offsetof(struct gmlake_values, defrag_level), "0", 0, 3, NULL,
     "stitch 0: before new memory is obtained; 1: only if there is none; 2: after the cache was "
     "released; 3: never (defragLevel)"},
    {"auto_gc", AR_OPTION_BYTES, offsetof(struct gmlake_values, auto_gc_bytes), "1000GiB", 0, 0,
     NULL, "address space of all views above which inactive views are destroyed (autoGC)"},
    {"realloc", AR_OPTION_BOOL, offsetof(struct gmlake_values, realloc_missing), "false", 0, 0,
     NULL, "obtain only the bytes that the free blocks lack, and stitch (reAlloc)"},
    {"fraction", AR_OPTION_FRACTION, offsetof(struct gmlake_values, fraction), "0", 0, 1, NULL,
     "limit as a fraction of the card's memory (per_process_memory_fraction); 0: none"},
    {0},
};

/* The number of a block in `deferred` and in cookies: even for pieces, odd for views. */
static uint32_t name_of(uint32_t index, bool view)
{
    return 2 * index + view;
}

static bool stream_exists(struct gmlake *self, uint32_t stream)
{
    return stream < self->stream_room ||
           ar_host_extend(self->heap.host, &self->streams, &self->stream_room, stream + 1,
                          sizeof *self->streams);
}

static void lists_close(struct gmlake *self)
{
    if (self->largest)
        ar_most_tree_close(self->largest, self->heap.host);
    ar_host_free(self->heap.host, self->largest, sizeof *self->largest);
    self->largest = NULL;
}

/* The largest blocks of many lists are kept in a tree, if the host has memory for it. */
static __attribute__((noinline)) void lists_cover(struct gmlake *self)
{
    bool is_new = !self->largest;
    if ((is_new && !(self->largest = ar_host_alloc(self->heap.host, sizeof *self->largest))) ||
        !ar_most_tree_reserve(self->largest, self->heap.host, self->heap.list_room)) {
        lists_close(self);
        return;
    }
    for (uint32_t list = 0; is_new && list < self->heap.list_room; list++)
        gmlake_list_changed(self, list);
}

static enum ar_status reserve_list(struct gmlake *self, uint32_t list)
{
    if (heap_is_ready(&self->heap, 2, list))
        return AR_OK;
    uint32_t before = self->heap.list_room;
    enum ar_status status = heap_reserve(&self->heap, 2, list);
    if (__builtin_expect(self->heap.list_room != before, 0) && self->heap.list_room > FEW_LISTS)
        lists_cover(self);
    return status;
}

static uint64_t segment_bytes(uint64_t bytes)
{
    if (bytes <= GMLAKE_SMALL_BYTES)
        return SMALL_SEGMENT_BYTES;
    return bytes < MIN_LARGE_BYTES ? LARGE_SEGMENT_BYTES : bytes;
}

/* A piece or a view for a request; both 0: none yet. */
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

/* Obtains memory; REFUSED is not an error. With `realloc` only the missing bytes, stitched to the
 * rest. */
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
    gmlake_list_changed(self, list);
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

/* Serves the request with what was found. Two records must be spare. */
static void hand_out(struct gmlake *self, struct found found, uint64_t bytes,
                     uint64_t requested_bytes, struct ar_policy_block *out)
{
    if (found.view) {
        struct gmlake_view *view = self->slots[found.view].view;
        view->requested_bytes = requested_bytes;
        ar_policy_grant(&self->base, out, view->address, bytes, name_of(found.view, true));
    } else {
        struct ar_span *span = &self->heap.spans.at[found.piece];
        uint64_t least = span->owner % 2 ? GMLAKE_UNIT_BYTES : GMLAKE_PAGE_BYTES;
        if (span->bytes - bytes >= least)
            gmlake_split(self, found.piece, bytes);
        span->mark = GMLAKE_HANDED_OUT;
        span->requested_bytes = requested_bytes;
        gmlake_use_pages(self, found.piece);
        ar_policy_grant(&self->base, out, span->address, span->bytes, name_of(found.piece, false));
    }
}

/* A view that was found is not handed out. */
static void view_unused(struct gmlake *self, uint32_t index)
{
    struct gmlake_view *view = self->slots[index].view;
    view->last_use = ar_backing_fence(self->memory.below, view->stream);
    gmlake_view_freed(self, index);
}

static enum ar_status gmlake_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                   struct ar_policy_block *out)
{
    struct gmlake *self = (struct gmlake *)base;
    bool small = request->bytes <= GMLAKE_SMALL_BYTES;
    uint64_t bytes =
        ar_size_round_up(request->bytes, small ? GMLAKE_UNIT_BYTES : GMLAKE_PAGE_BYTES);
    uint32_t list = gmlake_list(request->stream, small);
    struct found found = {0, 0};
    deferred_poll(&self->deferred);
    AR_TRY_HOST(stream_exists(self, request->stream) && gmlake_reserve_pieces(self, 2));
    AR_TRY(reserve_list(self, list));
    self->last_stream = request->stream;
    enum ar_status status = find(self, list, bytes, &found);
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

static void make_free(struct gmlake *self, uint32_t name)
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

/* A deferred_complete: the free of the block is completed. */
static void complete(void *argument, uint32_t name)
{
    struct gmlake *self = argument;
    self->base.totals.pending_bytes -= pending_bytes(self, name);
    make_free(self, name);
}

static enum ar_status gmlake_free(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream)
{
    struct gmlake *self = (struct gmlake *)base;
    uint32_t name = (uint32_t)block->cookie;
    (void)stream; /* a block returns to its own stream */
    ar_policy_ungrant(base, block->requested_bytes, block->granted_bytes);
    if (name % 2) {
        struct gmlake_view *view = self->slots[name / 2].view;
        view->last_use = ar_backing_fence(self->memory.below, view->stream);
    }
    if (!deferred_free(&self->deferred, name)) {
        make_free(self, name);
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
    struct gmlake *self = (struct gmlake *)base;
    uint32_t name = (uint32_t)block->cookie;
    uint32_t own =
        name % 2 ? self->slots[name / 2].view->stream : self->heap.spans.at[name / 2].owner / 2;
    AR_TRY_HOST(stream_exists(self, stream) && deferred_use(&self->deferred, name, own, stream));
    return AR_OK;
}

static void gmlake_progress(struct ar_policy *base)
{
    deferred_poll(&((struct gmlake *)base)->deferred);
}

/* empty_cache() releases all it can and keeps nothing. */
static enum ar_status gmlake_trim(struct ar_policy *base, uint64_t keep_bytes AR_UNUSED)
{
    return gmlake_release_cached((struct gmlake *)base);
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
    struct gmlake *self = (struct gmlake *)base;
    struct ar_host *host = self->heap.host;
    gmlake_wait(self);
    gmlake_views_close(self);
    lists_close(self);
    heap_close(&self->heap);
    gmlake_memory_close(&self->memory);
    deferred_close(&self->deferred);
    ar_range_pool_close(&self->nodes);
    ar_host_free(host, self->pieces, self->piece_room * sizeof *self->pieces);
    ar_host_free(host, self->streams, self->stream_room * sizeof *self->streams);
    ar_host_free(host, self, sizeof *self);
}

/* ---- inspection ------------------------------------------------------------------------------ */

/* A request of more than 1 MiB and less than 10 MiB needs a segment of 20 MiB, which the limit may
 * not allow. */
static uint64_t largest_after_release(const struct gmlake *self)
{
    uint64_t bytes = self->base.totals.releasable_bytes;
    uint64_t kept_bytes = self->base.totals.reserved_bytes - bytes;
    return bytes < GMLAKE_SMALL_BYTES || self->limit_bytes - kept_bytes >= segment_bytes(bytes)
               ? bytes
               : GMLAKE_SMALL_BYTES;
}

static bool gmlake_would_fit(struct ar_policy *base, const struct ar_policy_request *request)
{
    struct gmlake *self = (struct gmlake *)base;
    bool small = request->bytes <= GMLAKE_SMALL_BYTES;
    deferred_poll(&self->deferred);
    if (request->stream >= self->stream_room)
        return false;
    uint64_t bytes =
        ar_size_round_up(request->bytes, small ? GMLAKE_UNIT_BYTES : GMLAKE_PAGE_BYTES);
    uint64_t views =
        small ? 0 : ar_range_tree_most(&self->nodes, self->streams[request->stream].free_views);
    return heap_largest(&self->heap, gmlake_list(request->stream, small)) >= bytes ||
           views >= bytes;
}

static uint64_t largest_of_lists(const struct gmlake *self)
{
    uint64_t largest = 0;
    for (uint32_t list = 0; list < self->heap.list_room; list++)
        largest = ar_most(largest, heap_largest(&self->heap, list));
    return largest;
}

/* For the stream of the last request. Mapping can stitch all of its free large blocks. */
static void gmlake_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct gmlake *self = (const struct gmlake *)base;
    uint32_t stream = self->last_stream;
    uint32_t list = gmlake_list(stream, false), small_list = gmlake_list(stream, true);
    uint64_t all = heap_free_bytes(&self->heap, list);
    uint64_t largest = self->largest ? ar_most_tree_top(self->largest) : largest_of_lists(self);
    uint64_t stranded =
        ar_policy_free_bytes(&base->totals) - all - heap_free_bytes(&self->heap, small_list);
    if (stream >= self->stream_room) {
        *out = (struct ar_policy_room){largest, stranded, {0}};
        return;
    }
    uint64_t small = heap_largest(&self->heap, small_list);
    uint64_t best = ar_most(heap_largest(&self->heap, list),
                            ar_range_tree_most(&self->nodes, self->streams[stream].free_views));
    if (!best)
        best = small < GMLAKE_SMALL_BYTES ? small : GMLAKE_SMALL_BYTES;
    bool stitches = self->values.defragment && self->values.defrag_level == 0 &&
                    all >= self->values.frag_limit_bytes;
    uint64_t mapped = stitches ? ar_most(best, all) : best;
    *out = (struct ar_policy_room){
        largest, stranded, {best, mapped, mapped, ar_most(mapped, largest_after_release(self))}};
}

static void gmlake_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct gmlake *self = (const struct gmlake *)base;
    heap_stats(&self->heap, out);
    out->count.segments_made += self->stitches; /* as the statistics of GMLake count them */
    out->count.segments_freed += self->views_freed;
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

static bool show_segment(const struct gmlake *self, const struct heap_segment *segment,
                         ar_policy_visit *visit, void *argument)
{
    for (uint32_t p = segment->first; p; p = self->heap.spans.at[p].next) {
        const struct ar_span *span = &self->heap.spans.at[p];
        struct ar_policy_range range = {
            .address = span->address,
            .bytes = span->bytes,
            .requested_bytes = span->used ? span->requested_bytes : 0,
            .segment_address = segment->address,
            .stream = span->owner / 2,
            .state = !span->used                       ? AR_POLICY_RANGE_FREE
                     : span->mark == GMLAKE_HANDED_OUT ? AR_POLICY_RANGE_USED
                     : span->mark == GMLAKE_PENDING    ? AR_POLICY_RANGE_PENDING
                                                       : AR_POLICY_RANGE_UNMAPPED,
        };
        if (!visit(argument, &range))
            return false;
    }
    return true;
}

static bool show_view(const struct gmlake_view *view, ar_policy_visit *visit, void *argument)
{
    const struct ar_policy_range range = {
        .address = view->address,
        .bytes = view->used * GMLAKE_PAGE_BYTES,
        .requested_bytes = view->pending ? 0 : view->requested_bytes,
        .segment_address = view->address,
        .stream = view->stream,
        .state = view->pending ? AR_POLICY_RANGE_PENDING : AR_POLICY_RANGE_USED,
    };
    return visit(argument, &range);
}

/* Each physical byte once: the bytes of a stitched block at the address of the view, and the
 * addresses of its pieces as address space only. */
static void gmlake_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct gmlake *self = (const struct gmlake *)base;
    uint32_t s = 0;
    uint32_t v = 0;
    while (s < self->heap.segment_count || v < self->view_count) {
        const struct heap_segment *segment = &self->heap.segments[s];
        const struct gmlake_view *view =
            v < self->view_count ? self->slots[self->slots[v].by_address].view : NULL;
        bool more = true;
        if (s < self->heap.segment_count && (!view || segment->address < view->address)) {
            more = show_segment(self, segment, visit, argument);
            s++;
        } else {
            if (view->state == GMLAKE_ACTIVE)
                more = show_view(view, visit, argument);
            v++;
        }
        if (!more)
            return;
    }
}

struct check {
    uint64_t in_views_bytes, refs;
};

static enum ar_status check_piece(const struct gmlake *self, uint32_t piece, struct check *check,
                                  struct ar_error *error)
{
    const struct ar_span *span = &self->heap.spans.at[piece];
    const struct gmlake_page *pages = self->pieces[piece].pages;
    uint64_t count = pages ? span->bytes / GMLAKE_PAGE_BYTES : 0;
    bool right = (pages == NULL) == (span->owner % 2 == 1);
    for (uint64_t i = 0; i < count; i++)
        right &= pages[i].used == (span->used != 0) && pages[i].piece == (i == 0 ? piece : 0);
    if (!right)
        return ar_policy_broken(&self->base, "the pages of a block differ from it", span->address,
                                error);
    if (span->used && span->mark == GMLAKE_IN_VIEW)
        check->in_views_bytes += span->bytes;
    return AR_OK;
}

static enum ar_status check_view(const struct gmlake *self, uint32_t index, struct check *check,
                                 struct ar_error *error)
{
    const struct gmlake_view *view = self->slots[index].view;
    uint32_t free_pages = 0;
    uint64_t held_bytes = 0;
    bool right = true;
    for (uint32_t i = 0; i < view->count; i++) {
        uint32_t ref = view->pages[i]->refs;
        while (ref && self->refs[ref].view != index)
            ref = self->refs[ref].next;
        right &= ref != 0;
        free_pages += !view->pages[i]->used;
    }
    for (uint32_t n = 0; n < view->piece_count; n++) {
        const struct ar_span *span = &self->heap.spans.at[view->pieces[n]];
        right &= span->used && span->mark == GMLAKE_IN_VIEW;
        held_bytes += span->bytes;
    }
    right &= free_pages == view->free_pages && held_bytes == view->used * GMLAKE_PAGE_BYTES;
    if (view->state != GMLAKE_ACTIVE)
        right &= (view->state == GMLAKE_FREE) == (free_pages == view->count) && !view->used;
    if (!right)
        return ar_policy_broken(&self->base, "a stitched block differs from its pages or pieces",
                                view->address, error);
    check->refs += view->count;
    check->in_views_bytes -= held_bytes;
    return AR_OK;
}

static enum ar_status check_records(const struct gmlake *self, const struct check *check,
                                    struct ar_error *error)
{
    const char *fault = NULL;
    if (check->in_views_bytes)
        fault = "pieces are held for unknown stitched blocks; bytes";
    if (self->ref_count && check->refs + self->spare_refs + 1 != self->ref_count)
        fault = "pages list views that do not exist; views";
    if (self->largest && ar_most_tree_top(self->largest) != largest_of_lists(self))
        fault = "the index of lists has another largest block; views";
    for (uint32_t s = 0; s < self->stream_room; s++) {
        uint64_t count = 0;
        uint64_t listed = 0;
        if (!ar_range_tree_check(&self->nodes, self->streams[s].free_views, AR_RANGE_BY_SIZE,
                                 &count))
            fault = "the tree of free views is broken; views";
        for (uint32_t v = self->streams[s].first; v; v = self->slots[v].view->next)
            listed += self->slots[v].view->state == GMLAKE_FREE;
        if (count != listed)
            fault = "the tree of free views differs from the list; views";
    }
    return fault
               ? ar_policy_broken(&self->base, fault,
                                  check->in_views_bytes ? check->in_views_bytes : self->view_count,
                                  error)
               : AR_OK;
}

static enum ar_status gmlake_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct gmlake *self = (const struct gmlake *)base;
    struct check check = {0};
    uint64_t releasable_bytes = 0;
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        uint32_t p = self->heap.segments[i].first;
        for (; p; p = self->heap.spans.at[p].next)
            AR_TRY(check_piece(self, p, &check, error));
    }
    for (uint32_t k = 0; k < self->view_count; k++)
        AR_TRY(check_view(self, self->slots[k].by_address, &check, error));
    AR_TRY(heap_check(&self->heap, &releasable_bytes, error));
    AR_TRY(check_records(self, &check, error));
    return ar_policy_check_totals(base, releasable_bytes, error);
}

/* ---- create ---------------------------------------------------------------------------------- */

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
    struct gmlake *self = ar_policy_new(context, &gmlake_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    self->values = *values;
    self->limit_bytes = values->common.limit_bytes || values->fraction <= 0
                            ? ar_policy_limit(&values->common)
                            : (uint64_t)(values->fraction * (double)total_bytes);
    gmlake_memory_open(&self->memory, context);
    heap_open(&self->heap, &self->base, context);
    self->heap.backing = &self->memory.base;
    ar_range_pool_open(&self->nodes, context->host);
    deferred_open(&self->deferred, context->backing, context->host, complete, self);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops gmlake_policy = {
    .name = "gmlake",
    .summary = "PyTorch's allocator with free blocks stitched together in virtual memory",
    .reference = "GMLake, CUDACachingAllocator.cpp of 2024; Guo et al., ASPLOS 2024",
    .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_NEEDS_MAPPING | AR_POLICY_WATCHES_FREE,
    .options = gmlake_options,
    .values_bytes = sizeof(struct gmlake_values),
    .create = gmlake_create,
    AR_POLICY_HOOKS(gmlake),
    .room = gmlake_room,
    .use = gmlake_use,
    .progress = gmlake_progress,
    .trim = gmlake_trim,
    .would_fit = gmlake_would_fit,
    .setting = gmlake_setting,
    .problem = gmlake_problem,
};
