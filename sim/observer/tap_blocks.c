/* Blocks, seen from the calls to the policy.
 *
 * A policy does not report when a block is completed. The tap finds it out:
 * 1. A block that is free requested stays in a list as long as the policy counts pending bytes.
 * 2. When their number has changed, a walk of the policy shows which of these blocks are still
 *    pending; the others are completed. When it is 0, all are.
 * 3. A completion is reported before the request in whose call it happened, and before the changes
 *    of the policy's memory in this call: the served block may be one of those completed. */
#include "sim/observer/tap.h"

#include <stdlib.h>

#include "allocators/base/array.h"

static void complete(struct tap *self, uint64_t address)
{
    struct tap_area block;
    if (tap_take(&self->blocks, address, &block))
        tap_report(self, (struct observer_event){.kind = OBSERVER_FREE_COMPLETED,
                                                 .address = address,
                                                 .bytes = block.bytes,
                                                 .stream = block.stream,
                                                 .pool = block.pool,
                                                 .now_ns = tap_now(self)});
}

/* Which addresses of a sorted list a walk shows as still pending. */
struct still {
    const uint64_t *sorted;
    size_t count;
    bool *pending;
};

static bool look(void *argument, const struct ar_policy_range *range)
{
    struct still *still = argument;
    if (range->state != AR_POLICY_RANGE_PENDING)
        return true;
    size_t low = range->address ? ar_array_above(still->sorted, still->count, sizeof(uint64_t), 0,
                                                 range->address - 1)
                                : 0;
    for (; low < still->count && still->sorted[low] - range->address < range->bytes; low++)
        still->pending[low] = true;
    return true;
}

static bool is_still_pending(const struct still *still, uint64_t address)
{
    size_t above = ar_array_above(still->sorted, still->count, sizeof address, 0, address);
    return above && still->sorted[above - 1] == address && still->pending[above - 1];
}

/* Rule 2, with the walk. */
static void settle_by_walk(struct tap *self)
{
    size_t count = self->pending_count, kept = 0;
    uint64_t *sorted = malloc(count * sizeof *sorted);
    bool *flags = calloc(count, sizeof *flags);
    if (!sorted || !flags) {
        tap_no_memory(self);
    } else {
        for (size_t i = 0; i < count; i++)
            sorted[i] = self->pending[i];
        ar_array_sort(sorted, count);
        struct still still = {sorted, count, flags};
        ar_policy_walk(self->policy, look, &still);
        for (size_t i = 0; i < count; i++) {
            uint64_t address = self->pending[i];
            if (is_still_pending(&still, address))
                self->pending[kept++] = address;
            else
                complete(self, address);
        }
        self->pending_count = kept;
    }
    free(sorted);
    free(flags);
}

/* `freed`: the last block in the list was freed in this call. */
static void settle_pending(struct tap *self, bool freed)
{
    uint64_t pending_bytes = self->policy->totals.pending_bytes;
    bool changed = freed || pending_bytes != self->pending_bytes;
    self->pending_bytes = pending_bytes;
    if (!self->pending_count || !changed)
        return;
    if (pending_bytes) {
        settle_by_walk(self);
        return;
    }
    for (size_t i = 0; i < self->pending_count; i++)
        complete(self, self->pending[i]);
    self->pending_count = 0;
}

void tap_report_completed(struct tap *self)
{
    settle_pending(self, true);
}

static void free_requested(struct tap *self, uint64_t address)
{
    struct tap_area block;
    if (!tap_find(&self->blocks, address, &block) || block.free_requested)
        return;
    block.free_requested = true;
    tap_add(self, &self->blocks, &block);
    tap_report(self, (struct observer_event){.kind = OBSERVER_FREE_REQUESTED,
                                             .address = address,
                                             .bytes = block.bytes,
                                             .stream = block.stream,
                                             .pool = block.pool,
                                             .now_ns = tap_now(self)});
}

static void on_free(struct tap *self, const struct observer_policy_call *call)
{
    if (call->status)
        return;
    free_requested(self, call->block->address);
    void *pending = self->pending;
    if (!tap_grow(self, &pending, self->pending_count, &self->pending_room, sizeof *self->pending))
        return;
    self->pending = pending;
    self->pending[self->pending_count++] = call->block->address;
    settle_pending(self, true);
    tap_report_changes(self, NULL);
}

static void on_alloc(struct tap *self, const struct observer_policy_call *call)
{
    const struct ar_policy_request *request = call->request;
    settle_pending(self, false);
    tap_report_changes(self, request);
    struct observer_event reported = {.kind = call->block ? OBSERVER_ALLOC : OBSERVER_FAILED,
                                      .bytes = request->bytes,
                                      .stream = request->stream,
                                      .pool = request->pool,
                                      .tag = call->tag,
                                      .now_ns = tap_now(self)};
    if (call->block) {
        reported.address = call->block->address;
        tap_add(self, &self->blocks,
                &(struct tap_area){.address = reported.address,
                                   .bytes = request->bytes,
                                   .stream = request->stream,
                                   .pool = request->pool});
    } else {
        uint64_t total_bytes;
        ar_backing_memory(self->relay.inner, &reported.free_bytes, &total_bytes);
    }
    tap_report(self, reported);
}

void tap_policy_call(struct tap *self, const struct observer_policy_call *call)
{
    self->totals = self->policy->totals;
    if (!self->wants.memory || self->over || self->status)
        return;
    switch (call->kind) {
    case OBSERVER_POLICY_ALLOC:
        on_alloc(self, call);
        break;
    case OBSERVER_POLICY_FREE:
        on_free(self, call);
        break;
    case OBSERVER_POLICY_RETIRE:
        free_requested(self, call->block->address);
        break;
    default:
        settle_pending(self, false);
        tap_report_changes(self, NULL);
        break;
    }
}
