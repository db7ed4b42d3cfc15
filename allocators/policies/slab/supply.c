#include "allocators/policies/slab/slab.h"

/* A new segment holds at least this part of what its kind uses, so that their number stays low;
 * a large one that is bigger is made to measure. */
#define GROWTH_PART       8u
#define MOST_GROWTH_BYTES (32 * AR_MIB)

/* An empty segment is broken only where a new one would be at least this part of it, so that a
 * small block that stays does not pin a giant that went. */
#define MOST_PINNED 32u

static void note_used(struct slab_policy *self, enum slab_list kind, uint64_t bytes)
{
    self->kind_bytes[kind] += bytes;
    uint64_t used = self->kind_bytes[0] + self->kind_bytes[1];
    if (used > self->most_used_bytes)
        self->most_used_bytes = used;
}

/* Gives a used piece back to its kind; a segment that is empty then serves both kinds. */
void slab_restore(struct slab_policy *self, uint32_t piece)
{
    const struct ar_span *at = self->heap.spans.at;
    uint32_t kind = at[piece].owner;
    uint32_t previous = at[piece].previous;
    uint32_t next = at[piece].next;
    self->kind_bytes[kind] -= at[piece].bytes;
    if ((previous && (at[previous].used || at[previous].previous)) ||
        (next && (at[next].used || at[next].next))) {
        heap_give(&self->heap, piece, kind);
        return;
    }
    if (next) {
        heap_remove(&self->heap, next);
        heap_join(&self->heap, piece, next);
    }
    if (previous) {
        heap_remove(&self->heap, previous);
        heap_join(&self->heap, previous, piece);
        piece = previous;
    }
    heap_put(&self->heap, piece, SLAB_EMPTY);
}

static uint64_t growth(const struct slab_policy *self, enum slab_list kind, uint64_t bytes)
{
    uint64_t part = self->kind_bytes[kind] / GROWTH_PART;
    part = part < MOST_GROWTH_BYTES ? part : MOST_GROWTH_BYTES;
    return ar_size_round_up(bytes > part ? bytes : part, SLAB_PAGE_BYTES);
}

/* The empty segment that fits best is not much larger than a new one would be. */
static bool worth_breaking(struct slab_policy *self, enum slab_list kind, uint64_t bytes)
{
    uint32_t piece = heap_next(&self->heap, SLAB_EMPTY, bytes, 0);
    return piece && self->heap.spans.at[piece].bytes / MOST_PINNED <= growth(self, kind, bytes);
}

/* A piece of `list`, cut to at most `bytes`; 0: none holds `least_bytes`. */
static uint32_t take_from(struct slab_policy *self, enum slab_list list, enum slab_list kind,
                          uint64_t least_bytes, uint64_t bytes)
{
    if (list == SLAB_EMPTY && !worth_breaking(self, kind, bytes))
        return 0;
    uint32_t piece = heap_take(&self->heap, list, bytes);
    if (!piece && least_bytes < bytes) {
        uint64_t most = heap_largest(&self->heap, list);
        bytes = most - most % least_bytes;
        piece = bytes ? heap_take(&self->heap, list, bytes) : 0;
    }
    if (piece && self->heap.spans.at[piece].bytes > bytes)
        heap_split(&self->heap, piece, bytes, list == SLAB_EMPTY ? kind : list);
    return piece;
}

/* Gives empty segments back until that many bytes were, the largest first. */
enum ar_status slab_release(struct slab_policy *self, uint64_t bytes)
{
    for (uint64_t released = 0; released < bytes;) {
        uint64_t largest = heap_largest(&self->heap, SLAB_EMPTY);
        if (!largest)
            break;
        uint64_t wanted = bytes - released < largest ? bytes - released : largest;
        uint32_t piece = heap_next(&self->heap, SLAB_EMPTY, wanted, 0);
        released += self->heap.spans.at[piece].bytes;
        enum ar_status status = heap_release(&self->heap, piece);
        if (status != AR_OK)
            return status;
    }
    return AR_OK;
}

/* A segment of `bytes` within the limit. */
static enum ar_status grow(struct slab_policy *self, uint64_t bytes, uint32_t *piece)
{
    uint64_t held = self->base.totals.reserved_bytes;
    if (bytes > self->limit_bytes || held > self->limit_bytes - bytes)
        return AR_REFUSED;
    return heap_grow(&self->heap, bytes, piece);
}

/* What may be held when `bytes` more are used: the greatest use, and the slack. */
static uint64_t allowed_bytes(const struct slab_policy *self, uint64_t bytes)
{
    uint64_t used = self->kind_bytes[SLAB_SMALL] + self->kind_bytes[SLAB_LARGE] + bytes;
    uint64_t most = used > self->most_used_bytes ? used : self->most_used_bytes;
    return (uint64_t)((double)most * (1 + self->slack));
}

/* Gives back what is needed for `bytes` more, then everything, and asks again each time. */
static enum ar_status ask_again(struct slab_policy *self, uint64_t bytes, uint32_t *piece)
{
    enum ar_status status = AR_REFUSED;
    for (int all = 0; all <= 1 && status == AR_REFUSED; all++) {
        if (!self->base.totals.releasable_bytes)
            break;
        self->retries++;
        self->flushes += (uint64_t)all;
        status = slab_release(self, all ? UINT64_MAX : bytes);
        if (self->pages && all)
            slab_pages_drain(self->pages);
        if (status == AR_OK)
            status = grow(self, bytes, piece);
    }
    return status;
}

