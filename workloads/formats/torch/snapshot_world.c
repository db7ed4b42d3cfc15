/* How: from the last event to the first, each is undone.
 *
 * 1. A block that is given out was not there before; one that is complete was pending before, one
 *    whose free was asked for was in use. What remains at the first event was there at the start:
 *    so the head of a ring buffer may be missing.
 * 2. The same for segments and pages. A segment that was given back has no place in the final ones,
 *    and so no pool: the common one is taken, and said.
 * 3. On the way, each request learns the pool of the segment that it lies in.
 * 4. What a block of the start was given is known where it is still there at the end; else what it
 *    asked for is, and where the next request lies a little behind that, what was kept with it.
 *
 * Source: the method by which public snapshots were replayed for this project (blocks that are
 * freed and never made were there), and the layouts that PyTorch has written since 2.0. */
#include "workloads/formats/torch/snapshot_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define LARGE_PAGE_BYTES    (20 * AR_MIB) /* of a range of the large pool; of the small one 2 MiB */
#define MIN_BLOCK_BYTES     512u
#define SMALL_SEGMENT_BYTES (2 * AR_MIB)

void snapshot_world_close(struct snapshot_world *world)
{
    free(world->records);
    free(world->final_areas);
    free(world->final_places);
    free(world->areas);
    free(world->places);
    ar_map_close(&world->at);
    *world = (struct snapshot_world){0};
}

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the state of a snapshot");
}

/* ---- the segments of the snapshot ------------------------------------------------------ */

static enum snapshot_state state_of(const struct snapshot_tree *tree, uint64_t value)
{
    if (snapshot_is(tree, value, "active_allocated"))
        return SNAPSHOT_ACTIVE;
    return snapshot_is(tree, value, "active_pending_free") ||
                   snapshot_is(tree, value, "active_awaiting_free")
               ? SNAPSHOT_PENDING
               : SNAPSHOT_INACTIVE;
}

/* The bytes that a block asked for: `requested_size`; or, up to PyTorch 2.0, in its history, the
 * latest request first. */
static bool requested_of(const struct snapshot_tree *tree, uint64_t block, uint64_t *bytes)
{
    size_t count;
    if (snapshot_number(tree, snapshot_get(tree, block, SNAPSHOT_KEY_requested_size), bytes))
        return true;
    const uint64_t *history =
        snapshot_items(tree, snapshot_get(tree, block, SNAPSHOT_KEY_history), &count);
    return count &&
           snapshot_number(tree, snapshot_get(tree, history[0], SNAPSHOT_KEY_real_size), bytes);
}

static enum ar_status take_block(struct snapshot_world *world, const struct snapshot_tree *tree,
                                 uint64_t block, const struct snapshot_area *area, uint64_t *at,
                                 struct ar_error *error)
{
    struct snapshot_place place = {.stream = area->stream, .pool = area->pool, .address = *at};
    (void)snapshot_number(tree, snapshot_get(tree, block, SNAPSHOT_KEY_address), &place.address);
    if (!snapshot_number(tree, snapshot_get(tree, block, SNAPSHOT_KEY_size), &place.granted_bytes))
        return ar_error_set(error, AR_FORMAT, "a block of the segment at %" PRIu64 " has no size",
                            area->address);
    place.state = (uint8_t)state_of(tree, snapshot_get(tree, block, SNAPSHOT_KEY_state));
    place.size_known = requested_of(tree, block, &place.requested_bytes) &&
                       place.requested_bytes <= place.granted_bytes && place.requested_bytes;
    if (!place.size_known)
        place.requested_bytes = place.granted_bytes;
    if (place.address < *at || place.address - area->address > area->bytes ||
        place.granted_bytes > area->bytes - (place.address - area->address))
        return ar_error_set(error, AR_FORMAT,
                            "the block at %" PRIu64
                            " lies in another one, or not in its segment at "
                            "%" PRIu64,
                            place.address, area->address);
    *at = place.address + place.granted_bytes;
    if (!place.granted_bytes)
        return AR_OK;
    struct snapshot_place *places = ar_array_grow(world->final_places, world->final_place_count,
                                                  &world->final_place_room, sizeof place);
    if (!places)
        return no_memory(error);
    world->final_places = places;
    world->final_places[world->final_place_count++] = place;
    return AR_OK;
}

