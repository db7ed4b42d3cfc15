/* Parts of a trace.
 *
 * What: a source that keeps some events of another and repeats them. How:
 * 1. Every block of the source has an entry by its slot: whether it is kept, and its new id,
 *    since ids count up without gaps.
 * 2. Before the first step asked for, requests and frees are only noted down; where it begins,
 *    the blocks that are live then are emitted, in the order of their ids.
 * 3. Where only steps are left out of a recording, it stays one: the state in which the part
 *    begins comes first, as notes (state.c), and blocks that are let go and not complete are in it.
 * 4. At the end of a repetition that is not the last, what is left over is freed. */
#include "workloads/trace/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/trace/rewrite.h"
#include "workloads/trace/state.h"

enum block_state { GONE, LIVE, FREE_REQUESTED };

struct filter_block {
    uint64_t id;      /* in the source */
    uint64_t new_id;  /* valid where it was emitted */
    uint64_t address; /* where it was placed, if that is known */
    struct trace_event request;
    uint8_t state;
    bool kept, emitted, placed;
};

struct filter {
    struct trace_rewrite base;
    struct trace_source *source;
    struct trace_filter_options options;
    uint32_t *streams, device;
    bool drops_notes, keeps_state;
    struct trace_state recorded_state;
    uint32_t last_slot;          /* of the last request */
    struct filter_block *blocks; /* by the source's slot */
    size_t block_count;
    uint8_t *recorded; /* a bit per event number that was emitted */
    uint64_t next_id, told_id, step, round;
    uint64_t requests;   /* of the source in this round */
    struct ar_map names; /* the new ids of blocks that were emitted and are there, by the old */
    uint64_t time_base_ns, time_ns; /* of this repetition's start; of the event emitted last */
    uint64_t source_ns, origin_ns;  /* the source's time; the same where the part began */
    bool inside;                    /* within the steps asked for */
    bool splits;                    /* a completion followed a let-go */
};

static enum ar_status block_at(struct filter *filter, uint32_t slot, struct filter_block **block,
                               struct ar_error *error)
{
    if (slot >= filter->block_count) {
        size_t count = slot + (size_t)slot / 2 + 64;
        struct filter_block *blocks = realloc(filter->blocks, count * sizeof *blocks);
        if (!blocks)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the blocks of a trace");
        memset(blocks + filter->block_count, 0, (count - filter->block_count) * sizeof *blocks);
        filter->blocks = blocks;
        filter->block_count = count;
    }
    *block = &filter->blocks[slot];
    return AR_OK;
}

static bool keeps_kind(const struct filter *filter, unsigned kind)
{
    return !filter->options.kinds || filter->options.kinds & 1u << kind;
}

static bool keeps_stream(const struct filter *filter, uint32_t stream)
{
    for (size_t i = 0; i < filter->options.stream_count; i++)
        if (filter->streams[i] == stream)
            return true;
    return !filter->options.stream_count;
}

static bool keeps_device(const struct filter *filter, const struct trace_event *event)
{
    return !filter->options.device ||
           trace_attributes_of(filter->source, event->attributes)->device == filter->device;
}

static enum ar_status emit(struct filter *filter, struct trace_event event,
                           const struct trace_attributes *attributes, struct ar_error *error)
{
    return trace_rewrite_emit(&filter->base, filter->source, event, attributes, error);
}

static enum ar_status emit_request(struct filter *filter, struct filter_block *block, bool initial,
                                   struct ar_error *error)
{
    struct trace_event request = block->request;
    struct trace_attributes keys;
    char *rest = NULL;
    block->new_id = request.id = filter->next_id++;
    block->emitted = true;
    if (ar_map_put(&filter->names, block->id, block->new_id) != AR_OK)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the blocks of a trace");
    if (!initial)
        return emit(filter, request, NULL, error);
    keys = *trace_attributes_of(filter->source, request.attributes);
    static const char key[] = "initial=yes";
    if (!keys.rest || !strstr(keys.rest, key)) {
        size_t room = (keys.rest ? strlen(keys.rest) + 1 : 0) + sizeof key;
        rest = malloc(room);
        if (!rest)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the keys of a trace");
        (void)snprintf(rest, room, "%s%s%s", keys.rest ? keys.rest : "", keys.rest ? "," : "", key);
        keys.rest = rest;
    }
    enum ar_status status = emit(filter, request, &keys, error);
    free(rest);
    return status;
}

