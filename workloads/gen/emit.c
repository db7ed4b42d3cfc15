/* See emit.h. The source's hooks run the program when its last chunk has been given out; the
 * emit_ functions append to the chunk and keep the free slots as a stack. The first pass to the
 * end goes through the check that every reader uses, which counts and hashes; a later pass gives
 * the same events and is not hashed again, unless the program is adaptive. */
#include "workloads/gen/emit.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/trace/check.h"

#define EMIT_TEXTS 32 /* distinct labels or tags of one generator; both are literals */

struct emit_state {
    struct trace_event *events;
    size_t event_count, event_room;
    size_t given;         /* adaptive: events of the chunk given out so far */
    uint32_t *free_slots; /* a stack */
    size_t free_count, free_room;
    uint32_t next_slot;
    uint64_t next_id;
    uint64_t step_id; /* of the first request of the step at hand */
    uint64_t events_written, live_bytes;
    const char *labels[EMIT_TEXTS]; /* of marks, by their index in the tables */
    size_t label_count;
    const char *tags[EMIT_TEXTS];
    uint32_t tag_keys[EMIT_TEXTS]; /* their indexes in the tables */
    size_t tag_count;
    struct trace_tables tables;
    struct trace_check check;
    bool started, ended;
    enum ar_status failed; /* in an emit_ function */
    struct ar_error problem;
};

static struct emit *emit_of(struct trace_source *source)
{
    return (struct emit *)source;
}

/* ---- appending ---- */

static void no_memory(struct emit *self)
{
    self->state->failed = ar_error_set(&self->state->problem, AR_HOST_MEMORY, "no host memory");
}

static void *grown(void *array, size_t *room, size_t element_bytes)
{
    size_t wanted = *room ? *room * 2 : 64;
    void *larger = realloc(array, wanted * element_bytes);
    if (larger)
        *room = wanted;
    return larger;
}

static void append(struct emit *self, const struct trace_event *event)
{
    struct emit_state *state = self->state;
    if (state->event_count == state->event_room) {
        void *larger = grown(state->events, &state->event_room, sizeof *state->events);
        if (!larger) {
            no_memory(self);
            return;
        }
        state->events = larger;
    }
    state->events[state->event_count++] = *event;
    state->events_written++;
}

static uint32_t slot_take(struct emit_state *state)
{
    return state->free_count ? state->free_slots[--state->free_count] : state->next_slot++;
}

static void slot_give(struct emit *self, uint32_t slot)
{
    struct emit_state *state = self->state;
    if (state->free_count == state->free_room) {
        void *larger = grown(state->free_slots, &state->free_room, sizeof *state->free_slots);
        if (!larger) {
            no_memory(self);
            return;
        }
        state->free_slots = larger;
    }
    state->free_slots[state->free_count++] = slot;
}

/* The tables find a text by its characters; here it is found by its address mostly. */
static size_t literal_find(const char *const *literals, size_t count, const char *literal)
{
    for (size_t i = 0; i < count; i++)
        if (literals[i] == literal || strcmp(literals[i], literal) == 0)
            return i;
    return count;
}

static bool literal_add(struct emit *self, const char **literals, size_t *count,
                        const char *literal)
{
    if (*count == EMIT_TEXTS) {
        self->state->failed = ar_error_set(&self->state->problem, AR_CORRUPT,
                                           "more than %d labels or tags", EMIT_TEXTS);
        return false;
    }
    literals[(*count)++] = literal;
    return true;
}

static uint32_t tag_index(struct emit *self, const char *tag)
{
    struct emit_state *state = self->state;
    if (!tag)
        return 0;
    size_t at = literal_find(state->tags, state->tag_count, tag);
    if (at < state->tag_count)
        return state->tag_keys[at];
    if (!literal_add(self, state->tags, &state->tag_count, tag))
        return 0;
    struct trace_attributes attributes = {.tag = tag, .given = TRACE_GIVEN_TAG};
    enum ar_status status =
        trace_tables_attributes(&state->tables, &attributes, &state->tag_keys[at], &state->problem);
    if (status != AR_OK)
        state->failed = status;
    return state->tag_keys[at];
}

