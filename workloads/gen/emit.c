/* See emit.h. The source's hooks run the program when its last chunk has been given out; the
 * emit_ functions append to the chunk, count, and keep the free slots as a stack. */
#include "workloads/gen/emit.h"

#include <stdlib.h>
#include <string.h>

#define EMIT_TEXTS 16 /* distinct labels or tags of one generator; both are literals */

struct emit_state {
    struct trace_event *events;
    size_t event_count, event_room;
    size_t given;         /* adaptive: events of the chunk given out so far */
    uint32_t *free_slots; /* a stack */
    size_t free_count, free_room;
    uint32_t next_slot;
    uint64_t next_id;
    uint64_t live_bytes;
    const char *labels[EMIT_TEXTS]; /* text of a mark by its index */
    size_t label_count;
    struct trace_attributes tags[EMIT_TEXTS + 1]; /* 0: no attributes */
    size_t tag_count;
    struct trace_info counts; /* of this pass; copied to info at the end */
    bool started, ended;
    bool out_of_memory, too_many_texts;
};

static struct emit *emit_of(struct trace_source *source)
{
    return (struct emit *)source;
}

/* ---- appending ---- */

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
            state->out_of_memory = true;
            return;
        }
        state->events = larger;
    }
    state->events[state->event_count++] = *event;
    state->counts.events++;
}

static uint32_t slot_take(struct emit_state *state)
{
    return state->free_count ? state->free_slots[--state->free_count] : state->next_slot++;
}

static void slot_give(struct emit_state *state, uint32_t slot)
{
    if (state->free_count == state->free_room) {
        void *larger = grown(state->free_slots, &state->free_room, sizeof *state->free_slots);
        if (!larger) {
            state->out_of_memory = true;
            return;
        }
        state->free_slots = larger;
    }
    state->free_slots[state->free_count++] = slot;
}

/* The number of a literal in a short table, entered where it is new. Equal texts of different
 * literals are one. */
static uint32_t tag_index(struct emit_state *state, const char *tag)
{
    if (!tag)
        return 0;
    for (size_t i = 1; i <= state->tag_count; i++)
        if (state->tags[i].tag == tag || strcmp(state->tags[i].tag, tag) == 0)
            return (uint32_t)i;
    if (state->tag_count == EMIT_TEXTS) {
        state->too_many_texts = true;
        return 0;
    }
    state->tags[++state->tag_count] = (struct trace_attributes){.tag = tag, .given = 1u << 0};
    return (uint32_t)state->tag_count;
}

static uint64_t label_index(struct emit_state *state, const char *label)
{
    for (size_t i = 0; i < state->label_count; i++)
        if (strcmp(state->labels[i], label) == 0)
            return i;
    if (state->label_count == EMIT_TEXTS) {
        state->too_many_texts = true;
        return 0;
    }
    state->labels[state->label_count] = label;
    return state->label_count++;
}

static struct emit_block request(struct emit *self, uint8_t kind, uint64_t bytes, const char *tag)
{
    struct emit_state *state = self->state;
    struct emit_block block = {
        .id = state->next_id++, .bytes = bytes, .slot = slot_take(state), .held = true};
    append(self, &(struct trace_event){.kind = kind,
                                       .slot = block.slot,
                                       .attributes = tag_index(state, tag),
                                       .value = bytes,
                                       .id = block.id});
    state->live_bytes += bytes;
    state->counts.allocated_bytes += bytes;
    state->counts.allocs += kind == TRACE_ALLOC;
    state->counts.probes += kind == TRACE_PROBE;
    state->counts.zero_allocs += bytes == 0;
    if (state->live_bytes > state->counts.peak_live_bytes)
        state->counts.peak_live_bytes = state->live_bytes;
    return block;
}

struct emit_block emit_alloc(struct emit *self, uint64_t bytes, const char *tag)
{
    return request(self, TRACE_ALLOC, bytes, tag);
}

struct emit_block emit_probe(struct emit *self, uint64_t bytes, const char *tag)
{
    return request(self, TRACE_PROBE, bytes, tag);
}

void emit_free(struct emit *self, struct emit_block *block)
{
    if (!block->held)
        return;
    append(self, &(struct trace_event){.kind = TRACE_FREE,
                                       .flags = TRACE_WHOLE,
                                       .slot = block->slot,
                                       .id = block->id});
    slot_give(self->state, block->slot);
    self->state->live_bytes -= block->bytes;
    self->state->counts.frees++;
    block->held = false;
}

void emit_kernel(struct emit *self, uint64_t time_ns)
{
    append(self, &(struct trace_event){.kind = TRACE_KERNEL, .value = time_ns});
    self->state->counts.kernels++;
}

