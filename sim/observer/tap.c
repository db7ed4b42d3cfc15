#include "sim/observer.h"

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/relay.h"

/* A change of the policy's memory in the call that is in progress. */
struct tap_change {
    enum observer_kind kind;
    uint64_t address, bytes, now_ns;
    uint32_t stream, pool; /* of pages if `placed`: their range is released since */
    bool placed;
};

/* A segment, an address range, or a block that is served and not completed. */
struct tap_area {
    uint64_t address, bytes;
    uint32_t stream, pool;
    bool known;          /* of a range: stream and pool */
    bool free_requested; /* of a block */
};

/* The words of a segment or block in its map. */
enum { TAP_BYTES, TAP_STREAM_AND_POOL, TAP_FREE_REQUESTED, TAP_WORDS };

struct tap {
    const struct observer *observers;
    struct observer_wants wants;
    bool over;             /* nothing is reported any more */
    enum ar_status status; /* of the first memory callback that failed */
    struct ar_error error;
    uint64_t event; /* number of the trace's event */

    struct ar_device *device;
    struct relay relay; /* its base is the backing of the policy */
    uint64_t begun_ns;  /* of the driver call in progress */
    struct tap_change *changes;
    size_t change_count, change_room;
    struct ar_map segments;  /* by address */
    struct tap_area *ranges; /* by address */
    size_t range_count, range_room;

    const struct ar_policy *policy; /* NULL while it is created */
    struct ar_policy_totals totals; /* after the last call to the policy */
    struct ar_map blocks;           /* by address */
    uint64_t *pending;              /* addresses of blocks that are free requested, in that order */
    size_t pending_count, pending_room;
    uint64_t pending_bytes; /* the policy's count after its last call */
};

static uint64_t tap_now(const struct tap *self)
{
    return self->device->ops->now(self->device);
}

static void tap_no_memory(struct tap *self)
{
    if (!self->status)
        self->status =
            ar_error_set(&self->error, AR_HOST_MEMORY, "no host memory to observe a run");
}

static void tap_add(struct tap *self, struct ar_map *map, const struct tap_area *area)
{
    uint64_t *words = ar_map_add(map, area->address);
    if (!words) {
        tap_no_memory(self);
        return;
    }
    words[TAP_BYTES] = area->bytes;
    words[TAP_STREAM_AND_POOL] = (uint64_t)area->pool << 32 | area->stream;
    words[TAP_FREE_REQUESTED] = area->free_requested;
}

static bool tap_find(const struct ar_map *map, uint64_t address, struct tap_area *out)
{
    const uint64_t *words = ar_map_find(map, address);
    if (!words)
        return false;
    *out = (struct tap_area){
        .address = address,
        .bytes = words[TAP_BYTES],
        .stream = (uint32_t)words[TAP_STREAM_AND_POOL],
        .pool = (uint32_t)(words[TAP_STREAM_AND_POOL] >> 32),
        .free_requested = words[TAP_FREE_REQUESTED],
    };
    return true;
}

static bool tap_take(struct ar_map *map, uint64_t address, struct tap_area *out)
{
    return tap_find(map, address, out) && ar_map_remove(map, address);
}

static void tap_report(struct tap *self, struct observer_event event)
{
    if (self->over || self->status)
        return;
    event.totals = &self->totals;
    event.physical_bytes = self->device->counters.physical_bytes;
    event.event = self->event;
    self->status = observer_memory(self->observers, &event, &self->error);
}

/* ---- memory ---------------------------------------------------------------------------------
 *
 * The policy's side of the device: each call is passed on and reported at once. What it changes in
 * the policy's memory is kept until the policy's call ends, because only then the request that it
 * served is known: PyTorch's snapshots give each segment the stream of its request.
 *
 * A segment is the result of segment_alloc, or a block of the driver's own pool. Pages count as
 * mapped when they are made accessible, a run at a time. They lie in an address range, whose stream
 * and pool are those of the first request that had pages mapped in it. */

static struct tap *of_relay(struct relay *relay)
{
    return (struct tap *)((char *)relay - offsetof(struct tap, relay));
}

static void change(struct tap *self, enum observer_kind kind, uint64_t address, uint64_t bytes)
{
    const struct tap_change made = {
        .kind = kind, .address = address, .bytes = bytes, .now_ns = tap_now(self)};
    if (!AR_ARRAY_ADD(self->changes, self->change_count, self->change_room, made))
        tap_no_memory(self);
}

/* The index of the first range above an address. */
static size_t range_above(const struct tap *self, uint64_t address)
{
    return ar_array_above(self->ranges, self->range_count, sizeof *self->ranges,
                          offsetof(struct tap_area, address), address);
}

