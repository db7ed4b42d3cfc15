/* See emit.h. The source runs the program when its last chunk has been given out; the emit_
 * functions append to the chunk and keep the free slots as a stack. The first pass to the end goes
 * through the check that every reader uses, which counts and hashes; a later pass gives the same
 * events and is not hashed again, unless the program is adaptive. */
#include "workloads/gen/emit.h"

#include "allocators/base/array.h"
#include "workloads/trace/check.h"

#define LITERALS_MOST 64 /* distinct labels and tags of one generator */

struct literal {
    const char *text;
    uint64_t index; /* in the tables: of the label, or of the keys with the tag */
    bool is_label;
};

struct emit_state {
    struct trace_event *events;
    size_t event_count, event_room;
    size_t given;         /* adaptive: events of the chunk given out so far */
    uint32_t *free_slots; /* a stack */
    size_t free_count, free_room;
    uint32_t next_slot;
    uint64_t next_id;
    uint64_t step_id; /* of the first request of the current step */
    uint64_t events_written, live_bytes;
    struct literal literals[LITERALS_MOST];
    size_t literal_count;
    struct trace_tables tables;
    struct trace_check check;
    void **arrays; /* of emit_array */
    size_t array_count, array_room;
    bool started, ending, ended;
    enum ar_status failed; /* in an emit_ function */
    struct ar_error problem;
};

/* ---- appending ---- */

void emit_fail(struct emit *self, enum ar_status status, const char *format, ...)
{
    char text[sizeof self->state->problem.text];
    AR_PRINT(text, sizeof text, format);
    if (self->state->failed == AR_OK)
        self->state->failed = ar_error_set(&self->state->problem, status, "%s", text);
}

/* Reports a lack of memory unless `done`. */
static void need(struct emit *self, bool done)
{
    if (!done)
        emit_fail(self, AR_HOST_MEMORY, "no host memory");
}

void *emit_array(struct emit *self, size_t count, size_t item_bytes)
{
    struct emit_state *state = self->state;
    void *array = calloc(count ? count : 1, item_bytes);
    if (array && !AR_ARRAY_ADD(state->arrays, state->array_count, state->array_room, array)) {
        free(array);
        array = NULL;
    }
    need(self, array != NULL);
    return array;
}

static void append(struct emit *self, const struct trace_event *event)
{
    struct emit_state *state = self->state;
    need(self, AR_ARRAY_ADD(state->events, state->event_count, state->event_room, *event));
    state->events_written++;
}

static uint32_t slot_take(struct emit_state *state)
{
    return state->free_count ? state->free_slots[--state->free_count] : state->next_slot++;
}

/* The index of a label of marks, or of the keys with a tag, in the tables. Mostly finds the literal
 * by its address, which is faster than by its text. */
static uint64_t literal_index(struct emit *self, const char *text, bool is_label)
{
    struct emit_state *state = self->state;
    for (size_t i = 0; i < state->literal_count; i++) {
        const struct literal *literal = &state->literals[i];
        if (literal->is_label == is_label &&
            (literal->text == text || strcmp(literal->text, text) == 0))
            return literal->index;
    }
    if (state->literal_count == LITERALS_MOST) {
        emit_fail(self, AR_CORRUPT, "more than %d labels and tags", LITERALS_MOST);
        return 0;
    }
    const struct trace_attributes attributes = {.tag = text, .given = TRACE_GIVEN_TAG};
    uint64_t label = 0;
    uint32_t keys = 0;
    enum ar_status status =
        is_label
            ? trace_tables_add_text(&state->tables, text, strlen(text), &label, &state->problem)
            : trace_tables_attributes(&state->tables, &attributes, &keys, &state->problem);
    if (status != AR_OK)
        state->failed = status;
    struct literal *added = &state->literals[state->literal_count++];
    *added = (struct literal){text, is_label ? label : keys, is_label};
    return added->index;
}