static enum ar_status take_request(struct filter *filter, const struct trace_event *event,
                                   struct ar_error *error)
{
    filter->requests++;
    struct filter_block *block;
    enum ar_status status = block_at(filter, event->slot, &block, error);
    if (status)
        return status;
    *block = (struct filter_block){
        .id = event->id,
        .request = *event,
        .state = LIVE,
        .kept = keeps_kind(filter, event->kind) && event->value >= filter->options.min_bytes &&
                keeps_stream(filter, event->stream) && keeps_device(filter, event),
    };
    filter->last_slot = event->slot;
    return block->kept && filter->inside ? emit_request(filter, block, false, error) : AR_OK;
}

/* A let-go, a free or a use of a block that is kept and was emitted. */
static enum ar_status take_block_event(struct filter *filter, const struct trace_event *given,
                                       struct ar_error *error)
{
    struct trace_event event = *given;
    struct filter_block *block;
    enum ar_status status = block_at(filter, event.slot, &block, error);
    if (status || !block->kept || block->id != event.id)
        return status;
    if (event.kind != TRACE_USE)
        ar_map_remove(&filter->names, event.id);
    bool was_free_requested = block->state == FREE_REQUESTED;
    if (event.kind == TRACE_FREE_REQUESTED || event.kind == TRACE_FREE_COMPLETED)
        block->state = event.kind == TRACE_FREE_COMPLETED ? GONE : FREE_REQUESTED;
    filter->splits |= was_free_requested;
    if (block->state == GONE && block->placed)
        trace_state_freed(&filter->recorded_state, block->address);
    if (!block->emitted)
        return AR_OK;
    event.id = block->new_id;
    if (event.kind == TRACE_FREE_REQUESTED && filter->options.at_once)
        event.kind = TRACE_FREE_COMPLETED;
    else if (event.kind == TRACE_FREE_COMPLETED && filter->options.at_once && was_free_requested)
        return AR_OK;
    if (event.kind == TRACE_FREE_REQUESTED && !keeps_stream(filter, event.stream))
        event.stream = TRACE_NO_STREAM;
    if (!keeps_kind(filter, event.kind) ||
        (event.kind == TRACE_USE && !keeps_stream(filter, event.stream)))
        return AR_OK;
    return emit(filter, event, NULL, error);
}

/* Follows what the recorded allocator holds. */
static enum ar_status take_note(struct filter *filter, const struct trace_event *event,
                                struct ar_error *error)
{
    static const char verb[] = "alloc,";
    const char *text = trace_text_of(filter->source, event->value);
    struct filter_block *block;
    if (strncmp(text, verb, sizeof verb - 1) != 0)
        return trace_state_note(&filter->recorded_state, text, error);
    enum ar_status status = block_at(filter, filter->last_slot, &block, error);
    if (status)
        return status;
    block->address = strtoull(text + sizeof verb - 1, NULL, 10);
    block->placed = true;
    uint32_t attributes = block->request.attributes;
    return trace_state_placed(
        &filter->recorded_state, block->address, block->request.value,
        attributes ? trace_attributes_of(filter->source, attributes)->pool : 0, error);
}

/* Events that an emitted `e` gave their number; a wait for another is left out. */
static enum ar_status recorded_bit(struct filter *filter, const struct trace_event *event,
                                   bool *keep, struct ar_error *error)
{
    if (!filter->recorded) {
        filter->recorded = calloc(TRACE_EVENT_LIMIT / 8, 1);
        if (!filter->recorded)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the events of a trace");
    }
    *keep = true;
    if (event->value >= TRACE_EVENT_LIMIT)
        return AR_OK; /* the check says so */
    uint8_t bit = (uint8_t)(1u << event->value % 8);
    if (event->kind == TRACE_RECORD)
        filter->recorded[event->value / 8] |= bit;
    else
        *keep = filter->recorded[event->value / 8] & bit;
    return AR_OK;
}