static void add_range(struct tap *self, uint64_t address, uint64_t bytes)
{
    if (!ar_array_make_room(&self->ranges, self->range_count, &self->range_room,
                            sizeof *self->ranges)) {
        tap_no_memory(self);
        return;
    }
    size_t at = range_above(self, address);
    AR_ARRAY_INSERT(self->ranges, self->range_count, at,
                    (struct tap_area){.address = address, .bytes = bytes});
}

static void drop_range(struct tap *self, uint64_t address)
{
    size_t at = range_above(self, address);
    if (at && self->ranges[at - 1].address == address)
        AR_ARRAY_REMOVE(self->ranges, self->range_count, at - 1);
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

static void tap_report_changes(struct tap *self, const struct ar_policy_request *request)
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
    [RELAY_COPY] = "copy",
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

static void tap_backing_open(struct tap *self)
{
    self->relay.before = note_begin;
    self->relay.after = report_call;
    relay_open(&self->relay, self->device->backing);
}

/* ---- blocks ---------------------------------------------------------------------------------
 *
 * Blocks, seen from the calls to the policy.
 *
 * A policy does not report when a block is completed. The tap finds it out:
 * 1. A block that is free requested stays in a list as long as the policy counts pending bytes.
 * 2. When their number has changed, a walk of the policy shows which of these blocks are still
 *    pending; the others are completed. When it is 0, all are.
 * 3. A completion is reported before the request in whose call it happened, and before the changes
 *    of the policy's memory in this call: the served block may be one of those completed. */

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
    if (!AR_ARRAY_ADD(self->pending, self->pending_count, self->pending_room,
                      call->block->address)) {
        tap_no_memory(self);
        return;
    }
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

/* ---- connections ----------------------------------------------------------------------------- */

static void on_driver_call(void *argument, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                           uint64_t waited_ns, bool refused)
{
    const struct tap *self = argument;
    const struct observer_driver_call made = {self->event, call, bytes, ns, waited_ns, refused};
    observer_driver_call(self->observers, &made);
}

enum ar_status tap_open(struct tap **out, const struct observer *observers,
                        struct ar_device *device, struct ar_error *error)
{
    struct observer_wants wants = observer_wants(observers);
    *out = NULL;
    if (!wants.driver_calls && !wants.memory)
        return AR_OK;
    struct tap *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "a run");
    self->observers = observers;
    self->wants = wants;
    self->device = device;
    self->segments.more_words = self->blocks.more_words = TAP_WORDS - 1;
    if (wants.driver_calls)
        device->observer = (struct ar_device_observer){on_driver_call, self};
    if (wants.memory)
        tap_backing_open(self);
    *out = self;
    return AR_OK;
}

void tap_close(struct tap *self)
{
    if (!self)
        return;
    self->device->observer = (struct ar_device_observer){0};
    free(self->changes);
    free(self->ranges);
    free(self->pending);
    ar_map_close(&self->segments);
    ar_map_close(&self->blocks);
    free(self);
}

struct ar_backing *tap_backing(struct tap *self)
{
    return self->wants.memory ? &self->relay.base : self->device->backing;
}

void tap_set_policy(struct tap *self, const struct ar_policy *policy)
{
    self->policy = policy;
    self->totals = policy->totals;
}

void tap_at_event(struct tap *self, uint64_t event)
{
    self->event = event;
    self->totals = self->policy->totals;
}

void tap_mark(struct tap *self, const char *label, const char *keys)
{
    if (self->wants.memory)
        tap_report(self,
                   (struct observer_event){
                       .kind = OBSERVER_MARK, .tag = label, .keys = keys, .now_ns = tap_now(self)});
}

void tap_change(struct tap *self, const char *note)
{
    char setting[512] = "";
    if (!self->wants.memory || !self->policy->ops->change)
        return;
    if (self->policy->ops->setting)
        (void)self->policy->ops->setting(self->policy, setting, sizeof setting);
    tap_report(self,
               (struct observer_event){
                   .kind = OBSERVER_CHANGE, .tag = note, .keys = setting, .now_ns = tap_now(self)});
}

enum ar_status tap_end(struct tap *self, struct ar_error *error)
{
    if (self->wants.memory && !self->status) {
        self->totals = self->policy->totals;
        settle_pending(self, true);
        tap_report_changes(self, NULL);
    }
    self->over = true;
    self->device->observer = (struct ar_device_observer){0};
    return self->status ? ar_error_set(error, self->status, "%s", self->error.text) : AR_OK;
}
