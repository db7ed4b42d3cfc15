/* The history of a snapshot as a trace: its entries become events as the rows of a recorded CSV do.
 *
 * 1. Streams and pools become ordinals as they come: the default stream of the first device is 0,
 *    the common pool is 0. Streams of other devices are streams of their own.
 * 2. The state at the start comes first, as FORMAT.md says: segments, blocks, then the requests of
 *    the blocks in use, with initial=yes, and a free request for those that are pending.
 * 3. A free that is completed in the next entry of its device is one `f`; else `r`, later `f`. If
 *    all completions come so and a block is pending at the end, all frees are `r` and `f`: of `f`
 *    beside an `r` without a completion one would read that this block is completed, too.
 * 4. A block at an address where one is in use: the free in between is missing, and inserted. A
 *    free of an address that is not in use is omitted.
 * 5. Several devices are merged by time; without times, they follow each other. The cache of pinned
 *    host memory is merged as one more: its requests have space=pinned and the bytes of its blocks,
 *    which are all that is recorded. A free of a block that is older than the history is left out.
 * 6. At the end come the segments and blocks of the snapshot, as notes.
 * 7. For a device without a history, pending blocks are taken for blocks in use: a trace in which
 *    no completion follows any free request is one whose free requests are final.
 * 8. An annotation is a mark (snapshot_marks.c) in front of an entry: of the one that it names,
 *    else by time, where an end comes after the entries of its microsecond and everything else
 *    before them. An annotation that is older than the history is at its beginning. */

#include "workloads/formats/torch/snapshot_world.h"
#include "workloads/io/fields.h"

struct conversion {
    struct snapshot_tree *tree;
    struct snapshot_world *world; /* the current device */
    struct snapshot_world *worlds;
    size_t world_count;
    const struct snapshot_marks *marks;
    size_t next_mark;
    const size_t *at; /* by world: the number of its entries up to the current one */
    struct format_reading *reading;
    uint64_t next_id, begun_us, now_us, events;
    bool timed;            /* a time was written */
    bool apart;            /* no free is joined with its completion */
    struct ar_map *blocks; /* by world: address -> 2 * id, + 1 if its free was requested */
    uint32_t *streams;     /* ordinal + 1 by device and index */
    uint32_t stream_count;
    uint32_t pools[SNAPSHOT_POOLS_MOST]; /* ordinal + 1 */
    uint32_t pool_count;
    uint64_t last_request; /* the number of the event of the last request */
    uint64_t missing_frees, late;
    uint64_t early_marks, unplaced_marks; /* before the first entry; without a position */
};

/* The index of the current device. */
static size_t world_index(const struct conversion *c)
{
    return (size_t)(c->world - c->worlds);
}

/* The ordinals of the trace for streams and pools of the tree. */
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

static enum ar_status append(struct conversion *c, struct trace_event event, struct ar_error *error)
{
    return format_event(c->reading, event, NULL, NULL, error);
}

/* The keys of a request. */
static struct trace_attributes request_keys(struct conversion *c, unsigned pool, uint32_t tag)
{
    return (struct trace_attributes){
        .pool = pool_ordinal(c, pool),
        .mempool = c->tree->whole[pool] ? TRACE_MEMPOOL_NO_SPLIT : 0,
        .device = (uint32_t)c->world->device,
        .tag = tag ? c->tree->texts.items[tag - 1] : NULL,
    };
}

/* The blocks of the current device. */
static struct ar_map *blocks_of(const struct conversion *c)
{
    return &c->blocks[world_index(c)];
}

/* ---- events ---------------------------------------------------------------------------- */

static const struct snapshot_record *record_at(const struct conversion *c, size_t at)
{
    return at < c->world->event_count ? snapshot_world_event(c->world, c->tree, at) : NULL;
}

