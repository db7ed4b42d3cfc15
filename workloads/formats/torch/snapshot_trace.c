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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/torch/snapshot_world.h"
#include "workloads/io/fields.h"

/* What the parts of the conversion of a snapshot share: snapshot_trace.c has the states at the start and
 * at the end, snapshot_events.c what happened in between, snapshot_guesses.c what is said of it. */

struct conversion {
    struct snapshot_tree *tree;
    struct snapshot_world *world; /* in hand */
    struct snapshot_world *worlds;
    size_t world_count;
    const struct snapshot_marks *marks;
    size_t next_mark;
    const size_t *at; /* by world: its entries that were taken, that in hand too */
    struct trace_memory *memory;
    struct import_report *report;
    uint64_t next_id, begun_us, now_us, events;
    bool timed;            /* a time was written */
    struct ar_map *places; /* by world: 2 * id + 1 where it is let go, by address */
    uint32_t *streams;     /* ordinal + 1 by device and index */
    uint32_t stream_count;
    uint32_t pools[SNAPSHOT_POOLS_MOST]; /* ordinal + 1 */
    uint32_t pool_count;
    uint64_t last_request; /* events from the last request on */
    uint64_t missing_frees, late;
    uint64_t early_marks, unplaced_marks; /* before the first entry; without a place */
};

enum ar_status conversion_no_memory(struct ar_error *error);

/* Which of the devices is in hand, and the map of its blocks. */
size_t conversion_world(const struct conversion *c);
struct ar_map *conversion_places(const struct conversion *c);

/* The trace's ordinals of the tree's streams and pools. */
uint32_t conversion_stream(struct conversion *c, unsigned stream);
uint32_t conversion_pool(struct conversion *c, unsigned pool);

/* The keys of a request. */
struct trace_attributes conversion_keys(struct conversion *c, unsigned pool, uint32_t tag);

