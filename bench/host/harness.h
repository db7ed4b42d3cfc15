/* Measures the time that the rig adds to a step: the same launches on the same device, once by the
 * engine under a policy and once by a loop over fixed pointers (struct launches).
 *
 * 1. One run of the engine is recorded and its memory fixed. Then engine and loop run once more.
 * 2. Then follow blocks of four runs: engine, loop, loop, engine. A drift of the card's clock
 *    affects both equally. Each run of the engine starts with a new policy.
 * 3. The time of a run is the median of its steps from the middle on; a block's time is the mean of
 *    its two runs. The result is the median over all blocks of engine / loop - 1, with the
 *    binomial (sign) interval of the median, which assumes nothing about the distribution. */
#pragma once

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

/* INVALID: bad input, or a workload without steps. NEGATIVE: a request failed. Otherwise the status
 * of the device. Leaves nothing on the device. */
enum ar_status harness_measure(const struct harness_config *config, struct harness_result *result,
                               struct ar_error *error);
void harness_close(struct harness_result *result);

/* The median of `count` values, and the interval of order statistics that contains the true median
 * with at least 95 % confidence, or less if there are few values. Sorts the values. */
double harness_median(double *values, size_t count);
void harness_interval(double *values, size_t count, double *least, double *most,
                      double *confidence);

/* The launches of a program on a device, recorded once and launched again by a loop over fixed
 * pointers. The cost of the rig is measured relative to this loop.
 *
 * 1. Recording. A copy replaces the device's table of calls. Its calls for kernel ops, kernels,
 *    events, waits and marks record their arguments and then call the device.
 * 2. Fixing. The recorded memory belongs to a policy and ends with it. Operand ranges that touch
 *    are joined. Each joined range gets a plain driver allocation at the same offset within 2 MiB,
 *    and the operands move there, so kernel ops that shared bytes still share them.
 * 3. Running. A loop over the list, without policy, engine or trace. */
enum launch_kind {
    LAUNCH_WORK,   /* value: index in kernel_ops */
    LAUNCH_KERNEL, /* value: nanoseconds */
    LAUNCH_RECORD, /* value: event */
    LAUNCH_WAIT,   /* value: event */
    LAUNCH_SYNC,
    LAUNCH_MARK,
};

struct launch {
    enum launch_kind kind;
    uint32_t stream;
    uint64_t value;
};

struct launch_extent {
    uint64_t begin, end; /* as recorded */
    uint64_t segment;    /* the driver allocation, if allocated */
    uint64_t moved;      /* added to an address, modulo 2^64 */
    bool allocated;
};

struct launches {
    struct launch *items;
    size_t count, room;
    struct ar_kernel_op *kernel_ops;
    size_t kernel_op_count, kernel_op_room;
    size_t marks, kernels;
    struct launch_extent *extents;
    size_t extent_count;
    uint64_t fixed_bytes; /* of all segments */
    bool lost;            /* host memory ran out: the list is incomplete */
};

/* One recording. It must not move until it ends. */
struct launch_recorder {
    struct ar_device_ops ops; /* first member: the device's table leads back to the recorder */
    const struct ar_device_ops *device_ops;
    struct launches *launches;
};

/* Starts to add the launches of the device to `launches`, which must be zero at first. */
void launches_record(struct launch_recorder *recorder, struct launches *launches,
                     struct ar_device *device);
/* Restores the device's table. HOST_MEMORY if the list is incomplete. */
enum ar_status launches_end(struct launch_recorder *recorder, struct ar_device *device,
                            struct ar_error *error);

/* Rule 2. NO_MEMORY if the device is full; launches_close frees the segments allocated so far. */
enum ar_status launches_fix(struct launches *launches, struct ar_device *device,
                            struct ar_error *error);

/* Rule 3. Writes the time of each mark in order, in nanoseconds since the device was opened, to an
 * array of `launches->marks`. Waits for all launches. */
enum ar_status launches_run(const struct launches *launches, struct ar_device *device,
                            uint64_t *mark_ns, struct ar_error *error);

/* Frees everything, including the segments on the device. */
void launches_close(struct launches *launches, struct ar_device *device);
