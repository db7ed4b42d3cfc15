#include "bench/calibrate/meter.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "sim/replay/timing.h"

#define KERNEL_NS     UINT64_C(50000) /* of those that keep the card busy */
#define AHEAD_WAITING UINT64_C(200000)
#define AHEAD_LEAST   UINT64_C(1000000)
#define AHEAD_MOST    UINT64_C(40000000) /* 800 launches: fewer than a queue holds */
#define POINT_NS      UINT64_C(400000000)
#define ALL_NS        UINT64_C(90000000000)
#define WARM_NS       UINT64_C(50000000) /* until a card that was idle runs at its usual clock */

/* From there on freed memory is given time. */
#define REST_BYTES (256 * AR_MIB)

void meter_samples_add(struct meter_samples *self, uint64_t ns)
{
    if (self->count < METER_SAMPLES_MOST)
        self->ns[self->count++] = ns;
}

uint64_t meter_samples_median(struct meter_samples *self)
{
    if (!self->count)
        return 0;
    ar_array_sort(self->ns, self->count);
    return self->ns[(self->count - 1) / 2];
}

uint64_t meter_samples_usual(struct meter_samples *self)
{
    uint64_t most_ns = 4 * meter_samples_median(self), sum_ns = 0;
    for (uint32_t i = 0; i < self->count; i++)
        sum_ns += self->ns[i] < most_ns ? self->ns[i] : most_ns;
    return self->count ? (sum_ns + self->count / 2) / self->count : 0;
}

static void on_call(void *argument, enum ar_device_call call AR_UNUSED, uint64_t bytes AR_UNUSED,
                    uint64_t ns, uint64_t waited_ns, bool refused AR_UNUSED)
{
    struct meter *self = argument;
    self->ns = ns;
    self->waited_ns = waited_ns;
}

bool meter_open(struct meter *self, struct ar_device *device, const struct sim_profile *profile,
                bool cold)
{
    uint64_t total_bytes;
    *self = (struct meter){
        .device = device,
        .backing = device->backing,
        .profile = profile,
        .observer = device->observer,
        .status = AR_OK,
    };
    if (cold && !cache_flush_open(&self->flush, device))
        return false;
    device->observer = (struct ar_device_observer){.call = on_call, .argument = self};
    ar_backing_memory(self->backing, &self->free_bytes, &total_bytes);
    self->until_ns = device->ops->now(device) + ALL_NS;
    meter_kernel_op(self, WARM_NS);
    meter_sync(self);
    return true;
}

void meter_close(struct meter *self)
{
    self->device->observer = self->observer;
    cache_flush_close(self->flush);
}

uint64_t meter_now(const struct meter *self)
{
    return self->device->ops->now(self->device);
}

void meter_look_at_host(struct meter *self)
{
    if (strcmp(self->device->props.kind, "sim") == 0)
        return;
    meter_samples_add(&self->looks, latency_clock_cost_ns());
}

uint64_t meter_host_clock_ps(struct meter *self)
{
    struct meter_samples *looks = &self->looks;
    uint32_t from = looks->count / 4, to = looks->count - from;
    uint64_t sum_ns = 0;
    ar_array_sort(looks->ns, looks->count);
    for (uint32_t i = from; i < to; i++)
        sum_ns += looks->ns[i];
    return looks->count ? 1000 * sum_ns / (to - from) : 0;
}

void meter_point(struct meter *self)
{
    self->point_until_ns = meter_now(self) + POINT_NS;
    AR_LOWER(self->point_until_ns, self->until_ns);
    self->longest_ns = 0;
}

bool meter_goes_on(const struct meter *self, const struct meter_samples *samples)
{
    return self->status == AR_OK && samples->count < SAMPLES_ENOUGH &&
           (samples->count < SAMPLES_LEAST + 2 || meter_now(self) < self->point_until_ns);
}

uint32_t meter_room(const struct meter *self, uint64_t bytes, uint32_t most)
{
    uint64_t room = self->free_bytes / 10 * 6 / bytes;
    return room < most ? (uint32_t)room : most;
}

