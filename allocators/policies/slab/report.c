#include "allocators/policies/slab/slab.h"

#include <inttypes.h>

/* The largest request that a block or a hole serves as they are. A hole of the small kind, or an
 * empty segment, becomes a slab of at least one block. */
static uint64_t largest_now(const struct slab_policy *self)
{
    uint64_t empty = heap_largest(&self->heap, SLAB_EMPTY);
    uint64_t large = heap_largest(&self->heap, SLAB_LARGE);
    uint64_t small = heap_largest(&self->heap, SLAB_SMALL);
    large = ar_size_round_down(large > empty ? large : empty, SLAB_UNIT_BYTES);
    if (large > self->largest_class_bytes)
        return large;
    uint64_t best = 0;
    if (self->available[1])
        best = slab_class_bytes(127u - (unsigned)__builtin_clzll(self->available[1]));
    else if (self->available[0])
        best = slab_class_bytes(63u - (unsigned)__builtin_clzll(self->available[0]));
    small = small > empty ? small : empty;
    if (small >= self->largest_class_bytes)
        return self->largest_class_bytes;
    unsigned class = small >= SLAB_UNIT_BYTES ? slab_class_of(small) : 0;
    uint64_t bytes = slab_class_bytes(class);
    if (bytes > small)
        bytes = class ? slab_class_bytes(class - 1) : 0;
    return bytes > best ? bytes : best;
}

uint64_t slab_servable(const struct ar_policy *base, enum ar_policy_effort effort)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    uint64_t now = largest_now(self);
    uint64_t pages = base->totals.releasable_bytes;
    bool moves = effort >= (self->pages ? AR_POLICY_EFFORT_WAIT : AR_POLICY_EFFORT_TRIM);
    return moves && pages > now ? pages : now;
}

void slab_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    heap_stats(&self->heap, out);
    out->totals = base->totals;
    out->largest_free_block_bytes = largest_now(self);
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
    if (self->pages)
        out->count.remapped_bytes = slab_pages_moved(self->pages);
}

static bool show_slab(const struct slab_policy *self, const struct slab *slab,
                      struct ar_policy_range *range, ar_policy_visit *visit, void *argument)
{
    range->bytes = self->classes[slab->class]->bytes;
    for (uint32_t block = 0; block < slab->blocks; block++) {
        bool used = !(slab->free_mask >> block & 1);
        range->address = slab->address + block * range->bytes;
        range->state = used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE;
        range->requested_bytes = used ? range->bytes - slab->wasted[block] : 0;
        if (!visit(argument, range))
            return false;
    }
    return true;
}

/* Each free block of a slab is a hole of its own: it is handed out alone. */
void slab_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    for (uint32_t i = 0; i < self->heap.segment_count; i++) {
        const struct heap_segment *segment = &self->heap.segments[i];
        for (uint32_t p = segment->first; p; p = self->heap.spans.at[p].next) {
            const struct ar_span *span = &self->heap.spans.at[p];
            struct ar_policy_range range = {
                .address = span->address,
                .bytes = span->bytes,
                .requested_bytes = span->used ? span->requested_bytes : 0,
                .segment_address = segment->address,
                .state = span->used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
            };
            bool more = span->used && span->mark
                            ? show_slab(self, slab_record(span), &range, visit, argument)
                            : visit(argument, &range);
            if (!more)
                return;
        }
    }
}

struct check {
    struct ar_policy_totals totals;
    uint64_t usable_bytes;
    uint64_t kind_bytes[2], pieces, piece_requested; /* as the heap sees it */
    uint64_t live_of[SLAB_CLASSES], listed_of[SLAB_CLASSES], empty_of[SLAB_CLASSES];
};

static enum ar_status check_slab(const struct slab_policy *self, const struct ar_span *span,
                                 struct check *check, struct ar_error *error)
{
    const struct slab *slab = slab_record(span);
    const struct slab_class *class = self->classes[slab->class];
    uint32_t all = slab->blocks == 32 ? ~UINT32_C(0) : (UINT32_C(1) << slab->blocks) - 1;
    if (slab->address != span->address || slab->blocks * class->bytes != span->bytes ||
        (slab->free_mask & ~all) ||
        slab->live + (uint32_t)__builtin_popcount(slab->free_mask) != slab->blocks)
        return ar_error_set(error, AR_CORRUPT,
                            "slab: the slab at %" PRIu64 " of %u blocks, %u live, does not add up",
                            slab->address, slab->blocks, slab->live);
    for (uint32_t block = 0; block < slab->blocks; block++) {
        if (slab->free_mask >> block & 1) {
            if (self->base.watch)
                check->usable_bytes += class->bytes - class->bytes % self->base.watch->unit_bytes;
            continue;
        }
        check->totals.live_blocks++;
        check->totals.live_bytes += class->bytes - slab->wasted[block];
        check->totals.granted_bytes += class->bytes;
        check->live_of[slab->class]++;
    }
    check->listed_of[slab->class] += slab->free_mask != 0;
    check->empty_of[slab->class] += slab->live == 0;
    return AR_OK;
}

