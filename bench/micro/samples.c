#include "bench/micro/samples.h"

#include "allocators/base/array.h"
#include "sim/replay/latency.h"

void samples_begin(struct samples *samples, uint64_t budget_ns, size_t least)
{
    samples->begun_ns = latency_clock_ns();
    samples->budget_ns = budget_ns;
    samples->least = least;
    samples->count = 0;
}

bool samples_more(const struct samples *samples)
{
    if (samples->count < samples->least)
        return true;
    return samples->count < SAMPLES_MOST &&
           latency_clock_ns() - samples->begun_ns < samples->budget_ns;
}

void samples_add(struct samples *samples, uint64_t ns, uint64_t clock_ns)
{
    samples->ns[samples->count++] = ns > clock_ns ? ns - clock_ns : 0;
}

/* The smallest that at least the fraction of all do not exceed. */
static double quantile(const struct samples *samples, double fraction)
{
    size_t rank = (size_t)(fraction * (double)samples->count);
    return (double)samples->ns[rank < samples->count ? rank : samples->count - 1];
}

void samples_report(struct samples *samples, struct micro_state *state, uint64_t operations)
{
    ar_array_sort(samples->ns, samples->count);
    double median_ns = quantile(samples, 0.5);
    micro_time(state, median_ns);
    micro_counter(state, "ns_per_op", median_ns / (double)operations);
    micro_counter(state, "p50_ns", median_ns);
    micro_counter(state, "p99_ns", quantile(samples, 0.99));
    micro_counter(state, "p999_ns", quantile(samples, 0.999));
    micro_counter(state, "samples", (double)samples->count);
}
