/* A device with memory that runs its streams as unkindly as it may, over the simulated one, which
 * keeps memory, clock and counters.
 *
 * 1. What is queued is run only where the host waits for it: the host for a stream or a ticket, a
 *    driver free for everything, or a stream for another before its own work goes on. Anything may
 *    have happened in between that no wait forbids.
 * 2. Fillings run as early as their stream allows, readings as late as possible: a block that is
 *    given to another stream too early is overwritten before it is read.
 * 3. A poll of a ticket that nothing has waited for returns true one time in four, by a generator
 *    of its own, and the stream then runs up to it.
 * 4. Unmapping pages that queued work touches is INVALID, with a sentence.
 * 5. The driver's own pool runs everything first: it is not what is tested. */
#ifndef TESTS_SUPPORT_LATE_DEVICE_H
#define TESTS_SUPPORT_LATE_DEVICE_H

#include "sim/device.h"

/* Over the device of a spec, "sim:capacity=8GiB". Fails the test where it cannot be opened;
 * ar_device_close closes both. */
struct ar_device *late_device_open(const char *spec, uint64_t seed);

/* Readings that were run, and bytes of blocks that were filled. */
struct late_counts {
    uint64_t fills, readings, touches, kernel_ops, kernels;
};
const struct late_counts *late_device_counts(const struct ar_device *device);

#endif
