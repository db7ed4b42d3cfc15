/* How: the events are undone from the last to the first.
 *
 * 1. A block that is allocated did not exist before; a block that is completed was pending before,
 *    and one whose free is requested was in use. What remains at the first event existed at the
 *    start: so the head of a ring buffer may be missing.
 * 2. The same for segments and pages. A released segment is not among the final ones, and so has no
 *    pool: the common one is assumed, and reported.
 * 3. On the way, each request gets the pool of the segment that it is in.
 * 4. The granted bytes of a block of the start are known if it is still there at the end; else its
 *    requested bytes are known, and if the next request is a little after it, the bytes in between
 *    are its own.
 * 5. Runs of pages: PyTorch reserves a range of addresses of 9/8 of the card's memory and maps
 *    pages in it from the lower end up; a snapshot has only the pages. Runs of one stream, kind and
 *    pool are of one range, because a pool makes no second one while the first has room. If the
 *    pool is unknown they may be those of two private pools: then they are of one range only if the
 *    gap is at most the most bytes ever reserved, because pages once filled it. A range begins at
 *    the lowest page that the history maps or unmaps in it.
 *
 * Source: the method by which public snapshots were replayed for this project (blocks that are
 * freed without a request existed before), and the layouts that PyTorch has written since 2.0. */
#include "workloads/formats/torch/snapshot_world.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define LARGE_PAGE_BYTES    (20 * AR_MIB) /* of a range of the large pool, without settings */
#define MIN_BLOCK_BYTES     512u
#define SMALL_SEGMENT_BYTES (2 * AR_MIB)

bool snapshot_in_large_pages(const struct snapshot_world *world, uint64_t bytes)
{
    return bytes % (world->large_page_bytes ? world->large_page_bytes : LARGE_PAGE_BYTES) == 0;
}

void snapshot_world_close(struct snapshot_world *world)
{
    free(world->records);
    free(world->final_areas);
    free(world->final_places);
    free(world->areas.items);
    free(world->places);
    ar_map_close(&world->at);
    ar_map_close(&world->deletions);
    *world = (struct snapshot_world){0};
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

/* The requested bytes of a block: `requested_size`; or, up to PyTorch 2.0, in its history, the last
 * request first. */
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
                            " is in another one, or not in its segment at %" PRIu64,
                            place.address, area->address);
    *at = place.address + place.granted_bytes;
    if (!place.granted_bytes)
        return AR_OK;
    return AR_APPEND(world->final_places, world->final_place_count, world->final_place_room, place,
                     error, "the state of a snapshot");
}

enum ar_status snapshot_world_segment(struct snapshot_world *world, struct snapshot_tree *tree,
                                      uint64_t segment, struct ar_error *error)
{
    struct snapshot_area area = {0};
    uint64_t stream = 0, pool = snapshot_get(tree, segment, SNAPSHOT_KEY_segment_pool_id);
    uint64_t expandable = snapshot_get(tree, segment, SNAPSHOT_KEY_is_expandable);
    if (!snapshot_number(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_address), &area.address) ||
        !snapshot_number(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_total_size), &area.bytes) ||
        !snapshot_range_can_be(area.address, area.bytes))
        return ar_error_set(error, AR_FORMAT, "a segment has no address or total_size that can be");
    (void)snapshot_number(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_stream), &stream);
    area.small = snapshot_is(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_segment_type), "small");
    area.expandable = expandable == pickle_make(PICKLE_BOOL, 1);
    area.small |= area.expandable && !snapshot_in_large_pages(world, area.bytes);
    world->has_pages |= area.expandable;
    AR_TRY(snapshot_stream(tree, stream, &area.stream, error));
    if (pool != SNAPSHOT_ABSENT && pickle_kind_of(pool) == PICKLE_PAIR)
        AR_TRY(snapshot_pool(tree, pool, &area.pool, error));
    area.pool_told = pool != SNAPSHOT_ABSENT;
    world->tells_pools |= area.pool_told;
    if (!area.bytes)
        return AR_OK;
    AR_TRY(AR_APPEND(world->final_areas, world->final_area_count, world->final_area_room, area,
                     error, "the state of a snapshot"));
    size_t count;
    uint64_t at = area.address;
    const uint64_t *blocks =
        snapshot_items(tree, snapshot_get(tree, segment, SNAPSHOT_KEY_blocks), &count);
    for (size_t i = 0; i < count; i++)
        AR_TRY(take_block(world, tree, blocks[i], &area, &at, error));
    return AR_OK;
}