void meter_pause(struct meter *self, uint64_t ns)
{
    /* A real device counts what the host did since the last pause as part of this one. */
    for (uint64_t until_ns = meter_now(self) + ns; meter_now(self) < until_ns;)
        self->device->ops->advance(self->device, until_ns - meter_now(self));
}

void meter_rest(struct meter *self, uint64_t bytes)
{
    if (bytes >= REST_BYTES && self->cleaned_per_us)
        meter_pause(self, bytes / self->cleaned_per_us * 1500);
}

void meter_sync(struct meter *self)
{
    self->device->ops->sync(self->device, UINT32_MAX);
    self->busy_until_ns = meter_now(self);
}

void meter_kernel_op(struct meter *self, uint64_t ns)
{
    self->device->ops->kernel(self->device, METER_BUSY_STREAM, ns);
    uint64_t from_ns =
        meter_now(self) > self->busy_until_ns ? meter_now(self) : self->busy_until_ns;
    self->busy_until_ns = from_ns + ns;
}

/* Before a call: what it took before is not its own, and the card is as busy as it should be. */
static void prepare(struct meter *self, bool waits)
{
    uint64_t ahead_ns = 8 * self->longest_ns > AHEAD_LEAST ? 8 * self->longest_ns : AHEAD_LEAST;
    AR_LOWER(ahead_ns, AHEAD_MOST);
    if (waits)
        ahead_ns = AHEAD_WAITING;
    cache_flush_run(self->flush);
    /* Launches that wait for room in a full queue get the card no further ahead. */
    for (uint64_t left = 2 * ahead_ns / KERNEL_NS;
         left && self->busy && self->busy_until_ns < meter_now(self) + ahead_ns; left--)
        meter_kernel_op(self, KERNEL_NS);
    self->ns = self->waited_ns = self->rest_ns = self->rested_ns = 0;
    self->begun_ns = meter_now(self);
    self->begun_bytes = self->device->counters.physical_bytes;
}

/* How long its kind has rested, and what that and the rest before added. Small allocations and
 * frees that leave the pages as they are stand apart. */
static void rested(struct meter *self, enum sim_cost kind)
{
    bool shares = self->device->counters.physical_bytes == self->begun_bytes;
    if (shares && kind == SIM_COST_alloc)
        kind = SIM_COST_alloc_shared;
    if (shares && kind == SIM_COST_free)
        kind = SIM_COST_free_shared;
    uint64_t *ended_ns = &self->ended_ns[kind];
    self->kind = kind;
    self->rest_ns = *ended_ns ? self->begun_ns + self->waited_ns - (*ended_ns - 1) : UINT64_MAX;
    uint64_t *carried_ns = &self->carried_ns[kind];
    *carried_ns = sim_profile_added(self->profile, kind, self->rest_ns, *carried_ns);
    self->rested_ns = *carried_ns;
    if (self->rested_ns > self->ns / 2) /* that a wait in the driver does not cool as much */
        self->rested_ns = self->ns / 2;
    *ended_ns = meter_now(self) + 1;
}

/* After it. Only calls that make memory may be refused. */
static bool take(struct meter *self, const char *call, bool makes, enum sim_cost kind,
                 enum ar_status status, struct meter_samples *into)
{
    if (status != AR_OK) {
        if (status != AR_REFUSED || !makes) {
            self->status = status;
            self->call = call;
        }
        return false;
    }
    rested(self, kind);
    if (self->waited_ns && self->busy_until_ns > meter_now(self))
        self->busy_until_ns = meter_now(self);
    if (into) {
        meter_samples_add(into, self->ns - self->rested_ns);
        AR_RAISE(self->longest_ns, self->ns);
    }
    return true;
}

enum does { MAKES, WAITS, NEITHER };

