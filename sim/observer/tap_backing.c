/* The policy's side of the device: each call is passed on and reported at once. What it changes in
 * the policy's memory is kept until the policy's call ends, because only then the request that it
 * served is known: PyTorch's snapshots give each segment the stream of its request.
 *
 * A segment is the result of segment_alloc, or a block of the driver's own pool. Pages count as
 * mapped when they are made accessible, a run at a time. They lie in an address range, whose stream
 * and pool are those of the first request that had pages mapped in it. */
#include "sim/observer/tap.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"

static struct tap *of_backing(struct ar_backing *backing)
{
    return (struct tap *)((char *)backing - offsetof(struct tap, backing));
}

static enum ar_status reported(struct tap *self, const char *call, uint64_t address, uint64_t bytes,
                               uint64_t begun_ns, enum ar_status status)
{
    if (!self->over)
        tap_report(self, (struct observer_event){.kind = OBSERVER_CALL,
                                                 .call = call,
                                                 .address = address,
                                                 .bytes = bytes,
                                                 .begun_ns = begun_ns,
                                                 .now_ns = tap_now(self),
                                                 .refused = status != AR_OK});
    return status;
}

static void change(struct tap *self, enum observer_kind kind, uint64_t address, uint64_t bytes)
{
    void *changes = self->changes;
    if (self->over ||
        !tap_grow(self, &changes, self->change_count, &self->change_room, sizeof *self->changes))
        return;
    self->changes = changes;
    self->changes[self->change_count++] = (struct tap_change){
        .kind = kind, .address = address, .bytes = bytes, .now_ns = tap_now(self)};
}

/* The index of the first range above an address. */
static size_t range_above(const struct tap *self, uint64_t address)
{
    return ar_array_above(self->ranges, self->range_count, sizeof *self->ranges,
                          offsetof(struct tap_area, address), address);
}

static void add_range(struct tap *self, uint64_t address, uint64_t bytes)
{
    void *ranges = self->ranges;
    if (!tap_grow(self, &ranges, self->range_count, &self->range_room, sizeof *self->ranges))
        return;
    self->ranges = ranges;
    size_t at = range_above(self, address);
    memmove(self->ranges + at + 1, self->ranges + at,
            (self->range_count - at) * sizeof *self->ranges);
    self->ranges[at] = (struct tap_area){.address = address, .bytes = bytes};
    self->range_count++;
}

static void drop_range(struct tap *self, uint64_t address)
{
    size_t at = range_above(self, address);
    if (!at || self->ranges[at - 1].address != address)
        return;
    self->range_count--;
    memmove(self->ranges + at - 1, self->ranges + at,
            (self->range_count - (at - 1)) * sizeof *self->ranges);
}

/* The stream and pool of a change of pages: those of the range, or of the request. */
static void fill_range(struct tap *self, struct observer_event *event,
                       const struct ar_policy_request *request)
{
    size_t at = range_above(self, event->address);
    if (!at)
        return;
    struct tap_area *range = &self->ranges[at - 1];
    if (!range->known && request) {
        range->stream = request->stream;
        range->pool = request->pool;
        range->known = true;
    }
    event->stream = range->stream;
    event->pool = range->pool;
}

void tap_report_changes(struct tap *self, const struct ar_policy_request *request)
{
    for (size_t i = 0; i < self->change_count && !self->status; i++) {
        const struct tap_change *done = &self->changes[i];
        struct observer_event event = {.kind = done->kind,
                                       .address = done->address,
                                       .bytes = done->bytes,
                                       .now_ns = done->now_ns,
                                       .stream = request ? request->stream : 0,
                                       .pool = request ? request->pool : 0};
        if (done->kind == OBSERVER_SEGMENT_ALLOC) {
            const struct tap_area area = {.address = done->address,
                                          .bytes = done->bytes,
                                          .stream = event.stream,
                                          .pool = event.pool};
            tap_add(self, &self->segments, &area);
        } else if (done->kind == OBSERVER_SEGMENT_FREE) {
            struct tap_area area = {0};
            (void)tap_take(&self->segments, done->address, &area);
            event.bytes = area.bytes;
            event.stream = area.stream;
            event.pool = area.pool;
        } else if (done->placed) {
            event.stream = done->stream;
            event.pool = done->pool;
        } else {
            fill_range(self, &event, request);
        }
        tap_report(self, event);
    }
    self->change_count = 0;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_segment_alloc(self->below, bytes, address);
    if (!status)
        change(self, OBSERVER_SEGMENT_ALLOC, *address, bytes);
    return reported(self, "alloc", status ? 0 : *address, bytes, begun_ns, status);
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_segment_free(self->below, address);
    if (!status)
        change(self, OBSERVER_SEGMENT_FREE, address, 0);
    return reported(self, "free", address, 0, begun_ns, status);
}

static enum ar_status reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_reserve(self->below, bytes, address);
    if (!status)
        add_range(self, *address, bytes);
    return reported(self, "reserve", status ? 0 : *address, bytes, begun_ns, status);
}

