/* Statistics, walk, validate, and what could be served at which price. */
#include <inttypes.h>

#include "allocators/policies/vmm/vmm.h"

/* Adds up, over the ranges of the stream that asked last, the bytes of holes, and finds the
 * largest request that one of them serves. */
static uint64_t usable(const struct vmm *self, uint64_t *free_block_bytes)
{
    uint64_t largest[VMM_KINDS] = {0};
    *free_block_bytes = 0;
    for (unsigned kind = 0; self->last_stream < self->stream_room && kind < VMM_KINDS; kind++)
        for (uint32_t number = self->streams[self->last_stream].first[kind]; number;) {
            const struct vmm_range *range = self->ranges[number - 1];
            uint64_t bytes = ar_span_index_largest(&range->free_blocks, self->spans.at);
            largest[kind] = bytes > largest[kind] ? bytes : largest[kind];
            bytes = range->tail ? self->spans.at[range->tail].bytes : 0;
            largest[kind] = bytes > largest[kind] ? bytes : largest[kind];
            *free_block_bytes += range->free_block_bytes;
            number = range->more;
        }
    uint64_t small = self->page_bytes / 2;
    if (largest[VMM_LARGE] > small)
        return largest[VMM_LARGE];
    return largest[VMM_SMALL] < small ? largest[VMM_SMALL] : small;
}

void vmm_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct vmm *self = (const struct vmm *)base;
    *out = (struct ar_policy_stats){.totals = self->base.totals};
    uint64_t own;
    out->largest_free_block_bytes = usable(self, &own);
    out->stranded_by_stream_bytes = ar_policy_free_bytes(&self->base.totals) - own;
    out->count.splits = self->splits;
    out->count.merges = self->merges;
    out->count.segments_made = self->pages_made;
    out->count.segments_freed = self->pages_dropped;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
    out->count.remapped_bytes = self->remapped_bytes;
}

/* Whole pages anywhere can be moved to where they are needed, after waiting for their stream;
 * that they are moved by unmapping makes it the price of giving back. */
uint64_t vmm_servable(const struct ar_policy *base, enum ar_policy_effort effort)
{
    const struct vmm *self = (const struct vmm *)base;
    uint64_t own;
    uint64_t bytes = usable(self, &own);
    uint64_t pages = self->base.totals.releasable_bytes;
    if (effort >= AR_POLICY_EFFORT_TRIM && pages > bytes)
        bytes = pages;
    return bytes;
}

void vmm_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct vmm *self = (const struct vmm *)base;
    for (uint32_t i = 0; i < self->range_count; i++) {
        const struct vmm_range *range = self->ranges[self->by_address[i]];
        for (uint32_t p = range->first; p; p = self->spans.at[p].next) {
            const struct ar_span *span = &self->spans.at[p];
            struct ar_policy_range piece = {
                .address = span->address,
                .bytes = span->bytes,
                .segment_address = range->address,
                .stream = range->stream,
                .state = span->mark == VMM_GAP       ? AR_POLICY_RANGE_UNMAPPED
                         : !span->used               ? AR_POLICY_RANGE_FREE
                         : span->mark == VMM_PENDING ? AR_POLICY_RANGE_PENDING
                                                     : AR_POLICY_RANGE_USED,
            };
            if (piece.state == AR_POLICY_RANGE_USED)
                piece.requested_bytes = span->requested_bytes;
            if (!visit(argument, &piece))
                return;
        }
    }
}

struct sums {
    struct ar_policy_totals totals;
    uint64_t free_block_bytes, usable_bytes;
};

static bool indexed(const struct vmm *self, struct ar_span_index *index, uint32_t piece)
{
    struct ar_span_place place;
    const struct ar_span *span = &self->spans.at[piece];
    return ar_span_index_find(index, self->spans.at, span->bytes, span->address, &place) &&
           *place.link == piece;
}