/* Advances the time, which never goes back. The first time is the beginning. */
static enum ar_status pass_time(struct conversion *c, uint64_t time_us, struct ar_error *error)
{
    if (!c->timed)
        c->begun_us = time_us;
    else if (time_us <= c->now_us)
        return AR_OK;
    if (time_us - c->begun_us > UINT64_C(1) << 50)
        return ar_invalid(error, "an entry is more than 35 years after the first");
    c->timed = true;
    c->now_us = time_us;
    return append(
        c, (struct trace_event){.kind = TRACE_TIME, .value = (c->now_us - c->begun_us) * 1000},
        error);
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
    AR_TRY(mark->has_time ? pass_time(c, mark->time_us, error) : AR_OK);
    if (mark->is_change)
        return format_event(c->reading, (struct trace_event){.kind = TRACE_NOTE}, NULL,
                            texts[mark->label], error);
    return format_event(c->reading, (struct trace_event){.kind = TRACE_MARK}, &keys,
                        texts[mark->label], error);
}

/* The number of entries of a device before the current one; UINT64_MAX: it has no entries. */
static uint64_t taken_of(const struct conversion *c, uint64_t device)
{
    for (size_t i = 0; i < c->world_count; i++)
        if (c->worlds[i].device == device && c->worlds[i].event_count)
            return c->at[i] - (&c->worlds[i] == c->world);
    return UINT64_MAX;
}

/* Whether a mark comes before the current entry: rule 8. */
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

/* The marks before an entry. Those before the first are at its time. */
static enum ar_status append_marks(struct conversion *c, const struct snapshot_record *record,
                                   struct ar_error *error)
{
    for (; c->next_mark < c->marks->count; c->next_mark++) {
        const struct snapshot_mark *mark = &c->marks->items[c->next_mark];
        if (!is_due(c, mark, record))
            break;
        if (!c->timed)
            AR_TRY(append_time(c, record, error));
        c->early_marks += mark->has_time && mark->time_us < c->begun_us;
        AR_TRY(append_mark(c, mark, error));
    }
    return AR_OK;
}

static enum ar_status append_last_marks(struct conversion *c, struct ar_error *error)
{
    for (; c->next_mark < c->marks->count; c->next_mark++) {
        const struct snapshot_mark *mark = &c->marks->items[c->next_mark];
        bool placed = mark->entry != UINT64_MAX || (mark->has_time && c->timed);
        c->unplaced_marks += !placed && c->events;
        AR_TRY(append_mark(c, mark, error));
    }
    return AR_OK;
}

/* ---- requests and frees ---------------------------------------------------------------- */

static enum ar_status append_alloc(struct conversion *c, const struct snapshot_record *record,
                                   struct ar_error *error)
{
    uint64_t value;
    if (ar_map_get(blocks_of(c), record->address, &value)) {
        c->missing_frees++;
        AR_TRY(
            append(c, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = value / 2}, error));
    }
    struct trace_event event = {.kind = TRACE_ALLOC,
                                .id = c->next_id++,
                                .value = record->bytes,
                                .stream =
                                    c->world->is_host ? 0 : stream_ordinal(c, record->stream)};
    struct trace_attributes keys =
        request_keys(c, record->pool ? record->pool - 1 : 0, record->tag);
    if (c->world->is_host)
        keys.space = TRACE_SPACE_PINNED;
    AR_TRY(format_event(c->reading, event, &keys, NULL, error));
    if (ar_map_put(blocks_of(c), record->address, 2 * event.id))
        return format_no_memory(error);
    return c->world->is_host ? AR_OK
                             : format_note_numbers(c->reading, "alloc", &record->address, 1, error);
}

/* Whether this free is requested in one entry of its device and completed in the next. */
static bool is_at_once(const struct conversion *c, size_t at, const struct snapshot_record *record)
{
    bool completed = record->action == SNAPSHOT_FREE_COMPLETED;
    const struct snapshot_record *other = completed ? record_at(c, at - 1) : record_at(c, at + 1);
    return other && other->address == record->address &&
           other->action == (completed ? SNAPSHOT_FREE_REQUESTED : SNAPSHOT_FREE_COMPLETED);
}

static bool is_joined(const struct conversion *c, size_t at, const struct snapshot_record *record)
{
    return !c->apart && is_at_once(c, at, record);
}