/* Rule 5. */
static enum ar_status obtain(struct slab_policy *self, enum slab_list kind, uint64_t bytes,
                             uint32_t *piece)
{
    uint64_t wanted = growth(self, kind, bytes);
    uint64_t least = ar_size_round_up(bytes, SLAB_PAGE_BYTES);
    uint64_t held = self->base.totals.reserved_bytes;
    uint64_t allowed = allowed_bytes(self, least);
    enum ar_status status = AR_OK;
    if (!self->pages && held + wanted > allowed)
        status = slab_release(self, held + wanted - allowed);
    if (status == AR_OK)
        status = grow(self, wanted, piece);
    if (status == AR_REFUSED && least < wanted)
        status = grow(self, least, piece);
    if (status == AR_REFUSED)
        status = ask_again(self, least, piece);
    /* A device that counts in smaller units, or a limit that is no multiple of a page. */
    if (status == AR_REFUSED && bytes < least && !self->pages)
        status = grow(self, bytes, piece);
    return status;
}

/* Over virtual memory the pages of empty segments, each too small for the request, are put
 * together. What is left of them is an empty segment again. */
static enum ar_status obtain_pages(struct slab_policy *self, enum slab_list kind, uint64_t bytes,
                                   uint32_t *piece)
{
    uint64_t wanted = growth(self, kind, bytes);
    enum ar_status status = AR_OK;
    if (self->base.totals.reserved_bytes + wanted > allowed_bytes(self, wanted))
        status = slab_release(self, wanted);
    if (status == AR_OK)
        status = obtain(self, kind, bytes, piece);
    uint64_t left = slab_pages_pooled(self->pages);
    uint32_t rest;
    if (left && ar_spans_reserve(&self->heap.spans, self->heap.host, 4) &&
        heap_grow(&self->heap, left, &rest) == AR_OK)
        heap_put(&self->heap, rest, SLAB_EMPTY);
    slab_pages_drain(self->pages);
    return status;
}

/* A hole for a kind without asking below; 0: none. What is cut from an empty segment belongs to
 * the kind. Empty slabs are returned before an empty segment is broken for small ones. */
static uint32_t find(struct slab_policy *self, enum slab_list kind, uint64_t least_bytes,
                     uint64_t bytes)
{
    uint32_t piece = take_from(self, kind, kind, least_bytes, bytes);
    if (!piece && kind == SLAB_LARGE)
        piece = take_from(self, SLAB_EMPTY, kind, least_bytes, bytes);
    if (!piece && (self->emptied[0] | self->emptied[1])) {
        slab_return_empty(self);
        piece = take_from(self, kind, kind, least_bytes, bytes);
    }
    return piece ? piece : take_from(self, SLAB_EMPTY, kind, least_bytes, bytes);
}

enum ar_status slab_supply(struct slab_policy *self, enum slab_list kind, uint64_t least_bytes,
                           uint64_t bytes, uint32_t *piece)
{
    if (self->heap.spans.spare_count < 4 &&
        !ar_spans_reserve(&self->heap.spans, self->heap.host, 4))
        return AR_HOST_MEMORY;
    *piece = find(self, kind, least_bytes, bytes);
    if (!*piece) {
        enum ar_status status =
            self->pages ? obtain_pages(self, kind, bytes, piece) : obtain(self, kind, bytes, piece);
        if (status == AR_OK && self->heap.spans.at[*piece].bytes > bytes)
            heap_split(&self->heap, *piece, bytes, kind);
        if (status == AR_REFUSED) { /* borrowed from the other kind: it returns there */
            kind = kind == SLAB_SMALL ? SLAB_LARGE : SLAB_SMALL;
            *piece = take_from(self, kind, kind, least_bytes, bytes);
            status = *piece ? AR_OK : AR_NO_MEMORY;
            self->failures += status != AR_OK;
        }
        if (status != AR_OK)
            return status;
    }
    self->heap.spans.at[*piece].owner = kind;
    note_used(self, kind, self->heap.spans.at[*piece].bytes);
    return AR_OK;
}

/* A large block is a piece of its own. The first lines of slab_supply stand here again, for the
 * request that a hole serves. */
enum ar_status slab_take_large(struct slab_policy *self, uint64_t requested_bytes,
                               struct ar_policy_block *out)
{
    uint64_t bytes = ar_size_round_up(requested_bytes, SLAB_UNIT_BYTES);
    uint32_t piece =
        self->heap.spans.spare_count ? heap_take_exactly(&self->heap, SLAB_LARGE, bytes) : 0;
    if (piece) {
        note_used(self, SLAB_LARGE, bytes);
    } else {
        enum ar_status status = slab_supply(self, SLAB_LARGE, bytes, bytes, &piece);
        if (status != AR_OK)
            return status;
    }
    struct ar_span *span = &self->heap.spans.at[piece];
    span->requested_bytes = requested_bytes;
    slab_handed_out(self, span->address, bytes, piece, out);
    return AR_OK;
}
