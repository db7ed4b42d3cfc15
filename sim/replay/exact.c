#include "sim/replay/exact.h"

struct usable_walk {
    uint64_t unit_bytes, usable_bytes;
};

static bool usable_visit(void *argument, const struct policy_range *range)
{
    struct usable_walk *walk = argument;
    if (range->state == POLICY_RANGE_HOLE)
        walk->usable_bytes += range->bytes - range->bytes % walk->unit_bytes;
    return true;
}

static uint64_t usable_by_walk(const struct policy *policy, uint64_t unit_bytes)
{
    struct usable_walk walk = {.unit_bytes = unit_bytes};
    policy_walk(policy, usable_visit, &walk);
    return walk.usable_bytes;
}

void exact_begin(struct exact *exact, struct policy *policy, uint64_t unit_bytes)
{
    *exact = (struct exact){
        .policy = policy,
        .unit_bytes = unit_bytes,
        .opaque = policy->ops->capabilities & POLICY_OPAQUE,
        .peak_reserved_bytes = policy->totals.reserved_bytes,
    };
    if (exact->opaque || !unit_bytes)
        return;
    if (policy->ops->capabilities & POLICY_WATCHES_HOLES) {
        /* Holes made before the first request, by a policy that takes memory at birth. */
        exact->watch.unit_bytes = unit_bytes;
        exact->watch.usable_bytes = usable_by_walk(policy, unit_bytes);
        policy->watch = &exact->watch;
    } else {
        exact->walks = true;
    }
}

void exact_end(struct exact *exact, struct policy *policy)
{
    if (policy->watch == &exact->watch)
        policy->watch = NULL;
}

void exact_read(const struct exact *exact, struct exact_state *state)
{
    const struct policy *policy = exact->policy;
    const struct policy_totals *totals = &policy->totals;
    state->live_bytes = exact->live_bytes;
    state->granted_bytes = exact->granted_bytes;
    state->reserved_bytes = totals->reserved_bytes;
    state->pending_bytes = totals->pending_bytes;
    if (exact->opaque) {
        state->free_bytes = state->stranded_bytes = state->stranded_by_stream_bytes = 0;
        state->largest_hole_bytes = state->usable_bytes = 0;
        for (int price = 0; price < POLICY_PRICE_COUNT; price++)
            state->servable_bytes[price] = 0;
        return;
    }
    struct policy_stats stats;
    policy_stats(policy, &stats);
    state->free_bytes = policy_free_bytes(totals);
    state->stranded_bytes = state->free_bytes - totals->releasable_bytes;
    state->stranded_by_stream_bytes = stats.stranded_by_stream_bytes;
    state->largest_hole_bytes = stats.largest_hole_bytes;
    for (int price = 0; price < POLICY_PRICE_COUNT; price++)
        state->servable_bytes[price] = policy->ops->servable
                                           ? policy->ops->servable(policy, (enum policy_price)price)
                                           : stats.largest_hole_bytes;
    state->usable_bytes =
        exact->walks ? usable_by_walk(policy, exact->unit_bytes) : exact->watch.usable_bytes;
}

static void mean_add(struct exact_mean *mean, double value, uint64_t weight)
{
    mean->sum += value * (double)weight;
    mean->weight += weight;
}

/* 1 - part / whole; what can be served after giving memory back may exceed what is free now,
 * and then nothing is fragmented. */
static double lacking(uint64_t part, uint64_t whole)
{
    return part >= whole ? 0 : 1 - (double)part / (double)whole;
}

void exact_tick(struct exact *exact, uint64_t weight)
{
    struct exact_state state;
    exact_read(exact, &state);
    if (state.granted_bytes)
        mean_add(&exact->internal, lacking(state.live_bytes, state.granted_bytes), weight);
    mean_add(&exact->stranded, (double)state.stranded_bytes, weight);
    mean_add(&exact->stranded_by_stream, (double)state.stranded_by_stream_bytes, weight);
    if (!state.free_bytes)
        return;
    for (int price = 0; price < POLICY_PRICE_COUNT; price++)
        mean_add(&exact->external[price], lacking(state.servable_bytes[price], state.free_bytes),
                 weight);
    mean_add(&exact->unusable, lacking(state.usable_bytes, state.free_bytes), weight);
}

void exact_peak(struct exact *exact)
{
    exact->peak_live_bytes = exact->live_bytes;
    exact_read(exact, &exact->at_peak);
}

static void report_mean(struct metric_values *metrics, enum metric metric,
                        const struct exact_mean *mean)
{
    metric_set_ratio(metrics, metric, mean->sum, (double)mean->weight);
}

static void report_lacking(struct metric_values *metrics, enum metric metric, uint64_t part,
                           uint64_t whole)
{
    if (whole)
        metric_set_real(metrics, metric, lacking(part, whole));
}

static void report_holes(const struct exact *exact, struct metric_values *metrics)
{
    static const enum metric at_peak[POLICY_PRICE_COUNT] = {
        METRIC_external_fragmentation_at_peak,
        METRIC_external_fragmentation_map_at_peak,
        METRIC_external_fragmentation_wait_at_peak,
        METRIC_external_fragmentation_trim_at_peak,
    };
    static const enum metric mean[POLICY_PRICE_COUNT] = {
        METRIC_external_fragmentation_mean,
        METRIC_external_fragmentation_map_mean,
        METRIC_external_fragmentation_wait_mean,
        METRIC_external_fragmentation_trim_mean,
    };
    const struct exact_state *peak = &exact->at_peak;
    for (int price = 0; price < POLICY_PRICE_COUNT; price++) {
        report_lacking(metrics, at_peak[price], peak->servable_bytes[price], peak->free_bytes);
        report_mean(metrics, mean[price], &exact->external[price]);
    }
    if (exact->unit_bytes) {
        report_lacking(metrics, METRIC_unusable_free_index_at_peak, peak->usable_bytes,
                       peak->free_bytes);
        report_mean(metrics, METRIC_unusable_free_index_mean, &exact->unusable);
    }
    if (exact->peak_live_bytes) {
        metric_set(metrics, METRIC_stranded_bytes_at_peak, peak->stranded_bytes);
        metric_set(metrics, METRIC_stranded_by_stream_bytes_at_peak,
                   peak->stranded_by_stream_bytes);
    }
    report_mean(metrics, METRIC_stranded_bytes_mean, &exact->stranded);
    report_mean(metrics, METRIC_stranded_by_stream_bytes_mean, &exact->stranded_by_stream);
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
    report_mean(metrics, METRIC_internal_fragmentation_mean, &exact->internal);
    if (exact->unit_bytes)
        metric_set(metrics, METRIC_median_request_bytes, exact->unit_bytes);
    if (!exact->opaque)
        report_holes(exact, metrics);
}
