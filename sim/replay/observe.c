/* Reports to the observers of the run: a row for each request and free, a sample after each event,
 * each call to the policy. And the answers to an adaptive workload. */
#include "sim/observer.h"
#include "sim/replay/run.h"

void replay_observe_begin(struct replay *run)
{
    const struct observer_wants wants = observer_wants(run->config->observer);
    run->wants_rows = wants.rows;
    run->wants_samples = wants.samples;
    run->wants_calls = wants.policy_calls || run->config->tap;
}

void replay_locate(struct replay *run, struct replay_slot *slot)
{
    struct ar_device_segment segment;
    slot->segment = slot->offset = -1;
    if (slot->state == SLOT_LIVE &&
        run->device->ops->segment_of(run->device, slot->block.address, &segment)) {
        slot->segment = (int64_t)segment.ordinal;
        slot->offset = (int64_t)(slot->block.address - segment.address);
    }
}

enum ar_status replay_row(struct replay *run, const struct trace_event *event, char op,
                          const struct replay_slot *slot, struct ar_error *error)
{
    const struct replay_row row = {
        .event = replay_event_number(run, event),
        .op = op,
        .id = event->id,
        .requested_bytes = slot->block.requested_bytes,
        .granted_bytes = slot->block.granted_bytes,
        .segment = slot->segment,
        .offset = slot->offset,
        .granted_total_bytes = run->exact.granted_bytes,
        .reserved_bytes = run->policy->totals.reserved_bytes,
    };
    return observer_row(run->config->observer, &row, error);
}

enum ar_status replay_sample_take(struct replay *run, const struct trace_event *event,
                                  struct ar_error *error)
{
    struct exact_state state;
    exact_read(&run->exact, &state);
    struct replay_sample sample = {
        .event = replay_event_number(run, event),
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
        .failed_allocs = run->failed_allocs,
    };
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        sample.servable_bytes[effort] = state.servable_bytes[effort];
    return observer_sample(run->config->observer, &sample, error);
}

void replay_called(struct replay *run, const struct trace_event *event,
                   enum observer_policy_kind kind, enum ar_status status,
                   const struct ar_policy_block *block, uint32_t stream)
{
    const bool request = kind == OBSERVER_POLICY_ALLOC;
    const struct observer_policy_call call = {
        .kind = kind,
        .status = status,
        .event = replay_event_number(run, event),
        .stream = stream,
        .request = request ? &run->request : NULL,
        .block = request && status != AR_OK ? NULL : block,
        .tag = request && event->attributes
                   ? trace_attributes_of(run->config->source, event->attributes)->tag
                   : NULL,
    };
    observer_policy_call(run->config->observer, &call);
    if (run->config->tap)
        tap_policy_call(run->config->tap, &call);
}

void replay_mark(struct replay *run, const struct trace_event *event)
{
    struct trace_source *source = run->config->source;
    tap_mark(run->config->tap, trace_text_of(source, event->value),
             trace_attributes_of(source, event->attributes)->rest);
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
    trace_answer(source, event, &served);
}