#define METERED(name, does, ...)                                                                   \
    if (self->status != AR_OK)                                                                     \
        return false;                                                                              \
    prepare(self, (does) == WAITS);                                                                \
    return take(self, #name, (does) == MAKES, SIM_COST_##name, __VA_ARGS__, into)

bool meter_alloc(struct meter *self, uint64_t bytes, uint64_t *address, struct meter_samples *into)
{
    METERED(alloc, MAKES, ar_backing_segment_alloc(self->backing, bytes, address));
}

bool meter_free(struct meter *self, uint64_t address, struct meter_samples *into)
{
    METERED(free, WAITS, ar_backing_segment_free(self->backing, address));
}

bool meter_reserve(struct meter *self, uint64_t bytes, uint64_t *address,
                   struct meter_samples *into)
{
    METERED(reserve, MAKES, ar_backing_reserve(self->backing, bytes, address));
}

bool meter_release(struct meter *self, uint64_t address, struct meter_samples *into)
{
    METERED(release, NEITHER, ar_backing_release(self->backing, address));
}

bool meter_create(struct meter *self, uint64_t bytes, ar_backing_handle *handle,
                  struct meter_samples *into)
{
    METERED(create, MAKES, ar_backing_create(self->backing, bytes, handle));
}

bool meter_destroy(struct meter *self, ar_backing_handle handle, struct meter_samples *into)
{
    METERED(destroy, NEITHER, ar_backing_destroy(self->backing, handle));
}

bool meter_map(struct meter *self, uint64_t address, ar_backing_handle handle,
               struct meter_samples *into)
{
    METERED(map, NEITHER, ar_backing_map(self->backing, address, handle));
}

bool meter_access(struct meter *self, uint64_t address, uint64_t bytes, struct meter_samples *into)
{
    METERED(access, NEITHER, ar_backing_access(self->backing, address, bytes));
}

bool meter_unmap(struct meter *self, uint64_t address, uint64_t bytes, struct meter_samples *into)
{
    METERED(unmap, NEITHER, ar_backing_unmap(self->backing, address, bytes));
}

bool meter_pool_alloc(struct meter *self, uint64_t bytes, uint32_t stream, uint64_t *address,
                      struct meter_samples *into)
{
    METERED(pool_alloc, MAKES,
            self->backing->ops->pool_alloc(self->backing, bytes, stream, address));
}

bool meter_pool_free(struct meter *self, uint64_t address, uint32_t stream,
                     struct meter_samples *into)
{
    METERED(pool_free, NEITHER, self->backing->ops->pool_free(self->backing, address, stream));
}

bool meter_pool_trim(struct meter *self, struct meter_samples *into)
{
    METERED(pool_trim, NEITHER, self->backing->ops->pool_trim(self->backing, 0));
}

bool meter_fence(struct meter *self, uint32_t stream, enum sim_cost kind,
                 struct ar_backing_ticket *ticket, struct meter_samples *into)
{
    if (self->status != AR_OK)
        return false;
    prepare(self, true);
    *ticket = ar_backing_fence(self->backing, stream);
    return take(self, "fence", false, kind, AR_OK, into);
}

bool meter_done(struct meter *self, struct ar_backing_ticket ticket, struct meter_samples *into)
{
    if (self->status != AR_OK)
        return false;
    prepare(self, true);
    (void)ar_backing_done(self->backing, ticket);
    return take(self, "done", false, SIM_COST_event_poll, AR_OK, into);
}

enum ar_status meter_pool_open(struct ar_backing *backing)
{
    static const struct ar_backing_pool keeping = {.release_threshold_bytes = UINT64_MAX,
                                                   .follow_events = true,
                                                   .opportunistic = true,
                                                   .internal = true};
    return backing->ops->pool_open ? backing->ops->pool_open(backing, &keeping) : AR_OK;
}

/* ---- cold caches --------------------------------------------------------------------------- */

#define DIRT_BYTES (4 * AR_MIB)
#define LINE_BYTES 64

struct cache_flush {
    unsigned char bytes[DIRT_BYTES];
};

bool cache_flush_open(struct cache_flush **out, const struct ar_device *device)
{
    *out = NULL;
    if (strcmp(device->props.kind, "sim") == 0)
        return true;
    *out = calloc(1, sizeof **out);
    return *out != NULL;
}

void cache_flush_close(struct cache_flush *self)
{
    free(self);
}

void cache_flush_run(struct cache_flush *self)
{
    for (size_t at = 0; self && at < DIRT_BYTES; at += LINE_BYTES)
        self->bytes[at]++;
}
