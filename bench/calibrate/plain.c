/* Driver allocations: made and freed over and over, many held at once, and small ones that share
 * a page. Whether a small one took a page, or gave one back, shows in the device's physical
 * bytes. */
#include "allocators/base/size.h"
#include "bench/calibrate/parts.h"

#define BLOCKS_MOST 40u

static uint64_t physical_bytes(const struct meter *meter)
{
    return meter->device->counters.physical_bytes;
}

void parts_churned(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples made = {0}, freed = {0};
    uint64_t address;
    meter_point(meter);
    /* The first one is of new memory. */
    if (!meter_room(meter, bytes, 1) || !meter_alloc(meter, bytes, &address, NULL) ||
        !meter_free(meter, address, NULL))
        return;
    while (meter_goes_on(meter, &made)) {
        meter_rest(meter, bytes);
        if (!meter_alloc(meter, bytes, &address, &made) || !meter_free(meter, address, &freed))
            return;
    }
    meter_rest(meter, bytes);
    parts_point(meter, out, SIM_COST_alloc, bytes, &made);
    parts_point(meter, out, SIM_COST_free, bytes, &freed);
}

/* Blocks that are held, filled page by page where they are small. */
struct blocks {
    uint64_t addresses[BLOCKS_MOST], plugs[BLOCKS_MOST];
    bool plugged[BLOCKS_MOST]; /* 0 is an address too */
    uint32_t count;
};

/* Makes them. The first one may be what was freed last. A small one's page is filled up, so that
 * the next needs a page too. */
static bool blocks_make(struct meter *meter, struct blocks *self, uint64_t bytes,
                        struct meter_samples *made)
{
    uint64_t page_bytes = meter->backing->page_bytes;
    uint64_t fill_bytes = bytes < page_bytes
                              ? page_bytes - ar_size_round_up(bytes, meter->backing->granule_bytes)
                              : 0;
    uint32_t wanted = self->count;
    for (self->count = 0; self->count < wanted; self->count++) {
        struct meter_samples one = {0};
        uint64_t before_bytes = physical_bytes(meter);
        if (!meter_alloc(meter, bytes, &self->addresses[self->count], &one))
            return false;
        if (self->count && physical_bytes(meter) > before_bytes)
            meter_samples_add(made, one.ns[0]);
        self->plugged[self->count] =
            fill_bytes && meter_alloc(meter, fill_bytes, &self->plugs[self->count], NULL);
    }
    return true;
}

/* Frees them, the fill first; none of those sampled is the one made last. */
static bool blocks_free(struct meter *meter, const struct blocks *self, bool backwards,
                        struct meter_samples *freed)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->plugged[i] && !meter_free(meter, self->plugs[i], NULL))
            return false;
    for (uint32_t i = 0; i < self->count; i++) {
        struct meter_samples one = {0};
        uint32_t at = backwards ? self->count - 1 - i : i;
        uint64_t before_bytes = physical_bytes(meter);
        if (!meter_free(meter, self->addresses[at], &one))
            return false;
        if (at + 1 < self->count && physical_bytes(meter) < before_bytes)
            meter_samples_add(freed, one.ns[0]);
    }
    return true;
}

void parts_held(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples made = {0}, freed = {0};
    uint64_t each_bytes = ar_size_round_up(bytes, meter->backing->page_bytes);
    uint32_t most = meter_room(meter, each_bytes, BLOCKS_MOST);
    meter_point(meter);
    for (bool backwards = false; most > 1 && meter_goes_on(meter, &made); backwards = !backwards) {
        struct blocks blocks = {.count = most};
        bool whole = blocks_make(meter, &blocks, bytes, &made);
        if (!blocks_free(meter, &blocks, backwards, &freed) || !whole)
            return;
        meter_rest(meter, blocks.count * each_bytes);
        if (!made.count) /* each shares a page after all */
            break;
    }
    parts_point(meter, out, SIM_COST_alloc_held, bytes, &made);
    parts_point(meter, out, SIM_COST_free_held, bytes, &freed);
}

void parts_shared(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples made = {0}, freed = {0};
    uint64_t addresses[BLOCKS_MOST];
    if (bytes >= meter->backing->page_bytes)
        return;
    meter_point(meter);
    for (bool backwards = false; meter_goes_on(meter, &made); backwards = !backwards) {
        uint32_t count = 0;
        for (; count < BLOCKS_MOST; count++) {
            struct meter_samples one = {0};
            uint64_t before_bytes = physical_bytes(meter);
            if (!meter_alloc(meter, bytes, &addresses[count], &one))
                break;
            if (physical_bytes(meter) == before_bytes)
                meter_samples_add(&made, one.ns[0]);
        }
        for (uint32_t i = 0; i < count; i++) {
            struct meter_samples one = {0};
            uint64_t before_bytes = physical_bytes(meter);
            if (!meter_free(meter, addresses[backwards ? count - 1 - i : i], &one))
                return;
            if (physical_bytes(meter) == before_bytes)
                meter_samples_add(&freed, one.ns[0]);
        }
        if (count < BLOCKS_MOST || !made.count)
            return;
    }
    parts_point(meter, out, SIM_COST_alloc_shared, bytes, &made);
    parts_point(meter, out, SIM_COST_free_shared, bytes, &freed);
}
