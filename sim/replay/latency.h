/* Host time of single calls: a mode of its own, because reading the clock twice costs more
 * than some policies take. What the two readings cost is measured first and subtracted. The
 * policy's own time stands apart from the driver's and from waits: where the driver is modelled
 * the host's clock has only seen the first, on a card it has seen all and the device's counters
 * say what to subtract: that time, and what the device's own readings of the clock took beside it.
 * What is left holds the device's books too, tens of ns for each driver call. */
#ifndef SIM_REPLAY_LATENCY_H
#define SIM_REPLAY_LATENCY_H

#include "allocators/base/hist.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"

struct latency {
    struct ar_hist alloc, free, alloc_total, free_total;
    struct ar_hist first_total, steady_total; /* of allocs in the first and in the steady steps */
    uint64_t clock_ns;                        /* of reading the clock twice */
    bool modelled;                            /* driver time passes on the device's clock only */
    uint64_t begun_ns, begun_spent_ns, begun_readings;
    uint64_t passed_ns; /* of the call that ended */
};

/* Where in the run a call comes; a run of one step is both. */
struct latency_place {
    bool first, steady;
};

/* Monotonic host time, nanoseconds. */
uint64_t latency_clock_ns(void);
/* The time of two readings of it, nanoseconds: the median of many, so that an interrupt during
 * one of them does not count. */
uint64_t latency_clock_cost_ns(void);

/* Measures the clock. On the heap: histograms are large. NULL: no host memory. */
struct latency *latency_open(const struct ar_device *device);
void latency_close(struct latency *latency);

/* Around a call; `end` right behind it. */
void latency_begin(struct latency *latency, const struct ar_device *device);
void latency_end(struct latency *latency);
/* Enters the call that ended. `pause_ns`: by how much it moved the device's clock. */
void latency_add_alloc(struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                       struct latency_place place);
void latency_add_free(struct latency *latency, const struct ar_device *device, uint64_t pause_ns);

void latency_report(const struct latency *latency, struct metric_values *metrics);

#endif
