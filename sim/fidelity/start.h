#ifndef SIM_FIDELITY_START_H
#define SIM_FIDELITY_START_H

#include "sim/fidelity/recorded_device.h"

/* Stands around a policy in a recording that begins in the middle: gives the blocks that were there
 * to the requests that stand for them. */
/* Brings `inner`, which has served nothing yet, into the state of the start: it adopts it, or where
 * it cannot, the blocks are requested in the order of their addresses. Puts the decorator around
 * it, which owns it from then on; `inner` itself where nothing was there. INVALID: the policy can
 * never have come to this state. A failure leaves `inner` to the caller. */
enum ar_status starting_wrap(struct ar_host *host, struct ar_policy *inner,
                             struct recorded_device *device, struct ar_policy **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