static enum ar_status check_class(const struct slab_policy *self, unsigned index,
                                  const struct check *check, struct ar_error *error)
{
    const struct slab_class *class = self->classes[index];
    uint64_t listed = 0;
    bool right =
        class->live_blocks == check->live_of[index] && class->empty_slabs == check->empty_of[index];
    for (unsigned e = 0; e < SLAB_EIGHTHS; e++) {
        right &= (class->partial >> e & 1) == (class->slabs[e] != NULL);
        for (const struct slab *slab = class->slabs[e]; slab; slab = slab->next) {
            right &= slab->eighth == e && slab->class == index && slab->free_mask;
            right &= (e + 1 >= slab->live * 8u / slab->blocks) && ((e == 0) == (slab->live == 0));
            right &= !slab->next || slab->next->previous == slab;
            listed++;
        }
    }
    right &= listed == check->listed_of[index];
    right &= (self->available[index / 64] >> index % 64 & 1) == (class->partial != 0);
    right &= (self->emptied[index / 64] >> index % 64 & 1) == (class->empty_slabs != 0);
    return right ? AR_OK
                 : ar_error_set(error, AR_CORRUPT,
                                "slab: the lists of the class of %" PRIu64
                                " bytes differ from its slabs",
                                class->bytes);
}

static enum ar_status check_totals(const struct slab_policy *self, const struct check *check,
                                   struct ar_error *error)
{
    const struct ar_policy_totals *totals = &self->base.totals;
    if (totals->live_bytes != check->totals.live_bytes ||
        totals->granted_bytes != check->totals.granted_bytes ||
        totals->live_blocks != check->totals.live_blocks)
        return ar_error_set(error, AR_CORRUPT,
                            "slab: the totals (live %" PRIu64 ", granted %" PRIu64
                            ") differ from the blocks (%" PRIu64 ", %" PRIu64 ")",
                            totals->live_bytes, totals->granted_bytes, check->totals.live_bytes,
                            check->totals.granted_bytes);
    if (self->kind_bytes[SLAB_SMALL] != check->kind_bytes[SLAB_SMALL] ||
        self->kind_bytes[SLAB_LARGE] != check->kind_bytes[SLAB_LARGE] ||
        self->heap.lists[SLAB_EMPTY]->free_bytes != totals->releasable_bytes)
        return ar_error_set(error, AR_CORRUPT, "slab: the books of the supply do not add up");
    if (self->base.watch && self->base.watch->usable_bytes != check->usable_bytes)
        return ar_error_set(error, AR_CORRUPT, "slab: the hole watch is off");
    return AR_OK;
}

static enum ar_status check_piece(const struct slab_policy *self, const struct ar_span *span,
                                  struct check *check, struct ar_error *error)
{
    if (!span->used) {
        if (self->base.watch)
            check->usable_bytes += span->bytes - span->bytes % self->base.watch->unit_bytes;
        return AR_OK;
    }
    check->kind_bytes[span->owner] += span->bytes;
    check->pieces++;
    check->piece_requested += span->requested_bytes;
    if (span->mark)
        return check_slab(self, span, check, error);
    check->totals.live_blocks++;
    check->totals.live_bytes += span->requested_bytes;
    check->totals.granted_bytes += span->bytes;
    return AR_OK;
}

/* The heap by itself: to it a slab is one used piece, whatever is free inside. */
static enum ar_status check_heap(const struct slab_policy *self, const struct check *check,
                                 struct ar_error *error)
{
    struct heap heap = self->heap;
    struct ar_policy books = {.totals = self->base.totals};
    books.totals.granted_bytes = self->kind_bytes[SLAB_SMALL] + self->kind_bytes[SLAB_LARGE];
    books.totals.live_blocks = check->pieces;
    books.totals.live_bytes = check->piece_requested;
    heap.policy = &books;
    return heap_validate(&heap, "slab", error);
}

enum ar_status slab_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct slab_policy *self = (const struct slab_policy *)base;
    struct check check = {.usable_bytes = 0};
    enum ar_status status = AR_OK;
    for (uint32_t i = 0; status == AR_OK && i < self->heap.segment_count; i++) {
        uint32_t p = self->heap.segments[i].first;
        for (; status == AR_OK && p; p = self->heap.spans.at[p].next)
            status = check_piece(self, &self->heap.spans.at[p], &check, error);
    }
    for (unsigned c = 0; status == AR_OK && c < SLAB_CLASSES; c++)
        if (self->classes[c])
            status = check_class(self, c, &check, error);
    if (status == AR_OK)
        status = check_totals(self, &check, error);
    return status == AR_OK ? check_heap(self, &check, error) : status;
}
