/* Stands around a policy that keeps blocks from other streams by itself. A block that is let go
 * and completes later is given to the policy as one that another stream uses, so that it completes
 * inside of the policy, when the recorded device says so. */
#ifndef SIM_FIDELITY_DEFERRING_H
#define SIM_FIDELITY_DEFERRING_H

#include "sim/fidelity/recorded_device.h"

/* Puts it around `inner`, which it owns from then on; `inner` itself where it keeps no blocks from
 * others. HOST_MEMORY leaves `inner` to the caller. */
enum ar_status deferring_wrap(struct ar_host *host, struct ar_policy *inner,
                              struct recorded_device *device, struct ar_policy **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
