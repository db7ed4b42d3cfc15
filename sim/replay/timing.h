/* Times of a run: steps, pauses, host times of single calls, and the memory that the card reports.
 *
 * Steps: the end of each and the driver calls made until then. The steady figures leave out the
 * first n / 2 of n steps, rounded down. */
#pragma once

#include "allocators/base/hist.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"

struct steps {
    uint64_t begun_mark; /* before the first event */
    uint64_t *end_marks; /* at each step's end */
    uint64_t begun_ns;   /* begun_ns and end_ns are valid after steps_settle */
    uint64_t *end_ns;
    uint64_t *driver_calls;
    uint64_t *pause_ns; /* the longest alloc or free of each step */
    uint64_t count, room;
};

/* Calls to the driver's functions for device memory: all kinds but events and pinned memory. */
uint64_t steps_driver_calls(const struct ar_device *device);
/* Waits for all work so far and returns the time of its end, host time included. */
uint64_t steps_now_ns(struct ar_device *device);

void steps_begin(struct steps *steps, struct ar_device *device);
enum ar_status steps_end_one(struct steps *steps, struct ar_device *device, uint64_t pause_ns,
                             struct ar_error *error);
/* Waits for the work of all steps and reads the times of their ends. */
void steps_settle(struct steps *steps, struct ar_device *device);
/* Settles. Writes the figures of time and driver calls and, if `with_pauses`, of pauses. The
 * figures that need a baseline are in sim/experiment/session.h. */
enum ar_status steps_report(struct steps *steps, struct ar_device *device, bool with_pauses,
                            struct metric_values *metrics, struct ar_error *error);
/* Time of the second half of `count` steps; 0 if there are none. */
uint64_t steps_steady_ns(const uint64_t *end_ns, uint64_t count, uint64_t begun_ns);
void steps_close(struct steps *steps);

/* Pauses: how long the program waits in each alloc and free, on the device's clock: driver time and
 * waits, and on a card the policy's own time too. Exact if the clock is virtual.
 *
 * 1. The longest pause of the run and of the present step is kept.
 * 2. In the open loop the response time of a request counts from its recorded time. So a request
 *    that is late because of an earlier one is charged with the delay (this avoids Gil Tene's
 *    "coordinated omission"). */

struct pauses {
    uint64_t now_ns;           /* on the device's clock, before the call */
    uint64_t step_ns;          /* the longest pause since the last step ended */
    uint64_t longest_ns;       /* in the run */
    struct ar_hist *responses; /* of requests, in the open loop; else NULL */
};

/* Driver and stall time so far. */
static inline uint64_t pauses_spent_ns(const struct ar_device *device)
{
    return device->counters.driver_ns + device->counters.stall_ns;
}

/* If `open`, response times are kept. HOST_MEMORY. */
enum ar_status pauses_open(struct pauses *pauses, struct ar_device *device, bool open);
void pauses_close(struct pauses *pauses);

/* Before a call, and after anything else that may advance the clock. */
void pauses_begin(struct pauses *pauses, struct ar_device *device);
/* After the call: returns the pause, updates the longest ones and begins the next reading. */
uint64_t pauses_end(struct pauses *pauses, struct ar_device *device);
/* After an alloc whose recorded time is `wanted_ns`. */
void pauses_respond(struct pauses *pauses, struct ar_device *device, uint64_t wanted_ns);

/* Returns the longest pause of the step that ends here. */
uint64_t pauses_end_step(struct pauses *pauses);

void pauses_report(const struct pauses *pauses, struct metric_values *metrics);

/* The memory that the card reports for the process, in addition to what the device charges: the
 * difference is outside of the pool (context, libraries, kernels). The query is slow and belongs to
 * no call. It is made in the first steps, at the end of each step with a new peak, and at the end
 * of the run. */

struct card_memory {
    uint64_t peak_bytes, peak_outside_bytes;
    uint64_t seen_bytes; /* the highest charged bytes at a query */
    uint64_t steps;
};

/* The end of a step. Does nothing on a device without card_bytes. */
void card_memory_end_step(struct card_memory *card, struct ar_device *device);
/* The end of the run. Writes both metrics, or leaves them null. */
void card_memory_report(struct card_memory *card, struct ar_device *device,
                        struct metric_values *metrics);

/* Host time of single calls. On `sim` it has a pass of its own, because reading the clock twice
 * takes longer than some policies do. A call's time contains one reading, whose cost is measured
 * and subtracted.
 *
 * Own time is the policy's alone. On a simulated device that is what the host's clock shows. On a
 * card the driver's time and the device's own readings are in it and are subtracted; tens of ns of
 * bookkeeping for each driver call stay. */

struct latency {
    struct ar_hist alloc, free, alloc_total, free_total;
    /* Of requests in the first step, and in the steady steps. */
    struct ar_hist first_total, steady_total;
    uint64_t clock_ns; /* of one reading of the clock */
    bool modelled;     /* driver time passes on the device's clock only: the device is simulated */
    uint64_t begun_ns, begun_spent_ns, begun_readings;
    uint64_t passed_ns; /* of the last call */
};

/* The part of the run that a call is in; a run of one step is both. */
struct latency_place {
    bool first, steady;
};

/* Monotonic host time, nanoseconds. */
uint64_t latency_clock_ns(void);
/* The time of one reading of the clock in nanoseconds: the median of many differences between two
 * readings, so an interrupt during one of them has no influence. */
uint64_t latency_clock_cost_ns(void);

/* Measures the clock. Returns NULL if there is no host memory. */
struct latency *latency_open(const struct ar_device *device);
void latency_close(struct latency *latency);

/* Before and directly after a call. These four do nothing without a latency (NULL). */
void latency_begin(struct latency *latency, const struct ar_device *device);
void latency_end(struct latency *latency);
/* Adds the last call. `pause_ns`: by how much it advanced the device's clock. */
void latency_add_alloc(struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                       struct latency_place place);
void latency_add_free(struct latency *latency, const struct ar_device *device, uint64_t pause_ns);

void latency_report(const struct latency *latency, struct metric_values *metrics);
