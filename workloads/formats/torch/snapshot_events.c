/* The entries of a snapshot's history as events, with the marks between them: rules 3 to 5 of
 * snapshot_trace.c, and
 *
 * 8. An annotation is a mark (snapshot_marks.c) before the entry that it comes before: as it says
 *    itself, else by their times, where an end comes behind the entries of its microsecond and all
 *    else before them. One that is older than the history is at its beginning. */
#include "workloads/formats/torch/snapshot_conversion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
