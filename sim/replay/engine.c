/* The loop that drives a policy with a workload on a device.
 *
 * 1. Events are read in spans. Shortcuts of a few instructions serve plain events, which are
 *    nearly all of most traces: requests and frees without keys (a tag is one) on stream 0
 *    that are no probes, recorded times, notes, completions of frees, and kernels that are
 *    only launched. Each is recognised by a comparison of its first eight bytes (of a kernel,
 *    the first byte). There is one compiled copy of the shortcuts for each value of `enum
 *    measured`. All other events, and every event of a watched run (`decide` below), go
 *    through events.c.
 * 2. Requests. Zero bytes are served without the policy. Pinned host memory has a policy of its own
 *    (pinned.c), or is served like zero bytes. A request that fails is counted, and the run goes on
 *    without the block.
 * 3. Frees. `recorded`: when the free is requested, the policy is told (retire), and when it is
 *    completed, the block is freed. `ordered` and `at-once`: the block is freed when the free is
 *    requested, and the completion only ends the slot. If a trace has no completions, blocks are
 *    freed when the free is requested, in every mode.
 * 4. Streams. In `ordered`, if requests, uses or frees are on several streams, the device is told
 *    which streams may still use a block when it is freed, and which block gets its bytes next. If
 *    the policy is not stream-ordered, the stream of the new block waits (stall). If it is, the
 *    policy is trusted, and a use that is not over is a race. On one stream there is nothing to
 *    order. `recorded` and `at-once` define when a block is free: nothing is ordered, and races are
 *    not detected.
 * 5. Host time. `recorded`: the recorded gap between two events passes on the device's clock; the
 *    time of the recorded allocator is part of it. `open`: an event comes at its recorded time,
 *    counted from the start of the replay, or immediately if that time has passed. The next gap
 *    that is long enough absorbs the policy's time, so later events are not moved. */
#include "sim/replay.h"

#include "sim/replay/run.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "events are compared as they lie in files, which are little-endian"
#endif

/* The first eight bytes of a plain event: kind, flags, zero, stream 0. Kernels: any stream. */
#define PLAIN_ALLOC     ((uint64_t)TRACE_ALLOC)
#define PLAIN_FREE      (TRACE_FREE_COMPLETED | (uint64_t)TRACE_WHOLE << 8)
#define PLAIN_REQUESTED ((uint64_t)TRACE_FREE_REQUESTED)
#define PLAIN_COMPLETED ((uint64_t)TRACE_FREE_COMPLETED)
#define PLAIN_TIME      ((uint64_t)TRACE_TIME)
#define PLAIN_NOTE      ((uint64_t)TRACE_NOTE)
/* Plain requests have 1 to 2^59 bytes, which one shift checks. */
#define PLAIN_BITS 59
_Static_assert(UINT64_C(1) << PLAIN_BITS < TRACE_BYTES_LIMIT, "plain requests are no bad input");

AR_INLINE uint64_t head_of(const struct trace_event *event)
{
    uint64_t head;
    memcpy(&head, event, sizeof head);
    return head;
}

/* The fields `slot` and `attributes` as one number. With keys it is larger than any slot, so one
 * comparison checks both. */
AR_INLINE uint64_t slot_and_keys(const struct trace_event *event)
{
    uint64_t number;
    memcpy(&number, &event->slot, sizeof number);
    return number;
}

/* State and stream of a slot as one number; on stream 0 it is the state alone (events.c). */
AR_INLINE uint64_t slot_life(const struct replay_slot *slot)
{
    uint64_t life;
    memcpy(&life, &slot->state, sizeof life);
    return life;
}

/* After a call that moved the clock. */
static __attribute__((noinline, cold)) void note_pause(struct replay *run)
{
    (void)pauses_end(&run->pauses, run->device);
}

AR_INLINE void look_for_pause(struct replay *run)
{
    if (UNLIKELY(*run->clock_ns != run->pauses.now_ns))
        note_pause(run);
}

/* What a shortcut measures: nothing, the peak of reserved bytes, or exact metrics with one of two
 * clocks of the means. */
