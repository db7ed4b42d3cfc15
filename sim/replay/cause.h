/* Why a request failed. The ladder: each step adds memory to the step before it. The first step at
 * which the request could have been served is the cause.
 *
 *   again     the policy would serve it now                              returned
 *   same      free ranges of the request's pool and stream, merged       fragmentation
 *   other     and free ranges of other pools and streams                 fragmentation
 *   pending   and pending blocks                                         pending
 *   tenant    and memory of other processes on the card                  tenant
 *   outside   and memory that the program holds outside of the pool      outside
 *             otherwise                                                  capacity
 *
 * The policy serves it now if a block came back while it waited for the request, and it did not
 * look at its free ranges again before it gave up (ar_policy_would_fit).
 *
 * Every step includes the memory that the policy could still obtain: what the device has free,
 * within the policy's limit. If that alone was enough, a rule of the policy prevents its use (for
 * example the memory that TensorFlow leaves to the system). Then it is not counted, and a failure
 * that is not fragmentation or pending is capacity. Steps that add to the device's free memory do
 * not help a policy that is at its limit.
 *
 * Memory that the program asks for beside the pool has a ladder of its own. The device's free
 * memory is part of every step:
 *
 *   cached    whole segments, or pages, that the policy holds free       cache
 *   other     and free ranges between live blocks                        cache
 *   pending   and pending blocks                                         pending
 *   tenant    and memory of other processes on the card                  tenant
 *             otherwise                                                  capacity
 */
#ifndef SIM_REPLAY_CAUSE_H
#define SIM_REPLAY_CAUSE_H

#include "sim/replay.h"

struct cause_ladder {
    bool beside; /* memory beside the pool is asked for */
    bool again;  /* the policy would serve the request now; not if `beside` */
    bool barred; /* a rule of the policy prevents the use of what the device has free */
    /* Bytes that could be used at each step, cumulative. */
    uint64_t obtainable_bytes; /* of the device, within the limit; part of all that follow */
    uint64_t cached_bytes;     /* if `beside`, else as obtainable_bytes */
    uint64_t same_bytes;       /* if not `beside`, else as other_bytes */
    uint64_t other_bytes, pending_bytes, tenant_bytes, outside_bytes;
};

/* Fills the ladder for a request in the present state. It walks the policy, so it takes time in
 * proportion to the policy's ranges; of an opaque policy it takes the totals. `limit_bytes` is the
 * policy's limit, 0 for none. */
void cause_ladder_fill(struct cause_ladder *ladder, struct ar_policy *policy,
                       const struct ar_device *device, const struct ar_policy_request *request,
                       uint64_t limit_bytes);

/* The same for memory beside the pool, from the policy's totals. */
void cause_ladder_fill_beside(struct cause_ladder *ladder, const struct ar_policy *policy,
                              const struct ar_device *device);

/* The cause according to a ladder. */
enum replay_cause cause_of_ladder(const struct cause_ladder *ladder, uint64_t bytes);

/* The same cause from the policy's totals, without a walk: the two steps of fragmentation need not
 * be separated for it. */
enum replay_cause cause_of_failure(struct ar_policy *policy, const struct ar_device *device,
                                   const struct ar_policy_request *request, uint64_t limit_bytes);

#endif
