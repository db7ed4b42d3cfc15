#include "sim/replay/exact.h"

struct usable_walk {
    uint64_t unit_bytes, usable_bytes;
};

static bool usable_visit(void *argument, const struct ar_policy_range *range)
{
    struct usable_walk *walk = argument;
    if (range->state == AR_POLICY_RANGE_FREE)
        walk->usable_bytes += range->bytes - range->bytes % walk->unit_bytes;
    return true;
}

static uint64_t usable_by_walk(const struct ar_policy *policy, uint64_t unit_bytes)
{
    struct usable_walk walk = {.unit_bytes = unit_bytes};
    ar_policy_walk(policy, usable_visit, &walk);
    return walk.usable_bytes;
}

void exact_begin(struct exact *exact, struct ar_policy *policy, uint64_t unit_bytes)
{
    *exact = (struct exact){
        .policy = policy,
        .unit_bytes = unit_bytes,
        .opaque = policy->ops->capabilities & AR_POLICY_OPAQUE,
        .one_effort = !policy->ops->servable,
        .peak_reserved_bytes = policy->totals.reserved_bytes,
    };
    if (exact->opaque || !unit_bytes)
        return;
    if (policy->ops->capabilities & AR_POLICY_WATCHES_FREE) {
        /* Free blocks from before the first request, of a policy that reserves memory at its
         * creation. */
        exact->watch.unit_bytes = unit_bytes;
        exact->watch.usable_bytes = usable_by_walk(policy, unit_bytes);
        policy->watch = &exact->watch;
    } else {
        exact->walks = true;
    }
}

void exact_end(struct exact *exact, struct ar_policy *policy)
{
    if (policy->watch == &exact->watch)
        policy->watch = NULL;
}

static void read_servable(const struct ar_policy *policy, uint64_t *servable_bytes)
{
    uint64_t (*ask)(const struct ar_policy *, enum ar_policy_effort) = policy->ops->servable;
    uint64_t free_bytes = ar_policy_free_bytes(&policy->totals);
    uint64_t at_once = ask(policy, AR_POLICY_EFFORT_NONE);
    servable_bytes[AR_POLICY_EFFORT_NONE] = at_once < free_bytes ? at_once : free_bytes;
    for (int effort = AR_POLICY_EFFORT_MAP; effort < AR_POLICY_EFFORT_COUNT; effort++)
        servable_bytes[effort] = ask(policy, (enum ar_policy_effort)effort);
}

static uint64_t usable(const struct exact *exact)
{
    return exact->walks ? usable_by_walk(exact->policy, exact->unit_bytes)
                        : exact->watch.usable_bytes;
}

void exact_read(const struct exact *exact, struct exact_state *state)
{
    const struct ar_policy *policy = exact->policy;
    const struct ar_policy_totals *totals = &policy->totals;
    *state = (struct exact_state){
        .live_bytes = exact->live_bytes,
        .granted_bytes = exact->granted_bytes,
        .reserved_bytes = totals->reserved_bytes,
        .pending_bytes = totals->pending_bytes,
    };
    if (exact->opaque)
        return;
    struct ar_policy_stats stats;
    ar_policy_stats(policy, &stats);
    state->free_bytes = ar_policy_free_bytes(totals);
    state->stranded_bytes = state->free_bytes - totals->releasable_bytes;
    state->stranded_by_stream_bytes = stats.stranded_by_stream_bytes;
    state->largest_free_block_bytes = stats.largest_free_block_bytes;
    state->usable_bytes = usable(exact);
    if (!exact->one_effort)
        read_servable(policy, state->servable_bytes);
    else
        for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
            state->servable_bytes[effort] = stats.largest_free_block_bytes;
}

/* Byte counts are far below 2^63, and the conversion of a signed number is one instruction. */
static inline double real(uint64_t bytes)
{
    return (double)(int64_t)bytes;
}

/* 1 - part / whole, and 0 if part is greater: after a release of cached memory more can be served
 * than is free now. */
static inline double lacking(uint64_t part, uint64_t whole)
{
    return part >= whole ? 0 : 1 - real(part) / real(whole);
}

