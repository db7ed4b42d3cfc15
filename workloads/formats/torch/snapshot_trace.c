/* How: the entries of a history become events as the rows of a recorded CSV do (csv_reader.c).
 *
 * 1. Streams and pools become ordinals as they come: the default stream of the first device is 0,
 *    the common pool is 0. Streams of other devices are streams of their own.
 * 2. What was there at the start comes first, as FORMAT.md says: segments, blocks, then the
 *    requests of the blocks in use, with initial=yes, and a let-go for those that are pending.
 * 3. A free that is completed in the next entry of its device is one `f`; else `r`, later `f`.
 * 4. A block that is given out where one is in use: the free in between is missing, and put there.
 *    A free of what is not in use is left out.
 * 5. Several devices are merged by time; where there is none, they follow each other.
 * 6. In the end the segments and blocks of the snapshot, as notes.
 * 7. Of a device without a history pending blocks are taken for blocks in use: a trace in which no
 *    completion follows any let-go is one whose let-gos are final. */
#include "workloads/formats/torch/snapshot_conversion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum ar_status conversion_no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a snapshot");
}

size_t conversion_world(const struct conversion *c)
{
    return (size_t)(c->world - c->worlds);
}

uint32_t conversion_stream(struct conversion *c, unsigned stream)
{
    uint32_t *ordinal = &c->streams[conversion_world(c) * SNAPSHOT_STREAMS_MOST + stream];
    if (!*ordinal)
        *ordinal = ++c->stream_count;
    return *ordinal - 1;
}

uint32_t conversion_pool(struct conversion *c, unsigned pool)
{
    if (!c->pools[pool])
        c->pools[pool] = ++c->pool_count;
    return c->pools[pool] - 1;
}

enum ar_status conversion_append(struct conversion *c, struct trace_event event, const char *text,
                                 struct ar_error *error)
{
    return trace_memory_append(c->memory, &event, NULL, text, error);
}

enum ar_status conversion_note(struct conversion *c, const char *text, struct ar_error *error)
{
    return conversion_append(c, (struct trace_event){.kind = TRACE_NOTE}, text, error);
}

enum ar_status conversion_note_numbers(struct conversion *c, const char *verb,
                                       const uint64_t *numbers, size_t count,
                                       struct ar_error *error)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s", verb);
    for (size_t i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, numbers[i]);
    return conversion_note(c, text, error);
}

struct trace_attributes conversion_keys(struct conversion *c, unsigned pool, uint32_t tag)
{
    return (struct trace_attributes){
        .pool = conversion_pool(c, pool),
        .device = (uint32_t)c->world->device,
        .tag = tag ? c->tree->texts.items[tag - 1] : NULL,
    };
}

struct ar_map *conversion_places(const struct conversion *c)
{
    return &c->places[conversion_world(c)];
}

/* ---- the state at the start ------------------------------------------------------------ */

static enum ar_status append_areas(struct conversion *c, struct ar_error *error)
{
    uint64_t *bases = snapshot_world_bases(c->world, c->tree);
    enum ar_status status = bases ? AR_OK : conversion_no_memory(error);
    for (size_t i = 0; i < c->world->area_count && !status; i++) {
        const struct snapshot_area *area = &c->world->areas[i];
        uint32_t pool = conversion_pool(c, area->pool);
        uint64_t numbers[] = {area->address, area->bytes, conversion_stream(c, area->stream), pool};
        if (!area->expandable) {
            status = conversion_note_numbers(c, "segment", numbers, pool ? 4 : 3, error);
            continue;
        }
        if (!snapshot_world_joins(c->world, i)) {
            uint64_t range[] = {bases[i], numbers[2], pool};
            status = conversion_note_numbers(c, "range", range, pool ? 3 : 2, error);
        }
        if (!status)
            status = conversion_note_numbers(c, "pages", numbers, 2, error);
    }
    free(bases);
    return status;
}

static bool lies_in_area(const struct snapshot_world *world, uint64_t address, size_t *area)
{
    while (*area < world->area_count &&
           world->areas[*area].address + world->areas[*area].bytes <= address)
        ++*area;
    return *area < world->area_count && world->areas[*area].address <= address;
}

/* Where the blocks are; those outside of every segment are told with their requests. */
static enum ar_status append_places(struct conversion *c, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    size_t area = 0;
    for (size_t i = 0; i < c->world->place_count && !status; i++) {
        const struct snapshot_place *place = &c->world->places[i];
        uint64_t bytes = place->granted_bytes ? place->granted_bytes : place->requested_bytes;
        const uint64_t numbers[] = {place->address, bytes, c->next_id + i};
        if (lies_in_area(c->world, place->address, &area))
            status = conversion_note_numbers(c, "block", numbers, 3, error);
    }
    return status;
}

