/* How: events that concern blocks are followed one by one. A request opens a try; if the next such
 * event lets its block go, the try is part of the run, else the run ends before it. A step ends it
 * too. The completion of a let-go is none of these events. */
#include "sim/advise/tries.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "workloads/trace/trace.h"

#define RUN_LEAST 3 /* of so many, and of as many sizes */

struct found {
    uint64_t *at; /* numbers of requests, rising */
    size_t count, room;
};

struct finding {
    struct found found;
    uint64_t number;
    size_t run_from; /* of `found`: where the run that is open begins */
    uint64_t live;   /* blocks */
    bool open;       /* a request was the last event of a block */
    uint64_t slot;   /* its block */
    uint64_t bytes;
    uint64_t sizes[RUN_LEAST]; /* the first ones of the run */
    size_t size_count;
    struct tries *out;
    uint64_t run_most_bytes;
};

static enum ar_status keep(struct found *self, uint64_t number, struct ar_error *error)
{
    uint64_t *at = ar_array_grow(self->at, self->count, &self->room, sizeof *at);
    if (!at)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu requests", self->count);
    self->at = at;
    self->at[self->count++] = number;
    return AR_OK;
}

static void end_run(struct finding *self)
{
    if (self->size_count < RUN_LEAST)
        self->found.count = self->run_from;
    else if (self->run_most_bytes > self->out->most_bytes)
        self->out->most_bytes = self->run_most_bytes;
    self->run_from = self->found.count;
    self->size_count = 0;
    self->run_most_bytes = 0;
    self->open = false;
}

static void note_size(struct finding *self, uint64_t bytes)
{
    for (size_t i = 0; i < self->size_count; i++)
        if (self->sizes[i] == bytes)
            return;
    if (self->size_count < RUN_LEAST)
        self->sizes[self->size_count++] = bytes;
}

static enum ar_status free_requested(struct finding *self, const struct trace_event *event,
                                     uint64_t request_number, struct ar_error *error)
{
    self->live--;
    if (!self->open || event->slot != self->slot || !self->live) {
        end_run(self);
        return AR_OK;
    }
    self->open = false;
    note_size(self, self->bytes);
    if (self->bytes > self->run_most_bytes)
        self->run_most_bytes = self->bytes;
    return keep(&self->found, request_number, error);
}

static enum ar_status follow(struct finding *self, const struct trace_event *event,
                             uint64_t *request_number, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    bool completes = event->kind == TRACE_FREE_COMPLETED && !(event->flags & TRACE_WHOLE);
    if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) {
        if (self->open)
            end_run(self);
        self->open = event->kind == TRACE_ALLOC;
        self->slot = event->slot;
        self->bytes = event->value;
        self->live++;
        *request_number = self->number;
    } else if ((event->kind == TRACE_FREE_COMPLETED || event->kind == TRACE_FREE_REQUESTED) &&
               !completes) {
        status = free_requested(self, event, *request_number, error);
    } else if (event->kind == TRACE_MARK && (event->flags & TRACE_STEP)) {
        end_run(self);
    }
    self->number++;
    return status;
}

static enum ar_status find(struct trace_source *trace, struct finding *self, struct ar_error *error)
{
    const struct trace_event *events;
    uint64_t request_number = 0;
    size_t pulled = 1;
    enum ar_status status = trace_rewind(trace, error);
    while (!status && pulled) {
        status = trace_next(trace, &events, &pulled, error);
        for (size_t i = 0; !status && i < pulled; i++)
            status = follow(self, &events[i], &request_number, error);
    }
    end_run(self);
    return status;
}

static enum ar_status copy_one(struct trace_source *trace, struct trace_memory *memory,
                               struct trace_event event, struct ar_error *error)
{
    const struct trace_attributes *keys =
        event.attributes ? trace_attributes_of(trace, event.attributes) : NULL;
    bool has_text = event.kind == TRACE_MARK || event.kind == TRACE_NOTE;
    const char *text = has_text ? trace_text_of(trace, event.value) : NULL;
    return trace_memory_append(memory, &event, keys, text, error);
}

/* The trace with those requests as probes. */
static enum ar_status copy(struct trace_source *trace, const struct found *found,
                           struct trace_source **out, struct ar_error *error)
{
    const struct trace_event *events;
    uint64_t number = 0;
    size_t pulled = 1, next = 0;
    struct trace_memory *memory = trace_memory_create(&trace->info);
    if (!memory)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a trace");
    enum ar_status status = trace_rewind(trace, error);
    while (!status && pulled) {
        status = trace_next(trace, &events, &pulled, error);
        for (size_t i = 0; !status && i < pulled; i++, number++) {
            struct trace_event event = events[i];
            if (next < found->count && found->at[next] == number) {
                event.kind = TRACE_PROBE;
                next++;
            }
            status = copy_one(trace, memory, event, error);
        }
    }
    if (!status)
        return trace_memory_open(memory, out, error);
    trace_memory_discard(memory);
    return status;
}

enum ar_status tries_find(struct trace_source *trace, struct tries *out, struct ar_error *error)
{
    struct finding finding = {.out = out};
    *out = (struct tries){0};
    enum ar_status status = find(trace, &finding, error);
    out->count = finding.found.count;
    if (!status && out->count)
        status = copy(trace, &finding.found, &out->trace, error);
    free(finding.found.at);
    return status;
}

void tries_close(struct tries *self)
{
    trace_close(self->trace);
    *self = (struct tries){0};
}
