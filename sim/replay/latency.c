#include "sim/replay/latency.h"

#include "sim/replay/timing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocators/base/array.h"

#define CLOCK_TRIALS 4096u

uint64_t latency_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t latency_clock_cost_ns(void)
{
    uint64_t trials[CLOCK_TRIALS];
    for (unsigned i = 0; i < CLOCK_TRIALS; i++) {
        uint64_t begun_ns = latency_clock_ns();
        trials[i] = latency_clock_ns() - begun_ns;
    }
    ar_array_sort(trials, CLOCK_TRIALS);
    return trials[CLOCK_TRIALS / 2];
}

struct latency *latency_open(const struct ar_device *device)
{
    struct latency *latency = calloc(1, sizeof *latency);
    if (!latency)
        return NULL;
    latency->clock_ns = latency_clock_cost_ns();
    latency->modelled = strcmp(device->props.kind, "cuda") != 0;
    return latency;
}

void latency_close(struct latency *latency)
{
    free(latency);
}

void latency_begin(struct latency *latency, const struct ar_device *device)
{
    latency->begun_spent_ns = pauses_spent_ns(device);
    latency->begun_readings = device->counters.clock_readings;
    latency->begun_ns = latency_clock_ns();
}

void latency_end(struct latency *latency)
{
    uint64_t passed_ns = latency_clock_ns() - latency->begun_ns;
    latency->passed_ns = passed_ns > latency->clock_ns ? passed_ns - latency->clock_ns : 0;
}

/* The policy's own time in the call, and the time of the call. */
static void add(const struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                struct ar_hist *own, struct ar_hist *total, uint64_t *total_ns)
{
    uint64_t own_ns = latency->passed_ns;
    *total_ns = own_ns;
    if (latency->modelled) {
        *total_ns += pause_ns;
    } else {
        /* Of two readings of the clock in the device, one is outside of the time that it
         * measured. */
        uint64_t pairs = (device->counters.clock_readings - latency->begun_readings) / 2;
        uint64_t spent_ns =
            pauses_spent_ns(device) - latency->begun_spent_ns + pairs * latency->clock_ns;
        own_ns = own_ns > spent_ns ? own_ns - spent_ns : 0;
    }
    ar_hist_add(own, own_ns, 1);
    ar_hist_add(total, *total_ns, 1);
}

void latency_add_alloc(struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                       struct latency_place place)
{
    uint64_t total_ns;
    add(latency, device, pause_ns, &latency->alloc, &latency->alloc_total, &total_ns);
    if (place.first)
        ar_hist_add(&latency->first_total, total_ns, 1);
    if (place.steady)
        ar_hist_add(&latency->steady_total, total_ns, 1);
}

void latency_add_free(struct latency *latency, const struct ar_device *device, uint64_t pause_ns)
{
    uint64_t total_ns;
    add(latency, device, pause_ns, &latency->free, &latency->free_total, &total_ns);
}

static void report(struct metric_values *metrics, const struct ar_hist *hist, enum metric first)
{
    static const double fractions[] = {0.5, 0.9, 0.99, 0.999, 1};
    if (!hist->total)
        return;
    for (unsigned i = 0; i < sizeof fractions / sizeof *fractions; i++)
        metric_set(metrics, (enum metric)(first + i), ar_hist_quantile(hist, fractions[i]));
}

static void report_steps(struct metric_values *metrics, const struct ar_hist *hist, enum metric p50,
                         enum metric p999)
{
    if (!hist->total)
        return;
    metric_set(metrics, p50, ar_hist_quantile(hist, 0.5));
    metric_set(metrics, p999, ar_hist_quantile(hist, 0.999));
}

void latency_report(const struct latency *latency, struct metric_values *metrics)
{
    /* The five figures of each are neighbours in metrics.def. */
    report(metrics, &latency->alloc, METRIC_alloc_ns_p50);
    report(metrics, &latency->free, METRIC_free_ns_p50);
    report(metrics, &latency->alloc_total, METRIC_alloc_total_ns_p50);
    report(metrics, &latency->free_total, METRIC_free_total_ns_p50);
    report_steps(metrics, &latency->first_total, METRIC_first_alloc_total_ns_p50,
                 METRIC_first_alloc_total_ns_p999);
    report_steps(metrics, &latency->steady_total, METRIC_steady_alloc_total_ns_p50,
                 METRIC_steady_alloc_total_ns_p999);
    metric_set(metrics, METRIC_clock_ns, latency->clock_ns);
}