enum ar_status snapshot_world_segment(struct snapshot_world *world, struct snapshot_tree *tree,
                                      uint64_t segment, struct ar_error *error)
{
    struct snapshot_area area = {0};
    uint64_t stream = 0, pool = snapshot_get(tree, segment, SNAPSHOT_KEY_segment_pool_id);
    uint64_t expandable = snapshot_get(tree, segment, SNAPSHOT_KEY_is_expandable);
    if (!snapshot_number(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_address), &area.address) ||
        !snapshot_number(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_total_size), &area.bytes) ||
        area.bytes >= TRACE_BYTES_LIMIT || area.address >= UINT64_MAX / 2)
        return ar_error_set(error, AR_FORMAT, "a segment has no address or total_size that can be");
    (void)snapshot_number(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_stream), &stream);
    area.small = snapshot_is(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_segment_type), "small");
    area.expandable = expandable == pickle_make(PICKLE_BOOL, 1);
    area.small |= area.expandable && area.bytes % LARGE_PAGE_BYTES != 0;
    world->has_pages |= area.expandable;
    enum ar_status status = snapshot_stream(tree, stream, &area.stream, error);
    if (!status && pool != SNAPSHOT_ABSENT && pickle_kind_of(pool) == PICKLE_PAIR)
        status = snapshot_pool(tree, pool, &area.pool, error);
    if (status)
        return status;
    area.pool_told = pool != SNAPSHOT_ABSENT;
    world->tells_pools |= area.pool_told;
    if (!area.bytes)
        return AR_OK;
    struct snapshot_area *areas = ar_array_grow(world->final_areas, world->final_area_count,
                                                &world->final_area_room, sizeof area);
    if (!areas)
        return no_memory(error);
    world->final_areas = areas;
    world->final_areas[world->final_area_count++] = area;
    size_t count;
    uint64_t at = area.address;
    const uint64_t *blocks =
        snapshot_items(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_blocks), &count);
    for (size_t i = 0; i < count && !status; i++)
        status = take_block(world, tree, blocks[i], &area, &at, error);
    return status;
}

