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
#include "workloads/formats/snapshot_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/fields.h"

struct conversion {
    struct snapshot_tree *tree;
    struct snapshot_world *world; /* in hand */
    struct snapshot_world *worlds;
    size_t world_count;
    struct trace_memory *memory;
    struct import_report *report;
    uint64_t next_id, begun_us, now_us, events;
    bool timed;            /* a time was written */
    struct id_map *places; /* by world: 2 * id + 1 where it is let go, by address */
    uint32_t *streams;     /* ordinal + 1 by device and index */
    uint32_t stream_count;
    uint32_t pools[SNAPSHOT_POOLS_MOST]; /* ordinal + 1 */
    uint32_t pool_count;
    uint64_t last_request; /* events from the last request on */
    uint64_t missing_frees, late;
};

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_HOST_MEMORY, "no host memory to read a snapshot");
}

static size_t world_index(const struct conversion *c)
{
    return (size_t)(c->world - c->worlds);
}

static uint32_t stream_ordinal(struct conversion *c, unsigned stream)
{
    uint32_t *ordinal = &c->streams[world_index(c) * SNAPSHOT_STREAMS_MOST + stream];
    if (!*ordinal)
        *ordinal = ++c->stream_count;
    return *ordinal - 1;
}

static uint32_t pool_ordinal(struct conversion *c, unsigned pool)
{
    if (!c->pools[pool])
        c->pools[pool] = ++c->pool_count;
    return c->pools[pool] - 1;
}

static enum status append(struct conversion *c, struct trace_event event, const char *text,
                          struct error *error)
{
    return trace_memory_append(c->memory, &event, NULL, text, error);
}

static enum status note(struct conversion *c, const char *text, struct error *error)
{
    return append(c, (struct trace_event){.kind = TRACE_NOTE}, text, error);
}

/* "verb,1,2,3" */
static enum status note_numbers(struct conversion *c, const char *verb, const uint64_t *numbers,
                                size_t count, struct error *error)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s", verb);
    for (size_t i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, numbers[i]);
    return note(c, text, error);
}

static struct trace_attributes keys_of(struct conversion *c, unsigned pool, uint32_t tag)
{
    return (struct trace_attributes){
        .pool = pool_ordinal(c, pool),
        .device = (uint32_t)c->world->device,
        .tag = tag ? c->tree->texts.items[tag - 1] : NULL,
    };
}

static struct id_map *places(const struct conversion *c)
{
    return &c->places[world_index(c)];
}

/* ---- the state at the start ------------------------------------------------------------ */

static enum status append_areas(struct conversion *c, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->world->area_count && !status; i++) {
        const struct snapshot_area *area = &c->world->areas[i];
        uint32_t pool = pool_ordinal(c, area->pool);
        uint64_t numbers[] = {area->address, area->bytes, stream_ordinal(c, area->stream), pool};
        if (!area->expandable) {
            status = note_numbers(c, "segment", numbers, pool ? 4 : 3, error);
            continue;
        }
        if (!snapshot_world_joins(i ? area - 1 : NULL, area)) {
            uint64_t range[] = {snapshot_world_base(c->world, c->tree, i), numbers[2], pool};
            status = note_numbers(c, "range", range, pool ? 3 : 2, error);
        }
        if (!status)
            status = note_numbers(c, "pages", numbers, 2, error);
    }
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
static enum status append_places(struct conversion *c, struct error *error)
{
    enum status status = STATUS_OK;
    size_t area = 0;
    for (size_t i = 0; i < c->world->place_count && !status; i++) {
        const struct snapshot_place *place = &c->world->places[i];
        uint64_t bytes = place->granted_bytes ? place->granted_bytes : place->requested_bytes;
        const uint64_t numbers[] = {place->address, bytes, c->next_id + i};
        if (lies_in_area(c->world, place->address, &area))
            status = note_numbers(c, "block", numbers, 3, error);
    }
    return status;
}

