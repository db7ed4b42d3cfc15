#include "sim/advise/prepare.h"

#include <string.h>

#include "workloads/trace/trace.h"

struct copying {
    struct trace_source *source;
    struct trace_memory *memory;
    const uint64_t *releases;
    size_t count, next;
    uint64_t number;
    uint64_t written;    /* events; while a killer is looked for, requests after it */
    bool request_before; /* only notes came since an `a` */
    bool probe_before;   /* the same of a `p` */
    uint64_t killer; /* the number of a probe that the program did not survive; UINT64_MAX: none */
    uint64_t request_event, request_bytes;
    struct prepared *out;
};

static bool is_failure(const char *text)
{
    return text && (strncmp(text, "oom", 3) == 0 || strncmp(text, "failed", 6) == 0);
}

static void look(struct copying *self, const struct trace_event *event, const char *text)
{
    struct prepared *out = self->out;
    if (event->kind == TRACE_NOTE && self->request_before && is_failure(text)) {
        out->has_failed_request = true;
        out->failed_event = self->request_event;
        out->failed_bytes = self->request_bytes;
    }
    out->survived += event->kind == TRACE_NOTE && self->probe_before && is_failure(text);
    self->probe_before =
        event->kind == TRACE_PROBE || (self->probe_before && event->kind == TRACE_NOTE);
    self->request_before =
        event->kind == TRACE_ALLOC || (self->request_before && event->kind == TRACE_NOTE);
    if (event->kind == TRACE_ALLOC) {
        self->request_event = self->written;
        self->request_bytes = event->value;
        /* Else the program went on. */
        out->has_failed_request = self->number > self->killer && out->has_failed_request;
    }
    if (event->kind == TRACE_MARK && (event->flags & TRACE_STEP))
        out->last_step_end = self->written + 1;
}

#define LAST_REQUESTS 64 /* that a program may make while it ends */

/* A request that failed is a probe where others follow. Where the program died nevertheless, and
 * what follows the last one is but its end, that one is what it died of. */
static void find_killer(struct copying *self, const struct trace_event *event, const char *text)
{
    self->number++;
    if (event->kind == TRACE_PROBE)
        self->request_event = self->number - 1;
    self->request_before =
        event->kind == TRACE_PROBE || (self->request_before && event->kind == TRACE_NOTE);
    self->written += event->kind == TRACE_ALLOC;
    bool step = event->kind == TRACE_MARK && (event->flags & TRACE_STEP);
    if (step || self->written > LAST_REQUESTS)
        self->killer = UINT64_MAX;
    if (event->kind == TRACE_NOTE && self->request_before && is_failure(text)) {
        self->killer = self->request_event;
        self->written = 0;
    }
}

static enum ar_status look_for_killer(struct copying *self, struct ar_error *error)
{
    const struct trace_event *events;
    size_t pulled = 1;
    enum ar_status status = AR_OK;
    self->killer = UINT64_MAX;
    while (!self->source->info.complete && !status && pulled) {
        status = trace_next(self->source, &events, &pulled, error);
        for (size_t i = 0; !status && i < pulled; i++)
            find_killer(self, &events[i],
                        events[i].kind == TRACE_NOTE ? trace_text_of(self->source, events[i].value)
                                                     : NULL);
    }
    self->number = self->written = self->request_event = 0;
    self->request_before = false;
    return status ? status : trace_rewind(self->source, error);
}

static enum ar_status copy_one(struct copying *self, const struct trace_event *read,
                               struct ar_error *error)
{
    struct trace_event changed = *read;
    const struct trace_event *event = &changed;
    if (self->number == self->killer)
        changed.kind = TRACE_ALLOC;
    const struct trace_event release = {.kind = TRACE_TRIM};
    const struct trace_attributes *keys = NULL;
    const char *text = NULL;
    enum ar_status status = AR_OK;
    while (self->next < self->count && self->releases[self->next] <= self->number && !status) {
        status = trace_memory_append(self->memory, &release, NULL, NULL, error);
        self->next++;
        self->written++;
    }
    if (status)
        return status;
    if (event->attributes)
        keys = trace_attributes_of(self->source, event->attributes);
    self->out->has_pools |= keys && keys->pool;
    self->out->has_outside |= event->kind == TRACE_OUTSIDE;
    if (event->kind == TRACE_MARK || event->kind == TRACE_NOTE)
        text = trace_text_of(self->source, event->value);
    look(self, event, text);
    self->number++;
    self->written++;
    return trace_memory_append(self->memory, event, keys, text, error);
}

enum ar_status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                             struct prepared *out, struct ar_error *error)
{
    struct copying self = {.source = source, .releases = releases, .count = count, .out = out};
    const struct trace_event *events;
    size_t pulled = 1;
    *out = (struct prepared){0};
    enum ar_status status = trace_rewind(source, error);
    if (!status)
        status = look_for_killer(&self, error);
    if (status)
        return status;
    self.memory = trace_memory_create(&source->info);
    if (!self.memory)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a trace");
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