enum measured { NOTHING, RESERVED, BY_BYTES, BY_TIME };

/* As `keeps_state` of the run. */
AR_INLINE bool keeps_state(const enum measured measured)
{
    return measured >= BY_BYTES;
}

/* The result of a shortcut. NOT_PLAIN: it did nothing. DEVICE_FAILED: the driver failed, in this
 * call or in an earlier free that succeeded nevertheless. */
enum shortcut { DONE, NOT_PLAIN, ALLOC_FAILED, GRANTED_LESS, FREE_FAILED, DEVICE_FAILED };

/* Before each call to the policy: the clock is read for its pause, and `exact` becomes stale. */
AR_INLINE void before_call(struct replay *run)
{
    run->pauses.now_ns = *run->clock_ns;
    run->exact.stale = true;
}

AR_INLINE enum shortcut plain_alloc(struct replay *run, const struct trace_event *event,
                                    const enum measured measured)
{
    const bool keeps = keeps_state(measured);
    uint64_t number = slot_and_keys(event), bytes = event->value;
    if (UNLIKELY(number >= run->slot_count))
        return NOT_PLAIN;
    struct replay_slot *slot = &run->slots[number];
    if (UNLIKELY(slot_life(slot) != SLOT_UNUSED || (bytes - 1) >> PLAIN_BITS))
        return NOT_PLAIN;
    if (measured == BY_BYTES)
        exact_tick(&run->exact, bytes);
    if (keeps)
        before_call(run);
    run->plain.bytes = bytes;
    run->allocs++;
    slot->block.requested_bytes = bytes;
    enum ar_status status = run->policy_alloc(run->policy, &run->plain, &slot->block);
    if (UNLIKELY(status != AR_OK)) {
        run->status = status;
        return ALLOC_FAILED;
    }
    if (keeps)
        look_for_pause(run);
    if (keeps && UNLIKELY(slot->block.granted_bytes < bytes)) /* not checked without metrics */
        return GRANTED_LESS;
    slot->state = SLOT_LIVE;
    if (keeps)
        exact_served(&run->exact, &slot->block);
    if (measured == RESERVED)
        exact_reserved(&run->exact);
    return DONE;
}

/* A free that ends the slot, or the request of a free whose completion comes later. */
AR_INLINE enum shortcut plain_free(struct replay *run, const struct trace_event *event,
                                   const enum measured measured, const enum replay_slot_state next)
{
    const bool keeps = keeps_state(measured);
    uint64_t number = slot_and_keys(event);
    if (UNLIKELY(number >= run->slot_count))
        return NOT_PLAIN;
    struct replay_slot *slot = &run->slots[number];
    if (UNLIKELY(slot_life(slot) != SLOT_LIVE))
        return NOT_PLAIN;
    if (keeps) {
        exact_free_requested(&run->exact, &slot->block);
        before_call(run);
    }
    slot->state = next;
    run->frees++;
    enum ar_status status = run->policy_free(run->policy, &slot->block, 0);
    if (keeps)
        look_for_pause(run);
    if (LIKELY(status == AR_OK))
        return DONE;
    run->status = status;
    return FREE_FAILED;
}

AR_INLINE enum shortcut plain_completed(struct replay *run, const struct trace_event *event)
{
    uint64_t number = slot_and_keys(event);
    if (UNLIKELY(number >= run->slot_count || !run->plain_splits))
        return NOT_PLAIN;
    struct replay_slot *slot = &run->slots[number];
    if (UNLIKELY(slot_life(slot) != SLOT_FREE_REQUESTED))
        return NOT_PLAIN;
    slot->state = SLOT_UNUSED;
    return DONE;
}

AR_INLINE enum shortcut plain_time(struct replay *run, const struct trace_event *event,
                                   const enum measured measured)
{
    uint64_t before_ns = run->time_ns, time_ns = event->value;
    if (UNLIKELY(!run->plain_times))
        return NOT_PLAIN;
    if (LIKELY(time_ns > before_ns)) {
        if (measured == BY_TIME)
            exact_tick(&run->exact, time_ns - before_ns);
        run->time_ns = time_ns;
    }
    return UNLIKELY(run->device->failed) ? DEVICE_FAILED : DONE;
}

