/* The loop that drives a policy with a workload on a device.
 *
 * 1. Events are pulled in spans. The body of the loop is compiled three times from one text:
 *    LEAN for runs without metrics, EXACT for exact metrics, CAREFUL for everything else
 *    (several streams, rows, samples, adaptive sources, clocks). Rare events share their code.
 * 2. Requests. Zero bytes, and pinned host memory, are served without the policy. A request
 *    that is not served is counted and the run goes on without that block.
 * 3. Frees. `recorded`: at the let-go the policy is told that the program is done (retire), at
 *    the completion the block is freed. `ordered` and `at-once`: freed at the let-go, the
 *    completion only ends the slot. A trace may hold let-gos without completions: then the
 *    let-go is all that was recorded, in every mode.
 * 4. Streams. In `ordered`, where a workload has several streams, the device is told which
 *    streams may still use a block when it is let go, and who gets its bytes next. For a policy
 *    that is not stream-ordered the new owner's stream then waits (stall); one that is, is
 *    trusted, and a use that it overtakes is a race. `recorded` and `at-once` say themselves
 *    when a block is free: nothing is ordered there and no races are looked for.
 * 5. Host time `recorded`: a gap between two recorded times passes whole; the time that the
 *    recorded allocator took is part of it. */
#include "sim/replay.h"

#include <stdlib.h>
#include <string.h>

#include "sim/replay/latency.h"
#include "sim/replay/run.h"
#include "sim/replay/steps.h"

enum how { LEAN, EXACT, CAREFUL };

#define INLINE static inline __attribute__((always_inline))
#define RARE   static __attribute__((noinline, cold))

static void tick(struct replay *run, uint64_t weight)
{
    run->weight = weight;
    if (weight && run->config->measure == REPLAY_METRICS_EXACT)
        exact_tick(&run->exact, weight);
}

/* After a request that was served: what other parts want to know of it. */
RARE void placed(struct replay *run, const struct trace_event *event, struct replay_slot *slot)
{
    if (run->config->row)
        replay_place(run, slot);
    if (run->hazards)
        run->device->ops->handed_out(run->device, slot->block.address, slot->block.granted_bytes,
                                     slot->stream, !run->stream_ordered, replay_number(run, event));
}

static enum status policy_asked(struct replay *run, struct replay_slot *slot, const enum how how)
{
    if (how != CAREFUL || !run->latency)
        return policy_alloc(run->policy, &run->request, &slot->block);
    latency_begin(run->latency, run->device);
    enum status status = policy_alloc(run->policy, &run->request, &slot->block);
    latency_end_alloc(run->latency, run->device);
    return status;
}

/* A request of the policy: `run->request` says all but bytes and stream already. */
INLINE enum status ask(struct replay *run, const struct trace_event *event,
                       struct replay_slot *slot, const enum how how, struct error *error)
{
    if (how != LEAN && !run->by_time)
        tick(run, event->value);
    run->request.bytes = event->value;
    run->request.stream = event->stream;
    enum status status = policy_asked(run, slot, how);
    if (UNLIKELY(status != STATUS_OK)) {
        exact_reserved(&run->exact);
        return replay_not_served(run, event, slot, status, error);
    }
    if (UNLIKELY(slot->block.granted_bytes < event->value))
        return replay_broken(run, event, STATUS_CORRUPT, "it granted less than was asked for",
                             error);
    slot->state = SLOT_LIVE;
    slot->stream = event->stream;
    if (how != LEAN)
        exact_served(&run->exact, &slot->block);
    if (how == CAREFUL)
        placed(run, event, slot);
    return STATUS_OK;
}

/* Requests with keys, probes, empty ones and impossible ones. */
RARE enum status unusual_request(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot, const enum how how, struct error *error)
{
    static const struct trace_attributes none = {0};
    const struct trace_attributes *keys =
        event->attributes ? trace_attributes_of(run->config->source, event->attributes) : &none;
    if (event->value >= TRACE_BYTES_LIMIT)
        return replay_bad_input(run, event, "a request of 2^60 bytes or more", error);
    if (event->value == 0 || keys->space == TRACE_SPACE_PINNED) {
        slot->state = SLOT_EMPTY;
        slot->stream = event->stream;
        slot->block = (struct policy_block){0};
        slot->segment = slot->offset = -1;
        return STATUS_OK;
    }
    run->request.alignment = keys->align;
    run->request.pool = keys->pool;
    run->request.upper_end = keys->end == TRACE_END_UPPER;
    run->request.may_fail = event->kind == TRACE_PROBE;
    enum status status = how == LEAN    ? ask(run, event, slot, LEAN, error)
                         : how == EXACT ? ask(run, event, slot, EXACT, error)
                                        : ask(run, event, slot, CAREFUL, error);
    run->request = (struct policy_request){0};
    return status;
}

