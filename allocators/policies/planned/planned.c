/* Places by plan, and a pool for the rest.
 *
 * 1. The plan gives the k-th request a size and an offset. It is taken at its word where the k-th
 *    request that comes has that size, rounded, and nothing lives at that place: then the block
 *    is there, in one arena of the plan's size that is obtained at the first such request.
 * 2. Everything else, and everything where the arena cannot be had, falls back to a caching pool:
 *    the smallest free piece that fits, lowest address first, cut exactly; on a miss a device
 *    allocation of exactly that size; what is wholly free goes back only when memory is short.
 * 3. Idle space of the arena serves planned requests only. The arena goes back when it is empty
 *    and the program asks for its cache to be released, or memory is short; and comes again.
 *
 * The pieces of arena and pool are those of one heap, in two lists. */
#include "allocators/policies/planned/planned.h"

#include <stdio.h>

#include "allocators/base/size.h"

#define CACHE 0 /* lists of the heap */
#define ARENA 1

#define NODE_SHIFT 32 /* of the cookie: piece below, node of a planned block above */

static struct planned *planned_of(struct ar_policy *base)
{
    return (struct planned *)base;
}

enum ar_status planned_create(const struct ar_policy_ops *ops, size_t bytes, uint64_t granule_bytes,
                              planned_rule *rule, const struct ar_policy_context *context,
                              const struct ar_policy_common *values, struct ar_policy **out,
                              struct ar_error *error)
{
    struct planned *self = ar_host_alloc(context->host, bytes);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "policy %s: the host has no memory left",
                            ops->name);
    self->base.ops = ops;
    self->bytes = bytes;
    self->rule = rule;
    heap_open(&self->heap, &self->base, context);
    ar_range_pool_open(&self->live, context->host);
    self->granule_bytes = granule_bytes;
    self->limit_bytes = values->limit_bytes ? values->limit_bytes : UINT64_MAX;
    *out = &self->base;
    return AR_OK;
}

static void forget_plan(struct planned *self)
{
    ar_host_free(self->heap.host, self->places, self->place_count * sizeof *self->places);
    self->places = NULL;
    self->place_count = self->next = 0;
    self->plan_bytes = 0;
}

void planned_destroy(struct ar_policy *base)
{
    struct planned *self = planned_of(base);
    struct ar_host *host = self->heap.host;
    forget_plan(self);
    heap_close(&self->heap);
    ar_range_pool_close(&self->live);
    ar_host_free(host, self, self->bytes);
}

/* The problem: sizes in granules. */
static void make_blocks(const struct planned *self, const struct ar_policy_lifetime *lifetimes,
                        size_t count, struct packing_block *blocks)
{
    for (size_t i = 0; i < count; i++)
        blocks[i] = (struct packing_block){
            .bytes = ar_size_round_up(lifetimes[i].bytes, self->granule_bytes),
            .born = lifetimes[i].born,
            .dies =
                lifetimes[i].dies > lifetimes[i].born ? lifetimes[i].dies : lifetimes[i].born + 1,
        };
}

static void take_plan(struct planned *self, const struct packing_block *blocks,
                      const uint64_t *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t end = offsets[i] + blocks[i].bytes;
        self->places[i] = (struct planned_place){blocks[i].bytes, offsets[i]};
        self->plan_bytes = end > self->plan_bytes ? end : self->plan_bytes;
    }
}