static int areas_by_address(const void *left, const void *right)
{
    const struct snapshot_area *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int places_by_address(const void *left, const void *right)
{
    const struct snapshot_place *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static enum ar_status check_final(const struct snapshot_world *world, struct ar_error *error)
{
    for (size_t i = 1; i < world->final_area_count; i++)
        if (world->final_areas[i].address - world->final_areas[i - 1].address <
            world->final_areas[i - 1].bytes)
            return ar_error_set(error, AR_FORMAT, "the segment at %" PRIu64 " lies in another one",
                                world->final_areas[i].address);
    return AR_OK;
}

/* ---- segments, going back -------------------------------------------------------------- */

size_t snapshot_area_above(const struct snapshot_world *world, uint64_t address)
{
    return ar_array_above(world->areas, world->area_count, sizeof *world->areas,
                          offsetof(struct snapshot_area, address), address);
}

struct snapshot_area *snapshot_area_at(const struct snapshot_world *world, uint64_t address)
{
    size_t at = snapshot_area_above(world, address);
    return at && address - world->areas[at - 1].address < world->areas[at - 1].bytes
               ? &world->areas[at - 1]
               : NULL;
}

static enum ar_status insert(struct snapshot_world *world, struct snapshot_area area,
                             struct ar_error *error)
{
    size_t at = snapshot_area_above(world, area.address);
    struct snapshot_area *areas =
        ar_array_grow(world->areas, world->area_count, &world->area_room, sizeof area);
    if (!areas)
        return no_memory(error);
    world->areas = areas;
    memmove(world->areas + at + 1, world->areas + at, (world->area_count - at) * sizeof area);
    world->areas[at] = area;
    world->area_count++;
    return AR_OK;
}

static void drop(struct snapshot_world *world, size_t at)
{
    world->area_count--;
    memmove(world->areas + at, world->areas + at + 1,
            (world->area_count - at) * sizeof *world->areas);
}

static bool touching(const struct snapshot_area *left, const struct snapshot_area *right)
{
    return left && right && left->expandable && right->expandable &&
           left->stream == right->stream && left->address + left->bytes == right->address;
}

/* Pages that were unmapped and touch no others are taken for the common pool's: a private pool keeps its
 * pages, unless it was given up. */
static enum ar_status add_area(struct snapshot_world *world, const struct snapshot_record *record,
                               bool pages, struct ar_error *error)
{
    struct snapshot_area area = {.address = record->address,
                                 .bytes = record->bytes,
                                 .stream = record->stream,
                                 .pool = record->pool ? record->pool - 1 : 0,
                                 .pool_told = record->pool != 0,
                                 .expandable = pages,
                                 .small = pages ? record->bytes % LARGE_PAGE_BYTES != 0
                                                : record->bytes <= SMALL_SEGMENT_BYTES};
    size_t at = snapshot_area_above(world, area.address);
    const struct snapshot_area *next = at < world->area_count ? &world->areas[at] : NULL;
    const struct snapshot_area *before = at ? &world->areas[at - 1] : NULL;
    if (!area.bytes || area.bytes >= TRACE_BYTES_LIMIT || area.address >= UINT64_MAX / 2 ||
        (before && area.address - before->address < before->bytes) ||
        (next && next->address - area.address < area.bytes)) {
        world->contradictions++;
        return AR_OK;
    }
    if (pages && !record->pool) {
        const struct snapshot_area *near = touching(before, &area) ? before
                                           : touching(&area, next) ? next
                                                                   : NULL;
        if (near) {
            area.pool = near->pool;
            area.small = near->small;
        }
    }
    world->unknown_pools += !record->pool && !pages;
    return insert(world, area, error);
}

/* Takes pages away again: their run may be cut in two. */
static enum ar_status remove_pages(struct snapshot_world *world,
                                   const struct snapshot_record *record, struct ar_error *error)
{
    uint64_t address = record->address, left = record->bytes;
    while (left) {
        struct snapshot_area *area = snapshot_area_at(world, address);
        if (!area || !area->expandable) {
            world->contradictions++;
            return AR_OK;
        }
        struct snapshot_area rest = *area;
        uint64_t end = area->address + area->bytes;
        uint64_t taken = left < end - address ? left : end - address;
        area->bytes = address - area->address;
        rest.address = address + taken;
        rest.bytes = end - rest.address;
        if (!area->bytes)
            drop(world, (size_t)(area - world->areas));
        enum ar_status status = rest.bytes ? insert(world, rest, error) : AR_OK;
        if (status)
            return status;
        address += taken;
        left -= taken;
    }
    return AR_OK;
}

static void remove_segment(struct snapshot_world *world, struct snapshot_record *record)
{
    struct snapshot_area *area = snapshot_area_at(world, record->address);
    if (area && area->address == record->address && area->bytes == record->bytes)
        drop(world, (size_t)(area - world->areas));
    else
        world->contradictions++;
}

/* ---- blocks, going back ---------------------------------------------------------------- */

static enum ar_status put_place(struct snapshot_world *world, struct snapshot_place place,
                                struct ar_error *error)
{
    struct snapshot_place *places =
        ar_array_grow(world->places, world->place_count, &world->place_room, sizeof place);
    if (!places)
        return no_memory(error);
    world->places = places;
    if (ar_map_put(&world->at, place.address, world->place_count))
        return no_memory(error);
    world->places[world->place_count++] = place;
    return AR_OK;
}

static struct snapshot_place *place_at(const struct snapshot_world *world, uint64_t address)
{
    uint64_t index;
    return ar_map_get(&world->at, address, &index) ? &world->places[index] : NULL;
}

static void undo_alloc(struct snapshot_world *world, struct snapshot_record *record)
{
    struct snapshot_place *place = place_at(world, record->address);
    const struct snapshot_area *area = snapshot_area_at(world, record->address);
    if (!record->pool && area)
        record->pool = (area->pool + 1) & (SNAPSHOT_POOLS_MOST - 1);
    if (!place)
        return;
    ar_map_remove(&world->at, record->address);
    place->gone = true;
}

static enum ar_status undo_free(struct snapshot_world *world, const struct snapshot_record *record,
                                bool completed, struct ar_error *error)
{
    struct snapshot_place *place = place_at(world, record->address);
    const struct snapshot_area *area = snapshot_area_at(world, record->address);
    if (place) {
        place->state = completed ? place->state : SNAPSHOT_ACTIVE;
        if (!place->size_known && record->bytes && record->bytes <= place->requested_bytes) {
            place->requested_bytes = record->bytes;
            place->size_known = true;
        }
        return AR_OK;
    }
    struct snapshot_place freed = {.address = record->address,
                                   .requested_bytes = record->bytes,
                                   .stream = record->stream,
                                   .pool = area ? area->pool : 0,
                                   .state = completed ? SNAPSHOT_PENDING : SNAPSHOT_ACTIVE,
                                   .was_freed = true,
                                   .size_known = true};
    return put_place(world, freed, error);
}

static enum ar_status undo(struct snapshot_world *world, struct snapshot_record *record,
                           struct ar_error *error)
{
    switch (record->action) {
    case SNAPSHOT_ALLOC:
        undo_alloc(world, record);
        return AR_OK;
    case SNAPSHOT_FREE_REQUESTED:
        return undo_free(world, record, false, error);
    case SNAPSHOT_FREE_COMPLETED:
        return undo_free(world, record, true, error);
    case SNAPSHOT_SEGMENT_ALLOC:
        remove_segment(world, record);
        return AR_OK;
    case SNAPSHOT_SEGMENT_FREE:
        return add_area(world, record, false, error);
    case SNAPSHOT_SEGMENT_MAP:
        return remove_pages(world, record, error);
    case SNAPSHOT_SEGMENT_UNMAP:
        return add_area(world, record, true, error);
    default:
        return AR_OK;
    }
}

/* ---- the whole ------------------------------------------------------------------------- */

/* An entry can be used: it stands there once, with an address and a size that can be. */
static enum ar_status look_over(struct snapshot_world *world, struct snapshot_record *record,
                                size_t event, struct ar_error *error)
{
    if (record->taken)
        return ar_error_set(error, AR_FORMAT,
                            "entry %zu of device %" PRIu64
                            " is one that stands in the history before",
                            event, world->device);
    if (record->address >= UINT64_MAX / 2 || record->bytes >= TRACE_BYTES_LIMIT)
        record->action = SNAPSHOT_UNKNOWN;
    record->taken = true;
    world->has_times |= record->has_time;
    world->has_pages |= record->action == SNAPSHOT_SEGMENT_MAP;
    world->lacks_times |= !record->has_time;
    return AR_OK;
}

/* From the first entry on that does not follow the one before, each has its number kept. */
static enum ar_status keep_record(struct snapshot_world *world, uint32_t record, size_t event,
                                  size_t count, struct ar_error *error)
{
    if (!event)
        world->first_record = record;
    if (!world->records) {
        if (record != SNAPSHOT_NO_RECORD && record == world->first_record + event)
            return AR_OK;
        world->records = malloc(count * sizeof *world->records);
        if (!world->records)
            return no_memory(error);
        for (size_t i = 0; i < event; i++)
            world->records[i] = world->first_record + (uint32_t)i;
    }
    world->records[event] = record;
    return AR_OK;
}

enum ar_status snapshot_world_events(struct snapshot_world *world, const struct snapshot_tree *tree,
                                     uint64_t list, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    size_t count;
    const uint64_t *events = snapshot_items(tree, list, &count);
    for (size_t i = 0; i < count && !status; i++) {
        uint32_t number = snapshot_record_of(tree, events[i]);
        struct snapshot_record *record = snapshot_record_at(tree, number);
        status = keep_record(world, number, i, count, error);
        if (!status && record)
            status = look_over(world, record, i, error);
    }
    world->event_count = count;
    return status;
}

struct snapshot_record *snapshot_world_event(const struct snapshot_world *world,
                                             const struct snapshot_tree *tree, size_t event)
{
    return snapshot_record_at(tree, world->records ? world->records[event]
                                                   : world->first_record + (uint64_t)event);
}

static enum ar_status begin_at_end(struct snapshot_world *world, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (world->final_area_count) {
        qsort(world->final_areas, world->final_area_count, sizeof *world->final_areas,
              areas_by_address);
        world->area_room = world->area_count = world->final_area_count;
        world->areas = malloc(world->area_room * sizeof *world->areas);
        if (!world->areas)
            return no_memory(error);
        memcpy(world->areas, world->final_areas, world->area_count * sizeof *world->areas);
    }
    if (world->final_place_count)
        qsort(world->final_places, world->final_place_count, sizeof *world->final_places,
              places_by_address);
    for (size_t i = 0; i < world->final_place_count && !status; i++)
        if (world->final_places[i].state != SNAPSHOT_INACTIVE)
            status = put_place(world, world->final_places[i], error);
    return status ? status : check_final(world, error);
}

/* Runs of pages that touch are one: a block may lie in both. */
static void join_areas(struct snapshot_world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->area_count; i++) {
        struct snapshot_area *last = kept ? &world->areas[kept - 1] : NULL;
        const struct snapshot_area area = world->areas[i];
        if (touching(last, &area) && last->pool == area.pool)
            last->bytes += area.bytes;
        else
            world->areas[kept++] = area;
    }
    world->area_count = kept;
}

/* Leaves the places of the start, by address. */
static void settle(struct snapshot_world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->place_count; i++)
        if (!world->places[i].gone)
            world->places[kept++] = world->places[i];
    world->place_count = kept;
    if (kept)
        qsort(world->places, kept, sizeof *world->places, places_by_address);
    for (size_t i = 0; i < kept; i++) {
        world->unmatched_frees += world->places[i].was_freed;
        world->unknown_sizes += !world->places[i].size_known;
    }
    ar_map_close(&world->at);
    world->at = (struct ar_map){0};
}

