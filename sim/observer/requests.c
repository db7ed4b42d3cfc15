/* Around the policy: an observer hears each call once it is over.
 *
 * When a block is complete a policy tells nobody. It is seen from outside:
 * 1. A block that is let go waits in a list as long as the policy counts pending bytes.
 * 2. Where their number has changed, the walk shows which of them are pending still; those that are
 *    not have become complete. Where it is 0, all have.
 * 3. That is told before the request in whose call it happened, and before what the policy did to
 *    its memory in it: a block given there may be one of those. */
#include "sim/observer/state.h"

#include <stdlib.h>

static uint64_t now(const struct observer *self)
{
    return self->device->ops->now(self->device);
}

static const char *tag_of(struct observer *self)
{
    const struct trace_event *event = self->current;
    if (!event || !event->attributes)
        return NULL;
    return trace_attributes_of(self->trace, event->attributes)->tag;
}

static void add_block(struct observer *self, const struct observer_block *block)
{
    void *blocks = self->blocks;
    if (!observer_grow(self, &blocks, self->block_count, &self->block_room, sizeof *block))
        return;
    self->blocks = blocks;
    self->blocks[self->block_count] = *block;
    if (ar_map_put(&self->block_at, block->address, self->block_count))
        observer_no_memory(self);
    else
        self->block_count++;
}

static struct observer_block *find_block(const struct observer *self, uint64_t address)
{
    uint64_t place;
    return ar_map_get(&self->block_at, address, &place) ? &self->blocks[place] : NULL;
}

static void complete(struct observer *self, uint64_t address)
{
    const struct observer_block *block = find_block(self, address);
    if (!block)
        return;
    observer_tell(self, (struct observer_event){.kind = OBSERVER_FREE_COMPLETED,
                                                .address = address,
                                                .bytes = block->bytes,
                                                .stream = block->stream,
                                                .pool = block->pool,
                                                .now_ns = now(self)});
    uint64_t place = (uint64_t)(block - self->blocks);
    ar_map_remove(&self->block_at, address);
    if (place != --self->block_count) {
        self->blocks[place] = self->blocks[self->block_count];
        if (ar_map_put(&self->block_at, self->blocks[place].address, place))
            observer_no_memory(self);
    }
}

/* The addresses that the walk shows as pending still, out of a sorted list. */
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
    size_t low = 0, high = still->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (still->sorted[middle] < range->address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < still->count && still->sorted[low] - range->address < range->bytes; low++)
        still->pending[low] = true;
    return true;
}

static int by_address(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static bool is_still_pending(const struct still *still, uint64_t address)
{
    const uint64_t *found =
        bsearch(&address, still->sorted, still->count, sizeof address, by_address);
    return found && still->pending[found - still->sorted];
}

/* Rule 2, with the walk. */
static void settle_by_walk(struct observer *self)
{
    size_t count = self->pending_count, kept = 0;
    uint64_t *sorted = malloc(count * sizeof *sorted);
    bool *flags = calloc(count, sizeof *flags);
    if (!sorted || !flags) {
        observer_no_memory(self);
    } else {
        for (size_t i = 0; i < count; i++)
            sorted[i] = self->pending[i];
        qsort(sorted, count, sizeof *sorted, by_address);
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

/* `freed`: the last block in the list was let go in this very call. */
static void settle_pending(struct observer *self, bool freed)
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

void observer_tell_complete(struct observer *self)
{
    settle_pending(self, true);
}

static void free_requested(struct observer *self, uint64_t address)
{
    struct observer_block *block = find_block(self, address);
    if (!block || block->free_requested)
        return;
    block->free_requested = true;
    observer_tell(self, (struct observer_event){.kind = OBSERVER_FREE_REQUESTED,
                                                .address = address,
                                                .bytes = block->bytes,
                                                .stream = block->stream,
                                                .pool = block->pool,
                                                .now_ns = now(self)});
}

static void on_free(struct observer *self, const struct observe_event *event)
{
    if (event->status)
        return;
    free_requested(self, event->block->address);
    void *pending = self->pending;
    if (!observer_grow(self, &pending, self->pending_count, &self->pending_room,
                       sizeof *self->pending))
        return;
    self->pending = pending;
    self->pending[self->pending_count++] = event->block->address;
    settle_pending(self, true);
    observer_tell_acts(self, NULL);
}

static void on_alloc(struct observer *self, const struct observe_event *event)
{
    const struct ar_policy_request *request = event->request;
    settle_pending(self, false);
    observer_tell_acts(self, request);
    struct observer_event told = {.kind = event->block ? OBSERVER_ALLOC : OBSERVER_FAILED,
                                  .bytes = request->bytes,
                                  .stream = request->stream,
                                  .pool = request->pool,
                                  .tag = tag_of(self),
                                  .now_ns = now(self)};
    if (event->block) {
        told.address = event->block->address;
        add_block(self, &(struct observer_block){.address = told.address,
                                                 .bytes = request->bytes,
                                                 .stream = request->stream,
                                                 .pool = request->pool});
    } else {
        uint64_t total_bytes;
        ar_backing_memory(self->below, &told.free_bytes, &total_bytes);
    }
    observer_tell(self, told);
}

static void hear(void *argument, const struct observe_event *event)
{
    struct observer *self = argument;
    if (self->over || self->status)
        return;
    switch (event->kind) {
    case OBSERVE_ALLOC:
        on_alloc(self, event);
        break;
    case OBSERVE_FREE:
        on_free(self, event);
        break;
    case OBSERVE_RETIRE:
        free_requested(self, event->block->address);
        break;
    default:
        settle_pending(self, false);
        observer_tell_acts(self, NULL);
        break;
    }
}

enum ar_status observer_policy(struct observer *self, struct ar_policy **policy,
                               struct ar_error *error)
{
    struct ar_policy *wrapped;
    enum ar_status status = observe_wrap(&self->host, *policy, hear, self, &wrapped, error);
    if (status)
        return status;
    *policy = wrapped;
    self->policy = wrapped;
    return AR_OK;
}