enum ar_status planned_plan(struct ar_policy *base, const struct ar_policy_lifetime *lifetimes,
                            size_t count)
{
    struct planned *self = planned_of(base);
    struct ar_host *host = self->heap.host;
    struct packing packing;
    forget_plan(self);
    if (count == 0)
        return AR_OK;
    struct packing_block *blocks = ar_host_alloc(host, count * sizeof *blocks);
    uint64_t *offsets = ar_host_alloc(host, count * sizeof *offsets);
    self->places = ar_host_alloc(host, count * sizeof *self->places);
    self->place_count = self->places ? count : 0;
    enum ar_status status = AR_HOST_MEMORY;
    if (blocks && offsets && self->places) {
        make_blocks(self, lifetimes, count, blocks);
        status = packing_open(&packing, host, blocks, count, NULL);
        if (status == AR_OK) {
            status = self->rule(self, &packing, offsets);
            packing_close(&packing);
        }
    }
    if (status == AR_OK)
        take_plan(self, blocks, offsets, count);
    else
        forget_plan(self);
    ar_host_free(host, blocks, count * sizeof *blocks);
    ar_host_free(host, offsets, count * sizeof *offsets);
    return status;
}

/* All device allocations that are wholly free. */
static enum ar_status free_all(struct planned *self)
{
    for (uint32_t list = CACHE; list <= ARENA; list++) {
        uint64_t bytes = 0;
        uint64_t address = 0;
        for (uint32_t piece; (piece = heap_next(&self->heap, list, bytes, address)) != 0;) {
            const struct ar_span *span = &self->heap.spans.at[piece];
            bytes = span->bytes;
            address = span->address + 1;
            if (!heap_is_segment(span))
                continue;
            enum ar_status status = heap_release(&self->heap, piece);
            if (status != AR_OK)
                return status;
            if (list == ARENA)
                self->has_arena = false;
        }
    }
    return AR_OK;
}

/* A device allocation, giving cached memory back where it is short. NO_MEMORY. */
static enum ar_status obtain(struct planned *self, uint64_t bytes, uint32_t *piece)
{
    for (int tries = 0; tries < 2; tries++) {
        enum ar_status status = AR_REFUSED;
        if (bytes <= self->limit_bytes &&
            self->base.totals.reserved_bytes <= self->limit_bytes - bytes)
            status = heap_grow(&self->heap, bytes, piece);
        if (status != AR_REFUSED)
            return status;
        if (tries == 1 || !self->base.totals.releasable_bytes)
            break;
        self->flushes++;
        self->retries++;
        status = free_all(self);
        if (status != AR_OK)
            return status;
    }
    return AR_NO_MEMORY;
}

static enum ar_status need_arena(struct planned *self)
{
    uint32_t piece;
    if (self->has_arena)
        return AR_OK;
    enum ar_status status = obtain(self, self->plan_bytes, &piece);
    if (status != AR_OK)
        return status;
    self->has_arena = true;
    self->arena_address = self->heap.spans.at[piece].address;
    heap_put(&self->heap, piece, ARENA);
    return AR_OK;
}

/* The idle piece of the arena in which all of [address, address + bytes) lies; 0: something
 * lives there. */
static uint32_t idle_piece(const struct planned *self, uint64_t address, uint64_t bytes)
{
    uint32_t below = ar_range_tree_last(&self->live, self->by_address, address);
    uint32_t piece = below ? self->heap.spans.at[self->live.nodes[below].extra].next
                           : heap_segment_of(&self->heap, self->arena_address)->first;
    const struct ar_span *span = &self->heap.spans.at[piece];
    if (!piece || span->used || span->address > address ||
        address + bytes > span->address + span->bytes)
        return 0;
    return piece;
}

/* Cuts the place out of an idle piece. */
static uint32_t cut_out(struct planned *self, uint32_t piece, uint64_t address, uint64_t bytes)
{
    struct heap *heap = &self->heap;
    heap_remove(heap, piece);
    if (heap->spans.at[piece].address < address) {
        uint32_t rest = heap_cut(heap, piece, address - heap->spans.at[piece].address);
        heap_put(heap, piece, ARENA);
        heap->spans.at[rest].used = 1;
        piece = rest;
    }
    if (heap->spans.at[piece].bytes > bytes)
        heap_split(heap, piece, bytes, ARENA);
    return piece;
}