static enum ar_status check_final(const struct snapshot_world *world, struct ar_error *error)
{
    for (size_t i = 1; i < world->final_area_count; i++)
        if (world->final_areas[i].address - world->final_areas[i - 1].address <
            world->final_areas[i - 1].bytes)
            return ar_error_set(error, AR_FORMAT, "the segment at %" PRIu64 " is in another one",
                                world->final_areas[i].address);
    return AR_OK;
}

/* ---- segments, going back -------------------------------------------------------------- */

static bool touching(const struct snapshot_area *left, const struct snapshot_area *right)
{
    return left && right && left->expandable && right->expandable &&
           left->stream == right->stream && left->address + left->bytes == right->address;
}

/* Unmapped pages that touch no others are assumed to be of the common pool: a private pool keeps
 * its pages until it is released. */
static enum ar_status add_area(struct snapshot_world *world, const struct snapshot_record *record,
                               bool pages, struct ar_error *error)
{
    struct snapshot_area area = {.address = record->address,
                                 .bytes = record->bytes,
                                 .stream = record->stream,
                                 .pool = record->pool ? record->pool - 1 : 0,
                                 .pool_told = record->pool != 0,
                                 .expandable = pages,
                                 .small = pages ? !snapshot_in_large_pages(world, record->bytes)
                                                : record->bytes <= SMALL_SEGMENT_BYTES};
    size_t at = snapshot_areas_above(&world->areas, area.address);
    const struct snapshot_area *next = at < world->areas.count ? &world->areas.items[at] : NULL;
    const struct snapshot_area *before = at ? &world->areas.items[at - 1] : NULL;
    if (!area.bytes || !snapshot_range_can_be(area.address, area.bytes) ||
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
    return snapshot_areas_add(&world->areas, &area, error);
}

/* Pages were mapped: they did not exist before. */
static enum ar_status remove_pages(struct snapshot_world *world,
                                   const struct snapshot_record *record, struct ar_error *error)
{
    uint64_t address = record->address, left = record->bytes;
    while (left) {
        const struct snapshot_area *area = snapshot_areas_at(&world->areas, address);
        if (!area || !area->expandable) {
            size_t above = snapshot_areas_above(&world->areas, address);
            area = above < world->areas.count ? &world->areas.items[above] : NULL;
            world->contradictions++;
            if (!area || !area->expandable || area->address - address >= left)
                return AR_OK;
            left -= area->address - address;
            address = area->address;
        }
        uint64_t bytes = area->address + area->bytes - address;
        bytes = bytes < left ? bytes : left;
        AR_TRY(snapshot_areas_cut(&world->areas, address, bytes, error));
        address += bytes;
        left -= bytes;
    }
    return AR_OK;
}

static void remove_segment(struct snapshot_world *world, struct snapshot_record *record)
{
    struct snapshot_area *area = snapshot_areas_at(&world->areas, record->address);
    if (area && area->address == record->address && area->bytes == record->bytes)
        snapshot_areas_drop(&world->areas, (size_t)(area - world->areas.items));
    else
        world->contradictions++;
}

/* ---- blocks, going back ---------------------------------------------------------------- */

static enum ar_status put_place(struct snapshot_world *world, struct snapshot_place place,
                                struct ar_error *error)
{
    if (ar_map_put(&world->at, place.address, world->place_count) ||
        !AR_ARRAY_ADD(world->places, world->place_count, world->place_room, place))
        return ar_no_memory(error, "the state of a snapshot");
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
    const struct snapshot_area *area = snapshot_areas_at(&world->areas, record->address);
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
    const struct snapshot_area *area = snapshot_areas_at(&world->areas, record->address);
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

/* ---- the history ----------------------------------------------------------------------- */

/* Checks that an entry is there once. One with an impossible address or size becomes unknown. */
static enum ar_status look_over(struct snapshot_world *world, struct snapshot_record *record,
                                size_t event, struct ar_error *error)
{
    if (record->taken)
        return ar_error_set(error, AR_FORMAT,
                            "entry %zu of device %" PRIu64 " is in the history twice", event,
                            world->device);
    if (!snapshot_range_can_be(record->address, record->bytes))
        record->action = SNAPSHOT_UNKNOWN;
    record->taken = true;
    world->has_times |= record->has_time;
    world->has_pages |= record->action == SNAPSHOT_SEGMENT_MAP;
    world->lacks_times |= !record->has_time;
    return AR_OK;
}

/* Keeps the numbers of all records if they are not consecutive. */
static enum ar_status keep_record(struct snapshot_world *world, uint32_t record, size_t event,
                                  size_t count, struct ar_error *error)
{
    if (!event)
        world->first_record = record;
    if (!world->records) {
        if (record != SNAPSHOT_NO_RECORD && record == world->first_record + event)
            return AR_OK;
        world->records = malloc(count * sizeof *world->records);
        AR_TRY_MEMORY(world->records, error, "the state of a snapshot");
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

enum ar_status snapshot_world_records(struct snapshot_world *world,
                                      const struct snapshot_tree *tree, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < tree->record_count && !status; i++)
        status = look_over(world, snapshot_record_at(tree, i), i, error);
    world->event_count = tree->record_count;
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
    if (world->final_area_count) {
        AR_ARRAY_SORT(world->final_areas, world->final_area_count, address);
        world->areas.room = world->areas.count = world->final_area_count;
        world->areas.items = malloc(world->areas.room * sizeof *world->areas.items);
        AR_TRY_MEMORY(world->areas.items, error, "the state of a snapshot");
        memcpy(world->areas.items, world->final_areas,
               world->areas.count * sizeof *world->areas.items);
    }
    AR_ARRAY_SORT(world->final_places, world->final_place_count, address);
    for (size_t i = 0; i < world->final_place_count; i++)
        if (world->final_places[i].state != SNAPSHOT_INACTIVE)
            AR_TRY(put_place(world, world->final_places[i], error));
    return check_final(world, error);
}

/* Joins runs of pages that touch: a block may be in both. */
static void join_areas(struct snapshot_world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->areas.count; i++) {
        struct snapshot_area *last = kept ? &world->areas.items[kept - 1] : NULL;
        const struct snapshot_area area = world->areas.items[i];
        if (touching(last, &area) && last->pool == area.pool)
            last->bytes += area.bytes;
        else
            world->areas.items[kept++] = area;
    }
    world->areas.count = kept;
}

/* Keeps the places of the start, by address. */
static void settle(struct snapshot_world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->place_count; i++)
        if (!world->places[i].gone)
            world->places[kept++] = world->places[i];
    world->place_count = kept;
    AR_ARRAY_SORT(world->places, kept, address);
    for (size_t i = 0; i < kept; i++) {
        world->unmatched_frees += world->places[i].was_freed;
        world->unknown_sizes += !world->places[i].size_known;
    }
    ar_map_close(&world->at);
    world->at = (struct ar_map){0};
}

/* The last place of the start at or below an address, or NULL. */
static struct snapshot_place *place_below(const struct snapshot_world *world, uint64_t address)
{
    size_t above = ar_array_above(world->places, world->place_count, sizeof *world->places,
                                  offsetof(struct snapshot_place, address), address);
    return above ? &world->places[above - 1] : NULL;
}

/* PyTorch leaves up to 1 MiB with a large block instead of splitting it off: if the first request
 * after a block begins so far after its end, those bytes are its own. */
static void learn_granted(struct snapshot_world *world, const struct snapshot_tree *tree)
{
    for (size_t i = 0; i < world->event_count && world->place_count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        bool unmaps = record && record->action == SNAPSHOT_SEGMENT_UNMAP;
        if (!record || (record->action != SNAPSHOT_ALLOC &&
                        record->action != SNAPSHOT_FREE_COMPLETED && !unmaps))
            continue;
        struct snapshot_place *place = place_below(world, record->address);
        if (!place || place->gone)
            continue;
        if (place->address == record->address) {
            place->gone = true; /* it was freed; another block comes there */
            continue;
        }
        const struct snapshot_area *area = snapshot_areas_at(&world->areas, place->address);
        if (record->action == SNAPSHOT_ALLOC || unmaps)
            if (!place->free_behind || record->address < place->free_behind)
                place->free_behind = record->address;
        uint64_t end = place->address + ar_size_round_up(place->requested_bytes, MIN_BLOCK_BYTES);
        if (record->action == SNAPSHOT_ALLOC && !place->granted_bytes && area && !area->small &&
            !area->expandable && record->address > end && record->address - end <= AR_MIB &&
            record->address - area->address < area->bytes)
            place->granted_bytes = record->address - place->address;
    }
    for (size_t i = 0; i < world->place_count; i++)
        world->places[i].gone = false;
}

/* A program may exclude completions from its history (skip_actions): then a free is completed when
 * it is requested. */
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
    uint64_t held_bytes = 0; /* modulo 2^64 if entries contradict each other */
    AR_TRY(begin_at_end(world, error));
    complete_at_once(world, tree);
    for (size_t i = 0; i < world->final_area_count; i++)
        held_bytes += world->final_areas[i].bytes;
    world->most_held_bytes = held_bytes;
    for (size_t i = world->event_count; i-- > 0;) {
        struct snapshot_record *record = snapshot_world_event(world, tree, i);
        if (record)
            AR_TRY(undo(world, record, error));
        unsigned action = record ? record->action : SNAPSHOT_UNKNOWN;
        if (action == SNAPSHOT_SEGMENT_MAP || action == SNAPSHOT_SEGMENT_ALLOC)
            held_bytes -= record->bytes;
        else if (action == SNAPSHOT_SEGMENT_UNMAP || action == SNAPSHOT_SEGMENT_FREE)
            held_bytes += record->bytes;
        if (held_bytes > world->most_held_bytes && held_bytes < TRACE_BYTES_LIMIT)
            world->most_held_bytes = held_bytes;
    }
    join_areas(world);
    settle(world);
    learn_granted(world, tree);
    return AR_OK;
}

