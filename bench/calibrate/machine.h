/* Where a calibration was made, for the header of its profile. */
#ifndef BENCH_CALIBRATE_MACHINE_H
#define BENCH_CALIBRATE_MACHINE_H

#include <stdbool.h>

#include "bench/machine/environment.h"
#include "sim/device.h"
#include "sim/sim_device/profile.h"

/* Fills card, driver, hypervisor and source; of a real card, which is never measured twice alike,
 * that says when. What is not known stays empty: never fails. */
void machine_describe(const struct ar_device *device, const struct environment *environment,
                      bool cold, struct sim_profile *out);

#endif