/* Whether all completions come at once, and a block is pending at the end. */
static bool must_split(struct conversion *c)
{
    bool pending = false, completed = false;
    for (c->world = c->worlds; c->world < c->worlds + c->world_count; c->world++) {
        for (size_t i = 0; i < c->world->event_count; i++) {
            const struct snapshot_record *record = record_at(c, i);
            if (!record || record->action != SNAPSHOT_FREE_COMPLETED)
                continue;
            completed = true;
            if (!is_at_once(c, i, record))
                return false;
        }
        for (size_t i = 0; c->world->event_count && i < c->world->final_place_count; i++)
            pending |= c->world->final_places[i].state == SNAPSHOT_PENDING;
    }
    return completed && pending;
}

static enum ar_status append_free(struct conversion *c, size_t at,
                                  const struct snapshot_record *record, struct ar_error *error)
{
    uint64_t value;
    bool completed = record->action == SNAPSHOT_FREE_COMPLETED;
    bool joined = is_joined(c, at, record);
    if (!ar_map_get(blocks_of(c), record->address, &value) || (!completed && value % 2)) {
        c->reading->report->double_frees += !(completed && is_at_once(c, at, record));
        return AR_OK;
    }
    struct trace_event event = {.kind = TRACE_FREE_COMPLETED, .id = value / 2};
    if (completed) {
        ar_map_remove(blocks_of(c), record->address);
        return joined && value % 2 ? AR_OK : append(c, event, error);
    }
    if (ar_map_put(blocks_of(c), record->address, value | 1))
        return format_no_memory(error);
    event.kind = joined ? TRACE_FREE_COMPLETED : TRACE_FREE_REQUESTED;
    event.stream = joined ? 0 : TRACE_NO_STREAM;
    return append(c, event, error);
}

static enum ar_status append_oom(struct conversion *c, const struct snapshot_record *record,
                                 struct ar_error *error)
{
    char note[32];
    const struct trace_event request = {
        .id = c->next_id++, .value = record->bytes, .stream = stream_ordinal(c, record->stream)};
    const struct trace_attributes keys =
        request_keys(c, record->pool ? record->pool - 1 : 0, record->tag);
    snprintf(note, sizeof note, "oom,%" PRIu64, record->address);
    return format_failure(c->reading, request, &keys, c->events < c->last_request, note, error);
}

static enum ar_status append_record(struct conversion *c, size_t at,
                                    const struct snapshot_record *record, struct ar_error *error)
{
    static const char *const verbs[] = {
#define X(name, text) text,
        SNAPSHOT_ACTIONS(X)
#undef X
    };
    if (record->action != SNAPSHOT_FREE_COMPLETED || !is_joined(c, at, record)) {
        AR_TRY(append_marks(c, record, error));
        AR_TRY(append_time(c, record, error));
    }
    if (c->world->is_host && record->action >= SNAPSHOT_SEGMENT_ALLOC &&
        record->action <= SNAPSHOT_SEGMENT_UNMAP)
        return AR_OK; /* of the cache, whose decisions are its policy's */
    switch (record->action) {
    case SNAPSHOT_ALLOC:
        return append_alloc(c, record, error);
    case SNAPSHOT_FREE_REQUESTED:
    case SNAPSHOT_FREE_COMPLETED:
        return append_free(c, at, record, error);
    case SNAPSHOT_OOM:
        return append_oom(c, record, error);
    case SNAPSHOT_SNAPSHOT:
        return format_note(c->reading, error, "snapshot");
    case SNAPSHOT_SEGMENT_ALLOC:
    case SNAPSHOT_SEGMENT_FREE:
    case SNAPSHOT_SEGMENT_MAP:
    case SNAPSHOT_SEGMENT_UNMAP: {
        const uint64_t numbers[] = {record->address, record->bytes,
                                    stream_ordinal(c, record->stream)};
        return format_note_numbers(c->reading, verbs[record->action], numbers, 3, error);
    }
    case SNAPSHOT_ANNOTATE:
        return format_note(c->reading, error, "annotate,%" PRIu64 ",%s", record->address,
                           record->tag ? c->tree->texts.items[record->tag - 1] : "");
    default:
        c->reading->report->left_out++;
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

/* Gives the entries of all devices, merged by time, to `act`. */
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
        size_t i = at[world_index(c)]++;
        const struct snapshot_record *record = record_at(c, i);
        if (!record)
            c->reading->report->left_out++;
        else
            status = act(c, i, record, error);
        if (forget && i && i % 4096 == 0)
            snapshot_forget_below(c->tree, c->world->first_record + i - 1);
    }
    return status;
}

