/* Compares a new profile with the card that it was measured on. The same calls, of mixed kinds and
 * sizes in a program's order between kernels, run on the card and on the simulated device with the
 * profile. The measurement uses loops of one kind only, so the check shows how far to trust it. No
 * parameter is fitted to it. */
#ifndef BENCH_CALIBRATE_CHECK_H
#define BENCH_CALIBRATE_CHECK_H

#include <stdint.h>
#include <stdio.h>

#include "allocators/base/status.h"
#include "sim/device.h"

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
                             struct check *out, struct ar_error *error) AR_STATUS_CHECKED;

/* Prints a table. */
enum ar_status check_print(const struct check *self, FILE *stream,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