static struct emit_block request(struct emit *self, uint8_t kind, uint64_t bytes, uint32_t stream,
                                 const char *tag)
{
    struct emit_state *state = self->state;
    struct emit_block block = {.id = state->next_id++,
                               .bytes = bytes,
                               .slot = slot_take(state),
                               .stream = stream,
                               .held = true};
    append(self,
           &(struct trace_event){.kind = kind,
                                 .stream = stream,
                                 .slot = block.slot,
                                 .attributes = tag ? (uint32_t)literal_index(self, tag, false) : 0,
                                 .value = bytes,
                                 .id = block.id});
    state->live_bytes += bytes;
    return block;
}

struct emit_block emit_alloc(struct emit *self, uint64_t bytes, const char *tag)
{
    return request(self, TRACE_ALLOC, bytes, 0, tag);
}

struct emit_block emit_alloc_on(struct emit *self, uint64_t bytes, uint32_t stream, const char *tag)
{
    return request(self, TRACE_ALLOC, bytes, stream, tag);
}

struct emit_block emit_probe(struct emit *self, uint64_t bytes, const char *tag)
{
    return request(self, TRACE_PROBE, bytes, 0, tag);
}

void emit_free(struct emit *self, struct emit_block *block)
{
    if (!block->held)
        return;
    bool requested = self->ops->free_requested;
    struct emit_state *state = self->state;
    append(self,
           &(struct trace_event){.kind = requested ? TRACE_FREE_REQUESTED : TRACE_FREE_COMPLETED,
                                 .flags = requested ? 0 : TRACE_WHOLE,
                                 .stream = block->stream,
                                 .slot = block->slot,
                                 .id = block->id});
    need(self, AR_ARRAY_ADD(state->free_slots, state->free_count, state->free_room, block->slot));
    state->live_bytes -= block->bytes;
    block->held = false;
}

void emit_use(struct emit *self, const struct emit_block *block, uint32_t stream)
{
    append(self, &(struct trace_event){
                     .kind = TRACE_USE, .stream = stream, .slot = block->slot, .id = block->id});
}

void emit_kernel(struct emit *self, uint64_t time_ns)
{
    emit_kernel_on(self, 0, time_ns);
}

void emit_kernel_on(struct emit *self, uint32_t stream, uint64_t time_ns)
{
    append(self, &(struct trace_event){.kind = TRACE_KERNEL, .stream = stream, .value = time_ns});
}

static struct trace_reference reference_to(const struct emit_state *state,
                                           const struct emit_block *block)
{
    bool back = block->id >= state->step_id;
    return (struct trace_reference){.back = back,
                                    .number = back ? state->next_id - block->id : block->id};
}

/* The index of the keys that describe the kernel op. */
static uint32_t kernel_op_index(struct emit *self, const struct emit_kernel_op *kernel_op)
{
    struct emit_state *state = self->state;
    struct trace_kernel_op keys = {.out = reference_to(state, kernel_op->out)};
    char text[TRACE_KERNEL_OP_TEXT];
    uint32_t index = 0;
    strncpy(keys.op, kernel_op->op, sizeof keys.op - 1);
    strncpy(keys.type, kernel_op->type ? kernel_op->type : "", sizeof keys.type - 1);
    for (unsigned i = 0; i < TRACE_KERNEL_OP_INPUTS; i++)
        if (kernel_op->in[i] && kernel_op->in[i]->held)
            keys.in[keys.input_count++] = reference_to(state, kernel_op->in[i]);
    while (keys.dimension_count < TRACE_KERNEL_OP_DIMENSIONS &&
           kernel_op->shape[keys.dimension_count]) {
        keys.shape[keys.dimension_count] = kernel_op->shape[keys.dimension_count];
        keys.dimension_count++;
    }
    trace_kernel_op_print(&keys, text);
    enum ar_status status =
        trace_tables_keys(&state->tables, text, strlen(text), &index, &state->problem);
    if (status != AR_OK)
        state->failed = status;
    return index;
}

void emit_kernel_op(struct emit *self, uint64_t time_ns, const struct emit_kernel_op *kernel_op)
{
    bool described = kernel_op->op && kernel_op->out && kernel_op->out->held;
    append(self,
           &(struct trace_event){.kind = TRACE_KERNEL,
                                 .attributes = described ? kernel_op_index(self, kernel_op) : 0,
                                 .value = time_ns});
}

