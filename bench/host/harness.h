/* What the rig itself adds to the time of a step: the same launches on the same device, once by the
 * engine under a policy and once by a hand-written loop over fixed pointers (launches.h).
 *
 * 1. One run of the engine is recorded, its memory is fixed, and both are run once more.
 * 2. Then blocks of four runs, engine, loop, loop, engine, so that a drift of the card's clock falls
 *    on both alike. Each run of the engine has a policy of its own, as a program has.
 * 3. The time of a run is the median of its steps from the middle on; a block's is the mean of
 *    its two runs. What is reported is the median over all blocks of engine / loop - 1, and an
 *    interval for that median from the order of the values alone (the binomial, or sign, interval),
 *    which assumes nothing about their distribution. */
#ifndef BENCH_HOST_HARNESS_H
#define BENCH_HOST_HARNESS_H

#include <stddef.h>

#include "allocators/spec.h"
#include "sim/device.h"

struct harness_config {
    const struct ar_spec *policy;
    const char *workload;
    struct ar_device *device; /* nothing else may run on it */
    unsigned blocks;          /* at least 1 */
};

struct harness_block {
    double engine_ns[2], loop_ns[2];
    double added; /* engine / loop - 1 */
};

struct harness_result {
    struct harness_block *blocks; /* harness_close */
    unsigned block_count;
    double engine_ns, loop_ns; /* medians over all runs */
    double added;              /* median over the blocks */
    double least, most;        /* of its interval */
    double confidence;         /* of the interval: 0.95 or more, less with fewer than six blocks */
    uint64_t steps, kernel_ops, kernels; /* of a run */
    uint64_t fixed_bytes;
};

/* INVALID: bad input, or a workload without steps; NEGATIVE: a request was not served; and what the
 * device answers. Nothing is left on the device. */
enum ar_status harness_measure(const struct harness_config *config, struct harness_result *result,
                               struct ar_error *error) AR_STATUS_CHECKED;
void harness_close(struct harness_result *result);

/* The median of `count` values, and the interval of the order statistics that holds the true one
 * with at least 95 %, or as much as so few values can say. Sorts the values. */
double harness_median(double *values, size_t count);
void harness_interval(double *values, size_t count, double *least, double *most,
                      double *confidence);

#endif
