/* Measures what a card's driver calls cost, through the device's own interface, so that the same
 * measurement runs on a real card and on a simulated one: there it must give back the profile
 * that the device was opened with (tests/unit/test_calibrate.c).
 *
 * bench/calibrate/README.md says what is measured and how. */
#ifndef BENCH_CALIBRATE_CALIBRATE_H
#define BENCH_CALIBRATE_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"
#include "bench/machine/environment.h"
#include "sim/device.h"
#include "sim/sim_device/profile.h"

struct calibrate_options {
    /* Each call finds the host's caches cold, as where a program does much between two calls.
     * Nothing to a simulated device, which knows no host. */
    bool cold;
    /* Called before each step; may be NULL. */
    void (*step)(void *argument, const char *label);
    void *argument;
};

/* How many steps there are. */
size_t calibrate_steps(void);

/* Measures the device, which nothing else uses and which holds nothing, and writes what it costs
 * to `out`; name, card, driver, hypervisor and source are the caller's. MISSING with the device's
 * sentence where the driver fails; a size for which there is no memory is left out. */
enum ar_status calibrate(struct ar_device *device, const struct calibrate_options *options,
                         struct sim_profile *out, struct ar_error *error) AR_STATUS_CHECKED;

/* Where a calibration was made, for the header of its profile. */
/* Fills card, driver, hypervisor and source; of a real card, which is never measured twice alike,
 * that says when. What is not known stays empty: never fails. */
void machine_describe(const struct ar_device *device, const struct environment *environment,
                      bool cold, struct sim_profile *out);

#endif
