/* Calls that wait.
 *
 * 1. For work: each call is made while a long kernel runs on an unrelated stream. A call that takes
 *    at least half the kernel's time in two of three tries waits.
 * 2. For cleaning of freed memory: a large block is freed and one of another size requested
 *    immediately, although there is enough clean memory. The least size that then takes half as
 *    long as the cleaning would, and twice as long as with nothing to clean, waits for all of it.
 * 3. The rate: a block is allocated, freed and allocated again; the time of the second beyond one
 *    after a pause is the cleaning. A block of nearly half the memory waits for the cleaning of all
 *    of the first or not at all. Where it does not, blocks of 60 and 75 parts in 100 must wait for
 *    20 and 50 of them to be clean, or, if one of them is so large that it waits for all, for 60 or
 *    75: the ratio of the two times, 2.5, 1.25 or 3.75, shows which. */
#include "allocators/base/size.h"
#include "bench/calibrate/meter.h"

#define WORK_NS UINT64_C(20000000)
#define TRIES   3
#define PIECE   (4 * AR_MIB)

/* Taken for the rate until it is known: a quarter of what an H100 does. */
#define CLEANED_PER_US UINT64_C(100000)

/* Things that a call under test needs, made before the work begins. */
struct stage {
    uint64_t address, range, pool_address;
    ar_backing_handle handle;
};

enum tested {
    TESTED_alloc,
    TESTED_free,
    TESTED_reserve,
    TESTED_release,
    TESTED_create,
    TESTED_destroy,
    TESTED_map,
    TESTED_access,
    TESTED_unmap,
    TESTED_pool_alloc,
    TESTED_pool_free,
    TESTED_COUNT
};

static const enum sim_cost tested_costs[TESTED_COUNT] = {
    SIM_COST_alloc,  SIM_COST_free,       SIM_COST_reserve,   SIM_COST_release,
    SIM_COST_create, SIM_COST_destroy,    SIM_COST_map,       SIM_COST_access,
    SIM_COST_unmap,  SIM_COST_pool_alloc, SIM_COST_pool_free,
};

/* Makes the calls up to `end` of one round of all kinds of memory; `first` says from where. */
static bool stage_go(struct meter *meter, struct stage *self, enum tested call)
{
    switch (call) {
    case TESTED_alloc:
        return meter_alloc(meter, PIECE, &self->address, NULL);
    case TESTED_free:
        return meter_free(meter, self->address, NULL);
    case TESTED_reserve:
        return meter_reserve(meter, PIECE, &self->range, NULL);
    case TESTED_release:
        return meter_release(meter, self->range, NULL);
    case TESTED_create:
        return meter_create(meter, PIECE, &self->handle, NULL);
    case TESTED_destroy:
        return meter_destroy(meter, self->handle, NULL);
    case TESTED_map:
        return meter_map(meter, self->range, self->handle, NULL);
    case TESTED_access:
        return meter_access(meter, self->range, PIECE, NULL);
    case TESTED_unmap:
        return meter_unmap(meter, self->range, PIECE, NULL);
    case TESTED_pool_alloc:
        return meter_pool_alloc(meter, PIECE, METER_STREAM, &self->pool_address, NULL);
    case TESTED_pool_free:
        return meter_pool_free(meter, self->pool_address, METER_STREAM, NULL);
    default:
        return false;
    }
}

/* Rounds in which each call has what it needs, and nothing is left at the end. */
static const enum tested plain_round[] = {TESTED_alloc, TESTED_free};
static const enum tested mapped_round[] = {TESTED_reserve, TESTED_create, TESTED_map,
                                           TESTED_access,  TESTED_unmap,  TESTED_destroy,
                                           TESTED_release};
static const enum tested pool_round[] = {TESTED_pool_alloc, TESTED_pool_free};

/* One try of each call of a round, each under a kernel of its own. */
static void round_go(struct meter *meter, const enum tested *calls, size_t count,
                     int waited[TESTED_COUNT])
{
    struct stage stage = {0};
    for (size_t i = 0; i < count; i++) {
        meter_kernel_op(meter, WORK_NS);
        uint64_t before_ns = meter->device->ops->now(meter->device);
        if (!stage_go(meter, &stage, calls[i]))
            return;
        uint64_t ns = meter->device->ops->now(meter->device) - before_ns;
        waited[calls[i]] += ns >= WORK_NS / 2;
        meter_sync(meter);
    }
}

void parts_waits(struct meter *meter, struct sim_profile *out, uint64_t bytes AR_UNUSED)
{
    int waited[TESTED_COUNT] = {0};
    meter_point(meter);
    meter_sync(meter);
    for (int try = 0; try < TRIES; try++) {
        round_go(meter, plain_round, AR_COUNT(plain_round), waited);
        if (meter->device->props.has_virtual_memory)
            round_go(meter, mapped_round, AR_COUNT(mapped_round), waited);
        if (meter->device->props.has_pool)
            round_go(meter, pool_round, AR_COUNT(pool_round), waited);
    }
    if (meter->device->props.has_pool)
        (void)meter_pool_trim(meter, NULL);
    out->waits = 0;
    for (int call = 0; call < TESTED_COUNT; call++)
        if (waited[call] > TRIES / 2)
            out->waits |= UINT64_C(1) << tested_costs[call];
}

