#include "sim/replay/latency.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOCK_TRIALS 4096

uint64_t latency_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The median of many pairs of readings: an interrupt during one of them does not count. */
static uint64_t measure_clock(struct hist *scratch)
{
    hist_clear(scratch);
    for (int i = 0; i < CLOCK_TRIALS; i++) {
        uint64_t begun_ns = latency_clock_ns();
        hist_add(scratch, latency_clock_ns() - begun_ns, 1);
    }
    uint64_t median_ns = hist_quantile(scratch, 0.5);
    hist_clear(scratch);
    return median_ns;
}

struct latency *latency_open(const struct device *device)
{
    struct latency *latency = calloc(1, sizeof *latency);
    if (!latency)
        return NULL;
    latency->clock_ns = measure_clock(&latency->alloc);
    latency->modelled = strcmp(device->props.kind, "cuda") != 0;
    return latency;
}

void latency_close(struct latency *latency)
{
    free(latency);
}

void latency_begin(struct latency *latency, const struct device *device)
{
    latency->begun_driver_ns = device->counters.driver_ns;
    latency->begun_ns = latency_clock_ns();
}

static uint64_t elapsed(const struct latency *latency)
{
    uint64_t passed_ns = latency_clock_ns() - latency->begun_ns;
    return passed_ns > latency->clock_ns ? passed_ns - latency->clock_ns : 0;
}

void latency_end_alloc(struct latency *latency, const struct device *device)
{
    uint64_t passed_ns = elapsed(latency);
    uint64_t driver_ns = device->counters.driver_ns - latency->begun_driver_ns;
    hist_add(&latency->alloc, passed_ns, 1);
    /* On a real card the host clock has seen the driver's time already. */
    hist_add(&latency->alloc_total, passed_ns + (latency->modelled ? driver_ns : 0), 1);
}

void latency_end_free(struct latency *latency)
{
    hist_add(&latency->free, elapsed(latency), 1);
}

static void report(struct metric_values *metrics, const struct hist *hist, enum metric first)
{
    static const double fractions[] = {0.5, 0.9, 0.99, 0.999, 1};
    if (!hist->total)
        return;
    for (unsigned i = 0; i < sizeof fractions / sizeof *fractions; i++)
        metric_set(metrics, (enum metric)(first + i), hist_quantile(hist, fractions[i]));
}

void latency_report(const struct latency *latency, struct metric_values *metrics)
{
    /* The five figures of each stand side by side in metrics.def. */
    report(metrics, &latency->alloc, METRIC_alloc_ns_p50);
    report(metrics, &latency->free, METRIC_free_ns_p50);
    report(metrics, &latency->alloc_total, METRIC_alloc_total_ns_p50);
    metric_set(metrics, METRIC_clock_ns, latency->clock_ns);
}
