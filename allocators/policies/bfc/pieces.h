/* The steps that alloc and free are made of, inline for core.c; pieces.c holds the same as
 * functions, for the paths that are rarely taken. */
#ifndef ALLOCATORS_POLICIES_BFC_PIECES_H
#define ALLOCATORS_POLICIES_BFC_PIECES_H

#include "allocators/policies/bfc/core.h"

/* Is the chunk all of its region? Then its free bytes can go back to the device. */
static inline bool bfc_is_region(const struct ar_span *chunk)
{
    return __builtin_expect((chunk->previous | chunk->next) == 0, 0);
}

static inline void bfc_account_added(struct bfc *self, const struct ar_span *chunk)
{
    if (bfc_is_region(chunk))
        self->base.totals.releasable_bytes += chunk->bytes;
    ar_policy_free_added(&self->base, chunk->bytes);
}

static inline void bfc_account_removed(struct bfc *self, const struct ar_span *chunk)
{
    if (bfc_is_region(chunk))
        self->base.totals.releasable_bytes -= chunk->bytes;
    ar_policy_free_removed(&self->base, chunk->bytes);
}

static inline uint32_t bfc_cut_inline(struct bfc *self, uint32_t chunk, uint64_t bytes)
{
    struct ar_span *chunks = self->chunks.at;
    uint32_t rest = ar_spans_take(&self->chunks);
    struct ar_span *head = &chunks[chunk];
    struct ar_span *tail = &chunks[rest];
    uint32_t next = head->next;
    tail->address = head->address + bytes;
    tail->bytes = head->bytes - bytes;
    tail->previous = chunk;
    tail->next = next;
    tail->owner = head->owner;
    tail->used = 0;
    tail->mark = head->mark;
    head->next = rest;
    head->bytes = bytes;
    if (next)
        chunks[next].previous = rest;
    else
        self->regions.at[head->owner].last = rest;
    self->tally.count.splits++;
    return rest;
}

/* Joins `second` to `first`, which lies before it. Sizes are not added where `first` has the
 * sum already. */
static inline void bfc_join_inline(struct bfc *self, uint32_t first, uint32_t second)
{
    struct ar_span *chunks = self->chunks.at;
    uint32_t next = chunks[second].next;
    chunks[first].next = next;
    if (next)
        chunks[next].previous = first;
    else
        self->regions.at[chunks[first].owner].last = first;
    self->tally.count.merges++;
    ar_spans_drop(&self->chunks, second);
}

static inline void bfc_hand_out_inline(struct bfc *self, uint32_t chunk,
                                       const struct ar_policy_request *request,
                                       struct ar_policy_block *out)
{
    struct ar_span *given = &self->chunks.at[chunk];
    struct ar_policy_totals *totals = &self->base.totals;
    uint64_t granted_bytes = given->bytes;
    uint64_t requested_bytes = request->bytes;
    given->used = 1;
    given->requested_bytes = requested_bytes;
    totals->live_bytes += requested_bytes;
    totals->granted_bytes += granted_bytes;
    totals->live_blocks++;
    out->address = given->address;
    out->granted_bytes = granted_bytes;
    out->cookie = chunk;
}

#endif
