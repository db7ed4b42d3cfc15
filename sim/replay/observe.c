/* What a caller may watch: a row for each request and free, a sample after each event, and the
 * answers that an adaptive workload waits for. */
#include "sim/replay/run.h"

void replay_place(struct replay *run, struct replay_slot *slot)
{
    struct ar_device_segment segment;
    slot->segment = slot->offset = -1;
    if (slot->state == SLOT_LIVE &&
        run->device->ops->segment_of(run->device, slot->block.address, &segment)) {
        slot->segment = (int64_t)segment.ordinal;
        slot->offset = (int64_t)(slot->block.address - segment.address);
    }
}

static enum ar_status row(struct replay *run, const struct trace_event *event, char op,
                          const struct replay_slot *slot, struct ar_error *error)
{
    const struct replay_row row = {
        .event = replay_number(run, event),
        .op = op,
        .id = event->id,
        .requested_bytes = slot->block.requested_bytes,
        .granted_bytes = slot->block.granted_bytes,
        .segment = slot->segment,
        .offset = slot->offset,
        .granted_total_bytes = run->exact.granted_bytes,
        .reserved_bytes = run->policy->totals.reserved_bytes,
    };
    return run->config->row(run->config->argument, &row, error);
}

enum ar_status replay_row_alloc(struct replay *run, const struct trace_event *event,
                                const struct replay_slot *slot, struct ar_error *error)
{
    return row(run, event, event->kind == TRACE_PROBE ? 'p' : 'a', slot, error);
}

enum ar_status replay_row_free(struct replay *run, const struct trace_event *event,
                               const struct replay_slot *slot, struct ar_error *error)
{
    return row(run, event, 'f', slot, error);
}

enum ar_status replay_sample_take(struct replay *run, const struct trace_event *event,
                                  struct ar_error *error)
{
    struct exact_state state;
    exact_read(&run->exact, &state);
    struct replay_sample sample = {
        .event = replay_number(run, event),
        .time_ns = run->time_ns,
        .weight = run->weight,
        .live_bytes = state.live_bytes,
        .granted_bytes = state.granted_bytes,
        .reserved_bytes = state.reserved_bytes,
        .physical_bytes = run->device->counters.physical_bytes,
        .free_bytes = state.free_bytes,
        .pending_bytes = state.pending_bytes,
        .stranded_bytes = state.stranded_bytes,
        .largest_free_block_bytes = state.largest_free_block_bytes,
        .usable_bytes = state.usable_bytes,
        .stranded_by_stream_bytes = state.stranded_by_stream_bytes,
    };
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        sample.servable_bytes[effort] = state.servable_bytes[effort];
    return run->config->sample(run->config->argument, &sample, error);
}

void replay_answer(struct replay *run, const struct trace_event *event,
                   const struct replay_slot *slot)
{
    struct trace_source *source = run->config->source;
    const struct trace_served served = {
        .served = slot->state != SLOT_FAILED,
        .address = slot->block.address,
        .granted_bytes = slot->block.granted_bytes,
    };
    source->ops->served(source, event, &served);
}
