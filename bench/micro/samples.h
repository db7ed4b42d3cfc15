/* Times of single calls, for benchmarks that measure themselves: as many samples as fit into a
 * budget of wall time, and of those the median and the tail. The median of one repetition is what
 * Google Benchmark gets as its time, since an interrupt moves a mean. */
#ifndef BENCH_MICRO_SAMPLES_H
#define BENCH_MICRO_SAMPLES_H

#include "bench/micro/micro.h"

enum { SAMPLES_MOST = 4096 };

struct samples {
    uint64_t begun_ns, budget_ns;
    size_t count, least;
    uint64_t ns[SAMPLES_MOST];
};

/* At least `least` samples are taken, also where they take longer than the budget. */
void samples_begin(struct samples *samples, uint64_t budget_ns, size_t least);
/* Whether another one is to be taken. */
bool samples_more(const struct samples *samples);
/* Adds one, less the cost of the clock. */
void samples_add(struct samples *samples, uint64_t ns, uint64_t clock_ns);

/* Ends the round: its time is the median; ns_per_op that over `operations`; and p50_ns, p99_ns,
 * p999_ns, samples. Sorts the samples, which are at least one. */
void samples_report(struct samples *samples, struct micro_state *state, uint64_t operations);

#endif