enum ar_status conversion_append(struct conversion *c, struct trace_event event, const char *text,
                                 struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status conversion_note(struct conversion *c, const char *text,
                               struct ar_error *error) AR_STATUS_CHECKED;
/* "verb,1,2,3" */
enum ar_status conversion_note_numbers(struct conversion *c, const char *verb,
                                       const uint64_t *numbers, size_t count,
                                       struct ar_error *error) AR_STATUS_CHECKED;

/* Appends all entries of all devices, and the marks. */
enum ar_status conversion_events(struct conversion *c, struct ar_error *error) AR_STATUS_CHECKED;

/* Once, after all else: what was guessed goes to the report, with the counts of the devices. */
void conversion_say_guesses(const struct conversion *c);

/* The entries of a snapshot's history as events, with the marks between them: rules 3 to 5 of
 * snapshot_trace.c, and
 *
 * 8. An annotation is a mark (snapshot_marks.c) before the entry that it comes before: as it says
 *    itself, else by their times, where an end comes behind the entries of its microsecond and all
 *    else before them. One that is older than the history is at its beginning. */

/* ---- events ---------------------------------------------------------------------------- */

static const struct snapshot_record *record_at(const struct conversion *c, size_t at)
{
    return at < c->world->event_count ? snapshot_world_event(c->world, c->tree, at) : NULL;
}

/* It is so late now; time never goes back. The first time is the beginning. */
static enum ar_status pass_time(struct conversion *c, uint64_t time_us, struct ar_error *error)
{
    if (!c->timed)
        c->begun_us = time_us;
    else if (time_us <= c->now_us)
        return AR_OK;
    if (time_us - c->begun_us > UINT64_C(1) << 50)
        return ar_error_set(error, AR_INVALID, "an entry lies more than 35 years behind the first");
    c->timed = true;
    c->now_us = time_us;
    return conversion_append(
        c, (struct trace_event){.kind = TRACE_TIME, .value = (c->now_us - c->begun_us) * 1000},
        NULL, error);
}

static enum ar_status append_time(struct conversion *c, const struct snapshot_record *record,
                                  struct ar_error *error)
{
    if (!record->has_time && c->timed)
        return AR_OK;
    c->late += c->timed && record->time_us < c->now_us;
    return pass_time(c, record->has_time ? record->time_us : 0, error);
}

/* ---- marks ----------------------------------------------------------------------------- */

static enum ar_status append_mark(struct conversion *c, const struct snapshot_mark *mark,
                                  struct ar_error *error)
{
    const char *const *texts = c->tree->texts.items;
    char rest[2 * SNAPSHOT_MARK_BYTES + 16];
    int used = 0;
    if (mark->name)
        used = snprintf(rest, sizeof rest, "name=%s", texts[mark->name - 1]);
    if (mark->stage)
        used += snprintf(rest + used, sizeof rest - (size_t)used, "%sstage=%s", used ? "," : "",
                         texts[mark->stage - 1]);
    const struct trace_attributes keys = {.device = (uint32_t)mark->device,
                                          .rest = used ? rest : NULL};
    enum ar_status status = mark->has_time ? pass_time(c, mark->time_us, error) : AR_OK;
    return status ? status
                  : trace_memory_append(c->memory, &(struct trace_event){.kind = TRACE_MARK}, &keys,
                                        texts[mark->label], error);
}

/* How many entries of a device were taken before that in hand; UINT64_MAX: it has none at all. */
static uint64_t taken_of(const struct conversion *c, uint64_t device)
{
    for (size_t i = 0; i < c->world_count; i++)
        if (c->worlds[i].device == device && c->worlds[i].event_count)
            return c->at[i] - (&c->worlds[i] == c->world);
    return UINT64_MAX;
}

/* Whether a mark comes before the entry in hand: what it says, else by their times, of which an end
 * is behind the entries of its microsecond and all else before them. */
static bool is_due(const struct conversion *c, const struct snapshot_mark *mark,
                   const struct snapshot_record *record)
{
    if (mark->entry != UINT64_MAX)
        return taken_of(c, mark->device) >= mark->entry;
    if (!mark->has_time || !record->has_time)
        return false;
    bool ends = mark->stage && strcmp(c->tree->texts.items[mark->stage - 1], "end") == 0;
    ends |= strcmp(c->tree->texts.items[mark->label], "step") == 0;
    return ends ? mark->time_us < record->time_us : mark->time_us <= record->time_us;
}

/* Those before an entry. What comes before the first is at its time. */
static enum ar_status append_marks(struct conversion *c, const struct snapshot_record *record,
                                   struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (; c->next_mark < c->marks->count && !status; c->next_mark++) {
        const struct snapshot_mark *mark = &c->marks->items[c->next_mark];
        if (!is_due(c, mark, record))
            break;
        if (!c->timed)
            status = append_time(c, record, error);
        c->early_marks += mark->has_time && mark->time_us < c->begun_us;
        if (!status)
            status = append_mark(c, mark, error);
    }
    return status;
}

static enum ar_status append_last_marks(struct conversion *c, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (; c->next_mark < c->marks->count && !status; c->next_mark++) {
        const struct snapshot_mark *mark = &c->marks->items[c->next_mark];
        bool placed = mark->entry != UINT64_MAX || (mark->has_time && c->timed);
        c->unplaced_marks += !placed && c->events;
        status = append_mark(c, mark, error);
    }
    return status;
}

/* ---- requests and frees ---------------------------------------------------------------- */

static enum ar_status append_alloc(struct conversion *c, const struct snapshot_record *record,
                                   struct ar_error *error)
{
    uint64_t value;
    enum ar_status status = AR_OK;
    if (ar_map_get(conversion_places(c), record->address, &value)) {
        c->missing_frees++;
        status = conversion_append(
            c, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = value / 2}, NULL, error);
    }
    if (status)
        return status;
    struct trace_event event = {.kind = TRACE_ALLOC,
                                .id = c->next_id++,
                                .value = record->bytes,
                                .stream = conversion_stream(c, record->stream)};
    struct trace_attributes keys =
        conversion_keys(c, record->pool ? record->pool - 1 : 0, record->tag);
    status = trace_memory_append(c->memory, &event, &keys, NULL, error);
    if (!status && ar_map_put(conversion_places(c), record->address, 2 * event.id))
        status = conversion_no_memory(error);
    return status ? status : conversion_note_numbers(c, "alloc", &record->address, 1, error);
}

/* Is this free requested in one entry of its device and complete in the next? */
static bool is_joined(const struct conversion *c, size_t at, const struct snapshot_record *record)
{
    bool completed = record->action == SNAPSHOT_FREE_COMPLETED;
    const struct snapshot_record *other = completed ? record_at(c, at - 1) : record_at(c, at + 1);
    return other && other->address == record->address &&
           other->action == (completed ? SNAPSHOT_FREE_REQUESTED : SNAPSHOT_FREE_COMPLETED);
}

