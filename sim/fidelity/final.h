/* How the recorded allocator stood at the end, held against the policy's own walk. */
#ifndef SIM_FIDELITY_FINAL_H
#define SIM_FIDELITY_FINAL_H

#include "allocators/policy.h"
#include "sim/fidelity/recorded_device.h"

/* Counts what is the same into the device's result, and notes the first difference. Nothing where
 * the recording tells of no end, or has differed before. HOST_MEMORY. */
enum ar_status recorded_final_compare(struct recorded_device *device,
                                      const struct ar_policy *policy,
                                      struct ar_error *error) AR_STATUS_CHECKED;

#endif
