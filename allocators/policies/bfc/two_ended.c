/* The general placement of BFC.
 *
 * Alignment: a chunk serves a request that fits after the padding which the address needs. The
 * first such chunk by size and address is taken. The padding becomes a free chunk. The search may
 * visit all chunks between the size of the request and this size plus its alignment, as the
 * original does.
 *
 * Two ends (XLA's spatial partitioning): one region. Lower requests grow upwards from its start,
 * upper ones downwards from its end. Between them lies one free span, the gap, which is in no
 * index.
 * 1. A request takes the best free chunk of its own end, never one of the other end.
 * 2. If none is large enough, it takes exactly its size from the gap, next to its own end.
 * 3. A free chunk is split by the usual rule, or always to size, as the option of the end says. An
 *    upper request that splits takes the upper part of the chunk.
 * 4. A freed chunk that borders on something else than its own end becomes part of the gap. Free
 *    chunks of both ends that meet become the gap.
 *
 * Source: openxla/xla, xla/tsl/framework/bfc_allocator.cc, August 2026. */
#include "allocators/policies/bfc/bfc.h"

/* Bytes before the first aligned address at or after `address`. */
static uint64_t padding_of(uint64_t address, uint64_t alignment)
{
    return ar_size_round_up(ar_size_round_up(address, alignment) - address, BFC_ROUNDING_BYTES);
}

/* The highest aligned start of `bytes` in the chunk. False: they do not fit. */
static bool highest_start(const struct ar_span *chunk, uint64_t bytes, uint64_t alignment,
                          uint64_t *start)
{
    if (chunk->bytes < bytes)
        return false;
    *start = ar_size_round_down(chunk->address + chunk->bytes - bytes, alignment);
    return *start >= chunk->address;
}

static bool fits(const struct ar_span *chunk, enum bfc_end end, uint64_t bytes, uint64_t alignment)
{
    uint64_t start;
    if (end == BFC_UPPER)
        return highest_start(chunk, bytes, alignment, &start);
    return chunk->bytes >= bytes && chunk->bytes - bytes >= padding_of(chunk->address, alignment);
}

/* The first free chunk of the index that can serve the request; 0: none. */
static uint32_t find_free_block(struct bfc *self, struct ar_span_index *index, enum bfc_end end,
                                uint64_t bytes, uint64_t alignment)
{
    struct ar_span *chunks = self->chunks.at;
    struct ar_span_place place;
    uint64_t from_bytes = bytes;
    uint64_t from_address = 0;
    while (ar_span_index_find(index, chunks, from_bytes, from_address, &place)) {
        const struct ar_span *chunk = &chunks[*place.link];
        if (fits(chunk, end, bytes, alignment))
            return *place.link;
        uint64_t flipped = chunk->address ^ index->address_flip;
        bool last_of_its_size = flipped == UINT64_MAX;
        from_bytes = chunk->bytes + (last_of_its_size ? BFC_ROUNDING_BYTES : 0);
        from_address = last_of_its_size ? 0 : flipped + 1;
    }
    return 0;
}

static bool should_split(const struct bfc *self, const struct ar_span *chunk, bool exact,
                         uint64_t bytes, uint64_t padding)
{
    uint64_t aligned_bytes = chunk->bytes - padding;
    if (exact)
        return aligned_bytes > bytes;
    return aligned_bytes >= 2 * bytes ||
           (aligned_bytes >= bytes && aligned_bytes - bytes >= self->split_bytes);
}

/* Cuts the chunk after `bytes` and frees the rest. */
static void leave_tail(struct bfc *self, uint32_t chunk, uint64_t bytes)
{
    bfc_free_block_add(self, bfc_cut(self, chunk, bytes));
}

static uint32_t place_low(struct bfc *self, uint32_t chunk, bool exact, uint64_t bytes,
                          uint64_t alignment)
{
    uint64_t padding = padding_of(self->chunks.at[chunk].address, alignment);
    if (padding > 0) {
        uint32_t aligned = bfc_cut(self, chunk, padding);
        self->chunks.at[chunk].mark = BFC_LOWER;
        bfc_free_block_add(self, chunk);
        chunk = aligned;
    }
    if (should_split(self, &self->chunks.at[chunk], exact, bytes, 0))
        leave_tail(self, chunk, bytes);
    self->chunks.at[chunk].mark = BFC_LOWER;
    return chunk;
}

static uint32_t place_high(struct bfc *self, uint32_t chunk, bool exact, uint64_t bytes,
                           uint64_t alignment)
{
    const struct ar_span *source = &self->chunks.at[chunk];
    uint64_t padding = padding_of(source->address, alignment);
    uint64_t start = 0;
    highest_start(source, bytes, alignment, &start);
    if (!exact && !should_split(self, source, false, bytes, padding))
        start = source->address + padding;
    if (start > source->address) {
        uint32_t aligned = bfc_cut(self, chunk, start - source->address);
        bfc_free_block_add(self, chunk);
        chunk = aligned;
    }
    self->chunks.at[chunk].mark = BFC_UPPER;
    if (should_split(self, &self->chunks.at[chunk], exact, bytes, 0))
        leave_tail(self, chunk, bytes);
    return chunk;
}

bool bfc_take_general(struct bfc *self, const struct ar_policy_request *request,
                      struct ar_policy_block *out)
{
    uint64_t bytes = ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES);
    uint64_t alignment =
        request->alignment > BFC_ROUNDING_BYTES ? request->alignment : BFC_ROUNDING_BYTES;
    enum bfc_end end = self->upper && request->upper_end ? BFC_UPPER : BFC_LOWER;
    struct ar_span_index *index = end == BFC_UPPER ? self->upper : &self->index;
    bool exact = self->upper &&
                 (end == BFC_UPPER ? self->values.upper_split : self->values.lower_split) != 0;
    uint32_t chunk = find_free_block(self, index, end, bytes, alignment);
    if (!chunk && self->gap && fits(&self->chunks.at[self->gap], end, bytes, alignment)) {
        chunk = self->gap;
        exact = true;
    }
    if (!chunk)
        return false;
    bfc_free_block_remove(self, chunk);
    chunk = end == BFC_UPPER ? place_high(self, chunk, exact, bytes, alignment)
                             : place_low(self, chunk, exact, bytes, alignment);
    bfc_hand_out(self, chunk, request, out);
    return true;
}

void bfc_return_to_gap(struct bfc *self, uint32_t chunk)
{
    struct ar_span *chunks = self->chunks.at;
    struct ar_span *freed = &chunks[chunk];
    uint32_t inner = freed->mark == BFC_LOWER ? freed->next : freed->previous;
    if (!inner || chunks[inner].mark != freed->mark)
        freed->mark = BFC_GAP;
}
