/* How: PyTorch has one range of addresses for each stream, kind and pool, in which it maps pages from the
 * lower end up, and gives it up when none is mapped any more. So, forward through the history:
 *
 * 1. Pages mapped in or next to what was ever mapped in a range are its own; others begin a range.
 * 2. Two ranges of one stream and kind that are there at once are of different pools.
 * 3. Where pages are given back, a range without a block in use that keeps its own is of another pool
 *    than those that gave back, and not of the common one.
 * 4. Ranges that the snapshot tells the pools of have these; the others, in the order in which they
 *    begin, the first that fits: the common one, those that are named, new ones.
 *
 * Source: as snapshot_pools.c, with map_block, unmap_block and find_expandable_block. */
#include "workloads/formats/snapshot_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "workloads/formats/snapshot_pools.h"

#define RANGES_MOST 1024u
#define LARGE_PAGE  (20 * MIB)
#define NO_RANGE    UINT32_MAX
#define NEVER       SIZE_MAX
#define SLACK_BYTES GIB /* pages in between may have been unmapped before the history */

struct range {
    uint64_t low, high; /* of all that was ever mapped */
    uint64_t mapped_bytes, blocks;
    unsigned stream, pool;
    bool small, told, is_not_common;
    size_t begin, end; /* events; NEVER: it is there at the end */
    size_t gave_back;  /* the last event that unmapped some */
};

struct telling {
    struct snapshot_world *world;
    struct snapshot_tree *tree;
    struct range ranges[RANGES_MOST];
    size_t count;
    uint32_t *of_event;
    uint8_t unlike[RANGES_MOST][RANGES_MOST / 8]; /* bits: ranges of other pools */
    size_t giving_since; /* the first of a run of unmapped pages; NEVER: none */
    bool stuck;
};

static struct range *range_at(struct telling *self, unsigned stream, uint64_t address,
                              uint64_t slack_bytes)
{
    for (size_t i = self->count; i-- > 0;) {
        struct range *range = &self->ranges[i];
        if (range->end == NEVER && range->stream == stream && address + slack_bytes >= range->low &&
            address < range->high + slack_bytes)
            return range;
    }
    return NULL;
}

static struct range *add_range(struct telling *self, uint64_t address, uint64_t bytes, size_t event)
{
    if (self->count == RANGES_MOST) {
        self->stuck = true;
        return NULL;
    }
    struct range *range = &self->ranges[self->count++];
    *range = (struct range){.low = address,
                            .high = address + bytes,
                            .small = bytes % LARGE_PAGE != 0,
                            .begin = event,
                            .end = NEVER,
                            .gave_back = NEVER};
    return range;
}

static void widen(struct range *range, uint64_t address, uint64_t bytes)
{
    range->low = address < range->low ? address : range->low;
    range->high = address + bytes > range->high ? address + bytes : range->high;
    range->mapped_bytes += bytes;
}

/* ---- the history ----------------------------------------------------------------------- */

static void begin(struct telling *self)
{
    const struct snapshot_world *world = self->world;
    struct range *range = NULL;
    for (size_t i = 0; i < world->area_count && !self->stuck; i++) {
        const struct snapshot_area *area = &world->areas[i];
        if (!area->expandable)
            continue;
        if (!range || !snapshot_world_joins(&area[-1], area))
            range = add_range(self, area->address, 0, 0);
        if (!range)
            return;
        range->stream = area->stream;
        range->small = area->small;
        range->pool = area->pool;
        range->told |= area->pool_told;
        widen(range, area->address, area->bytes);
    }
    for (size_t i = 0; i < world->place_count; i++) {
        range = range_at(self, world->places[i].stream, world->places[i].address, 0);
        if (range)
            range->blocks++;
    }
}

static void set_unlike(struct telling *self, size_t one, size_t other)
{
    self->unlike[one][other / 8] |= (uint8_t)(1u << other % 8);
    self->unlike[other][one / 8] |= (uint8_t)(1u << one % 8);
}

/* Rule 3. */
static void look_at_rest(struct telling *self)
{
    for (size_t i = 0; i < self->count; i++) {
        struct range *range = &self->ranges[i];
        bool gave = range->gave_back != NEVER && range->gave_back >= self->giving_since;
        if (range->end != NEVER || range->blocks || gave)
            continue;
        range->is_not_common = true;
        for (size_t k = 0; k < self->count; k++)
            if (self->ranges[k].gave_back != NEVER && k != i)
                set_unlike(self, i, k);
    }
    self->giving_since = NEVER;
}

static void take_pages(struct telling *self, const struct snapshot_record *record, size_t event)
{
    struct range *range = range_at(self, record->stream, record->address, SLACK_BYTES);
    if (!range)
        range = add_range(self, record->address, record->bytes, event);
    if (!range)
        return;
    range->stream = record->stream;
    widen(range, record->address, record->bytes);
    if (record->pool) {
        range->pool = record->pool - 1;
        range->told = true;
    }
    self->of_event[event] = (uint32_t)(range - self->ranges);
}