/* ---- ranges of pages: rule 5 ----------------------------------------------------------- */

#define RANGE_MOST (256 * AR_GIB) /* 9/8 of the largest card */

bool snapshot_world_joins(const struct snapshot_world *world, size_t index)
{
    const struct snapshot_area *area = &world->areas.items[index], *before = area - 1;
    if (!index || !before->expandable || before->stream != area->stream ||
        before->pool != area->pool || before->small != area->small)
        return false;
    uint64_t most_bytes = world->most_held_bytes > AR_GIB ? world->most_held_bytes : AR_GIB;
    if (before->pool_told && area->pool_told)
        most_bytes = RANGE_MOST;
    return area->address - before->address - before->bytes < most_bytes;
}

/* Addresses below it are not of the range that a run begins. */
static uint64_t floor_of(const struct snapshot_world *world, size_t index)
{
    const struct snapshot_area *of = &world->areas.items[index];
    uint64_t floor = index ? of[-1].address + of[-1].bytes : 0;
    bool shared = index && of[-1].expandable && of[-1].stream == of->stream &&
                  of[-1].small == of->small; /* the bytes in between may be of the range below */
    if (shared)
        floor += (of->address - floor) / 2;
    /* Pages are mapped at the lowest place of a range, so those below were held at some time. */
    uint64_t most_bytes = world->most_held_bytes > AR_GIB ? world->most_held_bytes : AR_GIB;
    if (of->address > most_bytes && floor < of->address - most_bytes)
        floor = of->address - most_bytes;
    return floor;
}

uint64_t *snapshot_world_bases(const struct snapshot_world *world, const struct snapshot_tree *tree)
{
    uint64_t *bases = malloc((world->areas.count + 1) * sizeof *bases);
    if (!bases)
        return NULL;
    for (size_t i = 0; i < world->areas.count; i++)
        bases[i] = world->areas.items[i].address;
    for (size_t i = 0; i < world->event_count && world->areas.count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        bool pages = record && (record->action == SNAPSHOT_SEGMENT_MAP ||
                                record->action == SNAPSHOT_SEGMENT_UNMAP);
        size_t at =
            pages ? snapshot_areas_above(&world->areas, record->address) : world->areas.count;
        if (at == world->areas.count)
            continue;
        const struct snapshot_area *of = &world->areas.items[at];
        if (record->stream == of->stream && record->address < bases[at] &&
            record->address >= floor_of(world, at) &&
            snapshot_in_large_pages(world, record->bytes) != of->small &&
            (of->small || snapshot_in_large_pages(world, of->address - record->address)))
            bases[at] = record->address;
    }
    return bases;
}