static enum ar_status append_initial(struct conversion *c, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    size_t area = 0;
    for (size_t i = 0; i < c->world->place_count && !status; i++) {
        const struct snapshot_place *place = &c->world->places[i];
        struct trace_attributes keys = conversion_keys(c, place->pool, place->tag);
        keys.rest = "initial=yes";
        bool pending = place->state == SNAPSHOT_PENDING && c->world->event_count;
        struct trace_event event = {.kind = TRACE_ALLOC,
                                    .id = c->next_id++,
                                    .value = place->requested_bytes,
                                    .stream = conversion_stream(c, place->stream)};
        status = trace_memory_append(c->memory, &event, &keys, NULL, error);
        if (!status && ar_map_put(conversion_places(c), place->address, 2 * event.id + pending))
            status = conversion_no_memory(error);
        if (!status && !lies_in_area(c->world, place->address, &area))
            status = conversion_note_numbers(c, "alloc", &place->address, 1, error);
        event.kind = TRACE_FREE_REQUESTED;
        event.stream = TRACE_NO_STREAM;
        if (!status && pending)
            status = conversion_append(c, event, NULL, error);
    }
    return status;
}

/* All notes of all devices come before the first event. */
static enum ar_status append_start(struct conversion *c, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    uint64_t first_id = c->next_id;
    for (size_t i = 0; i < c->world_count && !status; i++) {
        c->world = &c->worlds[i];
        status = append_areas(c, error);
    }
    for (size_t i = 0; i < c->world_count && !status; i++) {
        c->world = &c->worlds[i];
        status = append_places(c, error);
        c->next_id += c->world->place_count;
    }
    c->next_id = first_id;
    for (size_t i = 0; i < c->world_count && !status; i++) {
        c->world = &c->worlds[i];
        status = append_initial(c, error);
    }
    return status;
}

/* ---- the state at the end -------------------------------------------------------------- */

static enum ar_status append_end(struct conversion *c, struct ar_error *error)
{
    static const char *const states[] = {
        [SNAPSHOT_ACTIVE] = "used", [SNAPSHOT_PENDING] = "pending", [SNAPSHOT_INACTIVE] = "free"};
    char text[128];
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < c->world->final_area_count && !status; i++) {
        const struct snapshot_area *area = &c->world->final_areas[i];
        uint32_t pool = conversion_pool(c, area->pool);
        const uint64_t numbers[] = {area->address, area->bytes, conversion_stream(c, area->stream),
                                    pool};
        status = conversion_note_numbers(c, "final_segment", numbers, pool ? 4 : 3, error);
    }
    for (size_t i = 0; i < c->world->final_place_count && !status; i++) {
        const struct snapshot_place *place = &c->world->final_places[i];
        unsigned state = place->state;
        if (state == SNAPSHOT_PENDING && !c->world->event_count)
            state = SNAPSHOT_ACTIVE;
        bool asked = place->state != SNAPSHOT_INACTIVE && place->size_known;
        int used = snprintf(text, sizeof text, "final_block,%" PRIu64 ",%" PRIu64 ",%s",
                            place->address, place->granted_bytes, states[state]);
        if (asked)
            snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, place->requested_bytes);
        status = conversion_note(c, text, error);
    }
    return status;
}

enum ar_status snapshot_trace(struct snapshot_tree *tree, struct snapshot_world *worlds,
                              size_t count, const struct snapshot_marks *marks,
                              struct trace_memory *memory, struct import_report *report,
                              struct ar_error *error)
{
    struct conversion *c = calloc(1, sizeof *c);
    enum ar_status status = AR_OK;
    if (!c)
        return conversion_no_memory(error);
    c->tree = tree;
    c->worlds = worlds;
    c->world_count = count;
    c->marks = marks;
    c->memory = memory;
    c->report = report;
    c->streams = calloc(count + 1, SNAPSHOT_STREAMS_MOST * sizeof *c->streams);
    c->places = calloc(count + 1, sizeof *c->places);
    if (!c->streams || !c->places)
        status = conversion_no_memory(error);
    c->world = worlds;
    if (!status)
        (void)conversion_stream(c, 0);
    (void)conversion_pool(c, 0);
    if (!status)
        status = append_start(c, error);
    if (!status)
        status = conversion_events(c, error);
    for (size_t i = 0; i < count && !status; i++) {
        c->world = &worlds[i];
        status = append_end(c, error);
    }
    if (!status)
        conversion_say_guesses(c);
    for (size_t i = 0; i < count && c->places; i++)
        ar_map_close(&c->places[i]);
    free(c->places);
    free(c->streams);
    free(c);
    return status;
}
