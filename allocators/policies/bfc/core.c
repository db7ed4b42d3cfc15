/* Alloc and free of the BFC family: rules 1 and 2 of core.h. The short path serves requests
 * of one end at the usual alignment without a call; the rest goes through two_ended.c. */
#include "allocators/policies/bfc/core.h"

#include <stddef.h>

#include "allocators/base/size.h"
#include "allocators/policies/bfc/two_ended.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Free bytes that are a whole region can go back to the device. */
static inline uint64_t releasable_of(const struct bfc_chunk *chunk)
{
    return (chunk->previous | chunk->next) == 0 ? chunk->bytes : 0;
}

static inline void account_added(struct bfc *self, const struct bfc_chunk *chunk)
{
    self->base.totals.releasable_bytes += releasable_of(chunk);
    policy_hole_added(&self->base, chunk->bytes);
}

static inline void account_removed(struct bfc *self, const struct bfc_chunk *chunk)
{
    self->base.totals.releasable_bytes -= releasable_of(chunk);
    policy_hole_removed(&self->base, chunk->bytes);
}

static inline struct bfc_index *index_of(struct bfc *self, const struct bfc_chunk *chunk)
{
    return UNLIKELY(chunk->end == BFC_UPPER) ? self->upper : &self->index;
}

static inline void hole_add(struct bfc *self, uint32_t chunk)
{
    struct bfc_chunk *added = &self->chunks.at[chunk];
    account_added(self, added);
    if (UNLIKELY(added->end == BFC_GAP))
        self->gap = chunk;
    else
        bfc_index_insert(index_of(self, added), self->chunks.at, chunk);
}

static inline void hole_remove(struct bfc *self, uint32_t chunk)
{
    struct bfc_chunk *removed = &self->chunks.at[chunk];
    account_removed(self, removed);
    if (UNLIKELY(removed->end == BFC_GAP))
        self->gap = 0;
    else
        bfc_index_remove(index_of(self, removed), self->chunks.at, chunk);
}

void bfc_hole_add(struct bfc *self, uint32_t chunk)
{
    hole_add(self, chunk);
}

void bfc_hole_remove(struct bfc *self, uint32_t chunk)
{
    hole_remove(self, chunk);
}

static inline uint32_t cut(struct bfc *self, uint32_t chunk, uint64_t bytes)
{
    uint32_t rest = bfc_chunks_take(&self->chunks);
    struct bfc_chunk *chunks = self->chunks.at;
    struct bfc_chunk *head = &chunks[chunk];
    struct bfc_chunk *tail = &chunks[rest];
    tail->address = head->address + bytes;
    tail->bytes = head->bytes - bytes;
    tail->previous = chunk;
    tail->next = head->next;
    tail->region = head->region;
    tail->used = 0;
    tail->end = head->end;
    chunks[head->next].previous = rest;
    if (!head->next)
        self->regions.at[head->region].last = rest;
    head->next = rest;
    head->bytes = bytes;
    return rest;
}

uint32_t bfc_cut(struct bfc *self, uint32_t chunk, uint64_t bytes)
{
    return cut(self, chunk, bytes);
}

static inline void hand_out(struct bfc *self, uint32_t chunk, const struct policy_request *request,
                            struct policy_block *out)
{
    struct bfc_chunk *given = &self->chunks.at[chunk];
    struct policy_totals *totals = &self->base.totals;
    given->used = 1;
    given->requested_bytes = request->bytes;
    totals->live_bytes += request->bytes;
    totals->granted_bytes += given->bytes;
    totals->live_blocks++;
    out->address = given->address;
    out->granted_bytes = given->bytes;
    out->cookie = chunk;
}

void bfc_hand_out(struct bfc *self, uint32_t chunk, const struct policy_request *request,
                  struct policy_block *out)
{
    hand_out(self, chunk, request, out);
}

/* Serves the request from what is free; false where nothing fits. One record must be spare. */
static inline bool take(struct bfc *self, const struct policy_request *request,
                        struct policy_block *out)
{
    uint64_t bytes = size_round_up(request->bytes, BFC_ROUNDING_BYTES);
    struct bfc_chunk *chunks = self->chunks.at;
    struct bfc_place place;
    if (UNLIKELY(!bfc_index_find(&self->index, chunks, bytes, 0, &place)))
        return false;
    uint32_t chunk = *place.link;
    const struct bfc_chunk *found = &chunks[chunk];
    account_removed(self, found);
    bfc_index_unlink(&self->index, chunks, &place);
    uint64_t slack = found->bytes - bytes;
    if (slack >= bytes || slack >= self->split_bytes) {
        uint32_t rest = cut(self, chunk, bytes);
        self->tally.count.splits++;
        policy_hole_added(&self->base, slack);
        bfc_index_insert(&self->index, chunks, rest);
    }
    hand_out(self, chunk, request, out);
    return true;
}

