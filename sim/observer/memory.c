/* Between the policy and the device: each call is handed on, and what it took is told at once. What
 * it did to the policy's memory is kept until the call to the policy is over, since only then the
 * request is known that it was done for: PyTorch's snapshots give each segment its stream.
 *
 * A segment is what segment_alloc gave, or a block of the driver's own pool. Pages count as
 * mapped when they are made usable, a run at a time, and lie in a range, whose stream and pool are
 * those of the first request that had pages mapped in it. */
#include "sim/observer/state.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"

static struct observer *of_backing(struct ar_backing *backing)
{
    return (struct observer *)((char *)backing - offsetof(struct observer, backing));
}

static uint64_t now(const struct observer *self)
{
    return self->device->ops->now(self->device);
}

static enum ar_status told(struct observer *self, const char *call, uint64_t address,
                           uint64_t bytes, uint64_t begun_ns, enum ar_status status)
{
    if (!self->over)
        observer_tell(self, (struct observer_event){.kind = OBSERVER_CALL,
                                                    .call = call,
                                                    .address = address,
                                                    .bytes = bytes,
                                                    .begun_ns = begun_ns,
                                                    .now_ns = now(self),
                                                    .refused = status != AR_OK});
    return status;
}

static void act(struct observer *self, enum observer_kind kind, uint64_t address, uint64_t bytes)
{
    void *acts = self->acts;
    if (self->over ||
        !observer_grow(self, &acts, self->act_count, &self->act_room, sizeof *self->acts))
        return;
    self->acts = acts;
    self->acts[self->act_count++] = (struct observer_act){
        .kind = kind, .address = address, .bytes = bytes, .now_ns = now(self)};
}

/* The place of the first range above an address. */
static size_t range_above(const struct observer *self, uint64_t address)
{
    return ar_array_above(self->ranges, self->range_count, sizeof *self->ranges,
                          offsetof(struct observer_area, address), address);
}

static void add_range(struct observer *self, uint64_t address, uint64_t bytes)
{
    void *ranges = self->ranges;
    if (!observer_grow(self, &ranges, self->range_count, &self->range_room, sizeof *self->ranges))
        return;
    self->ranges = ranges;
    size_t at = range_above(self, address);
    memmove(self->ranges + at + 1, self->ranges + at,
            (self->range_count - at) * sizeof *self->ranges);
    self->ranges[at] = (struct observer_area){.address = address, .bytes = bytes};
    self->range_count++;
}

static void drop_range(struct observer *self, uint64_t address)
{
    size_t at = range_above(self, address);
    if (!at || self->ranges[at - 1].address != address)
        return;
    self->range_count--;
    memmove(self->ranges + at - 1, self->ranges + at,
            (self->range_count - (at - 1)) * sizeof *self->ranges);
}

static void add_segment(struct observer *self, const struct observer_area *area)
{
    void *segments = self->segments;
    if (!observer_grow(self, &segments, self->segment_count, &self->segment_room, sizeof *area))
        return;
    self->segments = segments;
    self->segments[self->segment_count] = *area;
    if (ar_map_put(&self->segment_at, area->address, self->segment_count))
        observer_no_memory(self);
    else
        self->segment_count++;
}

/* Takes out the segment at an address and answers with it. */
static struct observer_area take_segment(struct observer *self, uint64_t address)
{
    uint64_t place;
    struct observer_area area = {.address = address};
    if (!ar_map_get(&self->segment_at, address, &place))
        return area;
    area = self->segments[place];
    ar_map_remove(&self->segment_at, address);
    if (place != --self->segment_count) {
        self->segments[place] = self->segments[self->segment_count];
        if (ar_map_put(&self->segment_at, self->segments[place].address, place))
            observer_no_memory(self);
    }
    return area;
}

/* The stream and pool of an act on pages: those of the range, or of the request. */
static void fill_range(struct observer *self, struct observer_event *event,
                       const struct ar_policy_request *request)
{
    size_t at = range_above(self, event->address);
    if (!at)
        return;
    struct observer_area *range = &self->ranges[at - 1];
    if (!range->known && request) {
        range->stream = request->stream;
        range->pool = request->pool;
        range->known = true;
    }
    event->stream = range->stream;
    event->pool = range->pool;
}

void observer_tell_acts(struct observer *self, const struct ar_policy_request *request)
{
    for (size_t i = 0; i < self->act_count && !self->status; i++) {
        const struct observer_act *done = &self->acts[i];
        struct observer_event event = {.kind = done->kind,
                                       .address = done->address,
                                       .bytes = done->bytes,
                                       .now_ns = done->now_ns,
                                       .stream = request ? request->stream : 0,
                                       .pool = request ? request->pool : 0};
        if (done->kind == OBSERVER_SEGMENT_ALLOC) {
            add_segment(self, &(struct observer_area){done->address, done->bytes, event.stream,
                                                      event.pool, true});
        } else if (done->kind == OBSERVER_SEGMENT_FREE) {
            struct observer_area area = take_segment(self, done->address);
            event.bytes = area.bytes;
            event.stream = area.stream;
            event.pool = area.pool;
        } else if (done->placed) {
            event.stream = done->stream;
            event.pool = done->pool;
        } else {
            fill_range(self, &event, request);
        }
        observer_tell(self, event);
    }
    self->act_count = 0;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_segment_alloc(self->below, bytes, address);
    if (!status)
        act(self, OBSERVER_SEGMENT_ALLOC, *address, bytes);
    return told(self, "alloc", status ? 0 : *address, bytes, begun_ns, status);
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_segment_free(self->below, address);
    if (!status)
        act(self, OBSERVER_SEGMENT_FREE, address, 0);
    return told(self, "free", address, 0, begun_ns, status);
}