/* The place of the start that is the last one at or below an address; NULL: none. */
static struct snapshot_place *place_below(const struct snapshot_world *world, uint64_t address)
{
    size_t above = ar_array_above(world->places, world->place_count, sizeof *world->places,
                                  offsetof(struct snapshot_place, address), address);
    return above ? &world->places[above - 1] : NULL;
}

/* PyTorch keeps up to 1 MiB with a large block rather than cut it off: where the first request behind
 * one begins so far behind its end, that much was kept. */
static void learn_granted(struct snapshot_world *world, const struct snapshot_tree *tree)
{
    for (size_t i = 0; i < world->event_count && world->place_count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        if (!record ||
            (record->action != SNAPSHOT_ALLOC && record->action != SNAPSHOT_FREE_COMPLETED))
            continue;
        struct snapshot_place *place = place_below(world, record->address);
        if (!place || place->gone)
            continue;
        if (place->address == record->address) {
            place->gone = true; /* it was freed; what comes there is another */
            continue;
        }
        const struct snapshot_area *area = snapshot_area_at(world, place->address);
        uint64_t end = place->address + ar_size_round_up(place->requested_bytes, MIN_BLOCK_BYTES);
        if (record->action == SNAPSHOT_ALLOC && !place->granted_bytes && area && !area->small &&
            !area->expandable && record->address > end && record->address - end <= AR_MIB &&
            record->address - area->address < area->bytes)
            place->granted_bytes = record->address - place->address;
    }
    for (size_t i = 0; i < world->place_count; i++)
        world->places[i].gone = false;
}

