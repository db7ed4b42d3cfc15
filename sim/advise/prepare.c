#include "sim/advise/prepare.h"

#include <string.h>

#include "workloads/trace/trace.h"

struct copying {
    struct trace_source *source;
    struct trace_memory *memory;
    const uint64_t *releases;
    size_t count, next;
    uint64_t number, written;
    bool request_before; /* the event before was an `a` */
    uint64_t request_event, request_bytes;
    struct prepared *out;
};

static void look(struct copying *self, const struct trace_event *event, const char *text)
{
    struct prepared *out = self->out;
    if (event->kind == TRACE_NOTE && self->request_before && text &&
        (strncmp(text, "oom", 3) == 0 || strncmp(text, "failed", 6) == 0)) {
        out->has_failed_request = true;
        out->failed_event = self->request_event;
        out->failed_bytes = self->request_bytes;
    }
    self->request_before = event->kind == TRACE_ALLOC;
    if (event->kind == TRACE_ALLOC) {
        self->request_event = self->written;
        self->request_bytes = event->value;
        out->has_failed_request = false; /* the program went on */
    }
    if (event->kind == TRACE_MARK && (event->flags & TRACE_STEP))
        out->last_step_end = self->written + 1;
}

static enum status copy_one(struct copying *self, const struct trace_event *event,
                            struct error *error)
{
    const struct trace_event release = {.kind = TRACE_TRIM};
    const struct trace_attributes *keys = NULL;
    const char *text = NULL;
    enum status status = STATUS_OK;
    while (self->next < self->count && self->releases[self->next] <= self->number && !status) {
        status = trace_memory_append(self->memory, &release, NULL, NULL, error);
        self->next++;
        self->written++;
    }
    if (status)
        return status;
    if (event->attributes)
        keys = trace_attributes_of(self->source, event->attributes);
    if (event->kind == TRACE_MARK || event->kind == TRACE_NOTE)
        text = trace_text_of(self->source, event->value);
    look(self, event, text);
    self->number++;
    self->written++;
    return trace_memory_append(self->memory, event, keys, text, error);
}

enum status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                          struct prepared *out, struct error *error)
{
    struct copying self = {.source = source, .releases = releases, .count = count, .out = out};
    const struct trace_event *events;
    size_t pulled = 1;
    *out = (struct prepared){0};
    enum status status = trace_rewind(source, error);
    if (status)
        return status;
    self.memory = trace_memory_create(&source->info);
    if (!self.memory)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for a trace");
    while (!status && pulled) {
        status = trace_next(source, &events, &pulled, error);
        for (size_t i = 0; !status && i < pulled; i++)
            status = copy_one(&self, &events[i], error);
    }
    if (status) {
        trace_memory_discard(self.memory);
        return status;
    }
    return trace_memory_open(self.memory, &out->trace, error);
}