static enum ar_status reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_reserve(self->below, bytes, address);
    if (!status)
        add_range(self, *address, bytes);
    return told(self, "reserve", status ? 0 : *address, bytes, begun_ns, status);
}

/* A range goes before what was done in it is told: that learns now whose it was. */
static void place_acts(struct observer *self, uint64_t address)
{
    size_t at = range_above(self, address);
    if (!at || self->ranges[at - 1].address != address)
        return;
    const struct observer_area *range = &self->ranges[at - 1];
    for (size_t i = 0; i < self->act_count; i++) {
        struct observer_act *act = &self->acts[i];
        bool pages = act->kind == OBSERVER_SEGMENT_MAP || act->kind == OBSERVER_SEGMENT_UNMAP;
        if (!pages || act->placed || act->address - address >= range->bytes)
            continue;
        act->placed = true;
        act->stream = range->stream;
        act->pool = range->pool;
    }
}

static enum ar_status release(struct ar_backing *base, uint64_t address)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_release(self->below, address);
    if (!status && !self->over) {
        place_acts(self, address);
        drop_range(self, address);
    }
    return told(self, "release", address, 0, begun_ns, status);
}

static enum ar_status create(struct ar_backing *base, uint64_t bytes, ar_backing_handle *handle)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_create(self->below, bytes, handle);
    return told(self, "create", 0, bytes, begun_ns, status);
}

static enum ar_status destroy(struct ar_backing *base, ar_backing_handle handle)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_destroy(self->below, handle);
    return told(self, "destroy", 0, 0, begun_ns, status);
}

static enum ar_status map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_map(self->below, address, handle);
    return told(self, "map", address, 0, begun_ns, status);
}

static enum ar_status access_run(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_access(self->below, address, bytes);
    if (!status)
        act(self, OBSERVER_SEGMENT_MAP, address, bytes);
    return told(self, "access", address, bytes, begun_ns, status);
}

/* The driver takes pages one by one; PyTorch's snapshots tell a run of them as one. */
static void act_unmap(struct observer *self, uint64_t address, uint64_t bytes)
{
    struct observer_act *last = self->act_count ? &self->acts[self->act_count - 1] : NULL;
    if (last && last->kind == OBSERVER_SEGMENT_UNMAP && last->address + last->bytes == address &&
        range_above(self, last->address) == range_above(self, address)) {
        last->bytes += bytes;
        last->now_ns = now(self);
    } else {
        act(self, OBSERVER_SEGMENT_UNMAP, address, bytes);
    }
}

static enum ar_status unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = ar_backing_unmap(self->below, address, bytes);
    if (!status)
        act_unmap(self, address, bytes);
    return told(self, "unmap", address, bytes, begun_ns, status);
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
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    ar_backing_wait(self->below, ticket);
    (void)told(self, "wait", 0, 0, begun_ns, AR_OK);
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
    struct observer *self = of_backing(base);
    return self->below->ops->pool_open(self->below, settings);
}

static enum ar_status pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = self->below->ops->pool_alloc(self->below, bytes, stream, address);
    if (!status)
        act(self, OBSERVER_SEGMENT_ALLOC, *address, bytes);
    return told(self, "pool_alloc", status ? 0 : *address, bytes, begun_ns, status);
}

static enum ar_status pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = self->below->ops->pool_free(self->below, address, stream);
    if (!status)
        act(self, OBSERVER_SEGMENT_FREE, address, 0);
    return told(self, "pool_free", address, 0, begun_ns, status);
}

static enum ar_status pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    struct observer *self = of_backing(base);
    uint64_t begun_ns = now(self);
    enum ar_status status = self->below->ops->pool_trim(self->below, keep_bytes);
    return told(self, "pool_trim", 0, keep_bytes, begun_ns, status);
}

static void pool_memory(struct ar_backing *base, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    struct observer *self = of_backing(base);
    self->below->ops->pool_memory(self->below, used_bytes, reserved_bytes);
}

static const char *problem(struct ar_backing *base)
{
    return ar_backing_problem(of_backing(base)->below);
}

struct ar_backing *observer_backing(struct observer *self, struct ar_device *device)
{
    self->device = device;
    self->below = device->backing;
    self->backing = *device->backing;
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
    ar_backing_ops_offer(&self->backing_ops, device->backing->ops);
    self->backing.ops = &self->backing_ops;
    return &self->backing;
}
