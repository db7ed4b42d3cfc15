/* Why a request could not be served. The ladder: each step adds memory to that of the step
 * before it, and the first one at which the request would fit names the cause.
 *
 *   1 same      free ranges of the pool and stream that asked, merged     fragmentation
 *   2 other     and free ranges of other pools and streams                fragmentation
 *   3 pending   and blocks let go that are not complete                   pending
 *   4 tenant    and memory that other processes hold on the card          tenant
 *   5 outside   and memory that the program holds outside of the pool     outside
 *   6           otherwise                                                 capacity
 *
 * From the first step on, memory counts that the policy could still obtain: what the device
 * has free, within the policy's limit. Where that alone would have served the request, a rule
 * of the policy's own keeps it from it, such as what TensorFlow leaves to the system: then it
 * counts for nothing, and what is not fragmentation or pending is capacity. Steps 4 and 5 add
 * to what the device has free, so they cannot help a policy that is at its limit. */
#ifndef SIM_REPLAY_CAUSE_H
#define SIM_REPLAY_CAUSE_H

#include "sim/replay.h"

/* Bytes that could be put to use at each step, cumulative. */
struct cause_ladder {
    uint64_t obtainable_bytes; /* of the device, within the limit; part of all that follow */
    uint64_t same_bytes, other_bytes, pending_bytes, tenant_bytes, outside_bytes;
};

/* Fills the ladder for a request as things stand now, by a walk of the policy: as slow as the
 * policy has ranges. `limit_bytes` is the policy's limit, 0 for none. */
void cause_ladder_fill(struct cause_ladder *ladder, const struct ar_policy *policy,
                       const struct ar_device *device, const struct ar_policy_request *request,
                       uint64_t limit_bytes);

/* The cause by that ladder. */
enum replay_cause cause_of_ladder(const struct cause_ladder *ladder, uint64_t bytes);

/* The cause at once, from the policy's totals: the two steps of fragmentation need not be told
 * apart for it, so no walk is needed. Always what the ladder says. */
enum replay_cause cause_of_failure(const struct ar_policy *policy, const struct ar_device *device,
                                   uint64_t bytes, uint64_t limit_bytes);

#endif