/* NO_MEMORY: the place is taken, or there is no arena. */
static enum ar_status take_place(struct planned *self, const struct planned_place *place,
                                 uint64_t *cookie)
{
    enum ar_status status = need_arena(self);
    if (status != AR_OK)
        return status;
    uint64_t address = self->arena_address + place->offset;
    uint32_t piece = idle_piece(self, address, place->bytes);
    if (!piece) {
        self->taken_requests++;
        return AR_NO_MEMORY;
    }
    piece = cut_out(self, piece, address, place->bytes);
    uint32_t node = ar_range_pool_take(&self->live);
    self->live.nodes[node].address = address;
    self->live.nodes[node].bytes = place->bytes;
    self->live.nodes[node].extra = piece;
    ar_range_tree_insert(&self->live, &self->by_address, AR_RANGE_BY_ADDRESS, node);
    *cookie = piece | (uint64_t)node << NODE_SHIFT;
    return AR_OK;
}

static enum ar_status fall_back(struct planned *self, uint64_t bytes, uint64_t *cookie)
{
    uint32_t piece = heap_take_exactly(&self->heap, CACHE, bytes);
    enum ar_status status = piece ? AR_OK : obtain(self, bytes, &piece);
    if (status != AR_OK)
        return status;
    self->heap.spans.at[piece].owner = CACHE;
    *cookie = piece;
    return AR_OK;
}

static enum ar_status make_ready(struct planned *self)
{
    enum ar_status status = heap_ready(&self->heap, 3, CACHE);
    if (status == AR_OK)
        status = heap_ready(&self->heap, 3, ARENA);
    return status != AR_OK || ar_range_pool_reserve(&self->live, 1) ? status : AR_HOST_MEMORY;
}

enum ar_status planned_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                             struct ar_policy_block *out)
{
    struct planned *self = planned_of(base);
    uint64_t bytes = ar_size_round_up(request->bytes, self->granule_bytes);
    enum ar_status status = make_ready(self);
    if (status != AR_OK)
        return status;
    const struct planned_place *place =
        self->next < self->place_count ? &self->places[self->next] : NULL;
    self->next++;
    bool planned = place && place->bytes == bytes;
    status = planned ? take_place(self, place, &out->cookie) : AR_NO_MEMORY;
    if (status == AR_NO_MEMORY) {
        planned = false;
        status = fall_back(self, bytes, &out->cookie);
    }
    if (status != AR_OK) {
        self->failures += status == AR_NO_MEMORY;
        return status;
    }
    struct ar_span *span = &self->heap.spans.at[(uint32_t)out->cookie];
    span->requested_bytes = request->bytes;
    *(planned ? &self->planned_requests : &self->fallback_requests) += 1;
    *(planned ? &self->planned_bytes : &self->fallback_bytes) += request->bytes;
    base->totals.live_bytes += request->bytes;
    base->totals.granted_bytes += bytes;
    base->totals.live_blocks++;
    out->address = span->address;
    out->granted_bytes = bytes;
    return AR_OK;
}

enum ar_status planned_free(struct ar_policy *base, const struct ar_policy_block *block,
                            uint32_t stream)
{
    struct planned *self = planned_of(base);
    uint32_t piece = (uint32_t)block->cookie, node = (uint32_t)(block->cookie >> NODE_SHIFT);
    const struct ar_span *span = &self->heap.spans.at[piece];
    (void)stream;
    base->totals.live_bytes -= span->requested_bytes;
    base->totals.granted_bytes -= span->bytes;
    base->totals.live_blocks--;
    if (node) {
        ar_range_tree_remove(&self->live, &self->by_address, AR_RANGE_BY_ADDRESS, node);
        ar_range_pool_give(&self->live, node);
    }
    heap_give(&self->heap, piece, node ? ARENA : CACHE);
    return AR_OK;
}

enum ar_status planned_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    return ar_policy_free_bytes(&base->totals) > keep_bytes ? free_all(planned_of(base)) : AR_OK;
}
