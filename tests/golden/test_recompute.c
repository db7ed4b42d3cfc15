/* Every exact figure, compared with a slow, independent computation from the series.
 *
 * For each policy and each of several workloads: one experiment as users run it; then a replay with
 * a sample after every event. The sample is compared with a walk of the policy, and the metrics are
 * computed again from the samples, in the simplest way. */
#include <math.h>

#include "sim/experiment/session.h"
#include "tests/support/amount.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define WALK_ALWAYS                                                                                \
    256 /* blocks live up to which every event, or every third, is followed by a walk */
#define WALK_EVERY 97

struct series {
    struct session session;
    uint64_t unit_bytes;
    struct replay_sample *at;
    size_t count, room;
};

struct walked {
    uint64_t unit_bytes, ranges;
    uint64_t used_bytes, requested_bytes, pending_bytes, free_block_bytes, largest_bytes,
        usable_bytes;
};

static bool walk_range(void *argument, const struct ar_policy_range *range)
{
    struct walked *walked = argument;
    walked->ranges++;
    if (range->state == AR_POLICY_RANGE_USED) {
        walked->used_bytes += range->bytes;
        walked->requested_bytes += range->requested_bytes;
    } else if (range->state == AR_POLICY_RANGE_PENDING) {
        walked->pending_bytes += range->bytes;
    } else if (range->state == AR_POLICY_RANGE_FREE) {
        walked->free_block_bytes += range->bytes;
        if (range->bytes > walked->largest_bytes)
            walked->largest_bytes = range->bytes;
        walked->usable_bytes += range->bytes / walked->unit_bytes * walked->unit_bytes;
    }
    return true;
}

static bool takes_any_free_block(const char *policy)
{
    static const char *const names[] = {"first-fit", "best-fit", "direct",
                                        "greedy",    "growth",   "bfc"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(policy, names[i]))
            return true;
    return false;
}

static void check_by_walk(const struct series *series, const struct replay_sample *sample)
{
    const struct ar_policy *policy = series->session.policy;
    struct walked walked = {.unit_bytes = series->unit_bytes};
    ar_policy_walk(policy, walk_range, &walked);
    assert_int_equal(sample->live_bytes, walked.requested_bytes);
    assert_int_equal(sample->granted_bytes, walked.used_bytes);
    assert_int_equal(sample->pending_bytes, walked.pending_bytes);
    assert_int_equal(sample->free_bytes, walked.free_block_bytes);
    /* The headers of tlsf lie between its blocks and are neither in them nor free. */
    uint64_t headers_bytes = strcmp(policy->ops->name, "tlsf") ? 0 : walked.ranges * 24 + 24;
    uint64_t all_bytes = walked.used_bytes + walked.pending_bytes + walked.free_block_bytes;
    assert_in_range(sample->reserved_bytes, all_bytes, all_bytes + headers_bytes);
    /* A policy with pools or classes may be unable to serve all of a free block at once. */
    assert_true(sample->largest_free_block_bytes <= walked.largest_bytes);
    if (takes_any_free_block(policy->ops->name))
        assert_int_equal(sample->largest_free_block_bytes, walked.largest_bytes);
    assert_int_equal(sample->usable_bytes, walked.usable_bytes);
    assert_true(sample->stranded_bytes <= sample->free_bytes);
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        assert_int_equal(sample->servable_bytes[effort],
                         ar_policy_servable(policy, (enum ar_policy_effort)effort));
}