/* Rows and answers, after a request of any kind. */
RARE enum status told(struct replay *run, const struct trace_event *event, struct replay_slot *slot,
                      struct error *error)
{
    if (slot->state == SLOT_FAILED)
        slot->segment = slot->offset = -1;
    if (run->config->source->ops->served)
        replay_answer(run, event, slot);
    return run->config->row ? replay_row_alloc(run, event, slot, error) : STATUS_OK;
}

INLINE enum status on_request(struct replay *run, const struct trace_event *event,
                              const enum how how, struct error *error)
{
    enum status status = STATUS_OK;
    if (UNLIKELY(event->slot >= run->slot_count)) {
        status = replay_slots_grow(run, event, error);
        if (status != STATUS_OK)
            return status;
    }
    struct replay_slot *slot = &run->slots[event->slot];
    if (UNLIKELY(slot->state != SLOT_UNUSED) && (slot->state != SLOT_LET_GO || run->at_completion))
        return replay_bad_input(run, event, "its slot is taken by a block that is not complete",
                                error);
    run->allocs++;
    if (LIKELY(event->value - 1 < TRACE_BYTES_LIMIT - 1 && event->kind == TRACE_ALLOC &&
               !event->attributes))
        status = ask(run, event, slot, how, error);
    else
        status = unusual_request(run, event, slot, how, error);
    if (how == CAREFUL && status == STATUS_OK)
        status = told(run, event, slot, error);
    return status;
}

INLINE enum status give_back(struct replay *run, const struct trace_event *event,
                             struct replay_slot *slot, uint32_t stream, const enum how how,
                             struct error *error)
{
    enum status status;
    if (how == CAREFUL && run->hazards)
        replay_uses_end(run, slot, stream, replay_number(run, event));
    if (how == CAREFUL && run->latency) {
        latency_begin(run->latency, run->device);
        status = policy_free(run->policy, &slot->block, stream);
        latency_end_free(run->latency);
    } else {
        status = policy_free(run->policy, &slot->block, stream);
    }
    if (UNLIKELY(status != STATUS_OK))
        return replay_broken(run, event, status, "a free failed", error);
    return STATUS_OK;
}

/* The slot of an event about a block that is there. */
INLINE struct replay_slot *known_slot(struct replay *run, const struct trace_event *event)
{
    if (UNLIKELY(event->slot >= run->slot_count))
        return NULL;
    struct replay_slot *slot = &run->slots[event->slot];
    return LIKELY(slot->state != SLOT_UNUSED) ? slot : NULL;
}

INLINE enum status on_let_go(struct replay *run, const struct trace_event *event,
                             const enum how how, struct error *error)
{
    struct replay_slot *slot = known_slot(run, event);
    if (UNLIKELY(!slot || slot->state == SLOT_LET_GO))
        return replay_bad_input(run, event, "let go, but not live", error);
    enum status status = STATUS_OK;
    run->frees += slot->state != SLOT_FAILED;
    if (LIKELY(slot->state == SLOT_LIVE)) {
        if (how != LEAN)
            exact_let_go(&run->exact, &slot->block);
        if (run->at_completion) {
            policy_retire(run->policy, &slot->block);
        } else {
            uint32_t stream = event->stream == TRACE_NO_STREAM ? slot->stream : event->stream;
            status = give_back(run, event, slot, stream, how, error);
        }
        slot->state = SLOT_LET_GO;
    }
    if (run->at_completion)
        return status; /* a block that is empty or failed stays what it is, too */
    slot->state = SLOT_LET_GO;
    if (how == CAREFUL && run->config->row && status == STATUS_OK)
        status = replay_row_free(run, event, slot, error);
    return status;
}

