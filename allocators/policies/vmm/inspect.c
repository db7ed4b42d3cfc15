/* Statistics, the walk and the invariants. */
#include "allocators/policies/vmm/vmm.h"

/* The largest request that the stream of the last request can get from its free blocks, and their
 * bytes. */
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
    out->count.splits = self->splits;
    out->count.merges = self->merges;
    out->count.segments_made = self->pages_made;
    out->count.segments_freed = self->pages_dropped;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
    out->count.remapped_bytes = self->remapped_bytes;
}

/* Whole pages can be moved after a wait for their stream. They are unmapped, so this needs
 * EFFORT_TRIM. */
void vmm_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    uint64_t own, bytes = usable((const struct vmm *)base, &own);
    ar_policy_room_fill(out, bytes, ar_policy_free_bytes(&base->totals) - own,
                        base->totals.releasable_bytes);
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

/* A page has memory exactly if no gap covers it. */
static bool pages_are_right(const struct vmm *self, const struct vmm_range *range,
                            const struct ar_span *span)
{
    uint64_t first = (span->address - range->address) / self->page_bytes;
    uint64_t end = (span->address + span->bytes - 1 - range->address) / self->page_bytes + 1;
    for (uint64_t i = first; i < end && i < range->page_room; i++)
        if ((range->pages[i].handle != 0) != (span->mark != VMM_GAP))
            return false;
    return span->mark == VMM_GAP || end <= range->page_room;
}

static const char *piece_fault(const struct vmm *self, struct vmm_range *range, uint32_t piece,
                               uint64_t address)
{
    const struct ar_span *span = &self->spans.at[piece];
    const struct ar_span *next = span->next ? &self->spans.at[span->next] : NULL;
    if (span->address != address || !span->bytes || (next && next->previous != piece) ||
        (!next && piece != range->last))
        return "the chain of pieces is broken";
    if (next && !span->used && !next->used && next->mark == span->mark)
        return "two free pieces are not merged";
    if (!pages_are_right(self, range, span))
        return "the pages of a piece differ from its mark";
    if (span->mark == VMM_GAP)
        return span->used || address % self->page_bytes || span->bytes % self->page_bytes ||
                       !ar_span_index_has(&range->gaps, self->spans.at, piece)
                   ? "a gap is used, not of whole pages, or not in its index"
                   : NULL;
    return span->used || range->tail == piece ||
                   ar_span_index_has(&range->free_blocks, self->spans.at, piece)
               ? NULL
               : "a free block is in no index";
}

static enum ar_status check_range(const struct vmm *self, struct vmm_range *range,
                                  uint64_t *releasable_bytes, struct ar_error *error)
{
    uint64_t address = range->address, free_bytes = 0;
    for (uint32_t p = range->first; p; p = self->spans.at[p].next) {
        const struct ar_span *span = &self->spans.at[p];
        const char *fault = piece_fault(self, range, p, address);
        if (fault)
            return ar_policy_broken(&self->base, fault, address, error);
        address += span->bytes;
        if (span->used || span->mark == VMM_GAP)
            continue;
        free_bytes += span->bytes;
        if (span->bytes >= self->page_bytes)
            *releasable_bytes += vmm_releasable(self, span, NULL);
    }
    if (address != range->address + range->bytes || free_bytes != range->free_block_bytes)
        return ar_policy_broken(&self->base, "a range does not add up", range->address, error);
    return AR_OK;
}

enum ar_status vmm_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct vmm *self = (const struct vmm *)base;
    uint64_t releasable_bytes = 0;
    for (uint32_t i = 0; i < self->range_count; i++)
        AR_TRY(check_range(self, self->ranges[i], &releasable_bytes, error));
    if (!vmm_index_is_right(self))
        return ar_error_set(error, AR_CORRUPT, "policy vmm: the idle index is out of date");
    return ar_policy_check_totals(base, releasable_bytes, error);
}