void emit_outside(struct emit *self, uint64_t bytes)
{
    append(self, &(struct trace_event){.kind = TRACE_OUTSIDE, .value = bytes});
}

void emit_mark(struct emit *self, const char *label)
{
    append(self, &(struct trace_event){.kind = TRACE_MARK,
                                       .value = label_index(self->state, label)});
}

void emit_step(struct emit *self)
{
    append(self, &(struct trace_event){.kind = TRACE_MARK,
                                       .flags = TRACE_STEP,
                                       .value = label_index(self->state, "step")});
    self->state->counts.steps++;
}

uint64_t emit_events(const struct emit *self)
{
    return self->state->counts.events;
}

uint64_t emit_live_bytes(const struct emit *self)
{
    return self->state->live_bytes;
}

/* ---- the source ---- */

static void counts_publish(struct emit *self)
{
    struct trace_info *info = &self->source.info;
    const struct trace_info *counts = &self->state->counts;
    info->events = counts->events;
    info->allocs = counts->allocs;
    info->probes = counts->probes;
    info->frees = counts->frees;
    info->steps = counts->steps;
    info->kernels = counts->kernels;
    info->zero_allocs = counts->zero_allocs;
    info->peak_live_bytes = counts->peak_live_bytes;
    info->allocated_bytes = counts->allocated_bytes;
    info->slots = self->state->next_slot;
    info->counted = true;
}

/* The next chunk that holds an event, or the end. */
static enum status chunk_make(struct emit *self, struct error *error)
{
    struct emit_state *state = self->state;
    state->event_count = 0;
    state->given = 0;
    enum status status = STATUS_OK;
    if (!state->started) {
        state->started = true;
        status = self->program->start(self, error);
    }
    if (status == STATUS_OK && state->event_count == 0)
        status = self->program->advance(self, error);
    if (status == STATUS_OK && state->out_of_memory)
        status = error_set(error, STATUS_HOST_MEMORY, "generator %s: no host memory",
                           self->program->name);
    if (status == STATUS_OK && state->too_many_texts)
        status = error_set(error, STATUS_CORRUPT, "generator %s: more than %d labels or tags",
                           self->program->name, EMIT_TEXTS);
    return status;
}

static enum status next(struct trace_source *source, const struct trace_event **events,
                        size_t *count, struct error *error)
{
    struct emit *self = emit_of(source);
    struct emit_state *state = self->state;
    *events = NULL;
    *count = 0;
    if (state->given == state->event_count) {
        if (state->ended)
            return STATUS_OK;
        enum status status = chunk_make(self, error);
        if (status != STATUS_OK)
            return status;
        if (state->event_count == 0) {
            state->ended = true;
            counts_publish(self);
            return STATUS_OK;
        }
    }
    *events = state->events + state->given;
    *count = self->program->adaptive ? 1 : state->event_count;
    state->given += *count;
    return STATUS_OK;
}

static void served(struct trace_source *source, const struct trace_event *event,
                   const struct trace_served *what)
{
    struct emit *self = emit_of(source);
    if (self->program->served)
        self->program->served(self, event->id, what);
}

static enum status rewind_source(struct trace_source *source, struct error *error)
{
    (void)error;
    struct emit_state *state = emit_of(source)->state;
    state->event_count = state->given = 0;
    state->free_count = 0;
    state->next_slot = 0;
    state->next_id = 0;
    state->live_bytes = 0;
    state->counts = (struct trace_info){.events = 0};
    state->started = state->ended = false;
    return STATUS_OK;
}

static const struct trace_attributes *attributes(struct trace_source *source, uint32_t index)
{
    const struct emit_state *state = emit_of(source)->state;
    return index <= state->tag_count ? &state->tags[index] : NULL;
}

static const char *text(struct trace_source *source, uint64_t index)
{
    const struct emit_state *state = emit_of(source)->state;
    return index < state->label_count ? state->labels[index] : NULL;
}

static void close_source(struct trace_source *source)
{
    struct emit *self = emit_of(source);
    if (self->program->release)
        self->program->release(self);
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

enum status emit_create(const struct emit_program *program, struct emit **out,
                        struct error *error)
{
    struct emit *self = calloc(1, program->source_bytes);
    struct emit_state *state = calloc(1, sizeof *state);
    if (!self || !state) {
        free(self);
        free(state);
        return error_set(error, STATUS_HOST_MEMORY, "generator %s: no host memory", program->name);
    }
    self->source.ops = program->adaptive ? &adaptive_ops : &plain_ops;
    self->source.info.complete = true;
    self->source.info.streams = 1;
    memcpy(self->source.info.format, "generator", sizeof "generator");
    self->program = program;
    self->state = state;
    *out = self;
    return STATUS_OK;
}