static bool find_name(const void *names, uint64_t id, uint64_t *new_id)
{
    return ar_map_get(names, id, new_id);
}

static enum ar_status take_kernel(struct filter *filter, struct trace_event event,
                                  struct ar_error *error)
{
    const struct trace_rewrite_names names = {.lookup = find_name,
                                              .argument = &filter->names,
                                              .next_id = filter->requests,
                                              .new_next_id = filter->next_id};
    return trace_rewrite_kernel(&filter->base, filter->source, event, NULL, &names, error);
}

static enum ar_status take_other(struct filter *filter, const struct trace_event *given,
                                 struct ar_error *error)
{
    struct trace_event event = *given;
    bool has_stream = event.kind >= TRACE_KERNEL && event.kind <= TRACE_SYNC;
    bool keep =
        keeps_kind(filter, event.kind) &&
        (!has_stream || event.stream == TRACE_NO_STREAM || keeps_stream(filter, event.stream)) &&
        (event.kind != TRACE_NOTE || !filter->drops_notes) &&
        (event.kind == TRACE_TIME || event.kind == TRACE_MARK || keeps_device(filter, &event));
    if (event.kind == TRACE_TIME)
        event.value = filter->time_ns = filter->time_base_ns + event.value - filter->origin_ns;
    if (keep && (event.kind == TRACE_RECORD || event.kind == TRACE_WAIT)) {
        enum ar_status status = recorded_bit(filter, &event, &keep, error);
        if (status)
            return status;
    }
    if (keep && event.kind == TRACE_KERNEL && event.attributes)
        return take_kernel(filter, event, error);
    return keep ? emit(filter, event, NULL, error) : AR_OK;
}

static int by_id(const void *left, const void *right)
{
    uint64_t a = (*(const struct filter_block *const *)left)->id;
    uint64_t b = (*(const struct filter_block *const *)right)->id;
    return (a > b) - (a < b);
}

/* Calls `act` for each kept block that is not gone, in the order of ids. */
static enum ar_status each_left(struct filter *filter,
                                enum ar_status (*act)(struct filter *, struct filter_block *,
                                                      struct ar_error *),
                                struct ar_error *error)
{
    size_t count = 0;
    struct filter_block **left = malloc((filter->block_count + 1) * sizeof *left);
    if (!left)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the blocks of a trace");
    for (size_t i = 0; i < filter->block_count; i++)
        if (filter->blocks[i].kept && filter->blocks[i].state != GONE)
            left[count++] = &filter->blocks[i];
    qsort(left, count, sizeof(struct filter_block *), by_id);
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = act(filter, left[i], error);
    free(left);
    return status;
}

/* Is there a state to tell, of a recorded allocator that holds something? */
static bool has_state(const struct filter *filter)
{
    return filter->keeps_state && filter->recorded_state.count;
}

/* Is the block among those with which the part begins? What was let go before is only where the
 * recorded allocator is followed. */
static bool is_there(const struct filter *filter, const struct filter_block *block)
{
    return block->state == LIVE || (has_state(filter) && filter->source->info.has_split_frees);
}

static enum ar_status tell(struct filter *filter, struct filter_block *block,
                           struct ar_error *error)
{
    char text[96];
    if (!is_there(filter, block))
        return AR_OK;
    block->new_id = filter->told_id++; /* as emit_request will give it */
    if (!block->placed)
        return AR_OK;
    snprintf(text, sizeof text, "block,%llu,%llu,%llu", (unsigned long long)block->address,
             (unsigned long long)trace_state_bytes(&filter->recorded_state, block->address),
             (unsigned long long)block->new_id);
    return trace_rewrite_note(&filter->base, text, error);
}

static enum ar_status begin_with(struct filter *filter, struct filter_block *block,
                                 struct ar_error *error)
{
    if (!is_there(filter, block))
        return AR_OK;
    enum ar_status status = emit_request(filter, block, true, error);
    if (status || block->state == LIVE)
        return status;
    const struct trace_event free_requested = {
        .kind = TRACE_FREE_REQUESTED, .id = block->new_id, .stream = TRACE_NO_STREAM};
    return emit(filter, free_requested, NULL, error);
}

