/* How long the program stands still in each alloc and free, on the device's clock: driver time
 * and waits, and on a card the policy's own time too. Exact where the clock is virtual.
 *
 * 1. The longest one is kept, of the run and of the step at hand.
 * 2. On a virtual clock only the driver moves it within a call, and its counters tell whether it
 *    did: a call that asked nothing of the driver costs the engine one comparison.
 * 3. In the open loop the response time of an alloc counts from the moment at which the trace
 *    asks, so that a request that comes late because of an earlier one is charged with that
 *    (Gil Tene's "coordinated omission" does not happen). */
#ifndef SIM_REPLAY_PAUSES_H
#define SIM_REPLAY_PAUSES_H

#include "allocators/base/hist.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"

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

#endif
