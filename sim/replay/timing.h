/* Steps: when each one ended and how many driver calls had been made by then. The first step
 * and the steady state are told apart: of n steps the first n / 2, rounded down, are left out
 * of the steady figures, the rest is in. */
#ifndef SIM_REPLAY_TIMING_H
#define SIM_REPLAY_TIMING_H

#include "allocators/base/hist.h"
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

/* How long the program stands still in each alloc and free, on the device's clock: driver time
 * and waits, and on a card the policy's own time too. Exact where the clock is virtual.
 *
 * 1. The longest one is kept, of the run and of the step at hand.
 * 2. On a virtual clock only the driver moves it within a call, and its counters tell whether it
 *    did: a call that asked nothing of the driver costs the engine one comparison.
 * 3. In the open loop the response time of an alloc counts from the moment at which the trace
 *    asks, so that a request that comes late because of an earlier one is charged with that
 *    (Gil Tene's "coordinated omission" does not happen). */

struct pauses {
    uint64_t now_ns;           /* of the device's clock before the call */
    uint64_t seen_ns;          /* driver and stall time by then */
    uint64_t step_ns;          /* the longest pause since the last step ended */
    uint64_t longest_ns;       /* in the run */
    struct ar_hist *responses; /* of allocs, open loop only; else NULL */
};

/* Driver and stall time so far. */
static inline uint64_t pauses_spent_ns(const struct ar_device *device)
{
    return device->counters.driver_ns + device->counters.stall_ns;
}

/* With `open` response times are kept. HOST_MEMORY. */
enum ar_status pauses_open(struct pauses *pauses, struct ar_device *device,
                           bool open) AR_STATUS_CHECKED;
void pauses_close(struct pauses *pauses);

/* Before a call, and after anything else that may have moved the clock. */
void pauses_begin(struct pauses *pauses, struct ar_device *device);
/* After the call; returns the pause. */
uint64_t pauses_end(struct pauses *pauses, struct ar_device *device);
/* After an alloc that the trace wanted at `wanted_ns`. */
void pauses_respond(struct pauses *pauses, struct ar_device *device, uint64_t wanted_ns);

/* The longest pause of the step that ends here. */
uint64_t pauses_end_step(struct pauses *pauses);

void pauses_report(const struct pauses *pauses, struct metric_values *metrics);

/* What the card itself says that the process holds, beside what the device charges: the rest is
 * outside (context, libraries, kernels). Asking is slow and part of no call: it is done in the
 * first steps, at the end of a step that reached a new peak, and at the end of the run. */

struct card {
    uint64_t peak_bytes, peak_outside_bytes;
    uint64_t seen_bytes; /* the highest peak of charged bytes when it was asked */
    uint64_t steps;
};

/* The end of a step; does nothing on a device without card_bytes. */
void card_end_step(struct card *card, struct ar_device *device);
/* The end of the run. Writes both metrics, or leaves them null. */
void card_report(struct card *card, struct ar_device *device, struct metric_values *metrics);

#endif