static void give_pages(struct telling *self, const struct snapshot_record *record, size_t event)
{
    struct range *range = range_at(self, record->stream, record->address, 0);
    self->stuck |= !range || range->mapped_bytes < record->bytes;
    if (self->stuck)
        return;
    if (self->giving_since == NEVER)
        self->giving_since = event;
    range->gave_back = event;
    range->mapped_bytes -= record->bytes;
    if (!range->mapped_bytes)
        range->end = event;
    self->of_event[event] = (uint32_t)(range - self->ranges);
}

static void take(struct telling *self, const struct snapshot_record *record, size_t event)
{
    struct range *range;
    if (record->action != SNAPSHOT_SEGMENT_UNMAP && self->giving_since != NEVER)
        look_at_rest(self);
    switch (record->action) {
    case SNAPSHOT_SEGMENT_MAP:
        take_pages(self, record, event);
        break;
    case SNAPSHOT_SEGMENT_UNMAP:
        give_pages(self, record, event);
        break;
    case SNAPSHOT_ALLOC:
        range = range_at(self, record->stream, record->address, 0);
        if (!range)
            break;
        range->blocks++;
        self->of_event[event] = (uint32_t)(range - self->ranges);
        break;
    case SNAPSHOT_FREE_COMPLETED:
        range = range_at(self, record->stream, record->address, 0);
        if (range && range->blocks)
            range->blocks--;
        break;
    default:
        break;
    }
}

/* ---- pools ----------------------------------------------------------------------------- */

static void take_end(struct telling *self)
{
    const struct snapshot_world *world = self->world;
    for (size_t i = 0; i < world->final_area_count; i++) {
        const struct snapshot_area *area = &world->final_areas[i];
        struct range *range =
            area->expandable ? range_at(self, area->stream, area->address, 0) : NULL;
        if (!range || !area->pool_told)
            continue;
        range->pool = area->pool;
        range->told = true;
    }
}

static bool are_unlike(const struct telling *self, size_t one, size_t other)
{
    const struct range *a = &self->ranges[one], *b = &self->ranges[other];
    if (a->stream != b->stream || a->small != b->small || one == other)
        return false;
    return (a->begin <= b->end && b->begin <= a->end) ||
           self->unlike[one][other / 8] >> other % 8 & 1;
}

static bool fits(const struct telling *self, size_t at, unsigned pool)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->ranges[i].told && self->ranges[i].pool == pool && are_unlike(self, at, i))
            return false;
    return true;
}

static enum status colour(struct telling *self, size_t at, size_t named, struct error *error)
{
    struct range *range = &self->ranges[at];
    unsigned pool = range->is_not_common;
    enum status status = STATUS_OK;
    while (pool < named && !fits(self, at, pool))
        pool++;
    for (unsigned i = 0; pool >= named && !status; i++) {
        status = snapshot_new_pool(self->tree, i, &pool, error);
        if (status || fits(self, at, pool))
            break;
        pool = (unsigned)named;
    }
    range->pool = pool;
    range->told = true; /* to those that follow */
    return status;
}

/* ---- the whole ------------------------------------------------------------------------- */

static void hand_out(struct telling *self)
{
    struct snapshot_world *world = self->world;
    for (size_t i = 0; i < world->area_count; i++) {
        struct snapshot_area *area = &world->areas[i];
        for (size_t k = 0; area->expandable && k < self->count && !self->ranges[k].begin; k++)
            if (self->ranges[k].stream == area->stream && area->address >= self->ranges[k].low &&
                area->address < self->ranges[k].high)
                area->pool = self->ranges[k].pool;
    }
    for (size_t i = 0; i < world->event_count; i++) {
        struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        if (record && self->of_event[i] != NO_RANGE)
            record->pool = (self->ranges[self->of_event[i]].pool + 1) & (SNAPSHOT_POOLS_MOST - 1);
    }
}

static enum status tell(struct telling *self, struct error *error)
{
    struct snapshot_world *world = self->world;
    size_t named = self->tree->pool_count;
    enum status status = STATUS_OK;
    begin(self);
    for (size_t i = 0; i < world->event_count && !self->stuck; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        self->of_event[i] = NO_RANGE;
        if (record)
            take(self, record, i);
    }
    if (self->giving_since != NEVER)
        look_at_rest(self);
    take_end(self);
    if (self->stuck)
        return STATUS_OK;
    for (size_t i = 0; i < self->count && !status; i++)
        if (!self->ranges[i].told) {
            status = colour(self, i, named, error);
            world->private_pools += self->ranges[i].pool != 0;
        }
    if (!status)
        hand_out(self);
    return status;
}

enum status snapshot_ranges_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                 struct error *error)
{
    if (!world->event_count || !world->has_pages)
        return STATUS_OK;
    struct telling *self = calloc(1, sizeof *self);
    uint32_t *of_event = malloc(world->event_count * sizeof *of_event);
    enum status status =
        self && of_event
            ? STATUS_OK
            : error_set(error, STATUS_HOST_MEMORY, "no host memory for the ranges of a snapshot");
    if (!status) {
        self->world = world;
        self->tree = tree;
        self->of_event = of_event;
        self->giving_since = NEVER;
        status = tell(self, error);
    }
    free(of_event);
    free(self);
    return status;
}
