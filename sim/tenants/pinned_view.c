/* See pinned_view.h.
 *
 * 1. Events are copied, span by span. A request whose keys say space=pinned keeps its bytes; another has none.
 * 2. Keys are given without the space, so that the engine takes the request to the policy.
 * 3. Memory that the trace holds outside of the pool is the card's: such an event becomes a note. */
#include "sim/tenants/pinned_view.h"

#define SPAN 256

struct pinned_view {
    struct trace_source base;
    struct trace_source *inner;
    const struct trace_event *given; /* pulled and not passed on */
    size_t given_count;
    struct trace_attributes keys; /* given last */
    struct trace_event events[SPAN];
};

static struct pinned_view *of(struct trace_source *base)
{
    return (struct pinned_view *)base;
}

static bool is_pinned(struct pinned_view *self, const struct trace_event *event)
{
    return event->attributes &&
           trace_attributes_of(self->inner, event->attributes)->space == TRACE_SPACE_PINNED;
}

static enum ar_status view_next(struct trace_source *base, const struct trace_event **events,
                                size_t *count, struct ar_error *error)
{
    struct pinned_view *self = of(base);
    *count = 0;
    if (!self->given_count) {
        enum ar_status status = trace_next(self->inner, &self->given, &self->given_count, error);
        if (status != AR_OK || !self->given_count)
            return status;
    }
    while (*count < SPAN && *count < self->given_count) {
        struct trace_event *event = &self->events[*count];
        *event = self->given[(*count)++];
        if (event->kind == TRACE_OUTSIDE)
            event->kind = TRACE_NOTE;
        if ((event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) && !is_pinned(self, event))
            event->value = 0;
    }
    self->given += *count;
    self->given_count -= *count;
    *events = self->events;
    return AR_OK;
}

static void view_served(struct trace_source *base, const struct trace_event *event,
                        const struct trace_served *served)
{
    struct trace_source *inner = of(base)->inner;
    inner->ops->served(inner, event, served);
}

static enum ar_status view_rewind(struct trace_source *base, struct ar_error *error)
{
    of(base)->given_count = 0;
    return trace_rewind(of(base)->inner, error);
}

static const struct trace_attributes *view_attributes(struct trace_source *base, uint32_t index)
{
    struct pinned_view *self = of(base);
    self->keys = *trace_attributes_of(self->inner, index);
    self->keys.space = TRACE_SPACE_DEVICE;
    return &self->keys;
}

static const char *view_text(struct trace_source *base, uint64_t index)
{
    return trace_text_of(of(base)->inner, index);
}

static void view_close(struct trace_source *base)
{
    trace_close(of(base)->inner);
    free(base);
}

static uint64_t view_line(struct trace_source *base, uint64_t event)
{
    return trace_line_of(of(base)->inner, event);
}

enum ar_status pinned_view_open(struct trace_source *source, struct trace_source **out,
                                struct ar_error *error)
{
#define VIEW_OPS                                                                                   \
    .next = view_next, .rewind = view_rewind, .attributes = view_attributes, .text = view_text,    \
    .close = view_close, .line = view_line
    static const struct trace_source_ops plain = {VIEW_OPS};
    static const struct trace_source_ops adaptive = {VIEW_OPS, .served = view_served};
#undef VIEW_OPS
    struct pinned_view *self = calloc(1, sizeof *self);
    if (!self) {
        trace_close(source);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a workload");
    }
    self->base.ops = source->ops->served ? &adaptive : &plain;
    self->base.info = source->info;
    self->inner = source;
    *out = &self->base;
    return AR_OK;
}