INLINE enum status on_free(struct replay *run, const struct trace_event *event, const enum how how,
                           struct error *error)
{
    struct replay_slot *slot = known_slot(run, event);
    if (UNLIKELY(!slot))
        return replay_bad_input(run, event, "freed, but not live", error);
    bool whole = event->flags & TRACE_WHOLE, row = true;
    enum status status = STATUS_OK;
    if (LIKELY(whole)) {
        if (UNLIKELY(slot->state == SLOT_LET_GO))
            return replay_bad_input(run, event, "freed whole, but let go before", error);
        run->frees += slot->state != SLOT_FAILED;
        if (LIKELY(slot->state == SLOT_LIVE)) {
            if (how != LEAN)
                exact_let_go(&run->exact, &slot->block);
            status = give_back(run, event, slot, slot->stream, how, error);
        }
    } else {
        if (UNLIKELY(slot->state == SLOT_LIVE))
            return replay_bad_input(run, event, "complete, but not let go", error);
        row = run->at_completion;
        if (row && slot->state == SLOT_LET_GO)
            status = give_back(run, event, slot, slot->stream, how, error);
    }
    slot->state = SLOT_UNUSED;
    if (how == CAREFUL && run->config->row && row && status == STATUS_OK)
        status = replay_row_free(run, event, slot, error);
    return status;
}

static enum status on_use(struct replay *run, const struct trace_event *event, struct error *error)
{
    struct replay_slot *slot = known_slot(run, event);
    if (!slot)
        return replay_bad_input(run, event, "used, but not live", error);
    if (slot->state != SLOT_LIVE || run->config->frees != REPLAY_ORDERED)
        return STATUS_OK;
    if (run->stream_ordered) {
        enum status status = policy_use(run->policy, &slot->block, event->stream);
        if (status != STATUS_OK && status != STATUS_UNSUPPORTED)
            return replay_broken(run, event, status, "a use on another stream failed", error);
    }
    return run->hazards ? replay_use_add(run, slot, event->stream, error) : STATUS_OK;
}

static void on_time(struct replay *run, const struct trace_event *event)
{
    uint64_t gap_ns = event->value > run->time_ns ? event->value - run->time_ns : 0;
    if (run->by_time)
        tick(run, gap_ns);
    run->time_ns += gap_ns;
    if (run->config->host == REPLAY_HOST_RECORDED && gap_ns)
        run->device->ops->advance(run->device, gap_ns);
}

static enum status on_outside(struct replay *run, const struct trace_event *event,
                              struct error *error)
{
    enum status status = run->device->ops->outside(run->device, event->value);
    if (status == STATUS_REFUSED) {
        replay_outside_refused(run, event);
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return replay_broken(run, event, status, "memory outside of the pool", error);
    return STATUS_OK;
}

static enum status on_trim(struct replay *run, const struct trace_event *event, struct error *error)
{
    enum status status = policy_trim(run->policy, 0);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED)
        return replay_broken(run, event, status, "it could not give back its cache", error);
    return STATUS_OK;
}

/* Every event that is not about a block. */
static enum status on_other(struct replay *run, const struct trace_event *event,
                            struct error *error)
{
    struct device *device = run->device;
    switch (event->kind) {
    case TRACE_KERNEL:
        device->ops->kernel(device, event->stream, event->value);
        return STATUS_OK;
    case TRACE_RECORD:
        device->ops->event_record(device, event->value, event->stream);
        return STATUS_OK;
    case TRACE_WAIT:
        device->ops->stream_wait(device, event->stream, event->value);
        return STATUS_OK;
    case TRACE_SYNC:
        device->ops->sync(device, event->stream);
        policy_progress(run->policy);
        return STATUS_OK;
    case TRACE_TRIM:
        return on_trim(run, event, error);
    case TRACE_OUTSIDE:
        return on_outside(run, event, error);
    case TRACE_MARK:
        if (!(event->flags & TRACE_STEP))
            return STATUS_OK;
        policy_progress(run->policy);
        return steps_end_one(run->steps, device, error);
    case TRACE_TIME:
        on_time(run, event);
        return STATUS_OK;
    case TRACE_NOTE:
        return STATUS_OK;
    default:
        return replay_bad_input(run, event, "not a kind of event", error);
    }
}