static enum ar_status keep(void *argument, const struct replay_sample *sample,
                           struct ar_error *error)
{
    struct series *series = argument;
    const struct ar_policy *policy = series->session.policy;
    if (series->count == series->room) {
        series->room = series->room ? series->room * 2 : 4096;
        series->at = realloc(series->at, series->room * sizeof *series->at);
        assert_non_null(series->at);
    }
    series->at[series->count++] = *sample;
    bool hidden = policy->ops->capabilities & (AR_POLICY_OVERLAPS | AR_POLICY_OPAQUE);
    uint64_t every = policy->totals.live_blocks <= WALK_ALWAYS ? 3 / test_amount(3, 3) : WALK_EVERY;
    if (!hidden && sample->event % every == 0)
        check_by_walk(series, sample);
    return AR_OK;
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Half of all requested bytes are in requests of at most this size. */
static uint64_t plain_median(struct trace_source *source)
{
    const struct trace_event *events;
    uint64_t *sizes = NULL, all_bytes = 0, seen_bytes = 0, median = 0;
    size_t count, sized = 0;
    assert_int_equal(trace_rewind(source, NULL), AR_OK);
    while (!trace_next(source, &events, &count, NULL) && count) {
        sizes = realloc(sizes, (sized + count) * sizeof *sizes);
        for (size_t i = 0; i < count; i++)
            if (events[i].kind == TRACE_ALLOC || events[i].kind == TRACE_PROBE) {
                sizes[sized++] = events[i].value;
                all_bytes += events[i].value;
            }
    }
    qsort(sizes, sized, sizeof *sizes, by_size);
    for (size_t i = 0; i < sized && 2 * seen_bytes < all_bytes; i++) {
        median = sizes[i];
        seen_bytes += sizes[i];
    }
    free(sizes);
    return median;
}

static long double lacking(uint64_t part, uint64_t whole)
{
    return part > whole ? 0 : 1 - (long double)part / (long double)whole;
}

/* One figure of a sample, or -1 if there are no bytes to divide by. */
typedef long double figure(const struct replay_sample *sample);

static long double internal(const struct replay_sample *sample)
{
    return sample->granted_bytes ? lacking(sample->live_bytes, sample->granted_bytes) : -1;
}

static long double external(const struct replay_sample *sample, enum ar_policy_effort effort)
{
    return sample->free_bytes ? lacking(sample->servable_bytes[effort], sample->free_bytes) : -1;
}

static long double external_none(const struct replay_sample *sample)
{
    return external(sample, AR_POLICY_EFFORT_NONE);
}

static long double external_map(const struct replay_sample *sample)
{
    return external(sample, AR_POLICY_EFFORT_MAP);
}

static long double external_wait(const struct replay_sample *sample)
{
    return external(sample, AR_POLICY_EFFORT_WAIT);
}

static long double external_trim(const struct replay_sample *sample)
{
    return external(sample, AR_POLICY_EFFORT_TRIM);
}

static long double unusable(const struct replay_sample *sample)
{
    return sample->free_bytes ? lacking(sample->usable_bytes, sample->free_bytes) : -1;
}

static long double stranded(const struct replay_sample *sample)
{
    return (long double)sample->stranded_bytes;
}

static long double stranded_by_stream(const struct replay_sample *sample)
{
    return (long double)sample->stranded_by_stream_bytes;
}

static void same(const struct metric_values *metrics, enum metric metric, long double expected)
{
    double got = metric_number(metrics, metric, -1);
    long double off = fabsl((long double)got - expected);
    if (off > 1e-12L * fmaxl(1, fabsl(expected)))
        fail_msg("%s: %.17g, recomputed %.17Lg", metric_info(metric)->name, got, expected);
}

static long double mean(const struct series *series, figure *of)
{
    static const struct replay_sample nothing = {0};
    long double sum = 0, weight = 0;
    for (size_t i = 0; i < series->count; i++) {
        long double value = of(i ? &series->at[i - 1] : &nothing);
        if (value < 0)
            continue;
        sum += value * (long double)series->at[i].weight;
        weight += (long double)series->at[i].weight;
    }
    return weight > 0 ? sum / weight : -1;
}

static void check_fragmentation(const struct series *series, const struct metric_values *metrics,
                                const struct replay_sample *peak, bool opaque)
{
    static const struct {
        enum metric at_peak, mean;
        figure *of;
    } figures[] = {
        {METRIC_internal_fragmentation_at_peak, METRIC_internal_fragmentation_mean, internal},
        {METRIC_external_fragmentation_at_peak, METRIC_external_fragmentation_mean, external_none},
        {METRIC_external_fragmentation_map_at_peak, METRIC_external_fragmentation_map_mean,
         external_map},
        {METRIC_external_fragmentation_wait_at_peak, METRIC_external_fragmentation_wait_mean,
         external_wait},
        {METRIC_external_fragmentation_trim_at_peak, METRIC_external_fragmentation_trim_mean,
         external_trim},
        {METRIC_unusable_free_index_at_peak, METRIC_unusable_free_index_mean, unusable},
        {METRIC_stranded_bytes_at_peak, METRIC_stranded_bytes_mean, stranded},
        {METRIC_stranded_by_stream_bytes_at_peak, METRIC_stranded_by_stream_bytes_mean,
         stranded_by_stream},
    };
    for (size_t i = 0; i < COUNT(figures); i++) {
        bool null = opaque && i > 0;
        same(metrics, figures[i].at_peak, null || !peak->live_bytes ? -1 : figures[i].of(peak));
        same(metrics, figures[i].mean, null ? -1 : mean(series, figures[i].of));
    }
}

static void check_all(const struct series *series, const struct metric_values *metrics)
{
    const struct replay_sample *last = &series->at[series->count - 1], *peak = &series->at[0];
    uint64_t granted_bytes = 0, reserved_bytes = 0, physical_bytes = 0;
    for (size_t i = 0; i < series->count; i++) {
        const struct replay_sample *sample = &series->at[i];
        if (sample->live_bytes > peak->live_bytes)
            peak = sample;
        granted_bytes =
            granted_bytes > sample->granted_bytes ? granted_bytes : sample->granted_bytes;
        reserved_bytes =
            reserved_bytes > sample->reserved_bytes ? reserved_bytes : sample->reserved_bytes;
        physical_bytes =
            physical_bytes > sample->physical_bytes ? physical_bytes : sample->physical_bytes;
    }
    same(metrics, METRIC_peak_live_bytes, (long double)peak->live_bytes);
    same(metrics, METRIC_peak_granted_bytes, (long double)granted_bytes);
    same(metrics, METRIC_peak_reserved_bytes, (long double)reserved_bytes);
    same(metrics, METRIC_end_reserved_bytes, (long double)last->reserved_bytes);
    same(metrics, METRIC_median_request_bytes, (long double)series->unit_bytes);
    /* Within one request more pages may be held than before and after it. */
    double peak_physical = metric_number(metrics, METRIC_peak_physical_bytes, -1);
    assert_true(peak_physical >= (double)physical_bytes);
    same(metrics, METRIC_overhead,
         peak->live_bytes ? peak_physical / (long double)peak->live_bytes : -1);
    same(metrics, METRIC_utilisation,
         reserved_bytes ? (long double)granted_bytes / (long double)reserved_bytes : -1);
    check_fragmentation(series, metrics, peak,
                        series->session.policy->ops->capabilities & AR_POLICY_OPAQUE);
}

static void watch(const struct experiment_rig *rig, struct series *series,
                  struct replay_result *result)
{
    const struct experiment *experiment = &rig->experiment;
    series->unit_bytes = plain_median(rig->source);
    assert_ok(session_open(&series->session, experiment->policy, experiment->device,
                           experiment->seed, NULL, &test_error));
    const struct observer observer = {.sample = keep, .argument = series};
    const struct replay_config config = {
        .policy = series->session.policy,
        .device = series->session.device,
        .source = rig->source,
        .frees = experiment->frees,
        .measure = REPLAY_METRICS_EXACT,
        .unit_bytes = series->unit_bytes,
        .policy_host = &series->session.host,
        .observer = &observer,
    };
    assert_ok(trace_rewind(rig->source, &test_error));
    assert_ok(replay_run(&config, result, &test_error));
}

static void recompute(const char *policy, const char *device, const char *workload,
                      enum replay_frees frees)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    struct series series = {0};
    struct replay_result watched;
    experiment_rig_open(&rig, policy, device, workload);
    rig.experiment.frees = frees;
    experiment_rig_run(&rig);
    watch(&rig, &series, &watched);
    check_all(&series, &rig.result.metrics);
    /* An observer changes nothing. */
    for (int i = 0; i < METRIC_COUNT; i++) {
        enum metric metric = (enum metric)i;
        if (metric == METRIC_slowdown || metric == METRIC_steady_slowdown)
            continue;
        same(&watched.metrics, metric, metric_number(&rig.result.metrics, metric, -1));
    }
    replay_result_close(&watched);
    session_close(&series.session);
    free(series.at);
}

static void every_policy(const char *device, const char *workload, enum replay_frees frees)
{
    const char *policy;
    for (size_t i = 0; (policy = policy_rig_each(i)); i++) {
        if (policy_rig_has(policy, AR_POLICY_OFFLINE))
            continue;
        print_message("%s, %s\n", policy, workload);
        recompute(policy, device, workload, frees);
    }
}

TEST(random_requests)
{
    every_policy("sim:capacity=8GiB", "random:events=3000,target=256MiB,min=100,max=24MiB,seed=5",
                 REPLAY_ORDERED);
}

TEST(requests_that_fail)
{
    every_policy("sim:capacity=200MiB", "random:events=3000,target=256MiB,min=100,max=24MiB,seed=6",
                 REPLAY_ORDERED);
}

TEST(free_blocks_of_one_size)
{
    every_policy("sim:capacity=8GiB", "checkerboard", REPLAY_ORDERED);
}

TEST(a_recorded_tape)
{
    every_policy("sim", "workloads/data/tape_small.default.csv.gz", REPLAY_AT_ONCE);
}

TEST(recorded_streams)
{
    every_policy("sim", "workloads/data/streams_prefetch.default.csv.gz", REPLAY_ORDERED);
}