void emit_record(struct emit *self, uint64_t event, uint32_t stream)
{
    append(self, &(struct trace_event){.kind = TRACE_RECORD, .stream = stream, .value = event});
}

void emit_wait(struct emit *self, uint32_t stream, uint64_t event)
{
    append(self, &(struct trace_event){.kind = TRACE_WAIT, .stream = stream, .value = event});
}

void emit_sync(struct emit *self)
{
    append(self, &(struct trace_event){.kind = TRACE_SYNC, .stream = TRACE_NO_STREAM});
}

void emit_trim(struct emit *self)
{
    append(self, &(struct trace_event){.kind = TRACE_TRIM});
}

void emit_outside(struct emit *self, uint64_t bytes)
{
    append(self, &(struct trace_event){.kind = TRACE_OUTSIDE, .value = bytes});
}

void emit_mark(struct emit *self, const char *label)
{
    append(self,
           &(struct trace_event){.kind = TRACE_MARK, .value = literal_index(self, label, true)});
}

void emit_step(struct emit *self)
{
    append(self, &(struct trace_event){.kind = TRACE_MARK,
                                       .flags = TRACE_STEP,
                                       .value = literal_index(self, "step", true)});
    self->state->step_id = self->state->next_id;
}

/* ---- lists ---- */

void emit_list_push(struct emit *self, struct emit_list *list, struct emit_block block)
{
    bool first = !list->items;
    need(self, AR_ARRAY_ADD(list->items, list->count, list->room, block));
    if (first && list->items) {
        list->other = self->lists;
        self->lists = list;
    }
}

struct emit_block emit_list_pop(struct emit_list *list)
{
    return list->count ? list->items[--list->count] : (struct emit_block){.held = false};
}

void emit_list_free(struct emit *self, struct emit_list *list, size_t count)
{
    for (; count && list->count; count--) {
        struct emit_block block = emit_list_pop(list);
        emit_free(self, &block);
    }
}

/* Empties all lists, before the program starts anew or its memory goes. */
static void close_lists(struct emit *self)
{
    for (struct emit_list *list = self->lists, *other; list; list = other) {
        other = list->other;
        free(list->items);
        *list = (struct emit_list){.count = 0};
    }
    self->lists = NULL;
}

uint64_t emit_events(const struct emit *self)
{
    return self->state->events_written;
}

uint64_t emit_live_bytes(const struct emit *self)
{
    return self->state->live_bytes;
}

/* ---- the source ---- */

void emit_end(struct emit *self)
{
    self->state->ending = true;
}

/* Counts and hashes the chunk; at the end of the stream, sets the results in info. */
static enum ar_status chunk_check(struct emit *self, struct ar_error *error)
{
    struct emit_state *state = self->state;
    size_t at;
    if (self->source.info.counted)
        return AR_OK;
    if (state->event_count == 0) {
        trace_check_finish(&state->check, &self->source.info);
        return AR_OK;
    }
    return trace_check_span(&state->check, state->events, state->event_count, &at, error);
}

static void start(struct emit *self)
{
    const struct gen_ops *ops = self->ops;
    close_lists(self);
    memset((char *)self + ops->state_at, 0, ops->source_bytes - ops->state_at);
    for (struct samples *samples = self->samples; samples; samples = samples->other)
        samples->turn = 0;
    const struct gen_common *common = (const void *)((const char *)self + ops->values_at);
    ar_rng_seed(&self->rng, common->seed);
    if (ops->start)
        ops->start(self);
    self->state->started = true;
    self->state->step_id = self->state->next_id;
}

static enum ar_status failure(const struct emit *self, struct ar_error *error)
{
    const struct emit_state *state = self->state;
    return state->failed ? ar_error_set(error, state->failed, "generator %s: %s", self->ops->name,
                                        state->problem.text)
                         : AR_OK;
}