static enum status append_initial(struct conversion *c, struct error *error)
{
    enum status status = STATUS_OK;
    size_t area = 0;
    for (size_t i = 0; i < c->world->place_count && !status; i++) {
        const struct snapshot_place *place = &c->world->places[i];
        struct trace_attributes keys = keys_of(c, place->pool, place->tag);
        keys.rest = "initial=yes";
        bool pending = place->state == SNAPSHOT_PENDING && c->world->event_count;
        struct trace_event event = {.kind = TRACE_ALLOC,
                                    .id = c->next_id++,
                                    .value = place->requested_bytes,
                                    .stream = stream_ordinal(c, place->stream)};
        status = trace_memory_append(c->memory, &event, &keys, NULL, error);
        if (!status && id_map_put(places(c), place->address, 2 * event.id + pending))
            status = no_memory(error);
        if (!status && !lies_in_area(c->world, place->address, &area))
            status = note_numbers(c, "alloc", &place->address, 1, error);
        event.kind = TRACE_LET_GO;
        event.stream = TRACE_NO_STREAM;
        if (!status && pending)
            status = append(c, event, NULL, error);
    }
    return status;
}

/* All notes of all devices come before the first event. */
static enum status append_start(struct conversion *c, struct error *error)
{
    enum status status = STATUS_OK;
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

/* ---- events ---------------------------------------------------------------------------- */

static const struct snapshot_record *record_at(const struct conversion *c, size_t at)
{
    return at < c->world->event_count ? snapshot_world_event(c->world, c->tree, at) : NULL;
}

static enum status append_time(struct conversion *c, const struct snapshot_record *record,
                               struct error *error)
{
    if (!record->has_time && c->timed)
        return STATUS_OK;
    if (!c->timed)
        c->begun_us = c->now_us = record->has_time ? record->time_us : 0;
    c->late += record->has_time && record->time_us < c->now_us;
    if (c->timed && record->time_us <= c->now_us)
        return STATUS_OK;
    if (record->has_time && record->time_us - c->begun_us > UINT64_C(1) << 50)
        return error_set(error, STATUS_INVALID,
                         "an entry lies more than 35 years behind the first");
    c->timed = true;
    c->now_us = record->has_time ? record->time_us : 0;
    return append(
        c, (struct trace_event){.kind = TRACE_TIME, .value = (c->now_us - c->begun_us) * 1000},
        NULL, error);
}

static enum status append_alloc(struct conversion *c, const struct snapshot_record *record,
                                struct error *error)
{
    uint64_t value;
    enum status status = STATUS_OK;
    if (id_map_get(places(c), record->address, &value)) {
        c->missing_frees++;
        status = append(c, (struct trace_event){.kind = TRACE_FREE, .id = value / 2}, NULL, error);
    }
    if (status)
        return status;
    struct trace_event event = {.kind = TRACE_ALLOC,
                                .id = c->next_id++,
                                .value = record->bytes,
                                .stream = stream_ordinal(c, record->stream)};
    struct trace_attributes keys = keys_of(c, record->pool ? record->pool - 1 : 0, record->tag);
    status = trace_memory_append(c->memory, &event, &keys, NULL, error);
    if (!status && id_map_put(places(c), record->address, 2 * event.id))
        status = no_memory(error);
    return status ? status : note_numbers(c, "alloc", &record->address, 1, error);
}

/* Is this free requested in one entry of its device and complete in the next? */
static bool is_joined(const struct conversion *c, size_t at, const struct snapshot_record *record)
{
    bool completed = record->action == SNAPSHOT_FREE_COMPLETED;
    const struct snapshot_record *other = completed ? record_at(c, at - 1) : record_at(c, at + 1);
    return other && other->address == record->address &&
           other->action == (completed ? SNAPSHOT_FREE_REQUESTED : SNAPSHOT_FREE_COMPLETED);
}

static enum status append_free(struct conversion *c, size_t at,
                               const struct snapshot_record *record, struct error *error)
{
    uint64_t value;
    bool completed = record->action == SNAPSHOT_FREE_COMPLETED;
    bool joined = is_joined(c, at, record);
    if (!id_map_get(places(c), record->address, &value) || (!completed && value % 2)) {
        c->report->double_frees += !(completed && joined);
        return STATUS_OK;
    }
    struct trace_event event = {.kind = TRACE_FREE, .id = value / 2};
    if (completed) {
        id_map_remove(places(c), record->address);
        return joined && value % 2 ? STATUS_OK : append(c, event, NULL, error);
    }
    if (id_map_put(places(c), record->address, value | 1))
        return no_memory(error);
    event.kind = joined ? TRACE_FREE : TRACE_LET_GO;
    event.stream = joined ? 0 : TRACE_NO_STREAM;
    return append(c, event, NULL, error);
}

static enum status append_oom(struct conversion *c, const struct snapshot_record *record,
                              struct error *error)
{
    bool lives_on = c->events < c->last_request;
    struct trace_event event = {.kind = lives_on ? TRACE_PROBE : TRACE_ALLOC,
                                .id = c->next_id++,
                                .value = record->bytes,
                                .stream = stream_ordinal(c, record->stream)};
    struct trace_attributes keys = keys_of(c, record->pool ? record->pool - 1 : 0, record->tag);
    c->report->failures++;
    c->report->ends_in_failure = !lives_on;
    enum status status = trace_memory_append(c->memory, &event, &keys, NULL, error);
    if (!status)
        status = note_numbers(c, "oom", &record->address, 1, error);
    event.kind = TRACE_LET_GO;
    event.stream = TRACE_NO_STREAM;
    return status ? status : append(c, event, NULL, error);
}

static enum status append_record(struct conversion *c, size_t at,
                                 const struct snapshot_record *record, struct error *error)
{
    static const char *const verbs[] = {
#define X(name, text) text,
        SNAPSHOT_ACTIONS(X)
#undef X
    };
    bool ends = record->action == SNAPSHOT_FREE_COMPLETED && is_joined(c, at, record);
    enum status status = ends ? STATUS_OK : append_time(c, record, error);
    if (status)
        return status;
    switch (record->action) {
    case SNAPSHOT_ALLOC:
        return append_alloc(c, record, error);
    case SNAPSHOT_FREE_REQUESTED:
    case SNAPSHOT_FREE_COMPLETED:
        return append_free(c, at, record, error);
    case SNAPSHOT_OOM:
        return append_oom(c, record, error);
    case SNAPSHOT_SNAPSHOT:
        return note(c, "snapshot", error);
    case SNAPSHOT_SEGMENT_ALLOC:
    case SNAPSHOT_SEGMENT_FREE:
    case SNAPSHOT_SEGMENT_MAP:
    case SNAPSHOT_SEGMENT_UNMAP: {
        const uint64_t numbers[] = {record->address, record->bytes,
                                    stream_ordinal(c, record->stream)};
        return note_numbers(c, verbs[record->action], numbers, 3, error);
    }
    default:
        c->report->left_out++;
        return STATUS_OK;
    }
}

/* The device whose entry comes next. */
static struct snapshot_world *next_world(struct conversion *c, const size_t *at)
{
    struct snapshot_world *next = NULL;
    uint64_t earliest = 0;
    for (size_t i = 0; i < c->world_count; i++) {
        c->world = &c->worlds[i];
        const struct snapshot_record *record;
        if (at[i] == c->world->event_count)
            continue;
        record = record_at(c, at[i]);
        if (next && (!record || !record->has_time || record->time_us >= earliest))
            continue;
        next = c->world;
        earliest = record && record->has_time ? record->time_us : 0;
    }
    return next;
}

/* The last request, counted over all devices: where several are merged, of the one that has it. */
static enum status each_record(struct conversion *c, size_t *at,
                               enum status (*act)(struct conversion *, size_t,
                                                  const struct snapshot_record *, struct error *),
                               bool forget, struct error *error)
{
    enum status status = STATUS_OK;
    memset(at, 0, c->world_count * sizeof *at);
    for (c->events = 0; !status && (c->world = next_world(c, at)) != NULL; c->events++) {
        size_t i = at[world_index(c)]++;
        const struct snapshot_record *record = record_at(c, i);
        if (!record)
            c->report->left_out++;
        else
            status = act(c, i, record, error);
        if (forget && i && i % 4096 == 0)
            snapshot_forget_below(c->tree, c->world->first_record + i - 1);
    }
    return status;
}

static enum status note_request(struct conversion *c, size_t at,
                                const struct snapshot_record *record, struct error *error)
{
    (void)at;
    (void)error;
    if (record->action == SNAPSHOT_ALLOC || record->action == SNAPSHOT_OOM)
        c->last_request = c->events;
    return STATUS_OK;
}

static enum status append_events(struct conversion *c, struct error *error)
{
    size_t *at = calloc(c->world_count + 1, sizeof *at);
    bool forget = c->world_count == 1 && !c->worlds[0].records;
    if (!at)
        return no_memory(error);
    enum status status = each_record(c, at, note_request, false, error);
    c->report->left_out = 0;
    if (!status)
        status = each_record(c, at, append_record, forget, error);
    free(at);
    return status;
}

/* ---- the state at the end -------------------------------------------------------------- */

static enum status append_end(struct conversion *c, struct error *error)
{
    static const char *const states[] = {
        [SNAPSHOT_ACTIVE] = "used", [SNAPSHOT_PENDING] = "pending", [SNAPSHOT_INACTIVE] = "free"};
    char text[128];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->world->final_area_count && !status; i++) {
        const struct snapshot_area *area = &c->world->final_areas[i];
        uint32_t pool = pool_ordinal(c, area->pool);
        const uint64_t numbers[] = {area->address, area->bytes, stream_ordinal(c, area->stream),
                                    pool};
        status = note_numbers(c, "final_segment", numbers, pool ? 4 : 3, error);
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
        status = note(c, text, error);
    }
    return status;
}

