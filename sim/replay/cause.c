#include "sim/replay/cause.h"

struct cause_walk {
    uint32_t stream, pool;
    uint64_t same_bytes, other_bytes, pending_bytes;
};

static bool cause_visit(void *argument, const struct ar_policy_range *range)
{
    struct cause_walk *walk = argument;
    if (range->state == AR_POLICY_RANGE_PENDING)
        walk->pending_bytes += range->bytes;
    else if (range->state == AR_POLICY_RANGE_FREE) {
        if (range->stream == walk->stream && range->pool == walk->pool)
            walk->same_bytes += range->bytes;
        else
            walk->other_bytes += range->bytes;
    }
    return true;
}

/* Devices without a limit have UINT64_MAX free. */
static uint64_t add(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

/* What the policy could still obtain if the device had `free_bytes` free. */
static uint64_t obtainable(const struct ar_policy *policy, uint64_t free_bytes,
                           uint64_t limit_bytes)
{
    uint64_t reserved_bytes = policy->totals.reserved_bytes;
    if (!limit_bytes)
        return free_bytes;
    uint64_t room_bytes = limit_bytes > reserved_bytes ? limit_bytes - reserved_bytes : 0;
    return free_bytes < room_bytes ? free_bytes : room_bytes;
}

static void fill(struct cause_ladder *ladder, const struct ar_policy *policy,
                 const struct ar_device *device, const struct cause_walk *walk, uint64_t bytes,
                 uint64_t limit_bytes)
{
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    uint64_t with_tenant = add(free_bytes, device->counters.others_bytes);
    uint64_t with_outside = add(with_tenant, device->counters.outside_bytes);
    uint64_t held_bytes = walk->same_bytes + walk->other_bytes + walk->pending_bytes;
    ladder->obtainable_bytes = obtainable(policy, free_bytes, limit_bytes);
    if (ladder->obtainable_bytes >= bytes) {
        /* A rule of its own keeps the policy from it, so more of it would not help either. */
        *ladder = (struct cause_ladder){
            .same_bytes = walk->same_bytes,
            .other_bytes = walk->same_bytes + walk->other_bytes,
            .pending_bytes = held_bytes,
            .tenant_bytes = held_bytes,
            .outside_bytes = held_bytes,
        };
        return;
    }
    ladder->same_bytes = add(ladder->obtainable_bytes, walk->same_bytes);
    ladder->other_bytes = add(ladder->same_bytes, walk->other_bytes);
    ladder->pending_bytes = add(ladder->other_bytes, walk->pending_bytes);
    ladder->tenant_bytes = add(held_bytes, obtainable(policy, with_tenant, limit_bytes));
    ladder->outside_bytes = add(held_bytes, obtainable(policy, with_outside, limit_bytes));
}

void cause_ladder_fill(struct cause_ladder *ladder, const struct ar_policy *policy,
                       const struct ar_device *device, const struct ar_policy_request *request,
                       uint64_t limit_bytes)
{
    struct cause_walk walk = {.stream = request->stream, .pool = request->pool};
    ar_policy_walk(policy, cause_visit, &walk);
    fill(ladder, policy, device, &walk, request->bytes, limit_bytes);
}

enum replay_cause cause_of_ladder(const struct cause_ladder *ladder, uint64_t bytes)
{
    if (ladder->other_bytes >= bytes)
        return REPLAY_CAUSE_FRAGMENTATION;
    if (ladder->pending_bytes >= bytes)
        return REPLAY_CAUSE_PENDING;
    if (ladder->tenant_bytes >= bytes)
        return REPLAY_CAUSE_TENANT;
    if (ladder->outside_bytes >= bytes)
        return REPLAY_CAUSE_OUTSIDE;
    return REPLAY_CAUSE_CAPACITY;
}

enum replay_cause cause_of_failure(const struct ar_policy *policy, const struct ar_device *device,
                                   uint64_t bytes, uint64_t limit_bytes)
{
    const struct cause_walk walk = {
        .same_bytes = ar_policy_free_bytes(&policy->totals),
        .pending_bytes = policy->totals.pending_bytes,
    };
    struct cause_ladder ladder;
    fill(&ladder, policy, device, &walk, bytes, limit_bytes);
    return cause_of_ladder(&ladder, bytes);
}
