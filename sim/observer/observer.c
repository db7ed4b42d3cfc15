/* The witness itself, its listeners, and the trace as it passes: one event at a time, so that it
 * is known in which of them things happen. */
#include "sim/observer/state.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"

struct observer *observer_create(void)
{
    return calloc(1, sizeof(struct observer));
}

void observer_destroy(struct observer *self)
{
    if (!self)
        return;
    free(self->acts);
    free(self->segments);
    free(self->ranges);
    free(self->blocks);
    free(self->pending);
    ar_map_close(&self->segment_at);
    ar_map_close(&self->block_at);
    free(self);
}

void observer_listen(struct observer *self, observer_hear *hear, void *argument)
{
    if (self->listener_count == OBSERVER_LISTENERS)
        return;
    self->listeners[self->listener_count].hear = hear;
    self->listeners[self->listener_count++].argument = argument;
}

void observer_no_memory(struct observer *self)
{
    if (!self->status)
        self->status = ar_error_set(&self->error, AR_HOST_MEMORY, "no host memory to follow a run");
}

bool observer_grow(struct observer *self, void **items, size_t count, size_t *room, size_t bytes)
{
    void *grown = ar_array_grow(*items, count, room, bytes);
    if (!grown) {
        observer_no_memory(self);
        return false;
    }
    *items = grown;
    return true;
}

void observer_tell(struct observer *self, struct observer_event event)
{
    static const struct ar_policy_totals none;
    event.totals = self->policy ? &self->policy->totals : &none;
    event.physical_bytes = self->device->counters.physical_bytes;
    event.event = self->event;
    for (unsigned i = 0; i < self->listener_count && !self->over && !self->status; i++)
        self->status = self->listeners[i].hear(self->listeners[i].argument, &event, &self->error);
}

enum ar_status observer_end(struct observer *self, struct ar_error *error)
{
    if (self->policy && !self->status) {
        observer_tell_complete(self);
        observer_tell_acts(self, NULL);
    }
    self->over = true;
    return self->status ? ar_error_set(error, self->status, "%s", self->error.text) : AR_OK;
}

static struct observer *of_source(struct trace_source *source)
{
    return (struct observer *)((char *)source - offsetof(struct observer, source));
}

static void tell_mark(struct observer *self)
{
    const struct trace_event *event = self->current;
    const struct trace_attributes *keys =
        event->attributes ? trace_attributes_of(self->trace, event->attributes) : NULL;
    observer_tell(self, (struct observer_event){.kind = OBSERVER_MARK,
                                                .tag = trace_text_of(self->trace, event->value),
                                                .keys = keys ? keys->rest : NULL,
                                                .now_ns = self->device->ops->now(self->device)});
}

static enum ar_status source_next(struct trace_source *source, const struct trace_event **events,
                                  size_t *count, struct ar_error *error)
{
    struct observer *self = of_source(source);
    if (!self->span_left) {
        enum ar_status status = trace_next(self->trace, &self->span, &self->span_left, error);
        if (status || !self->span_left) {
            *count = 0;
            return status;
        }
    }
    self->event += self->current != NULL;
    self->current = self->span++;
    self->span_left--;
    *events = self->current;
    *count = 1;
    if (self->current->kind == TRACE_MARK)
        tell_mark(self);
    return AR_OK;
}

static enum ar_status source_rewind(struct trace_source *source, struct ar_error *error)
{
    struct observer *self = of_source(source);
    self->span_left = 0;
    self->current = NULL;
    self->event = 0;
    return trace_rewind(self->trace, error);
}

static const struct trace_attributes *source_attributes(struct trace_source *source, uint32_t index)
{
    return trace_attributes_of(of_source(source)->trace, index);
}

static const char *source_text(struct trace_source *source, uint64_t index)
{
    return trace_text_of(of_source(source)->trace, index);
}

static uint64_t source_line(struct trace_source *source, uint64_t event)
{
    return trace_line_of(of_source(source)->trace, event);
}

struct trace_source *observer_source(struct observer *self, struct trace_source *inner)
{
    static const struct trace_source_ops ops = {
        .next = source_next,
        .rewind = source_rewind,
        .attributes = source_attributes,
        .text = source_text,
        .line = source_line,
    };
    self->trace = inner;
    self->source = (struct trace_source){.ops = &ops, .info = inner->info};
    return &self->source;
}
