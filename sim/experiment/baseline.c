#include "allocators/base/array.h"
#include "sim/experiment/session.h"
#include "sim/replay/kernel_ops.h"
#include "sim/replay/timing.h"

struct timeline {
    struct ar_device *device;
    enum replay_host host;
    uint64_t time_ns, opened_ns;
    struct steps steps;
    struct trace_source *source;
    bool follows, lengths; /* see kernel_ops.h */
    struct kernel_ops kernel_ops;
    struct ar_device_operand *blocks; /* by slot */
    size_t block_count;
    /* On a device that has memory. */
    bool has_kernel_ops;
    struct arena arena;
    uint64_t arena_address;
};

static void memory_of(const void *argument, uint64_t number, struct ar_device_operand *out)
{
    *out = ((const struct timeline *)argument)->blocks[number];
}

static enum ar_status request(struct timeline *timeline, const struct trace_event *event,
                              struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(timeline->blocks, timeline->block_count, event->slot), error,
                  "a baseline");
    bool wants = arena_wants(timeline->source, event);
    timeline->blocks[event->slot] = (struct ar_device_operand){
        .address = timeline->arena_address +
                   (wants && timeline->has_kernel_ops ? timeline->arena.offsets[event->id] : 0),
        .bytes = wants ? event->value : 0};
    if (kernel_ops_requested(&timeline->kernel_ops, event->id, event->slot) != AR_OK)
        return ar_no_memory(error, "a baseline");
    return AR_OK;
}

static enum ar_status at_kernel(const struct timeline *timeline, enum ar_status status,
                                struct ar_error *error)
{
    return status == AR_OK ? AR_OK
                           : ar_error_prefix(error, status, "%s: baseline, a kernel",
                                             timeline->source->info.name);
}

/* A kernel without an operation. */
static enum ar_status timed_kernel(struct timeline *timeline, const struct trace_event *event,
                                   struct ar_error *error)
{
    uint64_t ns = event->value;
    enum ar_status status =
        timeline->lengths ? kernel_ops_length(&timeline->kernel_ops, event, &ns, error) : AR_OK;
    if (status == AR_OK)
        timeline->device->ops->kernel(timeline->device, event->stream, ns);
    return at_kernel(timeline, status, error);
}

static enum ar_status kernel(struct timeline *timeline, const struct trace_event *event,
                             struct ar_error *error)
{
    if (!timeline->has_kernel_ops)
        return timed_kernel(timeline, event, error);
    enum ar_status status = kernel_ops_kernel(&timeline->kernel_ops, event, error);
    if (status != AR_OK && timeline->device->ops->problem(timeline->device)[0])
        (void)ar_error_set(error, status, "%s", timeline->device->ops->problem(timeline->device));
    return at_kernel(timeline, status, error);
}

/* Which blocks are live. */
static enum ar_status pass_blocks(struct timeline *timeline, const struct trace_event *event,
                                  struct ar_error *error)
{
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        return request(timeline, event, error);
    case TRACE_FREE_REQUESTED:
    case TRACE_FREE_COMPLETED:
        kernel_ops_freed(&timeline->kernel_ops, event->id);
        return AR_OK;
    default:
        return AR_OK;
    }
}

static enum ar_status pass(struct timeline *timeline, const struct trace_event *event,
                           struct ar_error *error)
{
    struct ar_device *device = timeline->device;
    if (event->kind == TRACE_KERNEL)
        return kernel(timeline, event, error);
    if (event->kind <= TRACE_FREE_COMPLETED)
        return timeline->follows ? pass_blocks(timeline, event, error) : AR_OK;
    switch (event->kind) {
    case TRACE_RECORD:
        device->ops->event_record(device, event->value, event->stream);
        break;
    case TRACE_WAIT:
        device->ops->stream_wait(device, event->stream, event->value);
        break;
    case TRACE_SYNC:
        device->ops->sync(device, event->stream);
        break;
    case TRACE_TIME:
        if (timeline->host == REPLAY_HOST_RECORDED && event->value > timeline->time_ns)
            device->ops->advance(device, event->value - timeline->time_ns);
        AR_RAISE(timeline->time_ns, event->value);
        if (timeline->host == REPLAY_HOST_OPEN)
            replay_wait_until(device, timeline->opened_ns + timeline->time_ns);
        break;
    case TRACE_MARK:
        if (event->flags & TRACE_STEP)
            return steps_end_one(&timeline->steps, device, 0, error);
        break;
    default:
        break;
    }
    return AR_OK;
}

