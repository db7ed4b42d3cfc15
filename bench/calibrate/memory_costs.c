/* Driver allocations: repeated pairs, many live at once, and small ones that share a page. The
 * device's physical bytes show whether a small one took or released a page. And virtual memory. */
#include "allocators/base/size.h"
#include "bench/calibrate/meter.h"

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
    /* The first one uses new memory. */
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

/* Live blocks; small ones fill whole pages. */
struct blocks {
    uint64_t addresses[BLOCKS_MOST], plugs[BLOCKS_MOST];
    bool plugged[BLOCKS_MOST]; /* address 0 is valid */
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

/* Virtual memory: ranges, pieces of one size mapped one by one, many mapped with one call, and a
 * second time. What each further mapping of a call costs is what the call takes beyond one,
 * divided by how many there are. */

#define PIECES_MOST 128u   /* mapped with one call */
#define RUN_BYTES   AR_GIB /* of it, where there are fewer */

void parts_ranges(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples reserved = {0}, released = {0};
    uint64_t addresses[16];
    meter_point(meter);
    while (meter_goes_on(meter, &reserved)) {
        uint32_t count = 0;
        while (count < 16 && meter_reserve(meter, bytes, &addresses[count], &reserved))
            count++;
        for (uint32_t i = 0; i < count; i++)
            (void)meter_release(meter, addresses[i], &released);
        if (count < 16)
            break;
    }
    parts_point(meter, out, SIM_COST_reserve, bytes, &reserved);
    parts_point(meter, out, SIM_COST_release, bytes, &released);
}

/* Pieces of physical memory and a range that they fit in one after another. */
struct pieces {
    uint64_t address, bytes; /* of each */
    uint32_t count, mapped;
    ar_backing_handle handles[PIECES_MOST];
};

/* `count`: the wanted number, then the actual number. */
static bool pieces_make(struct meter *meter, struct pieces *self, struct meter_samples *created)
{
    uint32_t wanted = self->count;
    self->count = self->mapped = 0;
    if (!wanted || !meter_reserve(meter, wanted * self->bytes, &self->address, NULL))
        return false;
    while (self->count < wanted &&
           meter_create(meter, self->bytes, &self->handles[self->count], created))
        self->count++;
    return self->count == wanted;
}

static bool pieces_map(struct meter *meter, struct pieces *self, uint64_t address,
                       struct meter_samples *mapped)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!meter_map(meter, address + i * self->bytes, self->handles[i], mapped))
            return false;
    return true;
}

/* The handles must be unmapped. */
static void pieces_give_back(struct meter *meter, const struct pieces *self,
                             struct meter_samples *destroyed)
{
    for (uint32_t i = 0; i < self->count; i++)
        (void)meter_destroy(meter, self->handles[i], destroyed);
    if (self->address)
        (void)meter_release(meter, self->address, NULL);
    meter_rest(meter, self->count * self->bytes);
}

/* Each with one call. */
static bool one_by_one(struct meter *meter, const struct pieces *pieces,
                       struct meter_samples *access, struct meter_samples *unmapped)
{
    uint64_t end = pieces->address + pieces->count * pieces->bytes;
    for (uint64_t at = pieces->address; at < end; at += pieces->bytes)
        if (!meter_access(meter, at, pieces->bytes, access))
            return false;
    for (uint64_t at = pieces->address; at < end; at += pieces->bytes)
        if (!meter_unmap(meter, at, pieces->bytes, unmapped))
            return false;
    return true;
}

void parts_mapped(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples created = {0}, destroyed = {0}, mapped = {0}, access = {0}, unmapped = {0};
    struct pieces pieces;
    meter_point(meter);
    while (meter_goes_on(meter, &created)) {
        pieces = (struct pieces){.bytes = bytes, .count = meter_room(meter, bytes, 16)};
        bool done = pieces_make(meter, &pieces, &created) &&
                    pieces_map(meter, &pieces, pieces.address, &mapped) &&
                    one_by_one(meter, &pieces, &access, &unmapped);
        pieces_give_back(meter, &pieces, &destroyed);
        if (!done)
            return;
    }
    parts_point(meter, out, SIM_COST_create, bytes, &created);
    parts_point(meter, out, SIM_COST_destroy, bytes, &destroyed);
    parts_point(meter, out, SIM_COST_map, bytes, &mapped);
    parts_point(meter, out, SIM_COST_access, bytes, &access);
    parts_point(meter, out, SIM_COST_unmap, bytes, &unmapped);
}

/* All with one call, then all at a second place too. */
static bool at_once(struct meter *meter, struct pieces *pieces, struct meter_samples *again,
                    struct meter_samples *access, struct meter_samples *unmapped)
{
    uint64_t second, bytes = pieces->count * pieces->bytes;
    if (!pieces_map(meter, pieces, pieces->address, NULL) ||
        !meter_access(meter, pieces->address, bytes, access))
        return false;
    if (!meter_reserve(meter, bytes, &second, NULL) || !pieces_map(meter, pieces, second, again) ||
        !meter_access(meter, second, bytes, NULL) || !meter_unmap(meter, second, bytes, NULL) ||
        !meter_release(meter, second, NULL))
        return false;
    return meter_unmap(meter, pieces->address, bytes, unmapped);
}

/* The time beyond one call, for each further piece. */
static void further(const struct meter *meter, struct sim_profile *out, enum sim_cost one,
                    enum sim_cost more, const struct pieces *pieces, struct meter_samples *whole)
{
    uint64_t one_ns = sim_profile_cost(out, one, pieces->bytes, meter->busy);
    uint64_t whole_ns = meter_samples_usual(whole);
    if (whole->count >= SAMPLES_LEAST)
        parts_figure(meter, out, more, pieces->bytes,
                     whole_ns > one_ns ? (whole_ns - one_ns) / (pieces->count - 1) : 0);
}

void parts_runs(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct meter_samples again = {0}, access = {0}, unmapped = {0};
    uint32_t most = RUN_BYTES / bytes > PIECES_MOST ? PIECES_MOST
                    : RUN_BYTES / bytes > 8         ? (uint32_t)(RUN_BYTES / bytes)
                                                    : 8;
    struct pieces pieces = {0};
    meter_point(meter);
    for (int pass = 0; pass < 5 && (pass < 3 || meter_goes_on(meter, &access)); pass++) {
        pieces = (struct pieces){.bytes = bytes, .count = meter_room(meter, bytes, most)};
        if (pieces.count < 2)
            return;
        bool done = pieces_make(meter, &pieces, NULL) &&
                    at_once(meter, &pieces, &again, &access, &unmapped);
        pieces_give_back(meter, &pieces, NULL);
        if (!done)
            return;
    }
    parts_point(meter, out, SIM_COST_map_again, bytes, &again);
    further(meter, out, SIM_COST_access, SIM_COST_access_more, &pieces, &access);
    further(meter, out, SIM_COST_unmap, SIM_COST_unmap_more, &pieces, &unmapped);
}
