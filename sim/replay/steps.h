/* Steps: when each one ended and how many driver calls had been made by then. The first step
 * and the steady state are told apart: of n steps the first n / 2, rounded down, are left out
 * of the steady figures, the rest is in. */
#ifndef SIM_REPLAY_STEPS_H
#define SIM_REPLAY_STEPS_H

#include "sim/device.h"
#include "sim/metrics/metrics.h"

struct steps {
    uint64_t begun_mark; /* before the first event */
    uint64_t *end_marks; /* at each step's end */
    uint64_t begun_ns;   /* these two are known after steps_settle */
    uint64_t *end_ns;
    uint64_t *driver_calls;
    uint64_t *pause_ns; /* the longest alloc or free of each step */
    uint64_t count, room;
};

/* Calls to the driver's memory functions: all kinds but events. */
uint64_t steps_driver_calls(const struct ar_device *device);
/* Waits for what was asked for so far and returns when it was done, the host's own time among it. */
uint64_t steps_now_ns(struct ar_device *device);

void steps_begin(struct steps *steps, struct ar_device *device);
enum ar_status steps_end_one(struct steps *steps, struct ar_device *device, uint64_t pause_ns,
                             struct ar_error *error) AR_STATUS_CHECKED;
/* Waits for the work of all steps and finds out when each ended. */
void steps_settle(struct steps *steps, struct ar_device *device);
/* Settles. Writes the figures of time and driver calls, and, `with_pauses`, of pauses; those that
 * need a baseline are not here. */
enum ar_status steps_report(struct steps *steps, struct ar_device *device, bool with_pauses,
                            struct metric_values *metrics,
                            struct ar_error *error) AR_STATUS_CHECKED;
/* Time of the second half of `count` steps; 0 where there are none. */
uint64_t steps_steady_ns(const uint64_t *end_ns, uint64_t count, uint64_t begun_ns);
void steps_close(struct steps *steps);

#endif
