/* The view of a BFC pool from outside: statistics, the walk over its regions, and the check of
 * every invariant. */

#include "allocators/policies/bfc/bfc.h"

static __attribute__((noinline)) uint64_t largest_of_both_ends(const struct bfc *self)
{
    const struct ar_span *chunks = self->chunks.at;
    uint64_t largest = ar_span_index_largest(&self->index, chunks);
    uint64_t upper = ar_span_index_largest(self->upper, chunks);
    uint64_t gap = self->gap ? chunks[self->gap].bytes : 0;
    largest = upper > largest ? upper : largest;
    return gap > largest ? gap : largest;
}

static inline uint64_t largest_free_block(const struct bfc *self)
{
    return __builtin_expect(self->upper != NULL, 0)
               ? largest_of_both_ends(self)
               : ar_span_index_largest(&self->index, self->chunks.at);
}

void bfc_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct bfc *self = (const struct bfc *)base;
    out->totals = base->totals;
    out->count = self->tally.count;
}

void bfc_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct bfc *self = (const struct bfc *)base;
    ar_policy_room_fill(out, largest_free_block(self), 0,
                        self->collects ? base->totals.releasable_bytes : 0);
}

void bfc_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct bfc *self = (const struct bfc *)base;
    for (uint32_t i = 0; i < self->regions.count; i++) {
        const struct bfc_region *region = &self->regions.at[self->regions.at[i].ranked];
        for (uint32_t c = region->first; c; c = self->chunks.at[c].next) {
            const struct ar_span *chunk = &self->chunks.at[c];
            struct ar_policy_range range = {
                .address = chunk->address,
                .bytes = chunk->bytes,
                .requested_bytes = chunk->used ? chunk->requested_bytes : 0,
                .segment_address = region->address,
                .state = chunk->used ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
            };
            if (!visit(argument, &range))
                return;
        }
    }
}

/* What validate counts. */
struct audit {
    uint64_t reserved_bytes, releasable_bytes;
    uint64_t free_chunks[3]; /* by end */
    uint64_t chunks;
};

#define BROKEN(error, ...) ar_error_set(error, AR_CORRUPT, __VA_ARGS__)

static void audit_chunk(const struct ar_span *chunk, struct audit *audit)
{
    audit->chunks++;
    audit->reserved_bytes += chunk->bytes;
    if (chunk->used)
        return;
    audit->free_chunks[chunk->mark]++;
    audit->releasable_bytes += bfc_is_region(chunk) ? chunk->bytes : 0;
}

static enum ar_status check_chunk(const struct bfc *self, uint32_t region, uint32_t number,
                                  uint32_t previous, uint64_t address, struct ar_error *error)
{
    const struct ar_span *chunk = &self->chunks.at[number];
    if (chunk->address != address)
        return BROKEN(error, "chunk at %" PRIu64 " instead of one at %" PRIu64, chunk->address,
                      address);
    if (chunk->bytes == 0 || chunk->bytes % BFC_ROUNDING_BYTES)
        return BROKEN(error, "chunk at %" PRIu64 " has %" PRIu64 " bytes, not a multiple of 256",
                      address, chunk->bytes);
    if (chunk->previous != previous || chunk->owner != region)
        return BROKEN(error, "chunk at %" PRIu64 " names the wrong neighbour or region", address);
    if (chunk->used && chunk->requested_bytes > chunk->bytes)
        return BROKEN(error, "chunk at %" PRIu64 " has %" PRIu64 " bytes for %" PRIu64, address,
                      chunk->bytes, chunk->requested_bytes);
    if (!chunk->used && previous && !self->chunks.at[previous].used)
        return BROKEN(error, "chunk at %" PRIu64 " and the one before it are both free", address);
    if (!self->upper && chunk->mark != BFC_LOWER)
        return BROKEN(error, "chunk at %" PRIu64 " has an end in a pool without ends", address);
    if (!chunk->used && chunk->mark == BFC_GAP && self->gap != number)
        return BROKEN(error, "chunk at %" PRIu64 " is a second gap", address);
    return AR_OK;
}

