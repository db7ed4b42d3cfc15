/* An experiment: all passes of a run.
 *
 * 1. An adaptive workload is played once with the policy and kept in memory; the passes replay this
 *    trace. Where host time counts, every other workload is read into memory too.
 * 2. For exact metrics, a pass without a policy finds the byte-weighted median request.
 * 3. The run itself, on a new device with a new policy. The observers see this pass.
 * 4. The baseline: the same timeline with an allocator that costs nothing. Only if the run
 *    finished, if kernels run or host times pass, and if the contents are not verified.
 * 5. On a card, which runs in real time, the run itself also reads the clock around every call:
 *    that takes about 50 ns, next to driver calls of microseconds. For host times there is one more
 *    pass without clocks, for the throughput.
 * 6. Elsewhere, for host times: one pass that reads the clock around every call, and passes that
 *    read it only at their ends, repeated until they have taken long enough together. No other pass
 *    reads the host's clock. */
#include "sim/replay/timing.h"
#include "sim/experiment/session.h"
#include "sim/observer.h"
#include "allocators/base/array.h"
#include "allocators/base/rng.h"
#include "workloads/trace/trace.h"

#include <time.h>

#define THROUGHPUT_LEAST_NS  UINT64_C(50000000)
#define THROUGHPUT_MOST_RUNS 100
#define FORGOTTEN_BRANCHES   400000 /* fewer leave more of what was learned of 1000 events */

struct passes {
    const struct experiment *experiment;
    struct trace_source *trace;
    uint64_t unit_bytes;
    struct ar_device_props *props; /* NULL: not wanted */
    struct observer latencies;     /* passes latencies on to the experiment's observers */
};

static bool on_card(const struct experiment *experiment)
{
    return strcmp(experiment->device->links[0].name, "cuda") == 0;
}

/* The purpose of a pass. */
enum purpose { MEASURE, CLOCK_CALLS, CLOCK_ALL };

static void configure(const struct passes *passes, struct session *session, enum purpose purpose,
                      struct replay_config *config)
{
    const struct experiment *experiment = passes->experiment;
    *config = (struct replay_config){
        .policy = session->policy,
        .pinned = session->pinned,
        .device = session->device,
        .source = passes->trace,
        .frees = experiment->frees,
        .host = experiment->host,
        .stop_on_failure = experiment->stop_on_failure,
        .policy_host = &session->host,
        .limit_bytes = session->limit_bytes,
        .measure = REPLAY_METRICS_NONE,
        .measure_time = purpose == CLOCK_CALLS || (purpose == MEASURE && on_card(experiment)),
        .verify = experiment->verify && purpose == MEASURE,
    };
    config->observer = purpose == CLOCK_CALLS ? &passes->latencies : NULL;
    if (purpose != MEASURE)
        return;
    config->measure = experiment->measure;
    config->unit_bytes = passes->unit_bytes;
    config->observer = experiment->observer;
    config->tap = session->tap;
}

static enum ar_status pass_on_latencies(void *argument, const struct latency *latency,
                                        struct ar_error *error)
{
    const struct experiment *experiment = argument;
    return observer_latencies(experiment->observer, latency, error);
}

