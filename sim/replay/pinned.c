/* Requests of pinned host memory (space=pinned): they go to a policy of their own, on the device's
 * pinned host memory. Their time is host time of the program, as that of other requests is.
 *
 * 1. In `ordered` the policy is told every stream that uses such a block, the first too: no stream
 *    owns it, and requests and frees name none.
 * 2. A request that fails is of the cause `pinned`.
 * 3. The exact metrics and the observers of calls know the blocks of the device's policy only. Rows
 *    report pinned requests and frees as well, without a place. The figures of pinned memory are
 *    optional metrics: null in a run without such requests. */

#include "sim/replay/run.h"

static enum ar_status broken(const struct replay *run, const struct trace_event *event,
                             enum ar_status status, const char *what, struct ar_error *error)
{
    const char *problem = ar_policy_problem(run->pinned.policy);
    return ar_error_set(error, status, "%s: event %" PRIu64 ": policy %s (pinned): %s%s%s",
                        run->config->source->info.name, replay_event_number(run, event),
                        run->pinned.policy->ops->name, what, problem[0] ? ": " : "", problem);
}

static void look(struct replay *run)
{
    const struct ar_policy_totals *totals = &run->pinned.policy->totals;
    AR_RAISE(run->pinned.peak_live_bytes, totals->live_bytes);
    AR_RAISE(run->pinned.peak_granted_bytes, totals->granted_bytes);
    AR_RAISE(run->pinned.peak_reserved_bytes, totals->reserved_bytes);
}

enum ar_status replay_pinned_alloc(struct replay *run, const struct trace_event *event,
                                   struct replay_slot *slot, const struct trace_attributes *keys,
                                   struct ar_error *error)
{
    const struct ar_policy_request request = {.bytes = event->value,
                                              .alignment = keys->align,
                                              .pool = keys->pool,
                                              .may_fail = event->kind == TRACE_PROBE};
    run->pinned.requests++;
    pauses_begin(&run->pauses, run->device);
    enum ar_status status = ar_policy_alloc(run->pinned.policy, &request, &slot->block);
    (void)pauses_end(&run->pauses, run->device);
    look(run);
    slot->stream = event->stream;
    slot->segment = slot->offset = -1;
    slot->state = SLOT_PINNED;
    if (status == AR_OK)
        return slot->block.granted_bytes >= event->value
                   ? AR_OK
                   : broken(run, event, AR_CORRUPT, REPLAY_GRANTED_LESS, error);
    if (status != AR_NO_MEMORY && status != AR_REFUSED)
        return broken(run, event, status, "the request failed", error);
    slot->state = SLOT_FAILED;
    slot->block = (struct ar_policy_block){.requested_bytes = event->value};
    if (event->kind == TRACE_PROBE)
        run->failed_probes++;
    else
        replay_count_failure(run, event, event->value, REPLAY_CAUSE_PINNED);
    return AR_OK;
}

enum ar_status replay_pinned_free(struct replay *run, const struct trace_event *event,
                                  const struct replay_slot *slot, struct ar_error *error)
{
    pauses_begin(&run->pauses, run->device);
    enum ar_status status = ar_policy_free(run->pinned.policy, &slot->block, 0);
    (void)pauses_end(&run->pauses, run->device);
    return status == AR_OK ? AR_OK : broken(run, event, status, REPLAY_FREE_FAILED, error);
}

enum ar_status replay_pinned_use(struct replay *run, const struct trace_event *event,
                                 const struct replay_slot *slot, struct ar_error *error)
{
    enum ar_status status = ar_policy_use(run->pinned.policy, &slot->block, event->stream);
    if (status == AR_OK || status == AR_UNSUPPORTED)
        return AR_OK;
    return broken(run, event, status, "a use by a stream failed", error);
}

enum ar_status replay_pinned_trim(struct replay *run, const struct trace_event *event,
                                  struct ar_error *error)
{
    enum ar_status status = ar_policy_trim(run->pinned.policy, 0);
    if (status == AR_OK || status == AR_UNSUPPORTED)
        return AR_OK;
    return broken(run, event, status, "it could not release its cache", error);
}

enum ar_status replay_pinned_check(const struct replay *run, struct ar_error *error)
{
    const struct ar_policy_totals *totals = &run->pinned.policy->totals;
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < run->slot_count; i++)
        blocks += run->slots[i].state == SLOT_PINNED;
    if (totals->live_blocks == blocks || (run->at_completion && totals->live_blocks < blocks))
        return AR_OK;
    return ar_error_set(error, AR_CORRUPT,
                        "%s: policy %s counts %" PRIu64
                        " blocks of pinned memory live at the end, there are %" PRIu64,
                        run->config->source->info.name, run->pinned.policy->ops->name,
                        totals->live_blocks, blocks);
}

void replay_pinned_report(const struct replay *run, struct metric_values *metrics)
{
    const struct ar_device_counters *counters = &run->device->counters;
    if (!run->pinned.requests)
        return;
    metric_set(metrics, METRIC_peak_pinned_live_bytes, run->pinned.peak_live_bytes);
    metric_set(metrics, METRIC_peak_pinned_granted_bytes, run->pinned.peak_granted_bytes);
    metric_set(metrics, METRIC_peak_pinned_reserved_bytes, run->pinned.peak_reserved_bytes);
    metric_set(metrics, METRIC_pinned_driver_calls,
               counters->calls[AR_DEVICE_CALL_pinned_alloc] +
                   counters->calls[AR_DEVICE_CALL_pinned_free]);
    metric_set(metrics, METRIC_pinned_driver_time_ns, counters->pinned_ns);
    metric_set(metrics, METRIC_failed_by_pinned, run->failed_by[REPLAY_CAUSE_PINNED]);
}
