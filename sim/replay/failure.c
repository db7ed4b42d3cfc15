/* Requests that failed and why, and all other results that are not OK. */

#include "allocators/base/size.h"
#include "sim/replay/run.h"

/* ---- failures ------------------------------------------------------------------------------- */

enum ar_status replay_broken(const struct replay *run, const struct trace_event *event,
                             enum ar_status status, const char *what, struct ar_error *error)
{
    const char *problem = ar_policy_problem(run->policy);
    if (!problem[0])
        problem = run->device->ops->problem(run->device);
    bool said = problem[0];
    return ar_error_set(error, status, "%s: event %" PRIu64 ": policy %s: %s%s%s",
                        run->config->source->info.name, replay_event_number(run, event),
                        run->policy->ops->name, what, said ? ": " : "", said ? problem : "");
}

enum ar_status replay_bad_input(const struct replay *run, const struct trace_event *event,
                                const char *what, struct ar_error *error)
{
    char block[32] = "";
    if (trace_kind_has_block(event->kind))
        (void)snprintf(block, sizeof block, ", block %" PRIu64, event->id);
    return ar_invalid(error, "%s: event %" PRIu64 "%s: %s", run->config->source->info.name,
                      replay_event_number(run, event), block, what);
}

enum ar_status replay_at_event(const struct replay *run, const struct trace_event *event,
                               enum ar_status status, struct ar_error *error)
{
    return ar_error_prefix(error, status, "%s: event %" PRIu64, run->config->source->info.name,
                           replay_event_number(run, event));
}

void replay_count_failure(struct replay *run, const struct trace_event *event, uint64_t bytes,
                          enum replay_cause cause)
{
    run->failed_allocs++;
    run->failed_by[cause]++;
    if (!run->failed) {
        run->failed = true;
        run->first_failed_event = replay_event_number(run, event);
        run->first_failed_bytes = bytes;
        run->cause = cause;
    }
    run->stop = run->config->stop_on_failure;
}

enum ar_status replay_ask_again(struct replay *run, const struct trace_event *event,
                                struct ar_policy_block *block, enum ar_status status)
{
    const struct replay_config *config = run->config;
    while ((status == AR_NO_MEMORY || status == AR_REFUSED) && config->again &&
           config->again(config->again_argument, &run->request)) {
        status = ar_policy_alloc(run->policy, &run->request, block);
        if (run->wants_calls)
            replay_called(run, event, OBSERVER_POLICY_ALLOC, status, block, event->stream);
    }
    return status;
}

/* Says of the first failure that a limit or a decorator refused it, although the device has memory
 * for the request. */
static void note_refusal(struct replay *run, uint64_t bytes)
{
    const char *name = run->policy->ops->name;
    const uint64_t limit_bytes = run->config->limit_bytes;
    const uint64_t reserved_bytes = run->policy->totals.reserved_bytes;
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(run->device->backing, &free_bytes, &total_bytes);
    if (free_bytes < bytes)
        return;
    const char *free_text = AR_SIZE(free_bytes);
    const char *limit_text = AR_SIZE(limit_bytes);
    if (limit_bytes && (reserved_bytes > limit_bytes || bytes > limit_bytes - reserved_bytes))
        snprintf(run->refused_by, sizeof run->refused_by, "past limit=%s (the device has %s free)",
                 limit_text, free_text);
    else if (strstr(name, "fault+") || strstr(name, "limit+"))
        snprintf(run->refused_by, sizeof run->refused_by,
                 "refused by the decorator %s (the device has %s free)",
                 strstr(name, "fault+") ? "fault" : "limit", free_text);
}

enum ar_status replay_not_served(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot, enum ar_status status,
                                 struct ar_error *error)
{
    if (status == AR_HOST_MEMORY)
        return replay_broken(run, event, status, "no host memory for its metadata", error);
    if (status != AR_NO_MEMORY && status != AR_REFUSED)
        return replay_broken(run, event, status, "the request failed", error);
    /* A misuse that the policy reports as a lack of memory must not pass as an outcome. */
    const char *problem = run->device->ops->problem(run->device);
    if (problem[0])
        return replay_broken(run, event, AR_INVALID, "the device refused a call", error);
    const struct ar_policy_request *request = &run->request;
    slot->state = SLOT_FAILED;
    slot->stream = event->stream;
    slot->block = (struct ar_policy_block){.requested_bytes = request->bytes};
    if (event->kind == TRACE_PROBE && !run->must_serve) {
        run->failed_probes++;
        return AR_OK;
    }
    if (!run->failed)
        note_refusal(run, request->bytes);
    replay_count_failure(
        run, event, request->bytes,
        cause_of_failure(run->policy, run->device, request, run->config->limit_bytes));
    return AR_OK;
}

void replay_launch_refused(struct replay *run, const struct trace_event *event)
{
    replay_count_failure(run, event, 0, REPLAY_CAUSE_OUTSIDE); /* the size is not known */
}

void replay_outside_refused(struct replay *run, const struct trace_event *event)
{
    uint64_t more_bytes = event->value - run->device->counters.outside_bytes;
    struct cause_ladder ladder;
    cause_ladder_fill_beside(&ladder, run->policy, run->device);
    replay_count_failure(run, event, more_bytes, cause_of_ladder(&ladder, more_bytes));
}

void replay_driver_failed(struct replay *run, bool unfinished)
{
    run->stop = true;
    if (run->failed)
        return; /* the result has the first failure, and the device's problem beside it */
    run->failed = true;
    run->cause = REPLAY_CAUSE_DRIVER;
    run->first_failed_event =
        unfinished || !run->span_first ? run->span_first : run->span_first - 1;
    run->first_failed_bytes = 0;
}