static enum ar_status pass_all(struct timeline *timeline, struct trace_source *source,
                               struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        status = pass(timeline, event, error);
    return status;
}

/* The arena, if kernels work on blocks. REFUSED: there is not enough memory. */
static enum ar_status get_arena(struct timeline *timeline, struct ar_error *error)
{
    struct ar_device *device = timeline->device;
    timeline->kernel_ops = (struct kernel_ops){
        .device = device, .source = timeline->source, .memory = memory_of, .argument = timeline};
    timeline->lengths = kernel_ops_lengths(device);
    timeline->follows = device->ops->kernel_op_ns != NULL;
    if (!kernel_ops_wanted(device))
        return AR_OK;
    enum ar_status status = arena_plan(&timeline->arena, timeline->source, error);
    if (status != AR_OK || !timeline->arena.needed || !timeline->arena.bytes)
        return status;
    timeline->has_kernel_ops = timeline->follows = true;
    status =
        ar_backing_segment_alloc(device->backing, timeline->arena.bytes, &timeline->arena_address);
    if (status != AR_OK && status != AR_REFUSED)
        return ar_error_set(error, status, "%s: baseline, an arena of %" PRIu64 " bytes: %s",
                            timeline->source->info.name, timeline->arena.bytes,
                            device->ops->problem(device));
    return status;
}

static enum ar_status time_all(struct timeline *timeline, struct baseline *out,
                               struct ar_error *error)
{
    struct ar_device *device = timeline->device;
    timeline->opened_ns = device->ops->now(device);
    steps_begin(&timeline->steps, device);
    enum ar_status status = pass_all(timeline, timeline->source, error);
    const struct steps *steps = &timeline->steps;
    if (status == AR_OK) {
        steps_settle(&timeline->steps, device);
        *out = (struct baseline){
            .time_ns = steps_now_ns(device) - steps->begun_ns,
            .steady_ns = steps_steady_ns(steps->end_ns, steps->count, steps->begun_ns),
            .steps = steps->count,
        };
    }
    steps_close(&timeline->steps);
    return status;
}

enum ar_status baseline_run(const struct ar_spec *device, struct trace_source *source,
                            enum replay_host host, struct baseline *out, struct ar_error *error)
{
    struct timeline timeline = {.host = host, .source = source};
    *out = (struct baseline){.time_ns = 0};
    AR_TRY(ar_device_open(device, &timeline.device, error));
    enum ar_status status = get_arena(&timeline, error);
    AR_THEN(status, time_all(&timeline, out, error));
    bool failed = timeline.device->failed;
    kernel_ops_close(&timeline.kernel_ops);
    arena_close(&timeline.arena);
    free(timeline.blocks);
    if (timeline.device->failed) {
        snprintf(out->problem, sizeof out->problem, "%s",
                 timeline.device->ops->problem(timeline.device));
        status = AR_OK;
    }
    ar_device_close(timeline.device);
    if (status != AR_REFUSED && !failed)
        return status;
    *out = (struct baseline){.time_ns = 0};
    return AR_OK;
}

void baseline_report(const struct baseline *baseline, struct replay_result *result)
{
    struct metric_values *metrics = &result->metrics;
    if (baseline->problem[0]) {
        result->passed = false;
        result->cause = REPLAY_CAUSE_DRIVER;
        snprintf(result->problem, sizeof result->problem, "without an allocator: %.480s",
                 baseline->problem);
        return;
    }
    metric_set_ratio(metrics, METRIC_slowdown, metric_number(metrics, METRIC_device_time_ns, 0),
                     (double)baseline->time_ns);
    if (baseline->steps && baseline->steps == result->steps)
        metric_set_ratio(
            metrics, METRIC_steady_slowdown,
            (double)steps_steady_ns(result->step_end_ns, result->steps, result->begun_ns),
            (double)baseline->steady_ns);
}

