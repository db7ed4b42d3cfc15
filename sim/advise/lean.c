#include "sim/advise/trial.h"

/* What is known of a slot while the events are copied. */
struct slot {
    uint32_t stream; /* of the request */
    bool is_ended;   /* its free was copied as a whole one; the completion is left out */
};

struct copying {
    struct lean *out;
    struct slot *slots;
    bool joins; /* frees */
    bool waits; /* recorded times pass */
    uint64_t number;
};

static bool is_left_out(const struct copying *self, const struct trace_event *event)
{
    switch (event->kind) {
    case TRACE_NOTE:
        return !trace_is_replayed(event);
    case TRACE_TIME:
        return self->out->timeless || !self->waits;
    case TRACE_KERNEL:
    case TRACE_RECORD:
    case TRACE_WAIT:
        return self->out->timeless;
    default:
        return false;
    }
}

static void copy(struct copying *self, const struct trace_event *event)
{
    struct lean *lean = self->out;
    struct slot *slot = &self->slots[event->slot];
    struct trace_event *out = &lean->events[lean->count];
    uint64_t number = self->number++;
    if (is_left_out(self, event))
        return;
    *out = *event;
    if (trace_requests(event)) {
        *slot = (struct slot){.stream = event->stream};
        AR_RAISE(lean->largest_bytes, event->value);
    } else if (event->kind == TRACE_FREE_REQUESTED) {
        slot->is_ended = self->joins && event->stream == slot->stream;
        if (slot->is_ended) {
            out->kind = TRACE_FREE_COMPLETED;
            out->flags |= TRACE_WHOLE;
            out->stream = 0;
        } else {
            lean->info.has_split_frees = true;
        }
    } else if (event->kind == TRACE_FREE_COMPLETED && slot->is_ended) {
        slot->is_ended = false;
        return;
    }
    lean->numbers[lean->count++] = number;
}

enum ar_status lean_make(struct trace_source *trace, enum replay_frees frees, enum replay_host host,
                         bool timeless, struct lean *out, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = trace};
    const struct trace_info *info = &trace->info;
    *out = (struct lean){.info = *info, .tables = trace->tables, .timeless = timeless};
    bool orders = frees == REPLAY_ORDERED && trace_uses_streams(info);
    if (orders || !info->counted || !trace->tables || trace->info.adaptive)
        return AR_OK;
    struct slot *slots = calloc((size_t)info->slots + 1, sizeof *slots);
    out->events = malloc((info->events + 1) * sizeof *out->events);
    out->numbers = malloc((info->events + 1) * sizeof *out->numbers);
    struct copying copying = {.out = out,
                              .slots = slots,
                              .joins = frees != REPLAY_RECORDED,
                              .waits = host != REPLAY_HOST_NONE};
    enum ar_status status = trace_rewind(trace, error);
    if (!status && (!slots || !out->events || !out->numbers))
        status = ar_no_memory(error, "a trace in fewer events");
    out->info.has_split_frees = false;
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        copy(&copying, event);
    free(slots);
    out->info.events = out->count;
    out->info.has_times &= copying.waits && !timeless;
    if (timeless)
        out->info.kernels = 0;
    if (status)
        lean_close(out);
    return status;
}

void lean_close(struct lean *self)
{
    free(self->events);
    free(self->numbers);
    *self = (struct lean){0};
}

static enum ar_status next(struct trace_source *base, const struct trace_event **events,
                           size_t *count, struct ar_error *error AR_UNUSED)
{
    struct lean_source *self = (struct lean_source *)base;
    *events = self->lean->events;
    *count = self->given ? 0 : self->lean->count;
    self->given = true;
    return AR_OK;
}

static enum ar_status rewind_source(struct trace_source *base, struct ar_error *error AR_UNUSED)
{
    ((struct lean_source *)base)->given = false;
    return AR_OK;
}

void lean_open(const struct lean *self, struct lean_source *out)
{
    static const struct trace_source_ops ops = {.next = next, .rewind = rewind_source};
    *out = (struct lean_source){.base = {.ops = &ops, .info = self->info, .tables = self->tables},
                                .lean = self};
}

bool lean_is_equal(const struct ar_device *device, const struct ar_policy *policy)
{
    return !device->counters.polls &&
           !(policy->ops->capabilities & (AR_POLICY_OPAQUE | AR_POLICY_OFFLINE));
}