/* ---- causes --------------------------------------------------------------------------------- */

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

/* Devices without a limit have UINT64_MAX bytes free. */
static uint64_t add(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

/* The bytes that the policy could still obtain if the device had `free_bytes` free. */
static uint64_t obtainable(const struct ar_policy *policy, uint64_t free_bytes,
                           uint64_t limit_bytes)
{
    uint64_t reserved_bytes = policy->totals.reserved_bytes;
    if (!limit_bytes)
        return free_bytes;
    uint64_t room_bytes = limit_bytes > reserved_bytes ? limit_bytes - reserved_bytes : 0;
    return free_bytes < room_bytes ? free_bytes : room_bytes;
}

/* Whether the policy would serve the request if it were tried again. The policy is asked only if a
 * free range is large enough, because the question may poll pending frees. */
static bool serves_now(struct ar_policy *policy, const struct ar_policy_request *request)
{
    struct ar_policy_room room;
    ar_policy_room(policy, &room);
    return room.largest_free_block_bytes >= request->bytes && ar_policy_would_fit(policy, request);
}

/* At each step: what the policy holds, and what it could obtain. If a rule of the policy keeps it
 * from obtaining memory that is free, more of it would not help either, and none is counted. */
static void fill(struct cause_ladder *ladder, struct ar_policy *policy,
                 const struct ar_device *device, const struct cause_walk *walk,
                 const struct ar_policy_request *request, uint64_t limit_bytes)
{
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    const uint64_t with_tenant = add(free_bytes, device->counters.others_bytes);
    const uint64_t with_outside = add(with_tenant, device->counters.outside_bytes);
    const uint64_t other_bytes = walk->same_bytes + walk->other_bytes;
    const uint64_t held_bytes = other_bytes + walk->pending_bytes;
    *ladder = (struct cause_ladder){
        .again = serves_now(policy, request),
        .same_bytes = walk->same_bytes,
        .other_bytes = other_bytes,
        .pending_bytes = held_bytes,
        .tenant_bytes = held_bytes,
        .outside_bytes = held_bytes,
    };
    const uint64_t obtainable_bytes = obtainable(policy, free_bytes, limit_bytes);
    ladder->barred = obtainable_bytes >= request->bytes;
    if (ladder->barred)
        return;
    ladder->obtainable_bytes = ladder->cached_bytes = obtainable_bytes;
    ladder->same_bytes = add(ladder->same_bytes, obtainable_bytes);
    ladder->other_bytes = add(ladder->other_bytes, obtainable_bytes);
    ladder->pending_bytes = add(ladder->pending_bytes, obtainable_bytes);
    ladder->tenant_bytes = add(held_bytes, obtainable(policy, with_tenant, limit_bytes));
    ladder->outside_bytes = add(held_bytes, obtainable(policy, with_outside, limit_bytes));
}

static struct cause_walk walk_of_totals(const struct ar_policy *policy)
{
    return (struct cause_walk){
        .same_bytes = ar_policy_free_bytes(&policy->totals),
        .pending_bytes = policy->totals.pending_bytes,
    };
}

void cause_ladder_fill(struct cause_ladder *ladder, struct ar_policy *policy,
                       const struct ar_device *device, const struct ar_policy_request *request,
                       uint64_t limit_bytes)
{
    struct cause_walk walk = {.stream = request->stream, .pool = request->pool};
    if (policy->ops->capabilities & AR_POLICY_OPAQUE)
        walk = walk_of_totals(policy);
    else
        ar_policy_walk(policy, cause_visit, &walk);
    fill(ladder, policy, device, &walk, request, limit_bytes);
}

void cause_ladder_fill_beside(struct cause_ladder *ladder, const struct ar_policy *policy,
                              const struct ar_device *device)
{
    const struct cause_walk pool = walk_of_totals(policy);
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    *ladder = (struct cause_ladder){.beside = true, .obtainable_bytes = free_bytes};
    ladder->cached_bytes = add(free_bytes, policy->totals.releasable_bytes);
    ladder->same_bytes = ladder->other_bytes = add(free_bytes, pool.same_bytes);
    ladder->pending_bytes = add(ladder->other_bytes, pool.pending_bytes);
    ladder->tenant_bytes = add(ladder->pending_bytes, device->counters.others_bytes);
    ladder->outside_bytes = ladder->tenant_bytes;
}

enum replay_cause cause_of_ladder(const struct cause_ladder *ladder, uint64_t bytes)
{
    if (ladder->again)
        return REPLAY_CAUSE_RETURNED;
    if (ladder->other_bytes >= bytes)
        return ladder->beside ? REPLAY_CAUSE_CACHE : REPLAY_CAUSE_FRAGMENTATION;
    if (ladder->pending_bytes >= bytes)
        return REPLAY_CAUSE_PENDING;
    if (ladder->tenant_bytes >= bytes)
        return REPLAY_CAUSE_TENANT;
    if (ladder->outside_bytes >= bytes)
        return REPLAY_CAUSE_OUTSIDE;
    return REPLAY_CAUSE_CAPACITY;
}

enum replay_cause cause_of_failure(struct ar_policy *policy, const struct ar_device *device,
                                   const struct ar_policy_request *request, uint64_t limit_bytes)
{
    const struct cause_walk walk = walk_of_totals(policy);
    struct cause_ladder ladder;
    fill(&ladder, policy, device, &walk, request, limit_bytes);
    return cause_of_ladder(&ladder, request->bytes);
}