static enum ar_status note_request(struct conversion *c, size_t at AR_UNUSED,
                                   const struct snapshot_record *record,
                                   struct ar_error *error AR_UNUSED)
{
    if (record->action == SNAPSHOT_ALLOC || record->action == SNAPSHOT_OOM)
        c->last_request = c->events;
    return AR_OK;
}

/* Appends all entries of all devices, and the marks. */
static enum ar_status append_events(struct conversion *c, struct ar_error *error)
{
    AR_FREED size_t *at = calloc(c->world_count + 1, sizeof *at);
    bool forget = c->world_count == 1 && !c->worlds[0].records;
    uint64_t left_out = c->reading->report->left_out;
    AR_TRY_MEMORY(at, error, "the file");
    AR_TRY(each_record(c, at, note_request, false, error));
    c->reading->report->left_out = left_out;
    AR_TRY(each_record(c, at, append_record, forget, error));
    return append_last_marks(c, error);
}

/* ---- the report ------------------------------------------------------------------------ */

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

static void say_pools(const struct conversion *c, const struct guessed *sum)
{
    import_guess_count(c->reading->report, sum->private_pools,
                       "segments name no pool: taken for private ones, because free memory in them "
                       "was passed over, or kept when the rest was released");
    if (sum->pools_untold)
        import_guess(c->reading->report, "its segments name no pools: taken for the common one");
    if (sum->unknown_pools && c->pool_count > 1)
        import_guess(c->reading->report,
                     "%" PRIu64 " segments were released before the end, so their pool is unknown: "
                     "taken for the common one",
                     sum->unknown_pools);
}

static void say_blocks(const struct conversion *c, const struct guessed *sum)
{
    if (sum->completions_lack)
        import_guess(c->reading->report,
                     "it has no completions: each free is taken for completed at once");
    import_guess_count(c->reading->report, sum->pending,
                       "blocks are pending, and there is no history: taken for in use");
    import_guess_count(c->reading->report, sum->unknown_sizes,
                       "blocks of the start have no requested bytes: taken for all of their bytes");
    import_guess_count(
        c->reading->report, sum->contradictions,
        "entries of segments contradict those at the end: ignored in the state at the start");
    import_guess_count(
        c->reading->report, c->missing_frees,
        "addresses were given out again and never freed: taken for freed at that moment");
}

static void say_times(const struct conversion *c, const struct guessed *sum)
{
    import_guess_count(c->reading->report, c->late,
                       "entries are earlier than the one before: the time does not advance there");
    import_guess_count(c->reading->report, c->early_marks,
                       "annotations are older than the history: marks at its beginning");
    import_guess_count(
        c->reading->report, c->unplaced_marks,
        "annotations cannot be placed, because there are no times: marks at the end");
    if (sum->lacks_times && c->reading->report->records)
        import_guess(c->reading->report,
                     sum->has_times ? "some entries have no time: taken for that of the one before"
                                    : "its entries have no times: no time passes");
    if (sum->lacks_times && c->world_count > 1)
        import_guess(c->reading->report, "without times, the devices follow each other");
}