/* A program may leave completions out of its history (skip_actions): then a free is complete where it
 * is asked for. */
static void complete_at_once(struct snapshot_world *world, const struct snapshot_tree *tree)
{
    bool completed = false;
    for (size_t i = 0; i < world->final_place_count; i++)
        completed |= world->final_places[i].state == SNAPSHOT_PENDING;
    for (size_t i = 0; i < world->event_count && !completed; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        completed = record && record->action == SNAPSHOT_FREE_COMPLETED;
    }
    for (size_t i = 0; i < world->event_count && !completed; i++) {
        struct snapshot_record *record = snapshot_world_event(world, tree, i);
        if (record && record->action == SNAPSHOT_FREE_REQUESTED) {
            record->action = SNAPSHOT_FREE_COMPLETED;
            world->no_completions = true;
        }
    }
}

enum ar_status snapshot_world_rewind(struct snapshot_world *world, struct snapshot_tree *tree,
                                     struct ar_error *error)
{
    uint64_t held_bytes = 0; /* modulo 2^64, where entries contradict each other */
    enum ar_status status = begin_at_end(world, error);
    complete_at_once(world, tree);
    for (size_t i = 0; i < world->final_area_count; i++)
        held_bytes += world->final_areas[i].bytes;
    world->most_held_bytes = held_bytes;
    for (size_t i = world->event_count; i-- > 0 && !status;) {
        struct snapshot_record *record = snapshot_world_event(world, tree, i);
        if (record)
            status = undo(world, record, error);
        if (record && record->action == SNAPSHOT_SEGMENT_MAP)
            held_bytes -= record->bytes;
        else if (record && record->action == SNAPSHOT_SEGMENT_UNMAP)
            held_bytes += record->bytes;
        if (held_bytes > world->most_held_bytes && held_bytes < TRACE_BYTES_LIMIT)
            world->most_held_bytes = held_bytes;
    }
    join_areas(world);
    settle(world);
    learn_granted(world, tree);
    return status;
}