AR_INLINE enum shortcut plain_kernel(struct replay *run, const struct trace_event *event)
{
    if (UNLIKELY(!run->plain_kernels))
        return NOT_PLAIN;
    run->kernel(run->device, event->stream, event->value);
    return UNLIKELY(run->device->failed) ? DEVICE_FAILED : DONE;
}

/* The rest of a plain event whose call failed. */
static __attribute__((noinline, cold)) enum ar_status plain_end(struct replay *run,
                                                                const struct trace_event *event,
                                                                enum shortcut what,
                                                                struct ar_error *error)
{
    switch (what) {
    case ALLOC_FAILED:
        if (run->keeps_state)
            note_pause(run);
        run->request = run->plain;
        return replay_settle_request(run, event, &run->slots[event->slot], run->status, error);
    case GRANTED_LESS:
        return replay_broken(run, event, AR_CORRUPT, REPLAY_GRANTED_LESS, error);
    case FREE_FAILED:
        return replay_broken(run, event, run->status, REPLAY_FREE_FAILED, error);
    default:
        return AR_INVALID; /* replay_go reports what the device says */
    }
}

/* An event without a shortcut, or whose shortcut did not end well. False: the run stops, after it
 * or, with another status than OK, in it. */
static __attribute__((noinline)) bool slow_event(struct replay *run,
                                                 const struct trace_event *event,
                                                 enum shortcut what, enum ar_status *status,
                                                 struct ar_error *error)
{
    *status =
        what == NOT_PLAIN ? replay_event(run, event, error) : plain_end(run, event, what, error);
    pauses_begin(&run->pauses, run->device);
    return *status == AR_OK && !run->stop;
}

AR_INLINE bool play_one(struct replay *run, const struct trace_event *event,
                        const enum measured measured, enum ar_status *status,
                        struct ar_error *error)
{
    uint64_t head = head_of(event);
    enum shortcut what = NOT_PLAIN;
    if (head == PLAIN_ALLOC)
        what = plain_alloc(run, event, measured);
    else if (head == PLAIN_FREE)
        what = plain_free(run, event, measured, SLOT_UNUSED);
    else if (head == PLAIN_TIME)
        what = plain_time(run, event, measured);
    else if ((uint8_t)head == TRACE_KERNEL)
        what = plain_kernel(run, event);
    else if (head == PLAIN_NOTE)
        what = DONE;
    else if (head == PLAIN_COMPLETED)
        what = plain_completed(run, event);
    else if (head == PLAIN_REQUESTED && run->plain_splits)
        what = plain_free(run, event, measured, SLOT_FREE_REQUESTED);
    return LIKELY(what == DONE) || slow_event(run, event, what, status, error);
}

/* Sets `*done` to the number of events replayed, less than `count` if the run stops early. The
 * loop tests for the end once for two events; if the count is odd, the first event takes the slow
 * path. */
AR_INLINE enum ar_status play_span(struct replay *run, size_t count, size_t *done,
                                   const enum measured measured, struct ar_error *error)
{
    const struct trace_event *event = run->span, *end = event + count;
    enum ar_status status = AR_OK;
    if (count % 2 == 0 || slow_event(run, event, NOT_PLAIN, &status, error)) {
        event += count % 2;
        while (event != end) {
            if (UNLIKELY(!play_one(run, event, measured, &status, error)))
                break;
            if (UNLIKELY(!play_one(run, event + 1, measured, &status, error))) {
                event++;
                break;
            }
            event += 2;
        }
    }
    *done = (size_t)(event - run->span) + (event != end && status == AR_OK);
    return status;
}

static enum ar_status span_lean(struct replay *run, size_t count, size_t *done,
                                struct ar_error *error)
{
    return play_span(run, count, done, NOTHING, error);
}

static enum ar_status span_reserved(struct replay *run, size_t count, size_t *done,
                                    struct ar_error *error)
{
    return play_span(run, count, done, RESERVED, error);
}

