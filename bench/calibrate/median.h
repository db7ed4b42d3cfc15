/* One profile from several calibrations of one kind of card, which reduces the influence of a
 * single machine's host. Needs no card. */
#ifndef BENCH_CALIBRATE_MEDIAN_H
#define BENCH_CALIBRATE_MEDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "allocators/base/status.h"
#include "sim/sim_device/profile.h"

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
                           struct ar_error *error) AR_STATUS_CHECKED;

/* Scales all of them to one host, whose clock reading takes `clock_ps`; 0: the median of theirs. If
 * one does not state its host's clock, nothing is done, or INVALID if `clock_ps` is given.
 * HOST_MEMORY. */
enum ar_status median_one_host(struct calibration *calibrations, size_t count, uint64_t clock_ps,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* The median of two or more, constant by constant, by the rules in median.c. `name` is the new
 * profile's, 1 to 63 letters, and `version` this program's, for the source. INVALID with a sentence
 * if there are fewer or they differ in the kind of card. */
enum ar_status median_of(const struct calibration *calibrations, size_t count, const char *name,
                         const char *version, struct median *out,
                         struct ar_error *error) AR_STATUS_CHECKED;

/* Writes the profile. Comments after the first line give the source of each calibration.
 * HOST_MEMORY. */
enum ar_status median_write(const struct median *self, const struct calibration *calibrations,
                            size_t count, FILE *stream, struct ar_error *error) AR_STATUS_CHECKED;

#endif
