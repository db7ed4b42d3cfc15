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

static struct tap *of_relay(struct relay *relay)
{
    return (struct tap *)((char *)relay - offsetof(struct tap, relay));
}

static void change(struct tap *self, enum observer_kind kind, uint64_t address, uint64_t bytes)
{
    void *changes = self->changes;
    if (!tap_grow(self, &changes, self->change_count, &self->change_room, sizeof *self->changes))
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

static void change_memory(struct tap *self, const struct relay_call *call)
{
    switch (call->hook) {
    case RELAY_SEGMENT_ALLOC:
    case RELAY_POOL_ALLOC:
        change(self, OBSERVER_SEGMENT_ALLOC, call->address, call->bytes);
        break;
    case RELAY_SEGMENT_FREE:
    case RELAY_POOL_FREE:
        change(self, OBSERVER_SEGMENT_FREE, call->address, 0);
        break;
    case RELAY_RESERVE:
        add_range(self, call->address, call->bytes);
        break;
    case RELAY_RELEASE:
        place_changes(self, call->address);
        drop_range(self, call->address);
        break;
    case RELAY_ACCESS:
        change(self, OBSERVER_SEGMENT_MAP, call->address, call->bytes);
        break;
    case RELAY_UNMAP:
        change_unmap(self, call->address, call->bytes);
        break;
    default:
        break;
    }
}

/* Calls without a name are not reported. */
static const char *const call_names[RELAY_POOL_MEMORY + 1] = {
    [RELAY_SEGMENT_ALLOC] = "alloc",
    [RELAY_SEGMENT_FREE] = "free",
    [RELAY_RESERVE] = "reserve",
    [RELAY_RELEASE] = "release",
    [RELAY_CREATE] = "create",
    [RELAY_DESTROY] = "destroy",
    [RELAY_MAP] = "map",
    [RELAY_ACCESS] = "access",
    [RELAY_UNMAP] = "unmap",
    [RELAY_WAIT] = "wait",
    [RELAY_POOL_ALLOC] = "pool_alloc",
    [RELAY_POOL_FREE] = "pool_free",
    [RELAY_POOL_TRIM] = "pool_trim",
};

static enum ar_status note_begin(struct relay *relay, enum relay_hook hook)
{
    struct tap *self = of_relay(relay);
    if (call_names[hook])
        self->begun_ns = tap_now(self);
    return AR_OK;
}

static void report_call(struct relay *relay, const struct relay_call *call)
{
    struct tap *self = of_relay(relay);
    if (self->over || !call_names[call->hook])
        return;
    if (!call->status)
        change_memory(self, call);
    tap_report(self, (struct observer_event){.kind = OBSERVER_CALL,
                                             .call = call_names[call->hook],
                                             .address = call->address,
                                             .bytes = call->bytes,
                                             .begun_ns = self->begun_ns,
                                             .now_ns = tap_now(self),
                                             .refused = call->status != AR_OK});
}

void tap_backing_open(struct tap *self)
{
    self->relay.before = note_begin;
    self->relay.after = report_call;
    relay_open(&self->relay, self->device->backing);
}