static enum ar_status span_by_bytes(struct replay *run, size_t count, size_t *done,
                                    struct ar_error *error)
{
    return play_span(run, count, done, BY_BYTES, error);
}

static enum ar_status span_by_time(struct replay *run, size_t count, size_t *done,
                                   struct ar_error *error)
{
    return play_span(run, count, done, BY_TIME, error);
}

static enum ar_status span_watched(struct replay *run, size_t count, size_t *done,
                                   struct ar_error *error)
{
    const struct trace_event *event = run->span, *end = event + count;
    enum ar_status status = AR_OK;
    while (event != end && !run->stop) {
        run->weight = 0;
        if (run->config->tap)
            tap_at_event(run->config->tap, replay_event_number(run, event));
        status = replay_event(run, event, error);
        if (status == AR_OK && run->wants_samples)
            status = replay_sample_take(run, event, error);
        if (status != AR_OK)
            break;
        event++;
    }
    *done = (size_t)(event - run->span);
    return status;
}

enum ar_status replay_go(struct replay *run, struct ar_error *error)
{
    const struct replay_config *config = run->config;
    enum ar_status (*body)(struct replay *, size_t, size_t *, struct ar_error *) =
        run->watched                                 ? span_watched
        : run->keeps_state && run->by_time           ? span_by_time
        : run->keeps_state                           ? span_by_bytes
        : config->measure == REPLAY_METRICS_RESERVED ? span_reserved
                                                     : span_lean;
    while (!run->stop) {
        size_t count, done;
        enum ar_status status = trace_next(config->source, &run->span, &count, error);
        run->exact.stale = true; /* between spans a tenant or a twin may call the policy */
        run->policy_alloc = run->policy->ops->alloc;
        run->policy_free = run->policy->ops->free;
        if (status != AR_OK || !count)
            return status;
        status = body(run, count, &done, error);
        run->span_first += done;
        if (UNLIKELY(run->device->failed)) {
            replay_driver_failed(run, status != AR_OK);
            return AR_OK;
        }
        if (status != AR_OK)
            return status;
    }
    return AR_OK;
}

/* advance() may pass less than it was given, because a recorded gap contains the launches since the
 * last one. The loop passes the rest. */
void replay_wait_until(struct ar_device *device, uint64_t time_ns)
{
    uint64_t now_ns;
    while (!device->failed && (now_ns = device->ops->now(device)) < time_ns)
        device->ops->advance(device, time_ns - now_ns);
}

/* Settings that this trace or device does not support. */
static enum ar_status check_config(const struct replay_config *config, struct ar_error *error)
{
    const struct trace_info *info = &config->source->info;
    if (config->host == REPLAY_HOST_OPEN && !info->has_times)
        return ar_invalid(error,
                          "%s: host open wants a trace with recorded times (t events), and this "
                          "one has none; use host none",
                          info->name);
    const struct ar_device_ops *ops = config->device->ops;
    if (config->verify && (!ops->fill || !ops->verify || !ops->wrong))
        return ar_error_set(error, AR_UNSUPPORTED,
                            "verify wants a device with memory to fill and read, and %s has none",
                            config->device->props.kind);
    return AR_OK;
}

/* What the loop must do at each event. A run is watched, so that each event goes through events.c,
 * if
 * - an observer wants rows, samples or calls, or a source wants answers,
 * - streams must be ordered,
 * - host times of calls or response times are measured, or the device charges the host's own time,
 * - blocks have contents, or lengths of kernels follow from their operands (contents.c),
 * - pauses are measured on a real clock, which is read around each call. */
static void decide(struct replay *run)
{
    const struct replay_config *config = run->config;
    const struct trace_info *info = &config->source->info;
    bool exact = config->measure == REPLAY_METRICS_EXACT;
    run->follow_up = run->wants_calls || run->pauses.responses /* host open */ ||
                     (run->device->ops->requested && !config->timeless);
    run->watched = run->wants_rows || run->wants_samples || info->adaptive || run->orders_streams ||
                   run->latency || run->follow_up || replay_contents_used(run) ||
                   (exact && !run->device->clock_ns);
    run->keeps_state = exact || run->watched;
    run->kernel = run->device->ops->kernel;
    run->plain_times = run->by_time && config->host == REPLAY_HOST_NONE;
    run->plain_kernels = !run->has_kernel_ops && !run->asks_lengths && !run->verify;
    run->plain_splits = !run->at_completion && !run->free_requested_ends;
}