static enum ar_status check_piece(const struct vmm *self, struct vmm_range *range, uint32_t piece,
                                  uint64_t address, struct sums *sums, struct ar_error *error)
{
    const struct ar_span *span = &self->spans.at[piece];
    const struct ar_span *next = span->next ? &self->spans.at[span->next] : NULL;
    if (span->address != address || !span->bytes || (next && next->previous != piece))
        return ar_error_set(error, AR_CORRUPT, "vmm: the chain is broken at %" PRIu64, address);
    if (next && !span->used && !next->used && next->mark == span->mark)
        return ar_error_set(error, AR_CORRUPT, "vmm: pieces at %" PRIu64 " should have merged",
                            address);
    if (span->mark == VMM_GAP) {
        if (span->used || address % self->page_bytes || span->bytes % self->page_bytes ||
            !indexed(self, &range->gaps, piece))
            return ar_error_set(error, AR_CORRUPT, "vmm: a bad gap at %" PRIu64, address);
        return AR_OK;
    }
    sums->totals.reserved_bytes += span->bytes;
    if (!span->used) {
        sums->free_block_bytes += span->bytes;
        if (span->bytes >= self->page_bytes)
            sums->totals.releasable_bytes += vmm_releasable(self, span, NULL);
        if (self->base.watch)
            sums->usable_bytes += span->bytes - span->bytes % self->base.watch->unit_bytes;
        return range->tail == piece || indexed(self, &range->free_blocks, piece)
                   ? AR_OK
                   : ar_error_set(error, AR_CORRUPT, "vmm: the hole at %" PRIu64 " is in no set",
                                  address);
    }
    if (span->mark == VMM_PENDING) {
        sums->totals.pending_bytes += span->bytes;
    } else {
        sums->totals.granted_bytes += span->bytes;
        sums->totals.live_bytes += span->requested_bytes;
        sums->totals.live_blocks++;
    }
    return AR_OK;
}

/* A page has memory exactly where no gap covers it. */
static enum ar_status check_pages(const struct vmm *self, const struct vmm_range *range,
                                  struct ar_error *error)
{
    for (uint32_t p = range->first; p; p = self->spans.at[p].next) {
        const struct ar_span *span = &self->spans.at[p];
        uint64_t first = (span->address - range->address) / self->page_bytes;
        uint64_t end = (span->address + span->bytes - 1 - range->address) / self->page_bytes + 1;
        for (uint64_t i = first; i < end && i < range->page_room; i++)
            if ((range->pages[i].handle != 0) != (span->mark != VMM_GAP))
                return ar_error_set(error, AR_CORRUPT,
                                    "vmm: page %" PRIu64 " of the range at %" PRIu64
                                    " is not as its piece says",
                                    i, range->address);
        if (span->mark != VMM_GAP && end > range->page_room)
            return ar_error_set(error, AR_CORRUPT, "vmm: a block without pages at %" PRIu64,
                                span->address);
    }
    return AR_OK;
}

static enum ar_status check_range(const struct vmm *self, struct vmm_range *range,
                                  struct sums *sums, struct ar_error *error)
{
    uint64_t address = range->address;
    uint64_t free_blocks_before = sums->free_block_bytes;
    for (uint32_t p = range->first; p; p = self->spans.at[p].next) {
        enum ar_status status = check_piece(self, range, p, address, sums, error);
        if (status != AR_OK)
            return status;
        address += self->spans.at[p].bytes;
        if (!self->spans.at[p].next && p != range->last)
            return ar_error_set(error, AR_CORRUPT, "vmm: the last piece is another one");
    }
    if (address != range->address + range->bytes ||
        sums->free_block_bytes - free_blocks_before != range->free_block_bytes)
        return ar_error_set(error, AR_CORRUPT, "vmm: the range at %" PRIu64 " does not add up",
                            range->address);
    return check_pages(self, range, error);
}

enum ar_status vmm_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct vmm *self = (const struct vmm *)base;
    const struct ar_policy_totals *a = &self->base.totals;
    struct sums sums = {.free_block_bytes = 0};
    for (uint32_t i = 0; i < self->range_count; i++) {
        enum ar_status status = check_range(self, self->ranges[i], &sums, error);
        if (status != AR_OK)
            return status;
    }
    if (!vmm_crowd_is_right(self))
        return ar_error_set(error, AR_CORRUPT, "vmm: what is known of a range is not so");
    const struct ar_policy_totals *b = &sums.totals;
    if (a->live_bytes != b->live_bytes || a->granted_bytes != b->granted_bytes ||
        a->reserved_bytes != b->reserved_bytes || a->pending_bytes != b->pending_bytes ||
        a->releasable_bytes != b->releasable_bytes || a->live_blocks != b->live_blocks ||
        (self->base.watch && self->base.watch->usable_bytes != sums.usable_bytes))
        return ar_error_set(error, AR_CORRUPT,
                            "vmm: reserved %" PRIu64 " granted %" PRIu64 " releasable %" PRIu64
                            ", the pieces say %" PRIu64 " %" PRIu64 " %" PRIu64,
                            a->reserved_bytes, a->granted_bytes, a->releasable_bytes,
                            b->reserved_bytes, b->granted_bytes, b->releasable_bytes);
    return AR_OK;
}
