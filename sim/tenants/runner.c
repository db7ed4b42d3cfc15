#include "sim/tenants/runner.h"

#include "allocators/base/size.h"
#include "workloads/workload.h"

static enum ar_status open_parts(struct runner *runner, const struct ar_spec *device,
                                 const char *policy, const char *workload, uint64_t others_bytes,
                                 struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY(ar_error_prefix(error, ar_spec_parse(policy, &spec, error), "policy \"%s\"", policy));
    AR_TRY(session_open(&runner->session, &spec, device, 1, NULL, error));
    runner->open = true;
    const struct ar_device_ops *ops = runner->session.device->ops;
    if (!ops->others) /* a real card knows the other processes */
        runner->others_at_start_bytes = runner->session.device->counters.others_bytes;
    if (ops->others && (ops->others(runner->session.device, others_bytes) != AR_OK ||
                        ops->outside(runner->session.device, runner->context_bytes) != AR_OK)) {
        return ar_error_set(error, AR_REFUSED, "the card has no room for a context of %s",
                            AR_SIZE(runner->context_bytes));
    }
    AR_TRY(workload_open_single(workload, &runner->source, error));
    if (!runner->pinned)
        return AR_OK;
    struct trace_source *whole = runner->source;
    runner->source = NULL;
    return pinned_view_open(whole, &runner->source, error);
}

enum ar_status runner_open(struct runner *runner, const struct ar_spec *device, const char *policy,
                           const char *workload, uint64_t context_bytes, uint64_t others_bytes,
                           bool (*again)(void *, const struct ar_policy_request *), void *argument,
                           struct ar_error *error)
{
    *runner = (struct runner){
        .card = runner->card,
        .context_bytes = context_bytes,
        .others_at_start_bytes = others_bytes,
        .limit_of_free = runner->limit_of_free,
        .pinned = runner->pinned,
    };
    enum ar_status status = open_parts(runner, device, policy, workload, others_bytes, error);
    if (status == AR_OK) {
        gate_begin(&runner->gate, runner->source);
        runner->config = (struct replay_config){
            .policy = runner->session.policy,
            .device = runner->session.device,
            .source = &runner->gate.base,
            .frees = REPLAY_ORDERED,
            .host = REPLAY_HOST_NONE,
            .measure = REPLAY_METRICS_EXACT,
            .stop_on_failure = true,
            .policy_host = &runner->session.host,
            .limit_bytes = runner->session.limit_bytes,
            .again = again,
            .again_argument = argument,
        };
        status = session_plan(&runner->session, runner->source, REPLAY_ORDERED, error);
        AR_THEN(status, trace_rewind(runner->source, error));
        AR_THEN(status, replay_open(&runner->config, &runner->replay, error));
    }
    if (status != AR_OK)
        runner_close(runner);
    return status;
}

uint64_t runner_held_bytes(const struct runner *runner)
{
    if (!runner->open)
        return 0;
    const struct ar_device_counters *counters = &runner->session.device->counters;
    return counters->physical_bytes + counters->outside_bytes;
}

uint64_t runner_time_ns(const struct runner *runner)
{
    struct ar_device *device = runner->session.device;
    uint64_t now_ns = device->ops->now(device), idle_ns = device->ops->idle_at(device);
    return now_ns > idle_ns ? now_ns : idle_ns;
}

void runner_wait_until(struct runner *runner, uint64_t time_ns)
{
    replay_wait_until(runner->session.device, time_ns);
}

static void look(struct runner *runner)
{
    const struct ar_policy_totals *totals = &runner->session.policy->totals;
    uint64_t physical_bytes = runner->session.device->counters.peak_physical_bytes;
    AR_RAISE(runner->peak_live_bytes, totals->live_bytes);
    AR_RAISE(runner->peak_reserved_bytes, totals->reserved_bytes);
    AR_RAISE(runner->peak_physical_bytes, physical_bytes);
}

enum ar_status runner_go(struct runner *runner, uint64_t others_bytes, uint64_t steps,
                         uint64_t events, struct ar_error *error)
{
    struct ar_device *device = runner->session.device;
    uint64_t before_ns = runner_time_ns(runner);
    if (device->ops->others && device->ops->others(device, others_bytes) != AR_OK)
        return ar_error_set(error, AR_CORRUPT, "processes hold more of a card than it has: %s",
                            device->ops->problem(device));
    gate_let(&runner->gate, steps, events);
    enum ar_status status = replay_go(runner->replay, error);
    runner->own_ns += runner_time_ns(runner) - before_ns;
    look(runner);
    return status;
}

bool runner_done(const struct runner *runner)
{
    return runner->gate.ended || replay_stopped(runner->replay);
}