static enum status attempt(struct bfc *self, const struct policy_request *request,
                           struct policy_block *out)
{
    if (!bfc_chunks_reserve(&self->chunks, self->host, 2))
        return STATUS_HOST_MEMORY;
    bool served = self->general || request->alignment > BFC_ROUNDING_BYTES
                      ? bfc_take_general(self, request, out)
                      : take(self, request, out);
    return served ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Obtains a region for the request and serves it there. */
static enum status extend_and_attempt(struct bfc *self, const struct policy_request *request,
                                      struct policy_block *out)
{
    enum status status =
        bfc_regions_extend(self, size_round_up(request->bytes, BFC_ROUNDING_BYTES));
    return status == STATUS_OK ? attempt(self, request, out) : status;
}

/* All that is tried for a request, in order. */
static __attribute__((noinline)) enum status
alloc_slowly(struct bfc *self, const struct policy_request *request, struct policy_block *out)
{
    enum status status = attempt(self, request, out);
    if (status != STATUS_NO_MEMORY)
        return status;
    status = extend_and_attempt(self, request, out);
    if (status != STATUS_NO_MEMORY)
        return status;
    bool released;
    status =
        bfc_regions_collect(self, size_round_up(request->bytes, BFC_ROUNDING_BYTES), &released);
    if (status != STATUS_OK)
        return status;
    status = STATUS_NO_MEMORY;
    if (released) {
        self->tally.count.retries++;
        status = extend_and_attempt(self, request, out);
    }
    if (status == STATUS_NO_MEMORY)
        self->tally.count.failures++;
    return status;
}

enum status bfc_alloc(struct policy *base, const struct policy_request *request,
                      struct policy_block *out)
{
    struct bfc *self = (struct bfc *)base;
    if (UNLIKELY(self->general || request->alignment > BFC_ROUNDING_BYTES ||
                 self->chunks.spare_count == 0) ||
        UNLIKELY(!take(self, request, out)))
        return alloc_slowly(self, request, out);
    return STATUS_OK;
}

/* Joins `second` to `first`, which lies before it; neither is in an index. */
static inline void join(struct bfc *self, uint32_t first, uint32_t second)
{
    struct bfc_chunk *chunks = self->chunks.at;
    struct bfc_chunk *into = &chunks[first];
    const struct bfc_chunk *from = &chunks[second];
    into->bytes += from->bytes;
    into->next = from->next;
    chunks[from->next].previous = first;
    if (!from->next)
        self->regions.at[into->region].last = first;
    if (UNLIKELY(into->end != from->end))
        into->end = BFC_GAP;
    self->tally.count.merges++;
    bfc_chunks_drop(&self->chunks, second);
}

static inline uint32_t merge(struct bfc *self, uint32_t chunk)
{
    struct bfc_chunk *chunks = self->chunks.at;
    uint32_t next = chunks[chunk].next;
    if (!chunks[next].used) {
        hole_remove(self, next);
        join(self, chunk, next);
    }
    uint32_t previous = chunks[chunk].previous;
    if (!chunks[previous].used) {
        hole_remove(self, previous);
        join(self, previous, chunk);
        return previous;
    }
    return chunk;
}

uint32_t bfc_merge(struct bfc *self, uint32_t chunk)
{
    return merge(self, chunk);
}

enum status bfc_free(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    (void)stream;
    struct bfc *self = (struct bfc *)base;
    uint32_t chunk = (uint32_t)block->cookie;
    struct bfc_chunk *freed = &self->chunks.at[chunk];
    struct policy_totals *totals = &base->totals;
    freed->used = 0;
    totals->live_bytes -= freed->requested_bytes;
    totals->granted_bytes -= freed->bytes;
    totals->live_blocks--;
    if (UNLIKELY(self->upper != NULL))
        bfc_return_to_gap(self, chunk);
    hole_add(self, merge(self, chunk));
    return STATUS_OK;
}

enum status bfc_create_as(const struct policy_ops *ops, const struct policy_context *context,
                          const struct bfc_values *values, struct policy **out, struct error *error)
{
    enum status status = bfc_values_check(values, context->backing, error);
    if (status != STATUS_OK)
        return status;
    struct bfc *self = host_alloc(context->host, sizeof *self);
    if (self && values->two_ended)
        self->upper = host_alloc(context->host, sizeof *self->upper);
    if (!self || (values->two_ended && !self->upper)) {
        host_free(context->host, self, sizeof *self);
        return error_set(error, STATUS_HOST_MEMORY, "policy %s: the host has no memory left",
                         ops->name);
    }
    uint64_t free_bytes, total_bytes;
    backing_memory(context->backing, &free_bytes, &total_bytes);
    uint64_t limit = bfc_limit(values, free_bytes, total_bytes);
    self->base.ops = ops;
    self->host = context->host;
    self->values = *values;
    self->values.common.limit_bytes = limit;
    self->limit_given = values->common.limit_bytes != 0;
    self->total_bytes = total_bytes;
    self->split_bytes = bfc_split_bytes(values, limit);
    self->collects = bfc_collects(values);
    self->general = values->two_ended;
    if (self->upper) {
        self->index.address_flip = values->lower_order ? ~UINT64_C(0) : 0;
        self->upper->address_flip = values->upper_order ? ~UINT64_C(0) : 0;
    }
    bfc_regions_open(self, context->backing, limit);
    *out = &self->base;
    return STATUS_OK;
}

void bfc_destroy(struct policy *base)
{
    struct bfc *self = (struct bfc *)base;
    struct host *host = self->host;
    bfc_regions_close(self);
    bfc_chunks_close(&self->chunks, host);
    host_free(host, self->upper, sizeof *self->upper);
    host_free(host, self, sizeof *self);
}
