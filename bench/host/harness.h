/* What the rig itself adds to the time of a step: the same launches on the same device, once by the
 * engine under a policy and once by a hand-written loop over fixed pointers (launches.h).
 *
 * 1. One run of the engine is recorded, its memory is fixed, and both are run once more.
 * 2. Then blocks of four runs, engine, loop, loop, engine, so that a drift of the card's clock
 *    falls on both alike. Each run of the engine has a policy of its own, as a program has.
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

/* What a program launches on a device, written down once and then launched again by a loop over
 * fixed pointers: the hand-written program that the rig's own cost is measured against.
 *
 * 1. Recording. The device's table of calls is replaced by a copy whose calls for work, kernels,
 *    events, waits and marks write down what they are given and go on to the device.
 * 2. Fixing. The memory that the work was given belongs to a policy and goes with it. The ranges
 *    that the operands cover are joined where they touch, each gets a plain driver allocation, at
 *    the same place within 2 MiB, and the operands are moved there: work that shared bytes shares
 *    them again.
 * 3. Running. A loop over the list. No policy, no engine, no events of a trace. */
enum launch_kind {
    LAUNCH_WORK,   /* value: index in works */
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
    uint64_t segment;    /* the driver allocation; 0 bytes of it where held is false */
    uint64_t moved;      /* added to an address, modulo 2^64 */
    bool held;
};

struct launches {
    struct launch *items;
    size_t count, room;
    struct ar_kernel_op *kernel_ops;
    size_t kernel_op_count, work_room;
    size_t marks, kernels;
    struct launch_extent *extents;
    size_t extent_count;
    uint64_t fixed_bytes; /* of all segments */
    bool lost;            /* host memory ran out: the list is not whole */
};

/* One recording; it stays where it is until it is ended. */
struct launch_recorder {
    struct ar_device_ops ops; /* first: found again from the device's table */
    const struct ar_device_ops *device_ops;
    struct launches *launches;
};

/* From here on what the device is asked for is added to `launches` (all zero at first). */
void launches_record(struct launch_recorder *recorder, struct launches *launches,
                     struct ar_device *device);
/* The device has its own table again. HOST_MEMORY where the list is not whole. */
enum ar_status launches_end(struct launch_recorder *recorder, struct ar_device *device,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Rule 2. NO_MEMORY where the device has no room; what it got until then goes at the close. */
enum ar_status launches_fix(struct launches *launches, struct ar_device *device,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Rule 3. Writes the time of each mark, in their order, nanoseconds since the device was opened;
 * there is room for `launches->marks`. Waits for all that was launched. */
enum ar_status launches_run(const struct launches *launches, struct ar_device *device,
                            uint64_t *mark_ns, struct ar_error *error) AR_STATUS_CHECKED;

/* Frees all, the segments on the device too. */
void launches_close(struct launches *launches, struct ar_device *device);

#endif
