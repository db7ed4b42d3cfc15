/* Several traces at the same time: one source with the events of all, each trace in its own order.
 * 1. If all have recorded times, the trace with the earliest time is next, ties in the order given;
 *    else the trace with the smallest share of its events so far.
 * 2. Streams of a trace follow those of the traces before it; its event numbers become number ×
 *    traces + trace, its blocks get new ids, its events the key tenant=trace.
 * 3. Notes are left out, because no allocator was recorded with the result. Notes on changes of the
 *    allocator are refused: the result has one allocator, and they are of one process. */
#include "workloads/trace/filter.h"

#include "allocators/base/array.h"
#include "workloads/trace/rewrite.h"

struct part {
    struct trace_source *source;
    const struct trace_event *events; /* the current span */
    size_t at, count;
    bool ended;
    uint64_t given, time_ns;
    uint32_t first_stream;
    uint64_t *ids; /* the new id by the source's slot */
    size_t id_count;
    struct ar_map names; /* the new id of each block, by its old one */
    uint64_t requests;
};

struct merge {
    struct trace_rewrite base;
    struct part *parts;
    size_t part_count;
    bool by_time;
    uint64_t next_id, time_ns;
};

/* Pulls until the part has a next event that is not a time; times set the part's clock. */
static enum ar_status look_ahead(struct part *part, struct ar_error *error)
{
    while (!part->ended) {
        for (; part->at < part->count; part->at++, part->given++) {
            if (part->events[part->at].kind != TRACE_TIME)
                return AR_OK;
            part->time_ns = part->events[part->at].value;
        }
        part->at = 0;
        AR_TRY(trace_next(part->source, &part->events, &part->count, error));
        part->ended = !part->count;
    }
    return AR_OK;
}

/* Whether `a` is before `b`, which is later in the list. */
static bool goes_first(const struct merge *merge, const struct part *a, const struct part *b)
{
    if (merge->by_time)
        return a->time_ns <= b->time_ns;
    double a_share = (double)a->given / (double)(a->source->info.events + 1);
    double b_share = (double)b->given / (double)(b->source->info.events + 1);
    return a_share <= b_share;
}

static enum ar_status new_id(struct part *part, const struct trace_event *event, uint64_t **id,
                             struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(part->ids, part->id_count, event->slot), error,
                  "the blocks of a trace");
    *id = &part->ids[event->slot];
    return AR_OK;
}

/* Keeps the names of blocks for kernels, until their free is requested. */
static enum ar_status name_block(struct part *part, const struct trace_event *event,
                                 uint64_t new_id, struct ar_error *error)
{
    if (event->kind == TRACE_FREE_REQUESTED || event->kind == TRACE_FREE_COMPLETED)
        ar_map_remove(&part->names, event->id);
    if (event->kind != TRACE_ALLOC && event->kind != TRACE_PROBE)
        return AR_OK;
    part->requests++;
    if (ar_map_put(&part->names, event->id, new_id) != AR_OK)
        return ar_no_memory(error, "the blocks of a trace");
    return AR_OK;
}

static bool find_name(const void *part, uint64_t id, uint64_t *new_id)
{
    return ar_map_get(&((const struct part *)part)->names, id, new_id);
}

static enum ar_status emit_time(struct merge *merge, struct part *part, struct ar_error *error)
{
    if (!merge->by_time || part->time_ns <= merge->time_ns)
        return AR_OK;
    merge->time_ns = part->time_ns;
    const struct trace_event event = {.kind = TRACE_TIME, .value = part->time_ns};
    return trace_rewrite_emit(&merge->base, part->source, event, NULL, error);
}

/* A note on what the program changes cannot be left out, and is of one process only. */
static enum ar_status refuse_change(struct part *part, const struct trace_event *event,
                                    struct ar_error *error)
{
    return ar_invalid(
        error,
        "%s: event %llu: the note \"%.60s\" is on the allocator of one process, and a "
        "merge has one allocator for all; to leave it out, convert this trace first, "
        "with --events %.*s%s",
        part->source->info.name, (unsigned long long)(part->given - 1),
        trace_text_of(part->source, event->value), TRACE_NOTE - 1, TRACE_LETTERS,
        &TRACE_LETTERS[TRACE_NOTE]);
}

