/* The end of a run: the final check of the policy, and the figures. */

#include "sim/replay/run.h"

/* Number and requested bytes of the blocks in one state. */
static void count_blocks(const struct replay *run, enum replay_slot_state state, uint64_t *blocks,
                         uint64_t *bytes)
{
    *blocks = *bytes = 0;
    for (uint64_t i = 0; i < run->slot_count; i++) {
        if (run->slots[i].state == state) {
            ++*blocks;
            *bytes += run->slots[i].block.requested_bytes;
        }
    }
}

/* In `recorded`, a pending block may count as live or not: that depends on whether the policy
 * handles retire. */
enum ar_status replay_check_end(const struct replay *run, struct ar_error *error)
{
    const char *name = run->config->source->info.name;
    const struct ar_policy_totals *totals = &run->policy->totals;
    const char *problem = run->device->ops->problem(run->device);
    if (run->device->failed) /* it failed within a call, so the counts may differ */
        return AR_OK;
    if (problem[0])
        return ar_error_set(error, AR_CORRUPT, "%s: policy %s used the device wrongly: %s", name,
                            run->policy->ops->name, problem);
    uint64_t blocks, bytes, more_blocks = 0, more_bytes = 0;
    count_blocks(run, SLOT_LIVE, &blocks, &bytes);
    if (run->at_completion)
        count_blocks(run, SLOT_FREE_REQUESTED, &more_blocks, &more_bytes);
    if (totals->live_blocks < blocks || totals->live_blocks > blocks + more_blocks ||
        totals->live_bytes < bytes || totals->live_bytes > bytes + more_bytes)
        return ar_error_set(error, AR_CORRUPT,
                            "%s: policy %s counts %" PRIu64 " blocks of %" PRIu64
                            " bytes live at the end, there are %" PRIu64 " of %" PRIu64,
                            name, run->policy->ops->name, totals->live_blocks, totals->live_bytes,
                            blocks, bytes);
    return run->pinned.policy ? replay_pinned_check(run, error) : AR_OK;
}

static void report_outcome(const struct replay *run, struct replay_result *result)
{
    struct metric_values *metrics = &result->metrics;
    result->passed = !run->failed;
    result->first_failed_event = run->first_failed_event;
    result->first_failed_bytes = run->first_failed_bytes;
    result->cause = run->cause;
    memcpy(result->refused_by, run->refused_by, sizeof result->refused_by);
    if (run->device->failed)
        snprintf(result->problem, sizeof result->problem, "%s",
                 run->device->ops->problem(run->device));
    metric_set(metrics, METRIC_events, run->span_first);
    metric_set(metrics, METRIC_allocs, run->allocs);
    metric_set(metrics, METRIC_frees, run->frees);
    metric_set(metrics, METRIC_failed_allocs, run->failed_allocs);
    metric_set(metrics, METRIC_failed_probes, run->failed_probes);
    if (run->failed)
        metric_set(metrics, METRIC_first_failed_event, run->first_failed_event);
    /* PINNED has its place in pinned.c. DRIVER ends the run and is no failed request. */
    static const struct {
        enum metric metric;
        enum replay_cause cause;
    } causes[] = {
        {METRIC_failed_by_returned, REPLAY_CAUSE_RETURNED},
        {METRIC_failed_by_fragmentation, REPLAY_CAUSE_FRAGMENTATION},
        {METRIC_failed_by_cache, REPLAY_CAUSE_CACHE},
        {METRIC_failed_by_pending, REPLAY_CAUSE_PENDING},
        {METRIC_failed_by_tenant, REPLAY_CAUSE_TENANT},
        {METRIC_failed_by_outside, REPLAY_CAUSE_OUTSIDE},
        {METRIC_failed_by_capacity, REPLAY_CAUSE_CAPACITY},
    };
    for (unsigned i = 0; i < AR_COUNT(causes); i++)
        if (causes[i].metric < METRIC_FIRST_OPTIONAL || run->failed_by[causes[i].cause])
            metric_set(metrics, causes[i].metric, run->failed_by[causes[i].cause]);
}

static void report_driver(const struct replay *run, struct metric_values *metrics)
{
    const struct ar_device_counters *counters = &run->device->counters;
    struct ar_policy_stats stats;
    ar_policy_stats(run->policy, &stats);
    metric_set(metrics, METRIC_peak_physical_bytes, counters->peak_physical_bytes);
    metric_set(metrics, METRIC_driver_calls, steps_driver_calls(run->device));
    metric_set(metrics, METRIC_driver_time_ns, counters->driver_ns - counters->pinned_ns);
    metric_set(metrics, METRIC_stall_ns, counters->stall_ns);
    metric_set(metrics, METRIC_races, counters->races);
    metric_set(metrics, METRIC_retries, stats.count.retries);
    metric_set(metrics, METRIC_flushes, stats.count.flushes);
    metric_set(metrics, METRIC_remapped_bytes, stats.count.remapped_bytes);
}

enum ar_status replay_report(struct replay *run, struct replay_result *result,
                             struct ar_error *error)
{
    struct metric_values *metrics = &result->metrics;
    const struct ar_host *host = run->config->policy_host;
    report_outcome(run, result);
    report_driver(run, metrics);
    replay_pinned_report(run, metrics);
    if (run->config->measure == REPLAY_METRICS_RESERVED)
        metric_set(metrics, METRIC_peak_reserved_bytes, run->exact.peak_reserved_bytes);
    if (run->config->measure == REPLAY_METRICS_EXACT) {
        exact_report(&run->exact, metrics);
        metric_set_ratio(metrics, METRIC_overhead,
                         (double)run->device->counters.peak_physical_bytes,
                         (double)run->exact.peak_live_bytes);
        if (host)
            metric_set_ratio(metrics, METRIC_metadata_bytes_per_block, (double)host->peak_bytes,
                             (double)run->exact.peak_blocks);
    }
    if (run->latency)
        latency_report(run->latency, metrics);
    if (run->keeps_state)
        pauses_report(&run->pauses, metrics);
    AR_TRY(steps_report(&run->steps, run->device, run->keeps_state, metrics, error));
    card_memory_report(&run->card, run->device, metrics);
    result->begun_ns = run->steps.begun_ns;
    result->steps = run->steps.count;
    result->step_end_ns = run->steps.end_ns;
    run->steps.end_ns = NULL; /* owned by the result now */
    return AR_OK;
}