static uint64_t label_index(struct emit *self, const char *label)
{
    struct emit_state *state = self->state;
    size_t at = literal_find(state->labels, state->label_count, label);
    uint64_t index = at;
    if (at == state->label_count && literal_add(self, state->labels, &state->label_count, label))
        state->failed =
            trace_tables_add_text(&state->tables, label, strlen(label), &index, &state->problem);
    return index;
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
    append(self, &(struct trace_event){.kind = kind,
                                       .stream = stream,
                                       .slot = block.slot,
                                       .attributes = tag_index(self, tag),
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

/* Free and let-go: both end the block, and give its slot back. */
static void end_block(struct emit *self, struct emit_block *block, uint8_t kind, uint8_t flags)
{
    if (!block->held)
        return;
    append(self, &(struct trace_event){.kind = kind,
                                       .flags = flags,
                                       .stream = block->stream,
                                       .slot = block->slot,
                                       .id = block->id});
    slot_give(self, block->slot);
    self->state->live_bytes -= block->bytes;
    block->held = false;
}

void emit_free(struct emit *self, struct emit_block *block)
{
    end_block(self, block, TRACE_FREE_COMPLETED, TRACE_WHOLE);
}

void emit_free_requested(struct emit *self, struct emit_block *block)
{
    end_block(self, block, TRACE_FREE_REQUESTED, 0);
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

/* The index of the keys that say what the work is. */
static uint32_t work_index(struct emit *self, const struct emit_kernel_op *kernel_op)
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
    bool does = kernel_op->op && kernel_op->out && kernel_op->out->held;
    append(self, &(struct trace_event){.kind = TRACE_KERNEL,
                                       .attributes = does ? work_index(self, kernel_op) : 0,
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
    append(self, &(struct trace_event){.kind = TRACE_MARK, .value = label_index(self, label)});
}

void emit_step(struct emit *self)
{
    append(self, &(struct trace_event){
                     .kind = TRACE_MARK, .flags = TRACE_STEP, .value = label_index(self, "step")});
    self->state->step_id = self->state->next_id;
}

/* ---- lists ---- */

void emit_list_push(struct emit *self, struct emit_list *list, struct emit_block block)
{
    if (list->count == list->room) {
        void *larger = grown(list->items, &list->room, sizeof *list->items);
        if (!larger) {
            no_memory(self);
            return;
        }
        list->items = larger;
    }
    list->items[list->count++] = block;
}

struct emit_block emit_list_pop(struct emit_list *list)
{
    return list->count ? list->items[--list->count] : (struct emit_block){.held = false};
}

void emit_list_free(struct emit *self, struct emit_list *list, size_t count)
{
    for (; count && list->count; count--) {
        struct emit_block block = emit_list_pop(list);
        if (self->program->free_requested)
            emit_free_requested(self, &block);
        else
            emit_free(self, &block);
    }
}

void emit_list_clear(struct emit_list *list)
{
    list->count = 0;
}

void emit_list_close(struct emit_list *list)
{
    free(list->items);
    *list = (struct emit_list){.count = 0};
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

/* Counts and hashes the chunk, or at the end of the stream makes them known. */
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

/* The next chunk that holds an event, or the end. */
static enum ar_status chunk_make(struct emit *self, struct ar_error *error)
{
    struct emit_state *state = self->state;
    state->event_count = 0;
    state->given = 0;
    enum ar_status status = AR_OK;
    if (!state->started) {
        state->started = true;
        status = self->program->start(self, error);
        state->step_id = state->next_id;
    }
    if (status == AR_OK && state->event_count == 0)
        status = self->program->advance(self, error);
    if (status == AR_OK && state->failed != AR_OK)
        status = ar_error_set(error, state->failed, "%s", state->problem.text);
    if (status == AR_OK)
        status = chunk_check(self, error);
    if (status != AR_OK)
        return ar_error_prefix(error, status, "generator %s", self->program->name);
    state->ended = state->event_count == 0;
    return AR_OK;
}

static enum ar_status next(struct trace_source *source, const struct trace_event **events,
                           size_t *count, struct ar_error *error)
{
    struct emit *self = emit_of(source);
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
    *count = self->program->adaptive ? 1 : state->event_count;
    state->given += *count;
    return AR_OK;
}

static void served(struct trace_source *source, const struct trace_event *event,
                   const struct trace_served *what)
{
    struct emit *self = emit_of(source);
    if (self->program->served)
        self->program->served(self, event->id, what);
}

static void check_restart(struct emit *self)
{
    struct emit_state *state = self->state;
    trace_check_close(&state->check);
    trace_check_start(&state->check, &state->tables, true, self->program->free_requested);
    self->source.info.counted = false;
}

static enum ar_status rewind_source(struct trace_source *source, struct ar_error *error)
{
    (void)error;
    struct emit *self = emit_of(source);
    struct emit_state *state = self->state;
    if (!source->info.counted || self->program->adaptive)
        check_restart(self);
    state->event_count = state->given = 0;
    state->free_count = 0;
    state->next_slot = 0;
    state->next_id = state->step_id = 0;
    state->live_bytes = 0;
    state->events_written = 0;
    state->started = state->ended = false;
    return AR_OK;
}

static const struct trace_attributes *attributes(struct trace_source *source, uint32_t index)
{
    return trace_tables_at(&emit_of(source)->state->tables, index);
}

static const char *text(struct trace_source *source, uint64_t index)
{
    return trace_tables_text(&emit_of(source)->state->tables, index);
}

static void close_source(struct trace_source *source)
{
    struct emit *self = emit_of(source);
    if (self->program->release)
        self->program->release(self);
    trace_check_close(&self->state->check);
    trace_tables_close(&self->state->tables);
    free(self->state->events);
    free(self->state->free_slots);
    free(self->state);
    free(self);
}

static const struct trace_source_ops plain_ops = {
    .next = next,
    .rewind = rewind_source,
    .attributes = attributes,
    .text = text,
    .close = close_source,
};

static const struct trace_source_ops adaptive_ops = {
    .next = next,
    .served = served,
    .rewind = rewind_source,
    .attributes = attributes,
    .text = text,
    .close = close_source,
};

enum ar_status emit_create(const struct emit_program *program, struct emit **out,
                           struct ar_error *error)
{
    struct emit *self = calloc(1, program->source_bytes);
    struct emit_state *state = calloc(1, sizeof *state);
    if (!self || !state) {
        free(self);
        free(state);
        return ar_error_set(error, AR_HOST_MEMORY, "generator %s: no host memory", program->name);
    }
    self->source.ops = program->adaptive ? &adaptive_ops : &plain_ops;
    self->source.info.complete = true;
    self->source.info.streams = 1;
    memcpy(self->source.info.format, "generator", sizeof "generator");
    self->program = program;
    self->state = state;
    check_restart(self);
    *out = self;
    return AR_OK;
}