/* What was there where the part begins. */
static enum ar_status begin(struct filter *filter, struct ar_error *error)
{
    char text[96];
    enum ar_status status = AR_OK;
    for (size_t i = 0; has_state(filter) && !status &&
                       trace_state_print(&filter->recorded_state, i, text, sizeof text);
         i++)
        status = trace_rewrite_note(&filter->base, text, error);
    filter->told_id = filter->next_id;
    if (!status && has_state(filter))
        status = each_left(filter, tell, error);
    return status ? status : each_left(filter, begin_with, error);
}

static enum ar_status end_with(struct filter *filter, struct filter_block *block,
                               struct ar_error *error)
{
    if (!block->emitted || (block->state == FREE_REQUESTED && !filter->splits))
        return AR_OK;
    block->state = GONE;
    return emit(filter, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = block->new_id},
                NULL, error);
}

/* The end of a step, or the start of the trace: the part asked for may begin or end here. */
static enum ar_status enter_step(struct filter *filter, uint64_t step, struct ar_error *error)
{
    const struct trace_filter_options *o = &filter->options;
    filter->step = step;
    bool inside = !o->first_step || (step >= o->first_step && step <= o->last_step);
    bool begins = inside && !filter->inside;
    filter->inside = inside;
    if (begins)
        filter->origin_ns = filter->source_ns;
    return begins && step > 1 ? begin(filter, error) : AR_OK;
}

static enum ar_status take_event(struct filter *filter, const struct trace_event *event,
                                 struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (event->kind == TRACE_TIME)
        filter->source_ns = event->value;
    if (event->kind == TRACE_NOTE && filter->keeps_state && !filter->inside)
        status = take_note(filter, event, error);
    else if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE)
        status = take_request(filter, event, error);
    else if (trace_kind_has_block(event->kind))
        status = take_block_event(filter, event, error);
    else if (filter->inside)
        status = take_other(filter, event, error);
    if (!status && event->kind == TRACE_MARK && event->flags & TRACE_STEP)
        status = enter_step(filter, filter->step + 1, error);
    return status;
}

static enum ar_status begin_round(struct filter *filter, struct ar_error *error)
{
    if (filter->block_count)
        memset(filter->blocks, 0, filter->block_count * sizeof *filter->blocks);
    trace_state_close(&filter->recorded_state);
    filter->inside = false;
    filter->requests = 0;
    ar_map_clear(&filter->names);
    filter->source_ns = 0;
    filter->time_base_ns = filter->time_ns;
    enum ar_status status = trace_rewind(filter->source, error);
    return status ? status : enter_step(filter, 1, error);
}

static enum ar_status filter_fill(struct trace_rewrite *self, struct ar_error *error)
{
    struct filter *filter = (struct filter *)self;
    while (!self->count) {
        const struct trace_event *events;
        size_t count;
        enum ar_status status = trace_next(filter->source, &events, &count, error);
        bool past = filter->options.first_step && filter->step > filter->options.last_step;
        if (!status && (!count || past)) {
            if (filter->round + 1 >= filter->options.repeat)
                return AR_OK;
            filter->round++;
            status = each_left(filter, end_with, error);
            if (!status)
                status = begin_round(filter, error);
            count = 0;
        }
        for (size_t i = 0; i < count && !status; i++)
            if (!filter->options.first_step || filter->step <= filter->options.last_step)
                status = take_event(filter, &events[i], error);
        if (status)
            return status;
    }
    return AR_OK;
}

static enum ar_status filter_restart(struct trace_rewrite *self, struct ar_error *error)
{
    struct filter *filter = (struct filter *)self;
    filter->next_id = filter->round = 0;
    filter->splits = false;
    filter->time_ns = 0;
    if (filter->recorded)
        memset(filter->recorded, 0, TRACE_EVENT_LIMIT / 8);
    return begin_round(filter, error);
}