static void say_guesses(const struct conversion *c)
{
    struct import_report *report = c->report;
    uint64_t pools = 0, sizes = 0, contradictions = 0, pending = 0;
    bool has_times = false, lacks_times = false;
    for (size_t i = 0; i < c->world_count; i++) {
        const struct snapshot_world *world = &c->worlds[i];
        report->records += world->event_count;
        report->unmatched_frees += world->unmatched_frees;
        report->begins_in_the_middle |= world->area_count || world->place_count;
        pools += world->unknown_pools;
        for (size_t k = 0; k < world->place_count && !world->event_count; k++)
            pending += world->places[k].state == SNAPSHOT_PENDING;
        sizes += world->unknown_sizes;
        contradictions += world->contradictions;
        has_times |= world->has_times;
        lacks_times |= world->lacks_times;
    }
    if (pools && c->pool_count > 1)
        import_guess(report,
                     "%" PRIu64 " segments were given back before the end, so their pool is not "
                     "told: taken for the common one",
                     pools);
    if (pending)
        import_guess(report,
                     "%" PRIu64 " blocks wait for their free to be complete, which no history "
                     "tells of: taken for in use",
                     pending);
    if (sizes)
        import_guess(report,
                     "%" PRIu64 " blocks of the start do not tell what was asked for: taken for "
                     "all of their bytes",
                     sizes);
    if (contradictions)
        import_guess(report,
                     "%" PRIu64 " entries about segments do not fit those at the end: passed over "
                     "in the state at the start",
                     contradictions);
    if (c->missing_frees)
        import_guess(report,
                     "%" PRIu64 " addresses were given out again and never freed: taken for freed "
                     "at that moment",
                     c->missing_frees);
    if (c->late)
        import_guess(report,
                     "%" PRIu64 " entries are earlier than the one before: time stands "
                     "still there",
                     c->late);
    if (lacks_times && report->records)
        import_guess(report, has_times ? "some entries have no time: taken for that of the one "
                                         "before"
                                       : "its entries have no times: no time passes");
    if (lacks_times && c->world_count > 1)
        import_guess(report, "without times, what the devices did is put one behind the other");
    char action[40];
    field_text(c->tree->texts.items[c->tree->first_unknown], action, sizeof action);
    if (c->tree->unknown_actions)
        import_guess(report, "%" PRIu64 " entries of an action that is not known (%s): left out",
                     c->tree->unknown_actions, action);
}

enum status snapshot_trace(struct snapshot_tree *tree, struct snapshot_world *worlds, size_t count,
                           struct trace_memory *memory, struct import_report *report,
                           struct error *error)
{
    struct conversion *c = calloc(1, sizeof *c);
    enum status status = STATUS_OK;
    if (!c)
        return no_memory(error);
    c->tree = tree;
    c->worlds = worlds;
    c->world_count = count;
    c->memory = memory;
    c->report = report;
    c->streams = calloc(count + 1, SNAPSHOT_STREAMS_MOST * sizeof *c->streams);
    c->places = calloc(count + 1, sizeof *c->places);
    if (!c->streams || !c->places)
        status = no_memory(error);
    c->world = worlds;
    if (!status)
        (void)stream_ordinal(c, 0);
    (void)pool_ordinal(c, 0);
    if (!status)
        status = append_start(c, error);
    if (!status)
        status = append_events(c, error);
    for (size_t i = 0; i < count && !status; i++) {
        c->world = &worlds[i];
        status = append_end(c, error);
    }
    if (!status)
        say_guesses(c);
    for (size_t i = 0; i < count && c->places; i++)
        id_map_close(&c->places[i]);
    free(c->places);
    free(c->streams);
    free(c);
    return status;
}