/* A range is released before the changes in it are reported: they get its stream and pool now. */
static void place_changes(struct tap *self, uint64_t address)
{
    size_t at = range_above(self, address);
    if (!at || self->ranges[at - 1].address != address)
        return;
    const struct tap_area *range = &self->ranges[at - 1];
    for (size_t i = 0; i < self->change_count; i++) {
        struct tap_change *one = &self->changes[i];
        bool pages = one->kind == OBSERVER_SEGMENT_MAP || one->kind == OBSERVER_SEGMENT_UNMAP;
        if (!pages || one->placed || one->address - address >= range->bytes)
            continue;
        one->placed = true;
        one->stream = range->stream;
        one->pool = range->pool;
    }
}

static enum ar_status release(struct ar_backing *base, uint64_t address)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_release(self->below, address);
    if (!status && !self->over) {
        place_changes(self, address);
        drop_range(self, address);
    }
    return reported(self, "release", address, 0, begun_ns, status);
}

static enum ar_status create(struct ar_backing *base, uint64_t bytes, ar_backing_handle *handle)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_create(self->below, bytes, handle);
    return reported(self, "create", 0, bytes, begun_ns, status);
}

static enum ar_status destroy(struct ar_backing *base, ar_backing_handle handle)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_destroy(self->below, handle);
    return reported(self, "destroy", 0, 0, begun_ns, status);
}

static enum ar_status map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_map(self->below, address, handle);
    return reported(self, "map", address, 0, begun_ns, status);
}

static enum ar_status access_run(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_access(self->below, address, bytes);
    if (!status)
        change(self, OBSERVER_SEGMENT_MAP, address, bytes);
    return reported(self, "access", address, bytes, begun_ns, status);
}

/* The driver unmaps pages one by one; PyTorch's snapshots report a run of them as one entry. */
static void change_unmap(struct tap *self, uint64_t address, uint64_t bytes)
{
    struct tap_change *last = self->change_count ? &self->changes[self->change_count - 1] : NULL;
    if (last && last->kind == OBSERVER_SEGMENT_UNMAP && last->address + last->bytes == address &&
        range_above(self, last->address) == range_above(self, address)) {
        last->bytes += bytes;
        last->now_ns = tap_now(self);
    } else {
        change(self, OBSERVER_SEGMENT_UNMAP, address, bytes);
    }
}

static enum ar_status unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = ar_backing_unmap(self->below, address, bytes);
    if (!status)
        change_unmap(self, address, bytes);
    return reported(self, "unmap", address, bytes, begun_ns, status);
}

static struct ar_backing_ticket fence(struct ar_backing *base, uint32_t stream)
{
    return ar_backing_fence(of_backing(base)->below, stream);
}

static bool done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return ar_backing_done(of_backing(base)->below, ticket);
}

static void wait_for(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    ar_backing_wait(self->below, ticket);
    (void)reported(self, "wait", 0, 0, begun_ns, AR_OK);
}

static void order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    ar_backing_order(of_backing(base)->below, stream, ticket);
}

static void memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ar_backing_memory(of_backing(base)->below, free_bytes, total_bytes);
}

static enum ar_status pool_open(struct ar_backing *base, const struct ar_backing_pool *settings)
{
    struct tap *self = of_backing(base);
    return self->below->ops->pool_open(self->below, settings);
}

static enum ar_status pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = self->below->ops->pool_alloc(self->below, bytes, stream, address);
    if (!status)
        change(self, OBSERVER_SEGMENT_ALLOC, *address, bytes);
    return reported(self, "pool_alloc", status ? 0 : *address, bytes, begun_ns, status);
}

static enum ar_status pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = self->below->ops->pool_free(self->below, address, stream);
    if (!status)
        change(self, OBSERVER_SEGMENT_FREE, address, 0);
    return reported(self, "pool_free", address, 0, begun_ns, status);
}

static enum ar_status pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    struct tap *self = of_backing(base);
    uint64_t begun_ns = tap_now(self);
    enum ar_status status = self->below->ops->pool_trim(self->below, keep_bytes);
    return reported(self, "pool_trim", 0, keep_bytes, begun_ns, status);
}

static void pool_memory(struct ar_backing *base, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    struct tap *self = of_backing(base);
    self->below->ops->pool_memory(self->below, used_bytes, reserved_bytes);
}

static const char *problem(struct ar_backing *base)
{
    return ar_backing_problem(of_backing(base)->below);
}

void tap_backing_open(struct tap *self)
{
    self->below = self->device->backing;
    self->backing = *self->below;
    self->backing_ops = (struct ar_backing_ops){
        .segment_alloc = segment_alloc,
        .segment_free = segment_free,
        .reserve = reserve,
        .release = release,
        .create = create,
        .destroy = destroy,
        .map = map,
        .access = access_run,
        .unmap = unmap,
        .fence = fence,
        .done = done,
        .wait = wait_for,
        .order = order,
        .memory = memory,
        .pool_alloc = pool_alloc,
        .pool_free = pool_free,
        .pool_trim = pool_trim,
        .pool_memory = pool_memory,
        .problem = problem,
        .pool_open = pool_open,
    };
    ar_backing_ops_offer(&self->backing_ops, self->below->ops);
    self->backing.ops = &self->backing_ops;
}