static enum ar_status begin(struct replay *run, const struct replay_config *config,
                            struct ar_error *error)
{
    const struct trace_info *info = &config->source->info;
    const struct ar_policy_ops *ops = config->policy->ops;
    *run = (struct replay){
        .config = config,
        .policy = config->policy,
        .device = config->device,
        .clock_ns = config->device->clock_ns,
        .pinned.policy = config->pinned,
        .at_completion = config->frees == REPLAY_RECORDED && info->has_split_frees,
        .by_time = info->has_times,
        .steps_expected = info->counted ? info->steps : 0,
        .opened_ns = config->device->ops->now(config->device),
        .stream_ordered = ops->capabilities & AR_POLICY_STREAM_ORDERED,
        .free_requested_ends = info->counted && !info->has_split_frees,
        .orders_streams = config->frees == REPLAY_ORDERED && trace_uses_streams(info) &&
                          !(ops->capabilities & AR_POLICY_OVERLAPS), /* has no real memory */
    };
    exact_begin(&run->exact, config->policy, config->unit_bytes);
    AR_TRY(check_config(config, error));
    if (pauses_open(&run->pauses, config->device, config->host == REPLAY_HOST_OPEN) != AR_OK)
        return ar_no_memory(error, "histograms");
    if (info->slots) {
        const struct trace_event last = {.slot = info->slots - 1};
        AR_TRY(replay_slots_grow(run, &last, error));
    }
    steps_begin(&run->steps, config->device);
    if (config->measure_time && !(run->latency = latency_open(config->device)))
        return ar_no_memory(error, "histograms");
    AR_TRY(replay_contents_open(run, error));
    replay_observe_begin(run);
    decide(run);
    return AR_OK;
}

enum ar_status replay_open(const struct replay_config *config, struct replay **out,
                           struct ar_error *error)
{
    struct replay *run = malloc(sizeof *run);
    AR_TRY_MEMORY(run, error, "a replay");
    enum ar_status status = begin(run, config, error);
    if (status == AR_OK)
        *out = run;
    else
        replay_discard(run);
    return status;
}

bool replay_stopped(const struct replay *run)
{
    return run->stop;
}

bool replay_has_failed(const struct replay *run)
{
    return run->failed;
}

const struct ar_policy_block *replay_block(const struct replay *run, size_t slot)
{
    return slot < run->slot_count && run->slots[slot].state == SLOT_LIVE ? &run->slots[slot].block
                                                                         : NULL;
}

enum ar_status replay_end(struct replay *run, struct replay_result *result, struct ar_error *error)
{
    memset(result, 0, sizeof *result);
    enum ar_status status = replay_check_end(run, error);
    if (run->verify && !run->device->failed)
        AR_THEN(status, verify_end(run, error));
    AR_THEN(status, replay_report(run, result, error));
    if (run->latency)
        AR_THEN(status, observer_latencies(run->config->observer, run->latency, error));
    replay_discard(run);
    return status;
}

void replay_discard(struct replay *run)
{
    if (!run)
        return;
    exact_end(&run->exact, run->policy);
    steps_close(&run->steps);
    latency_close(run->latency);
    pauses_close(&run->pauses);
    replay_contents_close(run);
    free(run->slots);
    free(run->choices);
    free(run->uses);
    free(run);
}

enum ar_status replay_run(const struct replay_config *config, struct replay_result *result,
                          struct ar_error *error)
{
    struct replay *run;
    memset(result, 0, sizeof *result);
    AR_TRY(replay_open(config, &run, error));
    enum ar_status status = replay_go(run, error);
    if (status == AR_OK)
        return replay_end(run, result, error);
    replay_discard(run);
    return status;
}

void replay_result_close(struct replay_result *result)
{
    free(result->step_end_ns);
    result->step_end_ns = NULL;
    result->steps = 0;
}
