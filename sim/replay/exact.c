/* The exact metrics of one run, with little cost for each event.
 *
 * 1. The engine counts live and granted bytes and their peaks, from a request to its free request,
 *    so they mean the same for every policy. Only requests that were served count.
 * 2. The clock of the means is the recorded time if the trace has one, else the bytes of the
 *    requests. A state lasts until the next tick of this clock. At a tick the ratios and bytes of
 *    the state are added to the sums, times the weight (nanoseconds, or bytes of the request).
 *    They are read from the policy only if it was called since the last tick: between calls its
 *    state does not change.
 * 3. When the live bytes reach a new maximum, the state is kept. At the end of the run this is the
 *    state at the first moment of the greatest live bytes.
 * 4. For the unusable-free index, a policy with AR_POLICY_WATCHES_FREE counts the usable bytes
 *    itself. Other policies are walked at each reading, which takes time in proportion to their
 *    ranges. */
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
        .stale = true,
        .peak_reserved_bytes = policy->totals.reserved_bytes,
    };
    if (exact->opaque || !unit_bytes)
        return;
    if (policy->ops->capabilities & AR_POLICY_WATCHES_FREE) {
        /* Free blocks from before the first request, of a policy that reserves memory at its
         * creation. */
        exact->watch.unit_bytes = unit_bytes;
        exact->watch.usable_bytes = usable_by_walk(policy, unit_bytes);
        ar_policy_watch(policy, &exact->watch);
    } else {
        exact->walks = true;
    }
}

void exact_end(struct exact *exact, struct ar_policy *policy)
{
    if (policy->watch == &exact->watch)
        ar_policy_watch(policy, NULL);
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
    struct ar_policy_room room;
    ar_policy_room(policy, &room);
    state->free_bytes = ar_policy_free_bytes(totals);
    /* At most the free bytes, as ar_policy_servable: samples show it. For the ratios it makes no
     * difference: lacking() is 0 if more can be served than is free. */
    AR_LOWER(room.servable_bytes[0], state->free_bytes);
    state->stranded_bytes = state->free_bytes - totals->releasable_bytes;
    state->stranded_by_stream_bytes = room.stranded_by_stream_bytes;
    state->largest_free_block_bytes = room.largest_free_block_bytes;
    state->usable_bytes = usable(exact);
    memcpy(state->servable_bytes, room.servable_bytes, sizeof state->servable_bytes);
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

/* The part of the state that depends on free blocks. */
static __attribute__((noinline)) void refresh_free(struct exact *exact, uint64_t free_bytes)
{
    const struct ar_policy *policy = exact->policy;
    double *terms = exact->terms.of;
    struct ar_policy_room room;
    const uint64_t *bytes = room.servable_bytes;
    ar_policy_room(policy, &room);
    terms[EXACT_STRANDED] = real(free_bytes - policy->totals.releasable_bytes);
    terms[EXACT_STRANDED_BY_STREAM] = real(room.stranded_by_stream_bytes);
    terms[EXACT_UNUSABLE] = exact->unit_bytes ? lacking(usable(exact), free_bytes) : 0;
    /* With most policies only the last effort differs, and a division takes long. */
    double now = lacking(bytes[0], free_bytes);
    terms[EXACT_EXTERNAL] = now;
#pragma GCC unroll 4
    for (int effort = 1; effort < AR_POLICY_EFFORT_COUNT; effort++) {
        if (bytes[effort] != bytes[effort - 1])
            now = lacking(bytes[effort], free_bytes);
        terms[EXACT_EXTERNAL + effort] = now;
    }
}

void exact_refresh(struct exact *exact)
{
    uint64_t free_bytes = exact->opaque ? 0 : ar_policy_free_bytes(&exact->policy->totals);
    double *terms = exact->terms.of;
    bool had_free_bytes = exact->free_mask;
    exact->stale = false;
    exact->granted_mask = exact->granted_bytes ? UINT64_MAX : 0;
    exact->free_mask = free_bytes ? UINT64_MAX : 0;
    terms[EXACT_INTERNAL] = lacking(exact->live_bytes, exact->granted_bytes);
    if (free_bytes)
        refresh_free(exact, free_bytes);
    else if (had_free_bytes)
        memset(terms + 1, 0, (EXACT_MEANS - 1) * sizeof *terms);
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
    const double *sums = exact->sums.of;
    double free_weight = (double)exact->free_weight, weight = (double)exact->weight;
    /* Free memory of a plan is for the requests to come: a largest request that any program could
     * make says nothing of it. */
    bool planned = exact->policy->ops->capabilities & AR_POLICY_OFFLINE;
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT && !planned; effort++) {
        report_lacking(metrics, at_peak[effort], peak->servable_bytes[effort], peak->free_bytes);
        metric_set_ratio(metrics, mean[effort], sums[EXACT_EXTERNAL + effort], free_weight);
    }
    if (exact->unit_bytes) {
        report_lacking(metrics, METRIC_unusable_free_index_at_peak, peak->usable_bytes,
                       peak->free_bytes);
        metric_set_ratio(metrics, METRIC_unusable_free_index_mean, sums[EXACT_UNUSABLE],
                         free_weight);
    }
    if (exact->peak_live_bytes) {
        metric_set(metrics, METRIC_stranded_bytes_at_peak, peak->stranded_bytes);
        metric_set(metrics, METRIC_stranded_by_stream_bytes_at_peak,
                   peak->stranded_by_stream_bytes);
    }
    metric_set_ratio(metrics, METRIC_stranded_bytes_mean, sums[EXACT_STRANDED], weight);
    metric_set_ratio(metrics, METRIC_stranded_by_stream_bytes_mean, sums[EXACT_STRANDED_BY_STREAM],
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
    metric_set_ratio(metrics, METRIC_internal_fragmentation_mean, exact->sums.of[EXACT_INTERNAL],
                     (double)exact->granted_weight);
    if (exact->unit_bytes)
        metric_set(metrics, METRIC_median_request_bytes, exact->unit_bytes);
    if (!exact->opaque)
        report_free_blocks(exact, metrics);
}
