/* Calls in stream order: events, kernel launches, and the driver's stream-ordered pool.
 *
 * 1. An event is recorded after a kernel that is not known to be done, and polled once: a known
 *    answer needs no driver call. On an idle card both happen after the work. An event after work
 *    that is known to be done is not recorded: only the look-up and the reading of the clock
 *    remain.
 * 2. A launch is timed by the device's clock, less the time of reading it.
 * 3. The pool keeps its memory. Warm: repeated allocations of one size on one stream, among other
 *    blocks of many sizes and with a kernel between any two calls, as in a program. First: the very
 *    first allocation, less later ones from an empty pool. Growth: an allocation from a pool that
 *    has memory but none free, less a warm one. Pending: an allocation from a pool with enough
 *    memory, of which another stream has freed a block after work that is not done, less a warm
 *    one. */
#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "bench/calibrate/meter.h"

#define LAUNCH_NS     UINT64_C(5000)
#define POOL_SPARE    (256 * AR_MIB)
#define PENDING_NS    UINT64_C(200000)
#define LAUNCHES_MOST 32u /* in a row on an idle card; the queue holds more */
#define GROWTHS_MOST  16u
#define FIRST_BYTES   (2 * AR_MIB)
#define OTHERS        128u
#define OTHERS_LEAST  512u /* bytes */
#define OTHERS_MOST   (4 * AR_MIB)
#define FIRST_BESIDE  9u /* allocations that the first one is compared with */

static uint64_t now(const struct meter *meter)
{
    return meter->device->ops->now(meter->device);
}

void parts_events(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples recorded = {0}, polled = {0}, known = {0};
    struct ar_backing_ticket ticket;
    meter_point(meter);
    while (meter_goes_on(meter, &polled)) {
        meter_kernel_op(meter, meter->busy ? PENDING_NS : LAUNCH_NS);
        if (!meter->busy)
            meter_pause(meter, 10 * LAUNCH_NS);
        if (!meter_fence(meter, METER_BUSY_STREAM, SIM_COST_event, &ticket, &recorded))
            return;
        if (!meter->busy)
            meter_pause(meter, 10 * LAUNCH_NS);
        if (!meter_done(meter, ticket, &polled))
            return;
        meter_sync(meter);
        if (!meter_fence(meter, METER_BUSY_STREAM, SIM_COST_event_known, &ticket, &known))
            return;
    }
    parts_point(meter, out, SIM_COST_event, bytes, &recorded);
    parts_point(meter, out, SIM_COST_event_poll, bytes, &polled);
    if (!meter->busy)
        parts_point(meter, out, SIM_COST_event_known, bytes, &known);
}

void parts_launches(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples launched = {0}, clock = {0};
    meter_point(meter);
    while (meter_goes_on(meter, &launched)) {
        meter_sync(meter);
        if (meter->busy)
            meter_kernel_op(meter, LAUNCHES_MOST * 2 * LAUNCH_NS);
        for (uint32_t i = 0; i < (meter->busy ? LAUNCHES_MOST : 1); i++) {
            uint64_t before_ns = now(meter), read_ns = now(meter);
            meter_kernel_op(meter, LAUNCH_NS);
            uint64_t after_ns = now(meter);
            meter_samples_add(&clock, read_ns - before_ns);
            meter_samples_add(&launched, after_ns - read_ns);
        }
    }
    meter_sync(meter);
    uint64_t launch_ns = meter_samples_usual(&launched),
             clock_ns = 2 * meter_samples_median(&clock);
    parts_figure(meter, out, SIM_COST_launch, bytes,
                 launch_ns > clock_ns ? launch_ns - clock_ns : 0);
}

bool parts_pool_open(struct meter *meter)
{
    if (!meter->device->props.has_pool || meter->status != AR_OK)
        return false;
    meter->status = meter_pool_open(meter->backing);
    if (meter->status != AR_OK)
        meter->call = "pool_open";
    return meter->status == AR_OK;
}

/* Releases all of it to the device. */
static void pool_empty(struct meter *meter, struct meter_samples *trimmed)
{
    meter_sync(meter);
    (void)meter_pool_trim(meter, trimmed);
}

/* A kernel that uses the pool's block: a program launches one between two calls of the pool. On an
 * idle card it ends before the next call. */
static void pool_use(struct meter *meter)
{
    meter->device->ops->kernel(meter->device, METER_STREAM, LAUNCH_NS);
    if (!meter->busy)
        meter_pause(meter, 2 * LAUNCH_NS);
}

/* Other blocks of the program: the more blocks and sizes, the longer the driver searches. */
struct pool_others {
    struct ar_rng rng;
    uint64_t addresses[OTHERS];
    uint32_t held;
};

static bool others_make(struct meter *meter, struct pool_others *self, uint64_t *address)
{
    uint64_t bytes = ar_rng_log_uniform(&self->rng, OTHERS_LEAST, OTHERS_MOST);
    return meter_pool_alloc(meter, bytes, METER_STREAM, address, NULL);
}

static bool others_open(struct meter *meter, struct pool_others *self)
{
    *self = (struct pool_others){.held = 0};
    ar_rng_seed(&self->rng, 1);
    while (self->held < OTHERS && others_make(meter, self, &self->addresses[self->held]))
        self->held++;
    return self->held == OTHERS;
}

/* Frees one of them and allocates another. */
static bool others_exchange(struct meter *meter, struct pool_others *self)
{
    uint64_t *address = &self->addresses[ar_rng_below(&self->rng, OTHERS)];
    if (!meter_pool_free(meter, *address, METER_STREAM, NULL))
        return false;
    pool_use(meter);
    if (others_make(meter, self, address))
        return true;
    *address = self->addresses[--self->held]; /* it is freed */
    return false;
}