/* Other programs do not count: on a simulated device the thread waits for nothing. */
static uint64_t throughput_clock_ns(const struct experiment *experiment)
{
    struct timespec now;
    if (on_card(experiment))
        return latency_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* One replay with a new device and policy. `*took_ns` is host time, for CLOCK_ALL only. */
static enum ar_status replay_once(const struct passes *passes, enum purpose purpose,
                                  struct replay_result *result, uint64_t *took_ns,
                                  struct ar_error *error)
{
    const struct experiment *experiment = passes->experiment;
    const struct observer *observer = purpose == MEASURE ? experiment->observer : NULL;
    AR_CLOSED(session_close) struct session session = {0};
    struct replay_config config;
    bool timed = purpose != MEASURE || (on_card(experiment) && !experiment->verify);
    AR_TRY(observer_begin(observer, error));
    AR_TRY(session_open_timed(&session, experiment->policy, experiment->device, experiment->seed,
                              timed, observer, error));
    if (experiment->pinned)
        AR_TRY(session_open_pinned(&session, experiment->pinned, experiment->seed, error));
    if (purpose == MEASURE && passes->props)
        *passes->props = session.device->props;
    configure(passes, &session, purpose, &config);
    AR_TRY(session_plan(&session, passes->trace, experiment->frees, error));
    AR_TRY(trace_rewind(passes->trace, error));
    uint64_t begun_ns = purpose == CLOCK_ALL ? throughput_clock_ns(experiment) : 0;
    AR_TRY(replay_run(&config, result, error));
    *took_ns = purpose == CLOCK_ALL ? throughput_clock_ns(experiment) - begun_ns : 0;
    if (session.tap)
        AR_TRY(tap_end(session.tap, error));
    AR_TRY(observer_finished(observer, session.policy, error));
    if (result->passed && session.device->ops->used_up)
        AR_TRY(session.device->ops->used_up(session.device, error));
    return session_end(&session, error);
}

static enum ar_status compare_baseline(const struct passes *passes, struct replay_result *result,
                                       struct ar_error *error)
{
    const struct experiment *experiment = passes->experiment;
    struct baseline baseline;
    bool has_timeline = passes->trace->info.kernels || experiment->host != REPLAY_HOST_NONE;
    if (!has_timeline || experiment->verify)
        return AR_OK;
    AR_TRY(baseline_run(experiment->device, passes->trace, experiment->host, &baseline, error));
    baseline_report(&baseline, result);
    return AR_OK;
}

static enum ar_status clock_calls(const struct passes *passes, struct metric_values *metrics,
                                  struct ar_error *error)
{
    struct replay_result timed;
    uint64_t unused_ns;
    AR_TRY(replay_once(passes, CLOCK_CALLS, &timed, &unused_ns, error));
    for (int i = METRIC_alloc_ns_p50; i <= METRIC_clock_ns; i++)
        metrics->at[i] = timed.metrics.at[i];
    replay_result_close(&timed);
    return AR_OK;
}

/* A processor learns a short trace by heart: from the second replay on it predicts each branch,
 * and runs the same policy more than twice as fast as over a long trace. This unpredictable work
 * between two replays overwrites what it has learned. */
static void forget_branches(struct ar_rng *rng)
{
    volatile unsigned ones = 0, zeros = 0; /* volatile: each store stays behind its branch */
    for (unsigned i = 0; i < FORGOTTEN_BRANCHES; i += 64) {
        uint64_t bits = ar_rng_next(rng);
        for (unsigned bit = 0; bit < 64; bit++)
            if (bits >> bit & 1)
                ones = i;
            else
                zeros = i;
    }
    (void)(ones + zeros);
}

/* The median, because one interruption is longer than a thousand replays of a short trace. */
static enum ar_status clock_all(const struct passes *passes, struct metric_values *metrics,
                                struct ar_error *error)
{
    uint64_t took_ns[THROUGHPUT_MOST_RUNS], all_ns = 0;
    double operations = 0;
    struct ar_rng rng = ar_rng_of(1);
    size_t most = on_card(passes->experiment) ? 1 : THROUGHPUT_MOST_RUNS, runs = 0;
    while (runs < most && all_ns < THROUGHPUT_LEAST_NS) {
        struct replay_result timed;
        if (!on_card(passes->experiment))
            forget_branches(&rng);
        AR_TRY(replay_once(passes, CLOCK_ALL, &timed, &took_ns[runs], error));
        all_ns += took_ns[runs++];
        operations = metric_number(&timed.metrics, METRIC_allocs, 0) +
                     metric_number(&timed.metrics, METRIC_frees, 0);
        replay_result_close(&timed);
    }
    ar_array_sort(took_ns, runs);
    metric_set_ratio(metrics, METRIC_ops_per_s, operations * 1e9, (double)took_ns[runs / 2]);
    return AR_OK;
}

static enum ar_status run_passes(struct passes *passes, struct replay_result *result,
                                 struct ar_error *error)
{
    const struct experiment *experiment = passes->experiment;
    enum ar_status status = AR_OK;
    uint64_t unused_ns;
    if (experiment->measure == REPLAY_METRICS_EXACT)
        status = survey_median(passes->trace, &passes->unit_bytes, error);
    AR_THEN(status, replay_once(passes, MEASURE, result, &unused_ns, error));
    /* The speed of a program that continued without its memory means nothing. */
    if (status == AR_OK && result->passed)
        status = compare_baseline(passes, result, error);
    else if (status == AR_OK)
        result->metrics.at[METRIC_steps_per_s] = (struct metric_value){.kind = METRIC_NULL};
    if (result->problem[0])
        return status;
    if (status == AR_OK && experiment->measure_time && !on_card(experiment))
        status = clock_calls(passes, &result->metrics, error);
    if (status == AR_OK && experiment->measure_time)
        status = clock_all(passes, &result->metrics, error);
    return status;
}

enum ar_status experiment_run(const struct experiment *experiment, struct replay_result *result,
                              struct ar_device_props *props, struct ar_error *error)
{
    struct passes passes = {
        .experiment = experiment,
        .props = props,
        .latencies = {.latencies = pass_on_latencies, .argument = (void *)(uintptr_t)experiment},
    };
    AR_CLOSED(trace_close_at) struct trace_source *owned = NULL;
    /* The time to make events or to read them from a file must not count as the policy's. */
    bool settle =
        (experiment->measure_time || on_card(experiment)) && !trace_in_memory(experiment->source);
    memset(result, 0, sizeof *result);
    enum ar_status status = session_trace(experiment, settle, &passes.trace, &owned, error);
    AR_THEN(status, run_passes(&passes, result, error));
    if (status != AR_OK)
        replay_result_close(result);
    return status;
}
