/* Measures what a card's driver calls cost, through the device's own interface, so that the same
 * measurement runs on a real card and on a simulated one: there it must return the profile
 * that the device was opened with (tests/unit/test_calibrate.c).
 *
 * bench/calibrate/README.md says what is measured and how. */
#pragma once

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
                         struct sim_profile *out, struct ar_error *error);

/* Where a calibration was made, for the header of its profile. */
/* Fills card, driver, hypervisor and source; of a real card, which is never measured twice alike,
 * that says when. What is not known stays empty: never fails. */
void machine_describe(const struct ar_device *device, const struct environment *environment,
                      bool cold, struct sim_profile *out);

/* Compares a new profile with the card that it was measured on. The same calls, of mixed kinds and
 * sizes in a program's order between kernels, run on the card and on the simulated device with the
 * profile. The measurement uses loops of one kind only, so the check shows how far to trust it. No
 * parameter is fitted to it. */

/* How the programs run. */
enum check_mode {
    CHECK_IDLE,   /* one call after another on an idle card */
    CHECK_BUSY,   /* with short kernels between the calls */
    CHECK_SPARSE, /* and with other work on the host that leaves its caches cold */
    CHECK_MODES
};

/* Kinds of call, small driver allocations separately, and the total. */
enum check_line {
    CHECK_SMALL_ALLOC = AR_DEVICE_CALL_COUNT,
    CHECK_SMALL_FREE,
    CHECK_ALL,
    CHECK_LINES
};

struct check_row {
    uint64_t calls;
    uint64_t measured_ns, modelled_ns; /* without waits */
    uint64_t within;                   /* calls modelled within a factor of two */
};

struct check {
    struct check_row rows[CHECK_MODES][CHECK_LINES];
};

/* `measured` is the card, `modelled` the simulated device. Both are empty before and after.
 * INVALID: a call failed, or the calls of the two differ. */
enum ar_status check_devices(struct ar_device *measured, struct ar_device *modelled,
                             struct check *out, struct ar_error *error);

/* Prints a table. */
enum ar_status check_print(const struct check *self, FILE *stream, struct ar_error *error);

/* One profile from several calibrations of one kind of card, which reduces the influence of a
 * single machine's host. Needs no card. */

struct calibration {
    const char *path; /* for errors, and its last part for the source; borrowed */
    struct sim_profile profile;
};

struct median {
    struct sim_profile profile;
    /* For each kind: the number of calibrations with rest costs, and the number that were used. */
    size_t rests_stated[SIM_COST_COUNT], rests_taken[SIM_COST_COUNT];
};

/* Reads the profiles; the caller frees them. IO, FORMAT or HOST_MEMORY. */
enum ar_status median_load(const char *const *paths, size_t count, struct calibration **out,
                           struct ar_error *error);

/* Scales all of them to one host, whose clock reading takes `clock_ps`; 0: the median of theirs. If
 * one does not state its host's clock, nothing is done, or INVALID if `clock_ps` is given.
 * HOST_MEMORY. */
enum ar_status median_one_host(struct calibration *calibrations, size_t count, uint64_t clock_ps,
                               struct ar_error *error);

/* The median of two or more, constant by constant, by the rules in median.c. `name` is the new
 * profile's, 1 to 63 letters, and `version` this program's, for the source. INVALID with a sentence
 * if there are fewer or they differ in the kind of card. */
enum ar_status median_of(const struct calibration *calibrations, size_t count, const char *name,
                         const char *version, struct median *out, struct ar_error *error);

/* Writes the profile. Comments after the first line give the source of each calibration.
 * HOST_MEMORY. */
enum ar_status median_write(const struct median *self, const struct calibration *calibrations,
                            size_t count, FILE *stream, struct ar_error *error);