/* ---- arena ---------------------------------------------------------------------------------- */

#define POLICY "first-fit:granule=512" /* the alignment that kernels may need */
#define DEVICE "sim:profile=bump"

struct planning {
    struct arena *arena;
    struct trace_source *source;
    struct session session;
    struct ar_policy_block *blocks; /* by slot; granted_bytes 0: none */
    size_t block_count, room;       /* `room`: of the offsets */
};

static enum ar_status grow(struct planning *plan, const struct trace_event *event,
                           struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(plan->blocks, plan->block_count, event->slot) &&
                      ar_array_make_room(&plan->arena->offsets, plan->arena->count, &plan->room,
                                         sizeof *plan->arena->offsets),
                  error, "the places of blocks");
    return AR_OK;
}

bool arena_wants(struct trace_source *source, const struct trace_event *event)
{
    return event->value &&
           trace_attributes_of(source, event->attributes)->space != TRACE_SPACE_PINNED;
}

static enum ar_status place_block(struct planning *plan, const struct trace_event *event,
                                  struct ar_error *error)
{
    AR_TRY(grow(plan, event, error));
    struct arena *arena = plan->arena;
    struct ar_policy_block *block = &plan->blocks[event->slot];
    *block = (struct ar_policy_block){.granted_bytes = 0};
    arena->offsets[arena->count++] = ARENA_NOWHERE;
    if (!arena_wants(plan->source, event))
        return AR_OK;
    const struct ar_policy_request request = {.bytes = event->value};
    enum ar_status status = ar_policy_alloc(plan->session.policy, &request, block);
    if (status != AR_OK)
        return ar_error_set(error, status,
                            "%s: block %" PRIu64 " of %" PRIu64
                            " bytes finds no place in an arena without a bound",
                            plan->source->info.name, event->id, event->value);
    arena->offsets[arena->count - 1] = block->address;
    AR_RAISE(arena->bytes, block->address + block->granted_bytes);
    return AR_OK;
}

static enum ar_status free_requested(struct planning *plan, const struct trace_event *event)
{
    struct ar_policy_block *block = &plan->blocks[event->slot];
    if (!block->granted_bytes)
        return AR_OK;
    enum ar_status status = ar_policy_free(plan->session.policy, block, 0);
    block->granted_bytes = 0;
    return status;
}

static bool is_kernel_op(struct trace_source *source, const struct trace_event *event)
{
    const char *rest = trace_attributes_of(source, event->attributes)->rest;
    return rest && strstr(rest, "op=");
}

static enum ar_status read_all(struct planning *plan, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = plan->source};
    enum ar_status status = trace_rewind(plan->source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;) {
        if (trace_requests(event))
            status = place_block(plan, event, error);
        else if (event->kind == TRACE_FREE_REQUESTED || event->kind == TRACE_FREE_COMPLETED)
            status = free_requested(plan, event);
        else if (event->kind == TRACE_KERNEL && !plan->arena->needed)
            plan->arena->needed = is_kernel_op(plan->source, event);
    }
    return status;
}

enum ar_status arena_plan(struct arena *arena, struct trace_source *source, struct ar_error *error)
{
    struct planning plan = {.arena = arena, .source = source};
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0}, device = {0};
    *arena = (struct arena){.offsets = NULL};
    AR_TRY(ar_spec_parse(POLICY, &policy, error));
    AR_TRY(ar_spec_parse(DEVICE, &device, error));
    AR_TRY(session_open(&plan.session, &policy, &device, 0, NULL, error));
    enum ar_status status = read_all(&plan, error);
    session_close(&plan.session);
    free(plan.blocks);
    if (status != AR_OK)
        arena_close(arena);
    return status;
}

void arena_close(struct arena *arena)
{
    free(arena->offsets);
    *arena = (struct arena){.offsets = NULL};
}