/* The next chunk that holds an event, or the end. */
static enum ar_status chunk_make(struct emit *self, struct ar_error *error)
{
    struct emit_state *state = self->state;
    state->event_count = 0;
    state->given = 0;
    if (!state->started)
        start(self);
    if (state->event_count == 0 && !state->ending)
        self->ops->advance(self);
    AR_TRY(failure(self, error));
    AR_TRY(ar_error_prefix(error, chunk_check(self, error), "generator %s", self->ops->name));
    state->ended = state->event_count == 0;
    return AR_OK;
}

static enum ar_status next(struct trace_source *source, const struct trace_event **events,
                           size_t *count, struct ar_error *error)
{
    struct emit *self = (struct emit *)source;
    struct emit_state *state = self->state;
    *events = NULL;
    *count = 0;
    if (state->given == state->event_count) {
        if (state->ended)
            return AR_OK;
        enum ar_status status = chunk_make(self, error);
        if (status != AR_OK || state->ended)
            return status;
    }
    *events = state->events + state->given;
    *count = self->ops->served ? 1 : state->event_count;
    state->given += *count;
    return AR_OK;
}

static void served(struct trace_source *source, const struct trace_event *event,
                   const struct trace_served *what)
{
    struct emit *self = (struct emit *)source;
    self->ops->served(self, event->id, what);
}

static void check_restart(struct emit *self)
{
    struct emit_state *state = self->state;
    trace_check_close(&state->check);
    trace_check_start(&state->check, &state->tables, true, self->ops->free_requested);
    self->source.info.counted = false;
}

static enum ar_status rewind_source(struct trace_source *source, struct ar_error *error AR_UNUSED)
{
    struct emit *self = (struct emit *)source;
    struct emit_state *state = self->state;
    if (!source->info.counted || self->ops->served)
        check_restart(self);
    state->event_count = state->given = 0;
    state->free_count = 0;
    state->next_slot = 0;
    state->next_id = state->step_id = 0;
    state->live_bytes = 0;
    state->events_written = 0;
    state->started = state->ending = state->ended = false;
    return AR_OK;
}

static void close_source(struct trace_source *source)
{
    struct emit *self = (struct emit *)source;
    close_lists(self);
    for (size_t i = 0; i < self->state->array_count; i++)
        free(self->state->arrays[i]);
    free(self->state->arrays);
    trace_check_close(&self->state->check);
    trace_tables_close(&self->state->tables);
    free(self->state->events);
    free(self->state->free_slots);
    free(self->state);
    free(self);
}

static const struct trace_source_ops source_ops = {
    .next = next,
    .served = served,
    .rewind = rewind_source,
    .close = close_source,
};

static struct emit *create(const struct gen_ops *ops)
{
    struct emit *self = calloc(1, ops->source_bytes);
    struct emit_state *state = calloc(1, sizeof *state);
    if (!self || !state) {
        free(self);
        free(state);
        return NULL;
    }
    self->source.ops = &source_ops;
    self->source.info.adaptive = ops->served != NULL;
    self->source.tables = &state->tables;
    self->source.info.complete = true;
    self->source.info.streams = 1;
    memcpy(self->source.info.format, "generator", sizeof "generator");
    self->ops = ops;
    self->state = state;
    check_restart(self);
    return self;
}

/* ---- samples ---- */

/* A run of digits below 2^63; false if there is none. */
static bool number(const char **at, uint64_t *value)
{
    const char *start = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*value > (UINT64_MAX / 2 - 9) / 10)
            return false;
        *value = *value * 10 + (uint64_t)(**at - '0');
    }
    return *at != start;
}

static bool range(const char **at, struct samples_range *out)
{
    if (!number(at, &out->least))
        return false;
    out->most = out->least;
    if (**at != '-')
        return true;
    ++*at;
    return number(at, &out->most) && out->least <= out->most;
}

