/* Host time of single calls. It is a mode of its own, because reading the clock twice takes longer
 * than some policies do. The time of the two readings is measured first and subtracted.
 *
 * The policy's own time is reported apart from the time of the driver and of waits. If the driver
 * is simulated, the host's clock contains the first only. On a card it contains all, and the
 * device's counters say what to subtract: the driver's time, and the device's own readings of the
 * clock. The rest still contains the device's bookkeeping, tens of ns for each driver call. */
#ifndef SIM_REPLAY_LATENCY_H
#define SIM_REPLAY_LATENCY_H

#include "allocators/base/hist.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"

struct latency {
    struct ar_hist alloc, free, alloc_total, free_total;
    struct ar_hist first_total,
        steady_total;  /* of requests in the first step and in the steady steps */
    uint64_t clock_ns; /* of two readings of the clock */
    bool modelled;     /* driver time passes on the device's clock only: the device is simulated */
    uint64_t begun_ns, begun_spent_ns, begun_readings;
    uint64_t passed_ns; /* of the last call */
};

/* The part of the run that a call is in; a run of one step is both. */
struct latency_place {
    bool first, steady;
};

/* Monotonic host time, nanoseconds. */
uint64_t latency_clock_ns(void);
/* The time of two readings of the clock in nanoseconds: the median of many, so an interrupt during
 * one of them has no influence. */
uint64_t latency_clock_cost_ns(void);

/* Measures the clock. Returns NULL if there is no host memory. */
struct latency *latency_open(const struct ar_device *device);
void latency_close(struct latency *latency);

/* Before and directly after a call. */
void latency_begin(struct latency *latency, const struct ar_device *device);
void latency_end(struct latency *latency);
/* Adds the last call. `pause_ns`: by how much it advanced the device's clock. */
void latency_add_alloc(struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                       struct latency_place place);
void latency_add_free(struct latency *latency, const struct ar_device *device, uint64_t pause_ns);

void latency_report(const struct latency *latency, struct metric_values *metrics);

#endif