static void filter_close(struct trace_rewrite *self)
{
    struct filter *filter = (struct filter *)self;
    trace_close(filter->source);
    trace_state_close(&filter->recorded_state);
    free(filter->streams);
    free(filter->blocks);
    ar_map_close(&filter->names);
    free(filter->recorded);
}

static const struct trace_rewrite_ops filter_ops = {
    .fill = filter_fill, .restart = filter_restart, .close = filter_close};

static enum ar_status set_options(struct filter *filter, const struct trace_filter_options *options,
                                  struct ar_error *error)
{
    filter->options = *options;
    filter->options.streams = NULL;
    filter->device = options->device ? *options->device : 0;
    filter->drops_notes = options->device || options->stream_count || options->min_bytes ||
                          options->at_once || options->repeat > 1;
    filter->keeps_state =
        options->first_step && !filter->drops_notes && keeps_kind(filter, TRACE_NOTE);
    if (options->stream_count) {
        filter->streams = malloc(options->stream_count * sizeof *filter->streams);
        if (!filter->streams)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a filter");
        memcpy(filter->streams, options->streams, options->stream_count * sizeof *filter->streams);
    }
    return AR_OK;
}

enum ar_status trace_filter(struct trace_source *source, const struct trace_filter_options *options,
                            struct trace_source **out, struct ar_error *error)
{
    struct filter *filter = calloc(1, sizeof *filter);
    if (!filter) {
        trace_close(source);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a filter");
    }
    filter->source = source;
    filter->base.ops = &filter_ops;
    filter->base.base.info = source->info;
    enum ar_status status = set_options(filter, options, error);
    if (status) {
        filter_close(&filter->base);
        free(filter);
        return status;
    }
    status = trace_rewrite_open(&filter->base, error);
    if (status)
        return status;
    const struct trace_info *left = &filter->base.base.info;
    bool blocks_wanted = !options->kinds && (options->device || options->stream_count);
    if (!left->events || (blocks_wanted && !(left->allocs || left->probes || left->kernels) &&
                          (source->info.allocs || source->info.probes))) {
        status = ar_error_set(error, AR_INVALID,
                              "%s: nothing is left after the filter: it has %llu "
                              "steps and %u streams",
                              source->info.name, (unsigned long long)source->info.steps,
                              source->info.streams);
        trace_close(&filter->base.base);
        return status;
    }
    *out = &filter->base.base;
    return AR_OK;
}

enum ar_status trace_filter_kinds(const char *letters, uint32_t *kinds, struct ar_error *error)
{
    static const char all[] = " aprfukewscomt!"; /* by enum trace_kind */
    *kinds = 0;
    for (const char *at = letters; *at; at++) {
        const char *found = strchr(all + 1, *at);
        if (*at == ',')
            continue;
        if (!found)
            return ar_error_set(error, AR_INVALID,
                                "\"%c\" in \"%.40s\" is no kind of event; they are %s", *at,
                                letters, all + 1);
        *kinds |= 1u << (found - all);
    }
    if (!*kinds)
        return ar_error_set(error, AR_INVALID, "no kind of event is named; they are %s", all + 1);
    return AR_OK;
}

enum ar_status trace_filter_steps(const char *text, struct trace_filter_options *options,
                                  struct ar_error *error)
{
    char first[32];
    const char *dash = strchr(text, '-');
    size_t length = dash ? (size_t)(dash - text) : strlen(text);
    bool good = length && length < sizeof first;
    if (good) {
        memcpy(first, text, length);
        first[length] = 0;
        good = ar_count_parse(first, &options->first_step, NULL) == AR_OK;
        options->last_step = options->first_step;
    }
    if (good && dash && dash[1])
        good = ar_count_parse(dash + 1, &options->last_step, NULL) == AR_OK;
    else if (good && dash)
        options->last_step = UINT64_MAX;
    if (!good || !options->first_step || options->last_step < options->first_step)
        return ar_error_set(error, AR_INVALID,
                            "steps \"%.40s\": write A-B, A- or A, counted from 1", text);
    return AR_OK;
}