INLINE enum status on_event(struct replay *run, const struct trace_event *event, const enum how how,
                            struct error *error)
{
    if (LIKELY(event->kind <= TRACE_PROBE && event->kind))
        return on_request(run, event, how, error);
    if (LIKELY(event->kind == TRACE_FREE))
        return on_free(run, event, how, error);
    if (event->kind == TRACE_LET_GO)
        return on_let_go(run, event, how, error);
    if (event->kind == TRACE_USE)
        return on_use(run, event, error);
    return on_other(run, event, error);
}

/* Sets `*done` to the events replayed, less than `count` where the run stops early. */
INLINE enum status span(struct replay *run, size_t count, size_t *done, const enum how how,
                        struct error *error)
{
    const struct trace_event *event = run->span, *end = event + count;
    enum status status = STATUS_OK;
    while (event != end) {
        if (how == CAREFUL)
            run->weight = 0;
        status = on_event(run, event, how, error);
        if (UNLIKELY(status != STATUS_OK))
            break;
        if (how == CAREFUL && run->config->sample) {
            status = replay_sample_take(run, event, error);
            if (status != STATUS_OK)
                break;
        }
        event++;
        if (UNLIKELY(run->stop))
            break;
    }
    *done = (size_t)(event - run->span);
    return status;
}

static enum status span_lean(struct replay *run, size_t count, size_t *done, struct error *error)
{
    return span(run, count, done, LEAN, error);
}

static enum status span_exact(struct replay *run, size_t count, size_t *done, struct error *error)
{
    return span(run, count, done, EXACT, error);
}

static enum status span_careful(struct replay *run, size_t count, size_t *done, struct error *error)
{
    return span(run, count, done, CAREFUL, error);
}

static enum status all_spans(struct replay *run, struct error *error)
{
    const struct replay_config *config = run->config;
    bool careful = config->row || config->sample || config->source->ops->served || run->hazards ||
                   run->latency;
    enum status (*body)(struct replay *, size_t, size_t *, struct error *) =
        careful                                   ? span_careful
        : config->measure == REPLAY_METRICS_EXACT ? span_exact
                                                  : span_lean;
    while (!run->stop) {
        size_t count, done;
        enum status status = trace_next(config->source, &run->span, &count, error);
        if (status != STATUS_OK || !count)
            return status;
        status = body(run, count, &done, error);
        run->span_first += done;
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status begin(struct replay *run, const struct replay_config *config,
                         struct error *error)
{
    const struct trace_info *info = &config->source->info;
    *run = (struct replay){
        .config = config,
        .policy = config->policy,
        .device = config->device,
        .at_completion = config->frees == REPLAY_RECORDED && info->has_split_frees,
        .by_time = info->has_times,
        .stream_ordered = config->policy->ops->capabilities & POLICY_STREAM_ORDERED,
        .hazards = config->frees == REPLAY_ORDERED && info->streams > 1,
    };
    exact_begin(&run->exact, config->policy, config->unit_bytes);
    if (info->slots) {
        const struct trace_event last = {.slot = info->slots - 1};
        enum status status = replay_slots_grow(run, &last, error);
        if (status != STATUS_OK)
            return status;
    }
    run->steps = calloc(1, sizeof *run->steps);
    if (!run->steps)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for a replay");
    steps_begin(run->steps, config->device);
    if (config->measure_time && !(run->latency = latency_open(config->device)))
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for histograms");
    return STATUS_OK;
}

static void end(struct replay *run)
{
    exact_end(&run->exact, run->policy);
    if (run->steps)
        steps_close(run->steps);
    free(run->steps);
    latency_close(run->latency);
    free(run->slots);
    free(run->uses);
}

enum status replay_run(const struct replay_config *config, struct replay_result *result,
                       struct error *error)
{
    struct replay run;
    memset(result, 0, sizeof *result);
    enum status status = begin(&run, config, error);
    if (status == STATUS_OK)
        status = all_spans(&run, error);
    if (status == STATUS_OK)
        status = replay_check_end(&run, error);
    if (status == STATUS_OK)
        status = replay_report(&run, result, error);
    end(&run);
    return status;
}

void replay_result_close(struct replay_result *result)
{
    free(result->step_end_ns);
    result->step_end_ns = NULL;
    result->steps = 0;
}
