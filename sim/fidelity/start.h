#ifndef SIM_FIDELITY_START_H
#define SIM_FIDELITY_START_H

#include "sim/fidelity/recorded_device.h"

/* Wraps a policy for a recording that begins in the middle: the wrapper gives the existing blocks
 * to their requests. `inner` must be new. It adopts the state at the start; if it cannot, the
 * blocks are requested in the order of their addresses. `out` owns `inner`, or is `inner` if there
 * was no state. INVALID: the policy can never have reached this state. On failure the caller keeps
 * `inner`. */
enum ar_status starting_wrap(struct ar_host *host, struct ar_policy *inner,
                             struct recorded_device *device, struct ar_policy **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
