/* What the card itself says that the process holds, beside what the device charges: the rest is
 * outside (context, libraries, kernels). Asking is slow and part of no call: it is done in the
 * first steps, at the end of a step that reached a new peak, and at the end of the run. */
#ifndef SIM_REPLAY_CARD_H
#define SIM_REPLAY_CARD_H

#include "sim/device.h"
#include "sim/metrics/metrics.h"

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