/* ---- cleaning ------------------------------------------------------------------------------- */

/* Allocates and frees a block of the kind. Returns the time of the allocation with its waits. */
static uint64_t made_ns(struct meter *meter, enum sim_cost kind, uint64_t bytes)
{
    uint64_t address, ns = 0;
    ar_backing_handle handle;
    if (kind == SIM_COST_alloc) {
        if (!meter_alloc(meter, bytes, &address, NULL))
            return 0;
        ns = meter_whole_ns(meter);
        (void)meter_free(meter, address, NULL);
    } else {
        if (!meter_create(meter, bytes, &handle, NULL))
            return 0;
        ns = meter_whole_ns(meter);
        (void)meter_destroy(meter, handle, NULL);
    }
    return ns;
}

/* The median over the tries of making a block, either just after one of `dirty_bytes` was given
 * back, or, with 0, with nothing to clean. `rate` is known or below the true one. */
static uint64_t usual_ns(struct meter *meter, enum sim_cost kind, uint64_t dirty_bytes,
                         uint64_t bytes, uint64_t rate)
{
    struct meter_samples samples = {0};
    for (int try = 0; try < TRIES; try++) {
        if (dirty_bytes)
            (void)made_ns(meter, kind, dirty_bytes);
        meter_samples_add(&samples, made_ns(meter, kind, bytes));
        /* The time that cleaning so much takes, and half as much again. */
        meter_pause(meter, (dirty_bytes + bytes) / rate * 1500 + 1000);
    }
    return meter_samples_median(&samples);
}

static uint64_t part_of_memory(const struct meter *meter, uint64_t percent)
{
    return ar_size_round_down(meter->free_bytes / 100 * percent, meter->backing->page_bytes);
}

/* What making a driver allocation of that size a second time takes for cleaning; 0: nothing that
 * shows. */
static uint64_t cleaning_ns(struct meter *meter, uint64_t bytes)
{
    uint64_t clean_ns = usual_ns(meter, SIM_COST_alloc, 0, bytes, CLEANED_PER_US);
    uint64_t dirty_ns = usual_ns(meter, SIM_COST_alloc, bytes, bytes, CLEANED_PER_US);
    return dirty_ns > clean_ns + clean_ns / 5 + 1000 ? dirty_ns - clean_ns : 0;
}

static uint64_t bytes_per_us(uint64_t bytes, uint64_t ns)
{
    return bytes < UINT64_C(1) << 53 ? (bytes * 1000 + ns / 2) / ns : bytes / ns * 1000;
}

/* Rule 3: the rate, 0 where nothing shows. `all_bytes` is a size of driver allocation that was
 * seen to wait for all of the cleaning; 0: none was. */
static uint64_t find_rate(struct meter *meter, uint64_t *all_bytes)
{
    uint64_t half_bytes = part_of_memory(meter, 48);
    uint64_t ns = cleaning_ns(meter, half_bytes);
    *all_bytes = ns ? half_bytes : 0;
    if (ns)
        return bytes_per_us(half_bytes, ns);
    uint64_t less_bytes = part_of_memory(meter, 60), more_bytes = part_of_memory(meter, 75);
    uint64_t less_ns = cleaning_ns(meter, less_bytes), more_ns = cleaning_ns(meter, more_bytes);
    if (!less_ns || !more_ns)
        return 0;
    if (more_ns < less_ns * 18 / 10) {
        *all_bytes = less_bytes;
        return bytes_per_us(less_bytes, less_ns);
    }
    if (more_ns < less_ns * 31 / 10)
        return bytes_per_us(2 * more_bytes - meter->free_bytes, more_ns);
    *all_bytes = more_bytes;
    return bytes_per_us(more_bytes, more_ns);
}

/* Rule 2, for blocks up to a quarter of the memory. */
static uint64_t waiting_from(struct meter *meter, enum sim_cost kind, uint64_t rate)
{
    uint64_t dirty_bytes = part_of_memory(meter, 35);
    uint64_t cleaning = dirty_bytes / rate * 1000;
    for (uint64_t bytes = 64 * AR_MIB; bytes <= part_of_memory(meter, 25); bytes *= 2) {
        uint64_t clean_ns = usual_ns(meter, kind, 0, bytes, rate);
        uint64_t dirty_ns = usual_ns(meter, kind, dirty_bytes, bytes, rate);
        if (dirty_ns > 2 * clean_ns && dirty_ns > clean_ns + cleaning / 2)
            return bytes;
    }
    return 0;
}

void parts_cleaning(struct meter *meter, struct sim_profile *out, uint64_t bytes AR_UNUSED)
{
    uint64_t all_bytes;
    meter_point(meter);
    meter_sync(meter);
    uint64_t rate = find_rate(meter, &all_bytes);
    if (!rate || meter->status != AR_OK)
        return;
    meter->cleaned_per_us = out->cleaning_bytes_per_us = rate;
    uint64_t *from_bytes = out->cleaning_wait_bytes;
    from_bytes[SIM_COST_alloc] = waiting_from(meter, SIM_COST_alloc, rate);
    if (!from_bytes[SIM_COST_alloc])
        from_bytes[SIM_COST_alloc] = all_bytes;
    if (meter->device->props.has_virtual_memory)
        from_bytes[SIM_COST_create] = waiting_from(meter, SIM_COST_create, rate);
}