/* Adds the assumptions and the counts of the devices to the report. */
static void say_guesses(const struct conversion *c)
{
    struct guessed sum = {0};
    char action[40];
    for (size_t i = 0; i < c->world_count; i++) {
        const struct snapshot_world *world = &c->worlds[i];
        c->reading->report->records += world->event_count;
        c->reading->report->unmatched_frees += world->unmatched_frees;
        c->reading->report->begins_in_the_middle |= world->areas.count || world->place_count;
        add(&sum, world);
    }
    size_t devices = c->world_count - c->worlds[c->world_count - 1].is_host;
    if (devices > 1)
        import_guess(c->reading->report,
                     "it tells of %zu devices, merged by time: convert --device N takes one",
                     devices);
    say_pools(c, &sum);
    say_blocks(c, &sum);
    say_times(c, &sum);
    field_text(c->tree->texts.items[c->tree->first_unknown], action, sizeof action);
    if (c->tree->unknown_actions)
        import_guess(c->reading->report,
                     "%" PRIu64 " entries of an action that is not known (%s): left out",
                     c->tree->unknown_actions, action);
}

/* ---- the state at the start ------------------------------------------------------------ */

static enum ar_status append_areas(struct conversion *c, struct ar_error *error)
{
    AR_FREED uint64_t *bases = snapshot_world_bases(c->world, c->tree);
    AR_TRY(bases ? AR_OK : format_no_memory(error));
    for (size_t i = 0; i < c->world->areas.count; i++) {
        const struct snapshot_area *area = &c->world->areas.items[i];
        uint32_t pool = pool_ordinal(c, area->pool);
        uint64_t numbers[] = {area->address, area->bytes, stream_ordinal(c, area->stream), pool};
        if (!area->expandable) {
            AR_TRY(format_note_numbers(c->reading, "segment", numbers, pool ? 4 : 3, error));
            continue;
        }
        if (!snapshot_world_joins(c->world, i)) {
            uint64_t range[] = {bases[i], numbers[2], pool};
            AR_TRY(format_note_numbers(c->reading, "range", range, pool ? 3 : 2, error));
        }
        AR_TRY(format_note_numbers(c->reading, "pages", numbers, 2, error));
    }
    return AR_OK;
}

static bool lies_in_area(const struct snapshot_world *world, uint64_t address, size_t *area)
{
    while (*area < world->areas.count &&
           world->areas.items[*area].address + world->areas.items[*area].bytes <= address)
        ++*area;
    return *area < world->areas.count && world->areas.items[*area].address <= address;
}

/* The bytes of a block. In a pool that hands out whole blocks it has all up to the next one. */
static uint64_t bytes_of(const struct conversion *c, size_t index, const struct snapshot_area *area)
{
    const struct snapshot_place *place = &c->world->places[index], *next = place + 1;
    uint64_t end = area->address + area->bytes;
    if (place->granted_bytes || !c->tree->whole[place->pool])
        return place->granted_bytes ? place->granted_bytes : place->requested_bytes;
    if (index + 1 < c->world->place_count && next->address < end)
        end = next->address;
    if (place->free_behind && place->free_behind < end)
        end = place->free_behind;
    return end - place->address;
}

/* The addresses of the blocks; blocks outside of every segment get a note with their request. */
static enum ar_status append_places(struct conversion *c, struct ar_error *error)
{
    size_t area = 0;
    for (size_t i = 0; i < c->world->place_count; i++) {
        const struct snapshot_place *place = &c->world->places[i];
        if (!lies_in_area(c->world, place->address, &area))
            continue;
        const uint64_t numbers[] = {place->address, bytes_of(c, i, &c->world->areas.items[area]),
                                    c->next_id + i};
        AR_TRY(format_note_numbers(c->reading, "block", numbers, 3, error));
    }
    return AR_OK;
}

static enum ar_status append_initial(struct conversion *c, struct ar_error *error)
{
    size_t area = 0;
    for (size_t i = 0; i < c->world->place_count; i++) {
        const struct snapshot_place *place = &c->world->places[i];
        struct trace_attributes keys = request_keys(c, place->pool, place->tag);
        keys.rest = "initial=yes";
        bool pending = place->state == SNAPSHOT_PENDING && c->world->event_count;
        struct trace_event event = {.kind = TRACE_ALLOC,
                                    .id = c->next_id++,
                                    .value = place->requested_bytes,
                                    .stream = stream_ordinal(c, place->stream)};
        AR_TRY(format_event(c->reading, event, &keys, NULL, error));
        if (ar_map_put(blocks_of(c), place->address, 2 * event.id + pending))
            return format_no_memory(error);
        if (!lies_in_area(c->world, place->address, &area))
            AR_TRY(format_note_numbers(c->reading, "alloc", &place->address, 1, error));
        event.kind = TRACE_FREE_REQUESTED;
        event.stream = TRACE_NO_STREAM;
        if (pending)
            AR_TRY(append(c, event, error));
    }
    return AR_OK;
}

