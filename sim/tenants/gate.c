/* See gate.h. Spans are cut behind the mark that ends a step. */
#include "sim/tenants/gate.h"

static struct gate *of(struct trace_source *base)
{
    return (struct gate *)base;
}

/* How much of what was pulled goes through now. */
static size_t let_through(struct gate *gate)
{
    size_t most = gate->count < gate->events_left ? gate->count : (size_t)gate->events_left;
    size_t at = 0;
    while (at < most && gate->steps_left) {
        const struct trace_event *event = &gate->events[at++];
        if (event->kind == TRACE_MARK && event->flags & TRACE_STEP) {
            gate->steps_left--;
            gate->steps++;
        }
    }
    gate->events_left -= at;
    return at;
}

static enum ar_status gate_next(struct trace_source *base, const struct trace_event **events,
                                size_t *count, struct ar_error *error)
{
    struct gate *gate = of(base);
    *count = 0;
    if (!gate->steps_left || !gate->events_left)
        return AR_OK;
    if (!gate->count) {
        enum ar_status status = trace_next(gate->inner, &gate->events, &gate->count, error);
        if (status != AR_OK || !gate->count) {
            gate->ended = true;
            return status;
        }
    }
    *events = gate->events;
    *count = let_through(gate);
    gate->events += *count;
    gate->count -= *count;
    return AR_OK;
}

static void gate_served(struct trace_source *base, const struct trace_event *event,
                        const struct trace_served *served)
{
    struct trace_source *inner = of(base)->inner;
    inner->ops->served(inner, event, served);
}

static const struct trace_attributes *gate_attributes(struct trace_source *base, uint32_t index)
{
    return trace_attributes_of(of(base)->inner, index);
}

static const char *gate_text(struct trace_source *base, uint64_t index)
{
    return trace_text_of(of(base)->inner, index);
}

static enum ar_status gate_rewind(struct trace_source *base, struct ar_error *error)
{
    struct gate *gate = of(base);
    gate->count = 0;
    gate->steps = 0;
    gate->ended = false;
    return trace_rewind(gate->inner, error);
}

static void gate_close(struct trace_source *base)
{
    (void)base; /* the inner one is the caller's */
}

static uint64_t gate_line(struct trace_source *base, uint64_t event)
{
    return trace_line_of(of(base)->inner, event);
}

void gate_begin(struct gate *gate, struct trace_source *inner)
{
    static const struct trace_source_ops plain = {
        .next = gate_next,
        .rewind = gate_rewind,
        .attributes = gate_attributes,
        .text = gate_text,
        .close = gate_close,
        .line = gate_line,
    };
    static const struct trace_source_ops adaptive = {
        .next = gate_next,
        .served = gate_served,
        .rewind = gate_rewind,
        .attributes = gate_attributes,
        .text = gate_text,
        .close = gate_close,
        .line = gate_line,
    };
    *gate = (struct gate){
        .base = {.ops = inner->ops->served ? &adaptive : &plain, .info = inner->info},
        .inner = inner,
    };
}

void gate_let(struct gate *gate, uint64_t steps, uint64_t events)
{
    gate->steps_left = steps;
    gate->events_left = events;
}
