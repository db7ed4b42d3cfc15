/* How long a kernel takes that says what it does (sim/device.h, AR_KERNEL_OPS): what a profile's
 * `work` lines tell of the card, carried over to any shape.
 *
 * A work is bounded by two things, and takes the time of what takes longer. Each is a curve of its
 * own, measured where the other one is far (bench/calibrate/kernel_ops.c):
 *
 * 1. A product by its arithmetic, 2 m n k operations, measured on cubes; and by the bytes of its
 *    three operands, measured with one length of 16. Both go by the type.
 * 2. A sum over rows by its bytes, measured on rows so long that the whole card has work. And by
 *    the length of its sums: up to 32 columns side by side are a strip, which one block of threads
 *    sums, so that rows too few to fill the card take as long as one strip alone. What counts there
 *    is the elements of a strip and how wide they are.
 * 3. A gather or scatter_add by the bytes of its rows, measured on rows of 512 bytes, and by how
 *    many rows there are, measured on rows of 16 bytes, which a group of threads takes one by one.
 *    Adding in memory goes by the type.
 * 4. elementwise, copy and set by the bytes that they move alone.
 *
 * A work of which the profile lacks one of the two is not known. Sizes are of what the work covers
 * on the card too (sim/kernel_shape.h), but for operands that lie askew there: where a policy puts
 * a block does not change how long its work takes, so that a run and its baseline take the same. */
#ifndef SIM_SIM_DEVICE_KERNEL_LIMITS_H
#define SIM_SIM_DEVICE_KERNEL_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/device.h"
#include "sim/sim_device/profile.h"

#define SIM_KERNEL_LIMITS 2

struct sim_kernel_limit {
    enum sim_kernel_op op;
    uint64_t size; /* by which it goes; 0: there is nothing to do */
};

/* What bounds the work: returns how many. 0: works of this kind and type are not known. */
unsigned sim_kernel_limits(const struct ar_kernel_op *op,
                           struct sim_kernel_limit out[SIM_KERNEL_LIMITS]);

/* Nanoseconds of the work, 1 where it is cut to nothing. 0: not known. */
uint64_t sim_kernel_op_ns(struct sim_profile *profile, const struct ar_kernel_op *op);

#endif
