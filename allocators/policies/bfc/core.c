/* Alloc and free of the BFC family: rules 1 and 2 of core.h. The short path serves requests
 * of one end at the usual alignment without a call; the rest goes through two_ended.c. */
#include "allocators/policies/bfc/core.h"

#include <stddef.h>

#include "allocators/base/size.h"
#include "allocators/policies/bfc/pieces.h"
#include "allocators/policies/bfc/two_ended.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Serves the request from what is free; false where nothing fits. One record must be spare. */
static inline __attribute__((always_inline)) bool
take(struct bfc *self, const struct ar_policy_request *request, struct ar_policy_block *out)
{
    uint64_t bytes = ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES);
    struct ar_span *chunks = self->chunks.at;
    struct ar_span_place place;
    if (UNLIKELY(!ar_span_index_best(&self->index, chunks, bytes, &place)))
        return false;
    uint32_t chunk = *place.link;
    struct ar_span *found = &chunks[chunk];
    bfc_account_removed(self, found);
    uint64_t slack = found->bytes - bytes;
    if (slack >= bytes || slack >= self->split_bytes) {
        uint32_t rest = bfc_cut_inline(self, chunk, bytes);
        ar_policy_free_added(&self->base, slack);
        ar_span_index_replace(&self->index, chunks, &place, rest);
    } else {
        ar_span_index_unlink(&self->index, chunks, &place);
    }
    bfc_hand_out_inline(self, chunk, request, out);
    return true;
}

static enum ar_status attempt(struct bfc *self, const struct ar_policy_request *request,
                              struct ar_policy_block *out)
{
    if (!ar_spans_reserve(&self->chunks, self->host, 2))
        return AR_HOST_MEMORY;
    bool served = request->alignment >= self->general_alignment
                      ? bfc_take_general(self, request, out)
                      : take(self, request, out);
    return served ? AR_OK : AR_NO_MEMORY;
}

/* Obtains a region for the request and serves it there. */
static enum ar_status extend_and_attempt(struct bfc *self, const struct ar_policy_request *request,
                                         struct ar_policy_block *out)
{
    enum ar_status status =
        bfc_regions_extend(self, ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES));
    return status == AR_OK ? attempt(self, request, out) : status;
}

/* All that is tried for a request, in order. */
static __attribute__((noinline)) enum ar_status
alloc_slowly(struct bfc *self, const struct ar_policy_request *request, struct ar_policy_block *out)
{
    enum ar_status status = attempt(self, request, out);
    if (status != AR_NO_MEMORY)
        return status;
    status = extend_and_attempt(self, request, out);
    if (status != AR_NO_MEMORY)
        return status;
    bool released;
    status =
        bfc_regions_collect(self, ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES), &released);
    if (status != AR_OK)
        return status;
    status = AR_NO_MEMORY;
    if (released) {
        self->tally.count.retries++;
        status = extend_and_attempt(self, request, out);
    }
    if (status == AR_NO_MEMORY)
        self->tally.count.failures++;
    return status;
}

enum ar_status bfc_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                         struct ar_policy_block *out)
{
    struct bfc *self = (struct bfc *)base;
    if (UNLIKELY(request->alignment >= self->general_alignment || self->chunks.spare_count == 0 ||
                 !take(self, request, out)))
        return alloc_slowly(self, request, out);
    return AR_OK;
}

/* Makes a chunk free that was used, in a pool of one end: merges it with its free neighbours.
 * One of them, where there is one, keeps its place in the index if it can. */
static inline void put_back(struct bfc *self, uint32_t chunk)
{
    struct ar_span *chunks = self->chunks.at;
    uint32_t next = chunks[chunk].next;
    uint32_t previous = chunks[chunk].previous;
    bool next_used = chunks[next].used;
    uint64_t bytes = chunks[chunk].bytes;
    uint32_t into = chunk;
    uint32_t from = next;
    if (!chunks[previous].used) {
        into = previous;
        from = previous;
        ar_policy_free_removed(&self->base, chunks[previous].bytes);
        bytes += chunks[previous].bytes;
        if (!next_used)
            ar_span_index_remove(&self->index, chunks, next);
    } else if (next_used) {
        ar_span_index_insert(&self->index, chunks, chunk);
        bfc_account_added(self, &chunks[chunk]);
        return;
    }
    if (!next_used) {
        ar_policy_free_removed(&self->base, chunks[next].bytes);
        bytes += chunks[next].bytes;
    }
    ar_span_index_move(&self->index, chunks, from, into, bytes);
    if (!next_used)
        bfc_join_inline(self, chunk, next);
    if (into != chunk)
        bfc_join_inline(self, into, chunk);
    bfc_account_added(self, &chunks[into]);
}

enum ar_status bfc_free(struct ar_policy *base, const struct ar_policy_block *block,
                        uint32_t stream)
{
    (void)stream;
    struct bfc *self = (struct bfc *)base;
    uint32_t chunk = (uint32_t)block->cookie;
    struct ar_span *freed = &self->chunks.at[chunk];
    struct ar_policy_totals *totals = &base->totals;
    freed->used = 0;
    totals->live_bytes -= freed->requested_bytes;
    totals->granted_bytes -= freed->bytes;
    totals->live_blocks--;
    if (UNLIKELY(self->upper != NULL)) {
        bfc_return_to_gap(self, chunk);
        bfc_free_block_add(self, bfc_merge(self, chunk));
    } else {
        put_back(self, chunk);
    }
    return AR_OK;
}

enum ar_status bfc_create_as(const struct ar_policy_ops *ops,
                             const struct ar_policy_context *context,
                             const struct bfc_values *values, struct ar_policy **out,
                             struct ar_error *error)
{
    enum ar_status status = bfc_values_check(values, context->backing, error);
    if (status != AR_OK)
        return status;
    struct bfc *self = ar_host_alloc(context->host, sizeof *self);
    if (self && values->two_ended)
        self->upper = ar_host_alloc(context->host, sizeof *self->upper);
    if (!self || (values->two_ended && !self->upper)) {
        ar_host_free(context->host, self, sizeof *self);
        return ar_error_set(error, AR_HOST_MEMORY, "policy %s: the host has no memory left",
                            ops->name);
    }
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    uint64_t limit = bfc_limit(values, free_bytes, total_bytes);
    self->base.ops = ops;
    self->host = context->host;
    self->values = *values;
    self->values.common.limit_bytes = limit;
    self->limit_given = values->common.limit_bytes != 0;
    self->total_bytes = total_bytes;
    self->split_bytes = bfc_split_bytes(values, limit);
    self->collects = bfc_collects(values);
    self->general_alignment = values->two_ended ? 0 : BFC_ROUNDING_BYTES + 1;
    if (self->upper) {
        self->index.address_flip = values->lower_order ? ~UINT64_C(0) : 0;
        self->upper->address_flip = values->upper_order ? ~UINT64_C(0) : 0;
    }
    bfc_regions_open(self, context->backing, limit);
    *out = &self->base;
    return AR_OK;
}

void bfc_destroy(struct ar_policy *base)
{
    struct bfc *self = (struct bfc *)base;
    struct ar_host *host = self->host;
    bfc_regions_close(self);
    ar_spans_close(&self->chunks, host);
    ar_host_free(host, self->upper, sizeof *self->upper);
    ar_host_free(host, self, sizeof *self);
}
