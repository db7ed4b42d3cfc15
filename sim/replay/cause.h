/* Why a request failed. The ladder: each step adds memory to the step before it. The first step at
 * which the request could have been served is the cause.
 *
 *   1 same      free ranges of the request's pool and stream, merged      fragmentation
 *   2 other     and free ranges of other pools and streams                fragmentation
 *   3 pending   and pending blocks                                        pending
 *   4 tenant    and memory of other processes on the card                 tenant
 *   5 outside   and memory that the program holds outside of the pool     outside
 *   6           otherwise                                                 capacity
 *
 * Every step includes the memory that the policy could still obtain: what the device has free,
 * within the policy's limit. If that alone was enough, a rule of the policy prevents its use (for
 * example the memory that TensorFlow leaves to the system). Then it is not counted, and a failure
 * that is not fragmentation or pending is capacity. Steps 4 and 5 add to the device's free memory,
 * so they do not help a policy that is at its limit. */
#ifndef SIM_REPLAY_CAUSE_H
#define SIM_REPLAY_CAUSE_H

#include "sim/replay.h"

/* Bytes that could be used at each step, cumulative. */
struct cause_ladder {
    uint64_t obtainable_bytes; /* of the device, within the limit; part of all that follow */
    uint64_t same_bytes, other_bytes, pending_bytes, tenant_bytes, outside_bytes;
};

/* Fills the ladder for a request in the present state. It walks the policy, so it takes time in
 * proportion to the policy's ranges. `limit_bytes` is the policy's limit, 0 for none. */
void cause_ladder_fill(struct cause_ladder *ladder, const struct ar_policy *policy,
                       const struct ar_device *device, const struct ar_policy_request *request,
                       uint64_t limit_bytes);

/* The cause according to a ladder. */
enum replay_cause cause_of_ladder(const struct cause_ladder *ladder, uint64_t bytes);

/* The same cause from the policy's totals, without a walk: the two steps of fragmentation need not
 * be separated for it. */
enum replay_cause cause_of_failure(const struct ar_policy *policy, const struct ar_device *device,
                                   uint64_t bytes, uint64_t limit_bytes);

#endif
