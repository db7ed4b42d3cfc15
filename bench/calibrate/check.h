/* Holds a new profile against the card that it was measured on: calls of mixed kinds and sizes in
 * an order as programs make them, between kernels, once on the card and once on the simulated
 * device with the profile. The measurement itself knows loops of one kind only, so this tells how
 * far to trust it. Nothing is fitted to it. */
#ifndef BENCH_CALIBRATE_CHECK_H
#define BENCH_CALIBRATE_CHECK_H

#include <stdint.h>
#include <stdio.h>

#include "allocators/base/status.h"
#include "sim/device.h"

struct check_row {
    uint64_t calls;
    uint64_t measured_ns, modelled_ns; /* their own time, without waiting */
    uint64_t within;                   /* calls that are modelled within a factor of two */
};

struct check {
    struct check_row rows[2][DEVICE_CALL_COUNT]; /* [0] idle, [1] between kernels */
};

/* `measured` is the card and `modelled` the simulated device; both hold nothing, before and
 * after. INVALID where a call fails, or where they were not asked for the same. */
enum status check_devices(struct device *measured, struct device *modelled, struct check *out,
                          struct error *error) STATUS_CHECKED;

/* A table of it. */
enum status check_print(const struct check *self, FILE *stream, struct error *error) STATUS_CHECKED;

#endif