/* All notes of all devices come before the first event. */
static enum ar_status append_start(struct conversion *c, struct ar_error *error)
{
    uint64_t first_id = c->next_id;
    for (c->world = c->worlds; c->world < c->worlds + c->world_count; c->world++)
        AR_TRY(append_areas(c, error));
    for (c->world = c->worlds; c->world < c->worlds + c->world_count; c->world++) {
        AR_TRY(append_places(c, error));
        c->next_id += c->world->place_count;
    }
    c->next_id = first_id;
    for (c->world = c->worlds; c->world < c->worlds + c->world_count; c->world++)
        AR_TRY(append_initial(c, error));
    return AR_OK;
}

/* ---- the state at the end -------------------------------------------------------------- */

static enum ar_status append_end(struct conversion *c, struct ar_error *error)
{
    static const char *const states[] = {
        [SNAPSHOT_ACTIVE] = "used", [SNAPSHOT_PENDING] = "pending", [SNAPSHOT_INACTIVE] = "free"};
    for (size_t i = 0; i < c->world->final_area_count; i++) {
        const struct snapshot_area *area = &c->world->final_areas[i];
        uint32_t pool = pool_ordinal(c, area->pool);
        const uint64_t numbers[] = {area->address, area->bytes, stream_ordinal(c, area->stream),
                                    pool};
        AR_TRY(format_note_numbers(c->reading, "final_segment", numbers, pool ? 4 : 3, error));
    }
    for (size_t i = 0; i < c->world->final_place_count; i++) {
        const struct snapshot_place *place = &c->world->final_places[i];
        unsigned state = place->state;
        if (state == SNAPSHOT_PENDING && !c->world->event_count)
            state = SNAPSHOT_ACTIVE;
        char asked_bytes[24] = "";
        if (place->state != SNAPSHOT_INACTIVE && place->size_known)
            snprintf(asked_bytes, sizeof asked_bytes, ",%" PRIu64, place->requested_bytes);
        AR_TRY(format_note(c->reading, error, "final_block,%" PRIu64 ",%" PRIu64 ",%s%s",
                           place->address, place->granted_bytes, states[state], asked_bytes));
    }
    return AR_OK;
}

enum ar_status snapshot_trace(struct snapshot_tree *tree, struct snapshot_world *worlds,
                              size_t count, const struct snapshot_marks *marks,
                              struct format_reading *reading, struct ar_error *error)
{
    struct conversion *c = calloc(1, sizeof *c);
    enum ar_status status = AR_OK;
    AR_TRY_MEMORY(c, error, "the file");
    c->tree = tree;
    c->worlds = worlds;
    c->world_count = count;
    c->marks = marks;
    c->reading = reading;
    c->streams = calloc(count + 1, SNAPSHOT_STREAMS_MOST * sizeof *c->streams);
    c->blocks = calloc(count + 1, sizeof *c->blocks);
    if (!c->streams || !c->blocks)
        status = format_no_memory(error);
    c->apart = must_split(c);
    c->world = worlds;
    if (!status)
        (void)stream_ordinal(c, 0);
    (void)pool_ordinal(c, 0);
    AR_THEN(status, append_start(c, error));
    AR_THEN(status, append_events(c, error));
    for (size_t i = 0; i < count && !status; i++) {
        c->world = &worlds[i];
        status = append_end(c, error);
    }
    if (!status)
        say_guesses(c);
    for (size_t i = 0; i < count && c->blocks; i++)
        ar_map_close(&c->blocks[i]);
    free(c->blocks);
    free(c->streams);
    free(c);
    return status;
}
