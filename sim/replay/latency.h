/* Host time of single calls: a mode of its own, because reading the clock twice costs more
 * than some policies take. What the two readings cost is measured first and subtracted. */
#ifndef SIM_REPLAY_LATENCY_H
#define SIM_REPLAY_LATENCY_H

#include "allocators/base/hist.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"

struct latency {
    struct hist alloc, free, alloc_total;
    uint64_t clock_ns; /* of reading the clock twice */
    bool modelled;     /* driver time passes on the device's clock only */
    uint64_t begun_ns, begun_driver_ns;
};

/* Monotonic host time, nanoseconds. */
uint64_t latency_clock_ns(void);

/* Measures the clock. On the heap: histograms are large. NULL: no host memory. */
struct latency *latency_open(const struct device *device);
void latency_close(struct latency *latency);

void latency_begin(struct latency *latency, const struct device *device);
void latency_end_alloc(struct latency *latency, const struct device *device);
void latency_end_free(struct latency *latency);

void latency_report(const struct latency *latency, struct metric_values *metrics);

#endif