static enum ar_status append_free(struct conversion *c, size_t at,
                                  const struct snapshot_record *record, struct ar_error *error)
{
    uint64_t value;
    bool completed = record->action == SNAPSHOT_FREE_COMPLETED;
    bool joined = is_joined(c, at, record);
    if (!ar_map_get(conversion_places(c), record->address, &value) || (!completed && value % 2)) {
        c->report->double_frees += !(completed && joined);
        return AR_OK;
    }
    struct trace_event event = {.kind = TRACE_FREE_COMPLETED, .id = value / 2};
    if (completed) {
        ar_map_remove(conversion_places(c), record->address);
        return joined && value % 2 ? AR_OK : conversion_append(c, event, NULL, error);
    }
    if (ar_map_put(conversion_places(c), record->address, value | 1))
        return conversion_no_memory(error);
    event.kind = joined ? TRACE_FREE_COMPLETED : TRACE_FREE_REQUESTED;
    event.stream = joined ? 0 : TRACE_NO_STREAM;
    return conversion_append(c, event, NULL, error);
}

static enum ar_status append_oom(struct conversion *c, const struct snapshot_record *record,
                                 struct ar_error *error)
{
    bool lives_on = c->events < c->last_request;
    struct trace_event event = {.kind = lives_on ? TRACE_PROBE : TRACE_ALLOC,
                                .id = c->next_id++,
                                .value = record->bytes,
                                .stream = conversion_stream(c, record->stream)};
    struct trace_attributes keys =
        conversion_keys(c, record->pool ? record->pool - 1 : 0, record->tag);
    c->report->failures++;
    c->report->ends_in_failure = !lives_on;
    enum ar_status status = trace_memory_append(c->memory, &event, &keys, NULL, error);
    if (!status)
        status = conversion_note_numbers(c, "oom", &record->address, 1, error);
    event.kind = TRACE_FREE_REQUESTED;
    event.stream = TRACE_NO_STREAM;
    return status ? status : conversion_append(c, event, NULL, error);
}

/* What the program said of a block in use. */
static enum ar_status append_annotation(struct conversion *c, const struct snapshot_record *record,
                                        struct ar_error *error)
{
    char text[160];
    snprintf(text, sizeof text, "annotate,%" PRIu64 ",%s", record->address,
             record->tag ? c->tree->texts.items[record->tag - 1] : "");
    return conversion_note(c, text, error);
}

