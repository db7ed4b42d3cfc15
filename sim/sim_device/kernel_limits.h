/* The time of a kernel op (sim/device.h, AR_KERNEL_OPS) of any shape, from the `work` lines of a
 * profile.
 *
 * An operation has one or two limits and takes the time of the slower one. Each limit is a curve,
 * measured where the other one has no influence (bench/calibrate/kernel_costs.c):
 *
 * 1. A product: its arithmetic, 2 m n k operations, measured on cubes; and the bytes of its three
 *    operands, measured with one length of 16. Both depend on the type.
 * 2. A sum over rows: its bytes, measured on rows long enough to fill the card. And the length of
 *    its sums: up to 32 columns form a strip, which one block of threads sums, so rows too few to
 *    fill the card take as long as one strip alone. The size is the elements of a strip; it depends
 *    on their width.
 * 3. A gather or scatter_add: the bytes of its rows, measured on rows of 512 bytes; and the number
 *    of rows, measured on rows of 16 bytes, which a group of threads handles one by one. Adding in
 *    memory depends on the type.
 * 4. elementwise, copy and set: the bytes that they move.
 *
 * If the profile lacks one of the two limits, the time is not known. Sizes are those that the
 * operation covers on the card (sim/kernel_shape.h), except that operands are taken as aligned: the
 * address of a block does not change the time, so a run and its baseline take the same time. */
#pragma once

#include "sim/device.h"
#include "sim/sim_device/profile.h"

#define SIM_KERNEL_LIMITS 2

struct sim_kernel_limit {
    enum sim_kernel_op op;
    uint64_t size; /* of the operation, in this limit; 0: nothing to do */
};

/* The limits of an operation; returns their number. 0: this kind and type are not known. */
unsigned sim_kernel_limits(const struct ar_kernel_op *op,
                           struct sim_kernel_limit out[SIM_KERNEL_LIMITS]);

/* The last result of a cost: many in a row are of one size. size 0: none. */
struct sim_recent {
    uint64_t size, ns;
};

/* Nanoseconds of the operation, 1 if nothing is left of it. 0: not known. */
uint64_t sim_kernel_op_ns(const struct sim_profile *profile, const struct ar_kernel_op *op,
                          struct sim_recent recent[SIM_KERNEL_OP_COUNT]);
