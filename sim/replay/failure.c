/* Requests that were not served, and everything else that is not OK. */
#include "sim/replay/run.h"

#include <inttypes.h>

#include "sim/replay/cause.h"

enum ar_status replay_broken(const struct replay *run, const struct trace_event *event,
                             enum ar_status status, const char *what, struct ar_error *error)
{
    const char *problem = ar_policy_problem(run->policy);
    if (!problem[0])
        problem = run->device->ops->problem(run->device);
    bool said = problem[0];
    return ar_error_set(error, status, "%s: event %" PRIu64 ": policy %s: %s%s%s",
                        run->config->source->info.name, replay_number(run, event),
                        run->policy->ops->name, what, said ? ": " : "", said ? problem : "");
}

enum ar_status replay_bad_input(const struct replay *run, const struct trace_event *event,
                                const char *what, struct ar_error *error)
{
    return ar_error_set(error, AR_INVALID, "%s: event %" PRIu64 ", block %" PRIu64 ": %s",
                        run->config->source->info.name, replay_number(run, event), event->id, what);
}

static void count_failure(struct replay *run, const struct trace_event *event,
                          enum replay_cause cause)
{
    run->failed_allocs++;
    run->failed_by[cause]++;
    if (!run->failed) {
        run->failed = true;
        run->first_failed_event = replay_number(run, event);
        run->first_failed_bytes = event->value;
        run->cause = cause;
    }
    run->stop = run->config->stop_on_failure;
}

enum ar_status replay_ask_again(struct replay *run, const struct trace_event *event,
                                struct ar_policy_block *block, enum ar_status status)
{
    const struct replay_config *config = run->config;
    while ((status == AR_NO_MEMORY || status == AR_REFUSED) && config->again &&
           config->again(config->again_argument, &run->request)) {
        status = ar_policy_alloc(run->policy, &run->request, block);
        if (run->wants_calls)
            replay_called(run, event, OBSERVER_POLICY_ALLOC, status, block, event->stream);
    }
    return status;
}

enum ar_status replay_not_served(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot, enum ar_status status,
                                 struct ar_error *error)
{
    if (status == AR_HOST_MEMORY)
        return replay_broken(run, event, status, "no host memory for its metadata", error);
    if (status != AR_NO_MEMORY && status != AR_REFUSED)
        return replay_broken(run, event, status, "the request failed", error);
    /* A misuse that the policy took for a lack of memory must not pass as an outcome. */
    const char *problem = run->device->ops->problem(run->device);
    if (problem[0])
        return replay_broken(run, event, AR_INVALID, "the device refused a call", error);
    slot->state = SLOT_FAILED;
    slot->stream = event->stream;
    slot->block = (struct ar_policy_block){.requested_bytes = event->value};
    if (event->kind == TRACE_PROBE)
        run->failed_probes++;
    else
        count_failure(
            run, event,
            cause_of_failure(run->policy, run->device, event->value, run->config->limit_bytes));
    return AR_OK;
}

void replay_launch_refused(struct replay *run, const struct trace_event *event)
{
    bool first = !run->failed;
    count_failure(run, event, REPLAY_CAUSE_OUTSIDE);
    if (first)
        run->first_failed_bytes = 0; /* how many it wanted the device does not say */
}

void replay_outside_refused(struct replay *run, const struct trace_event *event)
{
    uint64_t more_bytes = event->value - run->device->counters.outside_bytes;
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(run->device->backing, &free_bytes, &total_bytes);
    bool tenant = run->device->counters.others_bytes >= more_bytes - free_bytes;
    count_failure(run, event, tenant ? REPLAY_CAUSE_TENANT : REPLAY_CAUSE_CAPACITY);
}

void replay_driver_failed(struct replay *run, bool in_event)
{
    run->stop = true;
    if (run->failed)
        return; /* the first failure is the run's */
    run->failed = true;
    run->cause = REPLAY_CAUSE_DRIVER;
    run->first_failed_event = in_event || !run->span_first ? run->span_first : run->span_first - 1;
    run->first_failed_bytes = 0;
}