void samples_open(struct emit *emit, struct samples *samples, const char *text,
                  enum samples_order order, uint64_t least, uint64_t most, const char *option)
{
    *samples = (struct samples){.order = order, .other = emit->samples};
    emit->samples = samples;
    size_t room = 1;
    for (const char *at = text; *at; at++)
        room += *at == ';';
    struct samples_range *ranges = emit_array(emit, room, sizeof *ranges);
    samples->ranges = ranges;
    for (const char *at = text; ranges; at++) {
        struct samples_range *entry = &ranges[samples->count++];
        if (!range(&at, entry) || (*at && *at != ';')) {
            emit_fail(
                emit, AR_INVALID,
                "%s=\"%s\": entry %zu is no number and no range; write a list such as '64;128-512'",
                option, text, samples->count);
            return;
        }
        if (entry->least < least || entry->most > most) {
            emit_fail(emit, AR_INVALID, "%s=\"%s\": numbers must lie from %" PRIu64 " to %" PRIu64,
                      option, text, least, most);
            return;
        }
        if (!*at)
            return;
    }
}

static struct samples_range entry_next(struct samples *samples, struct ar_rng *rng)
{
    if (samples->order == SAMPLES_RANDOM && samples->count > 1)
        return samples->ranges[ar_rng_below(rng, samples->count)];
    return samples->ranges[samples->turn++ % samples->count];
}

uint64_t samples_next(struct samples *samples, struct ar_rng *rng)
{
    struct samples_range entry = entry_next(samples, rng);
    return entry.least == entry.most ? entry.least : ar_rng_between(rng, entry.least, entry.most);
}

uint64_t samples_next_log(struct samples *samples, struct ar_rng *rng)
{
    struct samples_range entry = entry_next(samples, rng);
    return entry.least == entry.most ? entry.least
                                     : ar_rng_log_uniform(rng, entry.least, entry.most);
}

uint64_t samples_most(const struct samples *samples)
{
    uint64_t most = 0;
    for (size_t i = 0; i < samples->count; i++)
        AR_RAISE(most, samples->ranges[i].most);
    return most;
}

/* ---- the list of generators, and how a spec becomes a source ---- */

#define GENERATOR(name) extern const struct gen_ops name;
#include "workloads/gen/generators.def"
#undef GENERATOR

static const struct gen_ops *const generators[] = {
#define GENERATOR(name) &name,
#include "workloads/gen/generators.def"
#undef GENERATOR
};

const struct gen_ops *gen_at(size_t index)
{
    return index < AR_COUNT(generators) ? generators[index] : NULL;
}

const struct gen_ops *gen_find(const char *name)
{
    for (size_t i = 0; i < AR_COUNT(generators); i++)
        if (strcmp(generators[i]->name, name) == 0)
            return generators[i];
    return NULL;
}

static enum ar_status unknown(const char *name, struct ar_error *error)
{
    const char *names[AR_COUNT(generators)];
    for (size_t i = 0; i < AR_COUNT(generators); i++)
        names[i] = generators[i]->name;
    return ar_name_unknown("there is no generator", name, names, AR_COUNT(generators),
                           "`list workloads` names all of them", error);
}

enum ar_status gen_open(const struct ar_spec *spec, struct trace_source **out,
                        struct ar_error *error)
{
    if (spec->link_count != 1)
        return ar_invalid(error,
                          "workload \"%s\": a generator has no decorators; write NAME:key=value",
                          spec->text);
    const struct ar_spec_link *link = &spec->links[0];
    const struct gen_ops *ops = gen_find(link->name);
    if (!ops)
        return unknown(link->name, error);
    struct emit *emit = create(ops);
    if (!emit)
        return ar_error_set(error, AR_HOST_MEMORY, "generator %s: no host memory", ops->name);
    char owner[64];
    snprintf(owner, sizeof owner, "generator %s", ops->name);
    enum ar_status status =
        ar_options_read(ops->options, link, owner, (char *)emit + ops->values_at, error);
    if (!status && ops->open)
        ops->open(emit);
    AR_THEN(status, failure(emit, error));
    if (status != AR_OK) {
        trace_close(&emit->source);
        return status;
    }
    struct trace_info *info = &emit->source.info;
    trace_name_put(info->name, sizeof info->name, spec->text, strlen(spec->text));
    *out = &emit->source;
    return AR_OK;
}
