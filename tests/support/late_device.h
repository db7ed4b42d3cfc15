/* A device with memory that runs its streams in the worst allowed order, over the simulated device,
 * which keeps memory, clock and counters.
 *
 * 1. Queued work runs only when it is waited for: the host waits for a stream or a ticket, a driver
 *    free waits for everything, or a stream waits for another one. In between, work may run in any
 *    order that no wait forbids.
 * 2. Fillings run as early as their stream allows, readings as late as possible: a block that is
 *    given to another stream too early is overwritten before it is read.
 * 3. A poll of a ticket without a wait returns true one time in four, by a random generator of its
 *    own; the stream then runs up to the ticket.
 * 4. Unmapping pages that queued work uses is INVALID, with a message.
 * 5. The driver's own pool runs everything first, because it is not under test. */
#pragma once

#include "sim/device.h"

/* Opens it over the device of a spec, "sim:capacity=8GiB". Fails the test if it cannot be opened.
 * ar_device_close closes both. */
struct ar_device *late_device_open(const char *spec, uint64_t seed);

/* Readings that were run, and bytes of blocks that were filled. */
struct late_counts {
    uint64_t fills, readings, touches, kernel_ops, kernels;
};
const struct late_counts *late_device_counts(const struct ar_device *device);
