/* What a program does between two calls of the driver, as far as the host's caches can tell: it
 * goes over more memory than a core has caches of its own. A simulated device knows no host: there
 * is nothing to do for it. */
#ifndef BENCH_CALIBRATE_DIRT_H
#define BENCH_CALIBRATE_DIRT_H

#include <stdbool.h>

#include "sim/device.h"

struct dirt;

/* NULL in `*out`: the device needs none. False: the host has no memory. */
bool dirt_open(struct dirt **out, const struct ar_device *device);
void dirt_close(struct dirt *self);
/* Leaves the caches cold; nothing where `self` is NULL. */
void dirt_spread(struct dirt *self);

#endif