/* The measured block leaves a free block for the next one, because others change only while it is
 * live. */
static bool pool_round(struct meter *meter, struct pool_others *others, uint64_t bytes,
                       struct meter_samples *made, struct meter_samples *freed)
{
    uint64_t address;
    pool_use(meter);
    if (!meter_pool_alloc(meter, bytes, METER_STREAM, &address, made))
        return false;
    pool_use(meter);
    bool changed = others_exchange(meter, others);
    pool_use(meter);
    return meter_pool_free(meter, address, METER_STREAM, freed) && changed;
}

void parts_pool_warm(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples made = {0}, freed = {0};
    struct pool_others others;
    meter_point(meter);
    if (!parts_pool_open(meter) || !meter_room(meter, bytes, 1))
        return;
    bool goes = others_open(meter, &others) && pool_round(meter, &others, bytes, NULL, NULL);
    while (goes && meter_goes_on(meter, &made))
        goes = pool_round(meter, &others, bytes, &made, &freed);
    while (others.held)
        (void)meter_pool_free(meter, others.addresses[--others.held], METER_STREAM, NULL);
    pool_empty(meter, NULL);
    meter_rest(meter, bytes);
    if (!goes)
        return;
    parts_point(meter, out, SIM_COST_pool_alloc, bytes, &made);
    parts_point(meter, out, SIM_COST_pool_free, bytes, &freed);
}

/* The time of the samples beyond a warm allocation. */
static uint64_t beyond_warm(const struct meter *meter, struct sim_profile *out, uint64_t bytes,
                            struct meter_samples *samples)
{
    uint64_t warm_ns = sim_profile_cost(out, SIM_COST_pool_alloc, bytes, meter->busy);
    uint64_t ns = meter_samples_usual(samples);
    return ns > warm_ns ? ns - warm_ns : 0;
}

/* Allocates blocks, for each of which the pool grows, and frees them. The first one, from an empty
 * pool, is no sample. */
static bool pool_fill(struct meter *meter, uint64_t bytes, uint64_t *addresses, uint32_t count,
                      struct meter_samples *made)
{
    uint32_t held = 0;
    while (held < count &&
           meter_pool_alloc(meter, bytes, METER_STREAM, &addresses[held], held ? made : NULL))
        held++;
    for (uint32_t i = 0; i < held; i++)
        (void)meter_pool_free(meter, addresses[i], METER_STREAM, NULL);
    return held == count;
}

void parts_pool_first(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples later = {0};
    uint64_t address, first_ns = 0;
    meter_point(meter);
    if (!parts_pool_open(meter))
        return;
    for (uint32_t i = 0; i <= FIRST_BESIDE; i++) {
        if (!meter_pool_alloc(meter, FIRST_BYTES, METER_STREAM, &address, i ? &later : NULL))
            return;
        if (!i)
            first_ns = meter->ns;
        if (!meter_pool_free(meter, address, METER_STREAM, NULL))
            return;
        pool_empty(meter, NULL);
    }
    uint64_t later_ns = meter_samples_usual(&later);
    parts_figure(meter, out, SIM_COST_pool_first, bytes,
                 first_ns > later_ns ? first_ns - later_ns : 0);
}

void parts_pool_growth(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples made = {0}, trimmed = {0};
    uint64_t addresses[GROWTHS_MOST];
    uint32_t most = meter_room(meter, bytes, GROWTHS_MOST);
    meter_point(meter);
    if (!parts_pool_open(meter) || !most)
        return;
    while (most > 1 && meter_goes_on(meter, &made)) {
        if (!pool_fill(meter, bytes, addresses, most, &made))
            return;
        pool_empty(meter, NULL);
        meter_rest(meter, most * bytes);
    }
    meter_point(meter);
    while (meter_goes_on(meter, &trimmed)) {
        if (!pool_fill(meter, bytes, addresses, 1, NULL))
            return;
        pool_empty(meter, &trimmed);
        meter_rest(meter, bytes);
    }
    parts_point(meter, out, SIM_COST_pool_trim, bytes, &trimmed);
    if (made.count >= SAMPLES_LEAST)
        parts_figure(meter, out, SIM_COST_pool_grow, bytes, beyond_warm(meter, out, bytes, &made));
}

void parts_pool_pending(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples made = {0};
    uint64_t address;
    uint64_t pending;
    meter_point(meter);
    if (!parts_pool_open(meter) || !meter_room(meter, POOL_SPARE, 1) ||
        !meter_pool_alloc(meter, POOL_SPARE, METER_STREAM, &address, NULL) ||
        !meter_pool_free(meter, address, METER_STREAM, NULL))
        return;
    while (meter_goes_on(meter, &made)) {
        meter_sync(meter);
        if (!meter_pool_alloc(meter, bytes, METER_BUSY_STREAM, &pending, NULL))
            return;
        meter_kernel_op(meter, PENDING_NS);
        if (!meter_pool_free(meter, pending, METER_BUSY_STREAM, NULL) ||
            !meter_pool_alloc(meter, bytes, METER_STREAM, &address, &made) ||
            !meter_pool_free(meter, address, METER_STREAM, NULL))
            return;
    }
    pool_empty(meter, NULL);
    if (made.count >= SAMPLES_LEAST)
        parts_figure(meter, out, SIM_COST_pool_pending, bytes,
                     beyond_warm(meter, out, bytes, &made));
}
