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

/* How the programs run. */
enum check_mode {
    CHECK_IDLE,   /* one call after the other, on an idle card */
    CHECK_BUSY,   /* with short kernels between the calls */
    CHECK_SPARSE, /* and with so much else done on the host that its caches are cold */
    CHECK_MODES
};

/* Kinds of call, those of small driver allocations apart, and all together. */
enum check_line {
    CHECK_SMALL_ALLOC = AR_DEVICE_CALL_COUNT,
    CHECK_SMALL_FREE,
    CHECK_ALL,
    CHECK_LINES
};

struct check_row {
    uint64_t calls;
    uint64_t measured_ns, modelled_ns; /* their own time, without waiting */
    uint64_t within;                   /* calls that are modelled within a factor of two */
};

struct check {
    struct check_row rows[CHECK_MODES][CHECK_LINES];
};

/* `measured` is the card and `modelled` the simulated device; both hold nothing, before and
 * after. INVALID where a call fails, or where they were not asked for the same. */
enum ar_status check_devices(struct ar_device *measured, struct ar_device *modelled,
                             struct check *out, struct ar_error *error) AR_STATUS_CHECKED;

/* A table of it. */
enum ar_status check_print(const struct check *self, FILE *stream,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