static enum ar_status append_record(struct conversion *c, size_t at,
                                    const struct snapshot_record *record, struct ar_error *error)
{
    static const char *const verbs[] = {
#define X(name, text) text,
        SNAPSHOT_ACTIONS(X)
#undef X
    };
    bool ends = record->action == SNAPSHOT_FREE_COMPLETED && is_joined(c, at, record);
    enum ar_status status = ends ? AR_OK : append_marks(c, record, error);
    if (!status && !ends)
        status = append_time(c, record, error);
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
        return conversion_note(c, "snapshot", error);
    case SNAPSHOT_SEGMENT_ALLOC:
    case SNAPSHOT_SEGMENT_FREE:
    case SNAPSHOT_SEGMENT_MAP:
    case SNAPSHOT_SEGMENT_UNMAP: {
        const uint64_t numbers[] = {record->address, record->bytes,
                                    conversion_stream(c, record->stream)};
        return conversion_note_numbers(c, verbs[record->action], numbers, 3, error);
    }
    case SNAPSHOT_ANNOTATE:
        return append_annotation(c, record, error);
    default:
        c->report->left_out++;
        return AR_OK;
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
static enum ar_status each_record(struct conversion *c, size_t *at,
                                  enum ar_status (*act)(struct conversion *, size_t,
                                                        const struct snapshot_record *,
                                                        struct ar_error *),
                                  bool forget, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    memset(at, 0, c->world_count * sizeof *at);
    c->at = at;
    for (c->events = 0; !status && (c->world = next_world(c, at)) != NULL; c->events++) {
        size_t i = at[conversion_world(c)]++;
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

static enum ar_status note_request(struct conversion *c, size_t at,
                                   const struct snapshot_record *record, struct ar_error *error)
{
    (void)at;
    (void)error;
    if (record->action == SNAPSHOT_ALLOC || record->action == SNAPSHOT_OOM)
        c->last_request = c->events;
    return AR_OK;
}

enum ar_status conversion_events(struct conversion *c, struct ar_error *error)
{
    size_t *at = calloc(c->world_count + 1, sizeof *at);
    bool forget = c->world_count == 1 && !c->worlds[0].records;
    uint64_t left_out = c->report->left_out;
    if (!at)
        return conversion_no_memory(error);
    enum ar_status status = each_record(c, at, note_request, false, error);
    c->report->left_out = left_out;
    if (!status)
        status = each_record(c, at, append_record, forget, error);
    if (!status)
        status = append_last_marks(c, error);
    free(at);
    return status;
}

/* What the conversion of a snapshot guessed, as sentences of its import report: pools, blocks, times
 * and annotations, and what it could not use. */

/* Of all devices together. */
struct guessed {
    uint64_t unknown_pools, private_pools, unknown_sizes, contradictions, pending;
    bool has_times, lacks_times, pools_untold, completions_lack;
};

static void add(struct guessed *sum, const struct snapshot_world *world)
{
    sum->unknown_pools += world->unknown_pools;
    sum->private_pools += world->private_pools;
    sum->unknown_sizes += world->unknown_sizes;
    sum->contradictions += world->contradictions;
    sum->completions_lack |= world->no_completions;
    sum->pools_untold |= !world->tells_pools && world->event_count;
    sum->has_times |= world->has_times;
    sum->lacks_times |= world->lacks_times;
    for (size_t k = 0; k < world->place_count && !world->event_count; k++)
        sum->pending += world->places[k].state == SNAPSHOT_PENDING;
}

/* "7 segments are ..", where there are any. */
static void say(const struct conversion *c, uint64_t count, const char *what)
{
    if (count)
        import_guess(c->report, "%" PRIu64 " %s", count, what);
}

static void say_pools(const struct conversion *c, const struct guessed *sum)
{
    say(c, sum->private_pools,
        "segments do not tell their pool: taken for private ones, since free memory in them was "
        "passed over, or kept where all was given back");
    if (sum->pools_untold)
        import_guess(c->report, "its segments do not tell their pools: taken for the common one");
    if (sum->unknown_pools && c->pool_count > 1)
        import_guess(c->report,
                     "%" PRIu64 " segments were given back before the end, so their pool is not "
                     "told: taken for the common one",
                     sum->unknown_pools);
}

static void say_blocks(const struct conversion *c, const struct guessed *sum)
{
    if (sum->completions_lack)
        import_guess(c->report, "it does not tell when frees are complete: taken for at once");
    say(c, sum->pending,
        "blocks wait for their free to be complete, which no history tells of: taken for in use");
    say(c, sum->unknown_sizes,
        "blocks of the start do not tell what was asked for: taken for all of their bytes");
    say(c, sum->contradictions,
        "entries about segments do not fit those at the end: passed over in the state at the "
        "start");
    say(c, c->missing_frees,
        "addresses were given out again and never freed: taken for freed at that moment");
}

static void say_times(const struct conversion *c, const struct guessed *sum)
{
    say(c, c->late, "entries are earlier than the one before: time stands still there");
    say(c, c->early_marks, "annotations are older than the history: marks at its beginning");
    say(c, c->unplaced_marks,
        "annotations cannot be placed, since there are no times: marks at the end");
    if (sum->lacks_times && c->report->records)
        import_guess(c->report, sum->has_times ? "some entries have no time: taken for that of the "
                                                 "one before"
                                               : "its entries have no times: no time passes");
    if (sum->lacks_times && c->world_count > 1)
        import_guess(c->report, "without times, what the devices did is put one behind the other");
}

void conversion_say_guesses(const struct conversion *c)
{
    struct guessed sum = {0};
    char action[40];
    for (size_t i = 0; i < c->world_count; i++) {
        const struct snapshot_world *world = &c->worlds[i];
        c->report->records += world->event_count;
        c->report->unmatched_frees += world->unmatched_frees;
        c->report->begins_in_the_middle |= world->area_count || world->place_count;
        add(&sum, world);
    }
    if (c->world_count > 1)
        import_guess(c->report,
                     "it tells of %zu devices, which follow each other as their times do: convert "
                     "--device N takes one",
                     c->world_count);
    say_pools(c, &sum);
    say_blocks(c, &sum);
    say_times(c, &sum);
    field_text(c->tree->texts.items[c->tree->first_unknown], action, sizeof action);
    if (c->tree->unknown_actions)
        import_guess(c->report, "%" PRIu64 " entries of an action that is not known (%s): left out",
                     c->tree->unknown_actions, action);
}

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