void exact_tick(struct exact *exact, uint64_t weight)
{
    const struct ar_policy *policy = exact->policy;
    struct exact_sums *sums = &exact->sums;
    double by = real(weight);
    sums->weight += weight;
    if (exact->granted_bytes) {
        sums->granted_weight += weight;
        sums->internal += by * lacking(exact->live_bytes, exact->granted_bytes);
    }
    uint64_t free_bytes = ar_policy_free_bytes(&policy->totals);
    if (exact->opaque || !free_bytes)
        return;
    struct ar_policy_stats stats;
    ar_policy_stats(policy, &stats);
    sums->free_weight += weight;
    sums->stranded += by * real(free_bytes - policy->totals.releasable_bytes);
    sums->stranded_by_stream += by * real(stats.stranded_by_stream_bytes);
    if (exact->unit_bytes)
        sums->unusable += by * lacking(usable(exact), free_bytes);
    if (exact->one_effort) {
        sums->external[0] += by * lacking(stats.largest_free_block_bytes, free_bytes);
        return;
    }
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT];
    read_servable(policy, servable_bytes);
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        sums->external[effort] += by * lacking(servable_bytes[effort], free_bytes);
}

void exact_peak(struct exact *exact)
{
    exact->peak_live_bytes = exact->live_bytes;
    exact_read(exact, &exact->at_peak);
}

static void report_lacking(struct metric_values *metrics, enum metric metric, uint64_t part,
                           uint64_t whole)
{
    if (whole)
        metric_set_real(metrics, metric, lacking(part, whole));
}

static void report_free_blocks(const struct exact *exact, struct metric_values *metrics)
{
    static const enum metric at_peak[AR_POLICY_EFFORT_COUNT] = {
        METRIC_external_fragmentation_at_peak,
        METRIC_external_fragmentation_map_at_peak,
        METRIC_external_fragmentation_wait_at_peak,
        METRIC_external_fragmentation_trim_at_peak,
    };
    static const enum metric mean[AR_POLICY_EFFORT_COUNT] = {
        METRIC_external_fragmentation_mean,
        METRIC_external_fragmentation_map_mean,
        METRIC_external_fragmentation_wait_mean,
        METRIC_external_fragmentation_trim_mean,
    };
    const struct exact_state *peak = &exact->at_peak;
    const struct exact_sums *sums = &exact->sums;
    double free_weight = (double)sums->free_weight, weight = (double)sums->weight;
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++) {
        report_lacking(metrics, at_peak[effort], peak->servable_bytes[effort], peak->free_bytes);
        metric_set_ratio(metrics, mean[effort], sums->external[exact->one_effort ? 0 : effort],
                         free_weight);
    }
    if (exact->unit_bytes) {
        report_lacking(metrics, METRIC_unusable_free_index_at_peak, peak->usable_bytes,
                       peak->free_bytes);
        metric_set_ratio(metrics, METRIC_unusable_free_index_mean, sums->unusable, free_weight);
    }
    if (exact->peak_live_bytes) {
        metric_set(metrics, METRIC_stranded_bytes_at_peak, peak->stranded_bytes);
        metric_set(metrics, METRIC_stranded_by_stream_bytes_at_peak,
                   peak->stranded_by_stream_bytes);
    }
    metric_set_ratio(metrics, METRIC_stranded_bytes_mean, sums->stranded, weight);
    metric_set_ratio(metrics, METRIC_stranded_by_stream_bytes_mean, sums->stranded_by_stream,
                     weight);
}

void exact_report(const struct exact *exact, struct metric_values *metrics)
{
    metric_set(metrics, METRIC_peak_live_bytes, exact->peak_live_bytes);
    metric_set(metrics, METRIC_peak_granted_bytes, exact->peak_granted_bytes);
    metric_set(metrics, METRIC_peak_reserved_bytes, exact->peak_reserved_bytes);
    metric_set(metrics, METRIC_end_reserved_bytes, exact->policy->totals.reserved_bytes);
    metric_set_ratio(metrics, METRIC_utilisation, (double)exact->peak_granted_bytes,
                     (double)exact->peak_reserved_bytes);
    report_lacking(metrics, METRIC_internal_fragmentation_at_peak, exact->at_peak.live_bytes,
                   exact->at_peak.granted_bytes);
    metric_set_ratio(metrics, METRIC_internal_fragmentation_mean, exact->sums.internal,
                     (double)exact->sums.granted_weight);
    if (exact->unit_bytes)
        metric_set(metrics, METRIC_median_request_bytes, exact->unit_bytes);
    if (!exact->opaque)
        report_free_blocks(exact, metrics);
}