static enum ar_status emit_next(struct merge *merge, struct part *part, struct ar_error *error)
{
    struct trace_event event = part->events[part->at++];
    part->given++;
    if (event.kind == TRACE_NOTE)
        return trace_is_change(&event) ? refuse_change(part, &event, error) : AR_OK;
    AR_TRY(emit_time(merge, part, error));
    if (trace_kind_has_block(event.kind)) {
        uint64_t *id = NULL;
        AR_TRY(new_id(part, &event, &id, error));
        if (event.kind == TRACE_ALLOC || event.kind == TRACE_PROBE)
            *id = merge->next_id++;
        AR_TRY(name_block(part, &event, *id, error));
        event.id = *id;
    }
    if (trace_kind_has_stream(event.kind) && event.stream != TRACE_NO_STREAM)
        event.stream += part->first_stream;
    size_t tenant = (size_t)(part - merge->parts);
    if (event.kind == TRACE_RECORD || event.kind == TRACE_WAIT)
        event.value = event.value * merge->part_count + tenant;
    struct trace_attributes keys = *trace_attributes_of(part->source, event.attributes);
    keys.tenant = (uint32_t)tenant;
    keys.given = (uint16_t)(keys.given | TRACE_GIVEN_TENANT);
    if (event.kind != TRACE_KERNEL)
        return trace_rewrite_emit(&merge->base, part->source, event, &keys, error);
    const struct trace_rewrite_names names = {.lookup = find_name,
                                              .argument = part,
                                              .next_id = part->requests,
                                              .new_next_id = merge->next_id};
    return trace_rewrite_kernel(&merge->base, part->source, event, &keys, &names, error);
}

/* The last time of all traces. */
static enum ar_status emit_end(struct merge *merge, struct ar_error *error)
{
    struct part *last = &merge->parts[0];
    for (size_t i = 1; i < merge->part_count; i++)
        if (merge->parts[i].time_ns > last->time_ns)
            last = &merge->parts[i];
    return emit_time(merge, last, error);
}

static enum ar_status merge_fill(struct trace_rewrite *self, struct ar_error *error)
{
    struct merge *merge = (struct merge *)self;
    while (self->count < 4096) {
        struct part *next = NULL;
        for (size_t i = 0; i < merge->part_count; i++) {
            struct part *part = &merge->parts[i];
            AR_TRY(look_ahead(part, error));
            if (!part->ended && (!next || !goes_first(merge, next, part)))
                next = part;
        }
        if (!next)
            return emit_end(merge, error);
        AR_TRY(emit_next(merge, next, error));
    }
    return AR_OK;
}

static enum ar_status merge_restart(struct trace_rewrite *self, struct ar_error *error)
{
    struct merge *merge = (struct merge *)self;
    merge->next_id = merge->time_ns = 0;
    for (size_t i = 0; i < merge->part_count; i++) {
        struct part *part = &merge->parts[i];
        part->at = part->count = 0;
        part->ended = false;
        part->given = part->time_ns = part->requests = 0;
        ar_map_clear(&part->names);
        AR_TRY(trace_rewind(part->source, error));
    }
    return AR_OK;
}

static void merge_close(struct trace_rewrite *self)
{
    struct merge *merge = (struct merge *)self;
    for (size_t i = 0; i < merge->part_count; i++) {
        trace_close(merge->parts[i].source);
        free(merge->parts[i].ids);
        ar_map_close(&merge->parts[i].names);
    }
    free(merge->parts);
}

static const struct trace_rewrite_ops merge_ops = {
    .fill = merge_fill, .restart = merge_restart, .close = merge_close};

/* The names of all parts, with + between. */
static void name_all(struct trace_info *info, const struct part *parts, size_t count)
{
    char both[2 * sizeof info->name];
    for (size_t i = 0; i < count; i++) {
        int used = snprintf(both, sizeof both, "%s%s%s", info->name, i ? "+" : "",
                            parts[i].source->info.name);
        trace_name_put(info->name, sizeof info->name, both, (size_t)used);
    }
}

static void describe(struct merge *merge)
{
    struct trace_info *info = &merge->base.base.info;
    uint32_t streams = 0;
    name_all(info, merge->parts, merge->part_count);
    info->complete = true;
    merge->by_time = true;
    for (size_t i = 0; i < merge->part_count; i++) {
        const struct trace_info *from = &merge->parts[i].source->info;
        merge->parts[i].first_stream = streams;
        streams += from->streams;
        info->complete &= from->complete;
        merge->by_time &= from->has_times;
    }
    (void)snprintf(info->format, sizeof info->format, "%s", merge->parts[0].source->info.format);
    (void)snprintf(info->card, sizeof info->card, "%s", merge->parts[0].source->info.card);
    info->capacity_bytes = merge->parts[0].source->info.capacity_bytes;
}

enum ar_status trace_merge(struct trace_source *const *sources, size_t count,
                           struct trace_source **out, struct ar_error *error)
{
    struct merge *merge = calloc(1, sizeof *merge);
    struct part *parts = calloc(count + 1, sizeof *parts);
    if (!merge || !parts || !count) {
        for (size_t i = 0; i < count; i++)
            trace_close(sources[i]);
        free(merge);
        free(parts);
        return count ? ar_no_memory(error, "a merge") : ar_invalid(error, "a merge of no traces");
    }
    merge->base.ops = &merge_ops;
    merge->parts = parts;
    merge->part_count = count;
    for (size_t i = 0; i < count; i++)
        parts[i].source = sources[i];
    describe(merge);
    AR_TRY(trace_rewrite_open(&merge->base, error));
    *out = &merge->base.base;
    return AR_OK;
}