static void note_failure(const struct runner *runner, const struct replay_result *replayed,
                         struct tenant_result *result)
{
    if (result->outcome == TENANT_FAILED)
        return; /* the figures of the first failure stay */
    result->outcome = TENANT_FAILED;
    result->failed_event = replayed->first_failed_event;
    result->failed_step = replayed->steps;
    result->failed_bytes = replayed->first_failed_bytes;
    result->cause = replayed->cause;
    result->failed_pinned = runner->pinned;
    /* If the limit depends on the free memory at the start, and the request would have been served
     * without the others, they are the cause. */
    if (result->cause == REPLAY_CAUSE_CAPACITY && runner->limit_of_free &&
        runner->others_at_start_bytes >= replayed->first_failed_bytes)
        result->cause = REPLAY_CAUSE_TENANT;
    if (result->cause == REPLAY_CAUSE_TENANT)
        result->refused_bytes = replayed->first_failed_bytes;
}

/* The larger of the peaks between turns and within turns. */
static uint64_t peak(uint64_t seen_bytes, const struct replay_result *replayed, enum metric metric)
{
    uint64_t within_bytes = (uint64_t)metric_number(&replayed->metrics, metric, 0);
    return within_bytes > seen_bytes ? within_bytes : seen_bytes;
}

enum ar_status runner_report(struct runner *runner, struct tenant_result *result,
                             struct ar_error *error)
{
    const struct ar_device_counters *counters = &runner->session.device->counters;
    struct replay *replay = runner->replay;
    struct replay_result replayed;
    if (!replay)
        return AR_OK;
    runner->replay = NULL;
    AR_TRY(replay_end(replay, &replayed, error));
    runner->failed = !replayed.passed;
    if (!replayed.passed)
        note_failure(runner, &replayed, result);
    if (runner->pinned) {
        result->peak_pinned_live_bytes +=
            peak(runner->peak_live_bytes, &replayed, METRIC_peak_live_bytes);
        result->peak_pinned_reserved_bytes +=
            peak(runner->peak_reserved_bytes, &replayed, METRIC_peak_reserved_bytes);
        replay_result_close(&replayed);
        return AR_OK;
    }
    result->steps += replayed.steps;
    result->peak_live_bytes += peak(runner->peak_live_bytes, &replayed, METRIC_peak_live_bytes);
    result->peak_reserved_bytes +=
        peak(runner->peak_reserved_bytes, &replayed, METRIC_peak_reserved_bytes);
    result->peak_physical_bytes += runner->peak_physical_bytes;
    result->end_reserved_bytes += runner->session.policy->totals.reserved_bytes;
    result->end_physical_bytes += counters->physical_bytes;
    result->stall_ns += counters->stall_ns;
    result->own_ns += runner->own_ns;
    for (size_t i = 0; i < AR_DEVICE_CALL_COUNT; i++)
        result->driver_calls += counters->calls[i];
    replay_result_close(&replayed);
    return AR_OK;
}

enum ar_status runner_end(struct runner *runner, struct ar_error *error)
{
    replay_discard(runner->replay);
    runner->replay = NULL;
    enum ar_status status = runner->open ? session_end(&runner->session, error) : AR_OK;
    runner_close(runner);
    return status;
}

void runner_close(struct runner *runner)
{
    replay_discard(runner->replay);
    runner->replay = NULL;
    if (runner->open)
        session_close(&runner->session);
    trace_close(runner->source);
    runner->source = NULL;
    runner->open = false;
}

/* ---- the gate: spans end at the event that ends a step ---- */

static struct gate *of(struct trace_source *base)
{
    return (struct gate *)base;
}

/* The number of read events that pass now. */
static size_t let_through(struct gate *gate)
{
    size_t most = gate->count < gate->events_left ? gate->count : (size_t)gate->events_left;
    size_t at = 0;
    while (at < most && gate->steps_left) {
        const struct trace_event *event = &gate->events[at++];
        if (trace_ends_step(event)) {
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
        enum ar_status status = trace_next(gate->base.over, &gate->events, &gate->count, error);
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

static enum ar_status gate_rewind(struct trace_source *base, struct ar_error *error)
{
    struct gate *gate = of(base);
    gate->count = 0;
    gate->steps = 0;
    gate->ended = false;
    return trace_rewind(gate->base.over, error);
}

static void gate_close(struct trace_source *base)
{
    (void)base; /* the caller owns the inner source */
}

void gate_begin(struct gate *gate, struct trace_source *inner)
{
    static const struct trace_source_ops ops = {
        .next = gate_next,
        .rewind = gate_rewind,
        .close = gate_close,
    };
    *gate = (struct gate){.base = {.ops = &ops, .info = inner->info, .over = inner}};
}

void gate_let(struct gate *gate, uint64_t steps, uint64_t events)
{
    gate->steps_left = steps;
    gate->events_left = events;
}