static enum ar_status check_region(const struct bfc *self, uint32_t number, struct audit *audit,
                                   struct ar_error *error)
{
    const struct bfc_region *region = &self->regions.at[number];
    uint64_t address = region->address;
    uint32_t previous = 0;
    for (uint32_t c = region->first; c; c = self->chunks.at[c].next) {
        AR_TRY(check_chunk(self, number, c, previous, address, error));
        audit_chunk(&self->chunks.at[c], audit);
        address += self->chunks.at[c].bytes;
        previous = c;
    }
    if (address != region->address + region->bytes || previous != region->last)
        return BROKEN(error, "the chunks of the region at %" PRIu64 " do not end where it does",
                      region->address);
    return AR_OK;
}

static enum ar_status check_regions(const struct bfc *self, struct audit *audit,
                                    struct ar_error *error)
{
    const struct bfc_regions *regions = &self->regions;
    uint64_t segment_bytes = 0;
    for (uint32_t i = 0; i < regions->segment_count; i++)
        segment_bytes += regions->segments[i].bytes;
    uint64_t end = 0;
    for (uint32_t i = 0; i < regions->count; i++) {
        uint32_t number = regions->at[i].ranked;
        if (!regions->at[number].held || (i > 0 && regions->at[number].address < end))
            return BROKEN(error, "region %" PRIu32 " overlaps the one before it or is not held",
                          number);
        AR_TRY(check_region(self, number, audit, error));
        end = regions->at[number].address + regions->at[number].bytes;
    }
    if (segment_bytes != audit->reserved_bytes)
        return BROKEN(error, "regions hold %" PRIu64 " bytes, driver allocations %" PRIu64,
                      audit->reserved_bytes, segment_bytes);
    if (audit->reserved_bytes > regions->limit_bytes)
        return BROKEN(error, "%" PRIu64 " bytes reserved, above the limit of %" PRIu64,
                      audit->reserved_bytes, regions->limit_bytes);
    return AR_OK;
}

static enum ar_status check_counts(const struct bfc *self, const struct audit *audit,
                                   struct ar_error *error)
{
    uint64_t records = self->chunks.count ? self->chunks.count - 1 : 0;
    if (records != audit->chunks + self->chunks.spare_count)
        return BROKEN(error, "there are %" PRIu64 " chunk records, %" PRIu64 " are used or spare",
                      records, audit->chunks + self->chunks.spare_count);
    if (audit->free_chunks[BFC_GAP] != (self->gap != 0))
        return BROKEN(error, "the pool has another gap than its chunks");
    return AR_OK;
}

static enum ar_status check_index(const struct bfc *self, const struct ar_span_index *index,
                                  uint64_t free_chunks, struct ar_error *error)
{
    uint64_t count = 0;
    const char *fault = ar_span_index_fault(index, self->chunks.at, free_chunks, &count);
    if (fault)
        return BROKEN(error, "the index %s", fault);
    if (count != free_chunks)
        return BROKEN(error, "the index holds %" PRIu64 " chunks, %" PRIu64 " are free", count,
                      free_chunks);
    return AR_OK;
}

static enum ar_status check_spares(const struct ar_spans *chunks, struct ar_error *error)
{
    uint64_t count = 0;
    for (uint32_t c = chunks->spare; c && count <= chunks->spare_count; c = chunks->at[c].next)
        count++;
    if (count != chunks->spare_count)
        return BROKEN(error, "the list of spare records does not hold %" PRIu32 " of them",
                      chunks->spare_count);
    return AR_OK;
}

enum ar_status bfc_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct bfc *self = (const struct bfc *)base;
    struct audit audit = {0};
    enum ar_status status = check_regions(self, &audit, error);
    AR_THEN(status, check_counts(self, &audit, error));
    AR_THEN(status, check_index(self, &self->index, audit.free_chunks[BFC_LOWER], error));
    if (status == AR_OK && self->upper)
        status = check_index(self, self->upper, audit.free_chunks[BFC_UPPER], error);
    AR_THEN(status, check_spares(&self->chunks, error));
    return status == AR_OK ? ar_policy_check_totals(base, audit.releasable_bytes, error)
                           : ar_error_prefix(error, status, "policy %s", base->ops->name);
}