/* Which runs of pages at the start are of one range, and where it begins. PyTorch reserves a range of
 * addresses as long as 9/8 of the card's memory and maps pages in it from the lower end up; a snapshot
 * tells of the pages only.
 *
 * 1. Runs of one stream, kind and pool are of one range, since a pool has no second one while the first
 *    has room.
 * 2. Where the pool is not told they may be those of two private ones: then only where no more lies
 *    between them than was ever held at once, since pages once filled it.
 * 3. A range begins at the lowest page that the history maps or unmaps in it. */

#define RANGE_MOST       (256 * AR_GIB) /* 9/8 of the largest card */
#define LARGE_PAGE_BYTES (20 * AR_MIB)

bool snapshot_world_joins(const struct snapshot_world *world, size_t index)
{
    const struct snapshot_area *area = &world->areas[index], *before = area - 1;
    if (!index || !before->expandable || before->stream != area->stream ||
        before->pool != area->pool || before->small != area->small)
        return false;
    uint64_t most_bytes = world->most_held_bytes > AR_GIB ? world->most_held_bytes : AR_GIB;
    if (before->pool_told && area->pool_told)
        most_bytes = RANGE_MOST;
    return area->address - before->address - before->bytes < most_bytes;
}

/* Below it is what lies under the range of a run that begins one. */
static uint64_t floor_of(const struct snapshot_world *world, size_t index)
{
    const struct snapshot_area *of = &world->areas[index];
    uint64_t floor = index ? of[-1].address + of[-1].bytes : 0;
    bool shared = index && of[-1].expandable && of[-1].stream == of->stream &&
                  of[-1].small == of->small; /* what lies between may be of the range below */
    if (shared)
        floor += (of->address - floor) / 2;
    if (of->address > RANGE_MOST && floor < of->address - RANGE_MOST)
        floor = of->address - RANGE_MOST;
    return floor;
}

uint64_t *snapshot_world_bases(const struct snapshot_world *world, const struct snapshot_tree *tree)
{
    uint64_t *bases = malloc((world->area_count + 1) * sizeof *bases);
    if (!bases)
        return NULL;
    for (size_t i = 0; i < world->area_count; i++)
        bases[i] = world->areas[i].address;
    for (size_t i = 0; i < world->event_count && world->area_count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        bool pages = record && (record->action == SNAPSHOT_SEGMENT_MAP ||
                                record->action == SNAPSHOT_SEGMENT_UNMAP);
        size_t at = pages ? snapshot_area_above(world, record->address) : world->area_count;
        if (at == world->area_count)
            continue;
        const struct snapshot_area *of = &world->areas[at];
        if (record->stream == of->stream && record->address < bases[at] &&
            record->address >= floor_of(world, at) &&
            (record->bytes % LARGE_PAGE_BYTES != 0) == of->small)
            bases[at] = record->address;
    }
    return bases;
}
