#include "sim/advise/trial.h"

#include "allocators/base/size.h"
#include "allocators/policies/torch/torch.h"

#include <stdlib.h>
#include <string.h>

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
        if (event->value > lean->largest_bytes)
            lean->largest_bytes = event->value;
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
                           size_t *count, struct ar_error *error)
{
    struct lean_source *self = (struct lean_source *)base;
    (void)error;
    *events = self->lean->events;
    *count = self->given ? 0 : self->lean->count;
    self->given = true;
    return AR_OK;
}

static enum ar_status rewind_source(struct trace_source *base, struct ar_error *error)
{
    (void)error;
    ((struct lean_source *)base)->given = false;
    return AR_OK;
}

void lean_open(const struct lean *self, struct lean_source *out)
{
    static const struct trace_source_ops ops = {.next = next, .rewind = rewind_source};
    *out = (struct lean_source){.base = {.ops = &ops, .info = self->info, .tables = self->tables},
                                .lean = self};
}

bool lean_holds(const struct ar_device *device, const struct ar_policy *policy)
{
    return !device->counters.polls &&
           !(policy->ops->capabilities & (AR_POLICY_OPAQUE | AR_POLICY_OFFLINE));
}

/* ---- the capacity from which on a setting passes for certain ---- */

/* The defaults of the settings large_segment_size_mb and max_non_split_rounding_mb. */
#define TORCH_LARGE_SEGMENT_BYTES (20 * AR_MIB)

/* The bounds of segments under one setting. */
struct bounds {
    uint64_t split_bytes;   /* max_split_size_mb */
    uint64_t divided_bytes; /* the largest segment that is divided */
};

/* torch with max_split_size_mb and no other option, which would round sizes or release less. */
static bool is_known(const struct ar_spec *policy, uint64_t *split_bytes)
{
    const struct ar_spec_link *link = &policy->links[policy->link_count - 1];
    struct ar_error error;
    const char *value = ar_spec_link_value(link, "max_split_size_mb");
    if (policy->link_count != 1 || strcmp(link->name, "torch") != 0 || link->pair_count != 1 ||
        !value || ar_count_parse(value, split_bytes, &error) || *split_bytes >= UINT32_MAX)
        return false;
    *split_bytes *= AR_MIB;
    return true;
}

/* Whether the events are only requests and frees of one stream in the common pool, where each free
 * is completed when it is requested. */
static bool is_plain(const struct lean *lean)
{
    if (lean->info.has_split_frees || lean->info.has_uses)
        return false;
    for (size_t i = 0; i < lean->count; i++) {
        const struct trace_event *event = &lean->events[i];
        bool request = trace_requests(event);
        if (event->kind == TRACE_USE || event->kind == TRACE_OUTSIDE ||
            (request && (event->attributes || event->stream)))
            return false;
    }
    return true;
}

static uint64_t rounded(const struct trace_event *event)
{
    return ar_size_round_up(event->value, TORCH_MIN_BLOCK_BYTES);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct bounds find_bounds(const struct lean *lean, uint64_t split_bytes)
{
    struct bounds bounds = {split_bytes, TORCH_LARGE_SEGMENT_BYTES};
    for (size_t i = 0; i < lean->count; i++) {
        const struct trace_event *event = &lean->events[i];
        if (trace_requests(event) && rounded(event) < split_bytes)
            bounds.divided_bytes = larger(
                bounds.divided_bytes, ar_size_round_up(rounded(event), TORCH_ROUND_LARGE_BYTES));
    }
    return bounds;
}

/* The largest segment that a block for `bytes` can be in. */
static uint64_t segment_bound(const struct bounds *bounds, uint64_t bytes)
{
    if (bytes <= TORCH_SMALL_BYTES)
        return bytes ? TORCH_SMALL_SEGMENT_BYTES : 0;
    if (bytes < bounds->split_bytes)
        return bounds->divided_bytes;
    return larger(bounds->divided_bytes,
                  ar_size_round_up(bytes + TORCH_LARGE_SEGMENT_BYTES, TORCH_ROUND_LARGE_BYTES));
}

uint64_t certain_bytes(const struct lean *lean, const struct ar_spec *policy)
{
    uint64_t split_bytes, live = 0, most = 0;
    if (!lean || !lean->events || !is_known(policy, &split_bytes) || !is_plain(lean))
        return UINT64_MAX;
    struct bounds bounds = find_bounds(lean, split_bytes);
    uint64_t *of_slot = calloc((size_t)lean->info.slots + 1, sizeof *of_slot);
    if (!of_slot)
        return UINT64_MAX;
    for (size_t i = 0; i < lean->count; i++) {
        const struct trace_event *event = &lean->events[i];
        if (trace_requests(event)) {
            of_slot[event->slot] = segment_bound(&bounds, rounded(event));
            live += of_slot[event->slot];
            most = larger(most, live);
        } else if (event->kind == TRACE_FREE_COMPLETED || event->kind == TRACE_FREE_REQUESTED) {
            live -= of_slot[event->slot];
            of_slot[event->slot] = 0;
        }
    }
    free(of_slot);
    return most;
}
