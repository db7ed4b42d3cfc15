/* A run of one step has that one for its steady step too, and nothing apart from it. No metric
 * counts the steps: they are told by how many there are in a second. */
#include "bench/report/slowdown_metric.h"

static bool has_steady_steps(const struct metric_values *metrics)
{
    double steps = metric_number(metrics, METRIC_steps_per_s, 0) *
                   metric_number(metrics, METRIC_device_time_ns, 0) / 1e9;
    return metrics->at[METRIC_steady_slowdown].kind != METRIC_NULL && steps > 1.5;
}

enum metric slowdown_metric_of(const struct run_record *begin, const struct run_record *end)
{
    bool passed = false;
    for (const struct run_record *at = begin; at < end; at++) {
        if (at->passed && !has_steady_steps(&at->metrics))
            return METRIC_slowdown;
        passed = passed || at->passed;
    }
    return passed ? METRIC_steady_slowdown : METRIC_slowdown;
}
