#include "allocators/policies/gmlake/gmlake.h"

#include <inttypes.h>

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t list_largest(const struct gmlake *self, uint32_t list)
{
    return heap_largest(&self->heap, list);
}

/* For the stream that asked last. Mapping can stitch all of its free large blocks. */
uint64_t gmlake_servable(const struct ar_policy *base, enum ar_policy_effort effort)
{
    const struct gmlake *self = (const struct gmlake *)base;
    uint32_t stream = self->last_stream;
    if (stream >= self->stream_room)
        return 0;
    uint32_t list = gmlake_list(stream, false);
    uint64_t small = list_largest(self, gmlake_list(stream, true));
    uint64_t best = larger(list_largest(self, list),
                           ar_range_tree_most(&self->nodes, self->streams[stream].free_views));
    if (!best)
        best = small < GMLAKE_SMALL_BYTES ? small : GMLAKE_SMALL_BYTES;
    uint64_t all = list < self->heap.list_room && self->heap.lists[list]
                       ? self->heap.lists[list]->free_bytes
                       : 0;
    bool stitches = self->values.defragment && self->values.defrag_level == 0;
    if (effort >= AR_POLICY_EFFORT_MAP && stitches && all >= self->values.frag_limit_bytes)
        best = larger(best, all);
    return effort >= AR_POLICY_EFFORT_TRIM ? larger(best, base->totals.releasable_bytes) : best;
}

void gmlake_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct gmlake *self = (const struct gmlake *)base;
    heap_stats(&self->heap, out);
    uint64_t mine = 0;
    for (uint32_t list = 0; list < self->heap.list_room; list++) {
        out->largest_free_block_bytes =
            larger(out->largest_free_block_bytes, list_largest(self, list));
        if (list / 2 == self->last_stream && self->heap.lists[list])
            mine += self->heap.lists[list]->free_bytes;
    }
    out->stranded_by_stream_bytes = ar_policy_free_bytes(&base->totals) - mine;
    out->count.segments_made += self->stitches; /* as its statistics count them */
    out->count.segments_freed += self->views_freed;
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

/* ---- walk ------------------------------------------------------------------------------------ */

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

/* Each physical byte once: that of a stitched block under the address that the block was given
 * out with, and the places where its pieces lie as address space only. */
void gmlake_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
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

/* ---- validate -------------------------------------------------------------------------------- */

struct check {
    struct ar_policy_totals totals;
    uint64_t pieces, used_bytes, requested_bytes; /* of the heap, as it sees them */
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
        return ar_error_set(error, AR_CORRUPT,
                            "gmlake: the pages of the block at %" PRIu64 " differ from it",
                            span->address);
    if (!span->used)
        return AR_OK;
    check->pieces++;
    check->used_bytes += span->bytes;
    check->requested_bytes += span->requested_bytes;
    if (span->mark == GMLAKE_HANDED_OUT) {
        check->totals.live_blocks++;
        check->totals.live_bytes += span->requested_bytes;
        check->totals.granted_bytes += span->bytes;
    } else if (span->mark == GMLAKE_PENDING) {
        check->totals.pending_bytes += span->bytes;
    } else {
        check->in_views_bytes += span->bytes;
    }
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
        return ar_error_set(error, AR_CORRUPT,
                            "gmlake: the stitched block at %" PRIu64
                            " differs from its pages or pieces",
                            view->address);
    check->refs += view->count;
    check->in_views_bytes -= held_bytes;
    if (view->state != GMLAKE_ACTIVE)
        return AR_OK;
    if (view->pending) {
        check->totals.pending_bytes += held_bytes;
        return AR_OK;
    }
    check->totals.live_blocks++;
    check->totals.live_bytes += view->requested_bytes;
    check->totals.granted_bytes += held_bytes;
    return AR_OK;
}

static enum ar_status check_totals(const struct gmlake *self, const struct check *check,
                                   struct ar_error *error)
{
    const struct ar_policy_totals *totals = &self->base.totals;
    if (totals->live_blocks != check->totals.live_blocks ||
        totals->live_bytes != check->totals.live_bytes ||
        totals->granted_bytes != check->totals.granted_bytes ||
        totals->pending_bytes != check->totals.pending_bytes)
        return ar_error_set(
            error, AR_CORRUPT,
            "gmlake: the totals (live %" PRIu64 ", granted %" PRIu64 ", pending %" PRIu64
            ") differ from the blocks (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")",
            totals->live_bytes, totals->granted_bytes, totals->pending_bytes,
            check->totals.live_bytes, check->totals.granted_bytes, check->totals.pending_bytes);
    if (check->in_views_bytes)
        return ar_error_set(error, AR_CORRUPT,
                            "gmlake: pieces are held for stitched blocks that do not know of them");
    if (self->ref_count && check->refs + self->spare_refs + 1 != self->ref_count)
        return ar_error_set(error, AR_CORRUPT, "gmlake: pages list views that are gone");
    for (uint32_t s = 0; s < self->stream_room; s++) {
        uint64_t count = 0;
        uint64_t listed = 0;
        if (!ar_range_tree_check(&self->nodes, self->streams[s].free_views, AR_RANGE_BY_SIZE,
                                 &count))
            return ar_error_set(error, AR_CORRUPT, "gmlake: the tree of free views is broken");
        for (uint32_t v = self->streams[s].first; v; v = self->slots[v].view->next)
            listed += self->slots[v].view->state == GMLAKE_FREE;
        if (count != listed)
            return ar_error_set(error, AR_CORRUPT,
                                "gmlake: the tree of free views has %" PRIu64 " of %" PRIu64, count,
                                listed);
    }
    return AR_OK;
}

/* The heap by itself: to it a piece is free or used, whoever uses it. */
static enum ar_status check_heap(const struct gmlake *self, const struct check *check,
                                 struct ar_error *error)
{
    struct heap heap = self->heap;
    struct ar_policy books = {.totals = self->base.totals, .watch = self->base.watch};
    books.totals.granted_bytes = check->used_bytes;
    books.totals.live_blocks = check->pieces;
    books.totals.live_bytes = check->requested_bytes;
    heap.policy = &books;
    return heap_validate(&heap, "gmlake", error);
}

enum ar_status gmlake_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct gmlake *self = (const struct gmlake *)base;
    struct check check = {.pieces = 0};
    enum ar_status status = AR_OK;
    for (uint32_t i = 0; status == AR_OK && i < self->heap.segment_count; i++) {
        uint32_t p = self->heap.segments[i].first;
        for (; status == AR_OK && p; p = self->heap.spans.at[p].next)
            status = check_piece(self, p, &check, error);
    }
    for (uint32_t k = 0; status == AR_OK && k < self->view_count; k++)
        status = check_view(self, self->slots[k].by_address, &check, error);
    if (status == AR_OK)
        status = check_heap(self, &check, error);
    return status == AR_OK ? check_totals(self, &check, error) : status;
}
