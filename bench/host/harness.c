#include "bench/host/harness.h"

#include <math.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/statistics/statistics.h"
#include "sim/replay.h"
#include "workloads/trace/event.h"
#include "workloads/workload.h"

struct bout {
    const struct harness_config *config;
    struct trace_source *source;
    struct launches launches;
    struct replay_result last; /* of the engine */
    double *step_ns;           /* room for the steps of a run */
    uint64_t *mark_ns;
    struct ar_error *error;
};

/* ---- statistics ------------------------------------------------------------------------------ */

double harness_median(double *values, size_t count)
{
    if (!count)
        return 0;
    statistic_sort(values, count);
    return statistic_middle(values, count);
}

void harness_interval(double *values, size_t count, double *least, double *most, double *confidence)
{
    struct statistic statistic = statistic_of(values, count);
    /* Too few for the usual level: from the least to the most, at the level which that has. */
    *least = statistic.has_interval ? statistic.low : statistic.least;
    *most = statistic.has_interval ? statistic.high : statistic.most;
    *confidence = statistic.has_interval ? statistic.level : 1 - exp2(1 - (double)count);
}

/* Of the steps from the middle on; `end_ns` has the end of each. */
static double steady_ns(struct bout *bout, const uint64_t *end_ns, uint64_t begun_ns,
                        uint64_t steps)
{
    size_t count = 0;
    for (uint64_t i = steps / 2; i < steps; i++)
        bout->step_ns[count++] = (double)(end_ns[i] - (i ? end_ns[i - 1] : begun_ns));
    return harness_median(bout->step_ns, count);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* One run of the engine with a new policy; its result stays in the bout. */
static enum ar_status run_engine(struct bout *bout)
{
    const struct harness_config *config = bout->config;
    struct ar_host host = {0};
    struct ar_policy_context context = {
        .backing = config->device->backing, .host = &host, .unguarded = true};
    struct ar_policy *policy = NULL;
    replay_result_close(&bout->last);
    AR_TRY(trace_rewind(bout->source, bout->error));
    AR_TRY(registry_create(config->policy, &context, &policy, bout->error));
    struct replay_config replay = {
        .policy = policy, .device = config->device, .source = bout->source, .policy_host = &host};
    enum ar_status status = replay_run(&replay, &bout->last, bout->error);
    config->device->ops->sync(config->device, TRACE_NO_STREAM);
    ar_policy_destroy(policy);
    if (status == AR_OK && !bout->last.passed)
        status = ar_error_set(bout->error, AR_NEGATIVE,
                              "event %llu of %s could not be served; give the card to this alone, "
                              "or take a smaller workload",
                              (unsigned long long)bout->last.first_failed_event, config->workload);
    return status;
}

static enum ar_status time_engine(struct bout *bout, double *ns)
{
    AR_TRY(run_engine(bout));
    *ns = steady_ns(bout, bout->last.step_end_ns, bout->last.begun_ns, bout->last.steps);
    return AR_OK;
}

/* The marks are those of the engine: one at the beginning, one at the end of each step. */
static enum ar_status time_loop(struct bout *bout, double *ns)
{
    AR_TRY(launches_run(&bout->launches, bout->config->device, bout->mark_ns, bout->error));
    *ns = steady_ns(bout, bout->mark_ns + 1, bout->mark_ns[0], bout->last.steps);
    return AR_OK;
}

/* Rule 1. */
static enum ar_status prepare(struct bout *bout)
{
    struct ar_device *device = bout->config->device;
    struct launch_recorder recorder;
    launches_record(&recorder, &bout->launches, device);
    enum ar_status status = run_engine(bout);
    enum ar_status ended = launches_end(&recorder, device, status == AR_OK ? bout->error : NULL);
    AR_THEN(status, ended);
    AR_TRY(status);
    if (bout->last.steps < 2 || bout->launches.marks < bout->last.steps + 1)
        return ar_invalid(bout->error,
                          "%s: at least two steps are needed, that is, marks called \"step\"",
                          bout->config->workload);
    bout->step_ns = calloc((size_t)bout->last.steps, sizeof *bout->step_ns);
    bout->mark_ns = calloc(bout->launches.marks, sizeof *bout->mark_ns);
    AR_TRY_MEMORY(bout->step_ns && bout->mark_ns, bout->error, "%llu steps",
                  (unsigned long long)bout->last.steps);
    return launches_fix(&bout->launches, device, bout->error);
}

/* Rule 2. */
static enum ar_status run_block(struct bout *bout, struct harness_block *block)
{
    AR_TRY(time_engine(bout, &block->engine_ns[0]));
    AR_TRY(time_loop(bout, &block->loop_ns[0]));
    AR_TRY(time_loop(bout, &block->loop_ns[1]));
    AR_TRY(time_engine(bout, &block->engine_ns[1]));
    double loop_ns = block->loop_ns[0] + block->loop_ns[1];
    if (loop_ns <= 0)
        return ar_invalid(bout->error, "%s: its steps take no time", bout->config->workload);
    block->added = (block->engine_ns[0] + block->engine_ns[1]) / loop_ns - 1;
    return AR_OK;
}

/* Rule 3. */
static enum ar_status conclude(const struct bout *bout, struct harness_result *result)
{
    size_t count = result->block_count;
    double *values = calloc(2 * count, sizeof *values);
    AR_TRY_MEMORY(values, bout->error, "%zu blocks", count);
    for (size_t i = 0; i < count; i++)
        memcpy(&values[2 * i], result->blocks[i].engine_ns, sizeof result->blocks[i].engine_ns);
    result->engine_ns = harness_median(values, 2 * count);
    for (size_t i = 0; i < count; i++)
        memcpy(&values[2 * i], result->blocks[i].loop_ns, sizeof result->blocks[i].loop_ns);
    result->loop_ns = harness_median(values, 2 * count);
    for (size_t i = 0; i < count; i++)
        values[i] = result->blocks[i].added;
    result->added = harness_median(values, count);
    harness_interval(values, count, &result->least, &result->most, &result->confidence);
    free(values);
    result->steps = bout->last.steps;
    result->kernel_ops = bout->launches.kernel_op_count;
    result->kernels = bout->launches.kernels;
    result->fixed_bytes = bout->launches.fixed_bytes;
    return AR_OK;
}

static enum ar_status measure(struct bout *bout, struct harness_result *result)
{
    const struct harness_config *config = bout->config;
    double warm_ns;
    if (!config->blocks)
        return ar_invalid(bout->error, "0 blocks of runs: choose at least 1");
    result->blocks = calloc(config->blocks, sizeof *result->blocks);
    AR_TRY_MEMORY(result->blocks, bout->error, "%u blocks", config->blocks);
    enum ar_status status = workload_open_single(config->workload, &bout->source, bout->error);
    AR_THEN(status, prepare(bout));
    AR_THEN(status, time_loop(bout, &warm_ns));
    AR_THEN(status, time_engine(bout, &warm_ns));
    for (unsigned i = 0; status == AR_OK && i < config->blocks; i++) {
        status = run_block(bout, &result->blocks[i]);
        result->block_count = i + 1;
    }
    return status == AR_OK ? conclude(bout, result) : status;
}

enum ar_status harness_measure(const struct harness_config *config, struct harness_result *result,
                               struct ar_error *error)
{
    struct bout bout = {.config = config, .error = error};
    *result = (struct harness_result){0};
    enum ar_status status = measure(&bout, result);
    launches_close(&bout.launches, config->device);
    replay_result_close(&bout.last);
    trace_close(bout.source);
    free(bout.step_ns);
    free(bout.mark_ns);
    if (status != AR_OK)
        harness_close(result);
    return status;
}

void harness_close(struct harness_result *result)
{
    free(result->blocks);
    *result = (struct harness_result){0};
}

/* ---- launches -------------------------------------------------------------------------------- */

#define PLACE_BYTES (2 * AR_MIB) /* operands keep their place within it */

/* ---- recording ------------------------------------------------------------------------------- */

static void add(struct launches *self, enum launch_kind kind, uint32_t stream, uint64_t value)
{
    struct launch launch = {kind, stream, value};
    if (!AR_ARRAY_ADD(self->items, self->count, self->room, launch)) {
        self->lost = true;
        return;
    }
    self->marks += kind == LAUNCH_MARK;
    self->kernels += kind == LAUNCH_KERNEL;
}

/* The table that the device has now is the first member of the recorder. */
static struct launch_recorder *recorder_of(const struct ar_device *device)
{
    return (struct launch_recorder *)device->ops;
}

static void record_kernel(struct ar_device *device, uint32_t stream, uint64_t nanoseconds)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_KERNEL, stream, nanoseconds);
    recorder->device_ops->kernel(device, stream, nanoseconds);
}

static void record_event(struct ar_device *device, uint64_t event, uint32_t stream)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_RECORD, stream, event);
    recorder->device_ops->event_record(device, event, stream);
}

static void record_wait(struct ar_device *device, uint32_t stream, uint64_t event)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_WAIT, stream, event);
    recorder->device_ops->stream_wait(device, stream, event);
}

static void record_sync(struct ar_device *device, uint32_t stream)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_SYNC, stream, 0);
    recorder->device_ops->sync(device, stream);
}

static uint64_t record_mark(struct ar_device *device)
{
    struct launch_recorder *recorder = recorder_of(device);
    add(recorder->launches, LAUNCH_MARK, 0, 0);
    return recorder->device_ops->mark(device);
}

/* Work that the device refused is no part of the program. */
static enum ar_status record_kernel_op(struct ar_device *device, const struct ar_kernel_op *op)
{
    struct launch_recorder *recorder = recorder_of(device);
    struct launches *self = recorder->launches;
    AR_TRY(recorder->device_ops->kernel_op(device, op));
    if (AR_ARRAY_ADD(self->kernel_ops, self->kernel_op_count, self->kernel_op_room, *op))
        add(self, LAUNCH_WORK, op->stream, self->kernel_op_count - 1);
    else
        self->lost = true;
    return AR_OK;
}

void launches_record(struct launch_recorder *recorder, struct launches *launches,
                     struct ar_device *device)
{
    *recorder = (struct launch_recorder){
        .ops = *device->ops, .device_ops = device->ops, .launches = launches};
    recorder->ops.kernel = record_kernel;
    recorder->ops.event_record = record_event;
    recorder->ops.stream_wait = record_wait;
    recorder->ops.sync = record_sync;
    recorder->ops.mark = record_mark;
    if (device->ops->kernel_op)
        recorder->ops.kernel_op = record_kernel_op;
    device->ops = &recorder->ops;
}

enum ar_status launches_end(struct launch_recorder *recorder, struct ar_device *device,
                            struct ar_error *error)
{
    device->ops = recorder->device_ops;
    if (recorder->launches->lost)
        return ar_no_memory(error, "the launches of a run");
    return AR_OK;
}

/* ---- fixing ---------------------------------------------------------------------------------- */

static void visit_operands(struct launches *self,
                           void (*visit)(struct launches *, struct ar_device_operand *))
{
    for (size_t i = 0; i < self->kernel_op_count; i++) {
        struct ar_kernel_op *op = &self->kernel_ops[i];
        if (op->out.bytes)
            visit(self, &op->out);
        for (uint32_t k = 0; k < op->input_count; k++)
            if (op->in[k].bytes)
                visit(self, &op->in[k]);
    }
}

static void add_extent(struct launches *self, struct ar_device_operand *operand)
{
    self->extents[self->extent_count++] =
        (struct launch_extent){.begin = operand->address, .end = operand->address + operand->bytes};
}

/* Neighbours closer than a place are one, so that there are few segments. */
static void join(struct launches *self)
{
    size_t kept = 0;
    AR_ARRAY_SORT(self->extents, self->extent_count, begin);
    for (size_t i = 0; i < self->extent_count; i++) {
        struct launch_extent *last = kept ? &self->extents[kept - 1] : NULL;
        if (last && self->extents[i].begin <= last->end + PLACE_BYTES) {
            AR_RAISE(last->end, self->extents[i].end);
        } else {
            self->extents[kept++] = self->extents[i];
        }
    }
    self->extent_count = kept;
}

static void move_operand(struct launches *self, struct ar_device_operand *operand)
{
    size_t past = ar_array_above(self->extents, self->extent_count, sizeof *self->extents,
                                 offsetof(struct launch_extent, begin), operand->address);
    operand->address += self->extents[past - 1].moved; /* the last that begins no later */
}

enum ar_status launches_fix(struct launches *launches, struct ar_device *device,
                            struct ar_error *error)
{
    size_t most = launches->kernel_op_count * (1 + AR_KERNEL_OP_INPUTS);
    launches->extents = calloc(most ? most : 1, sizeof *launches->extents);
    AR_TRY_MEMORY(launches->extents, error, "%zu operands", most);
    visit_operands(launches, add_extent);
    join(launches);
    for (size_t i = 0; i < launches->extent_count; i++) {
        struct launch_extent *extent = &launches->extents[i];
        uint64_t place = extent->begin % PLACE_BYTES;
        uint64_t bytes = extent->end - extent->begin + 2 * PLACE_BYTES;
        if (ar_backing_segment_alloc(device->backing, bytes, &extent->segment) != AR_OK)
            return ar_error_set(
                error, AR_NO_MEMORY,
                "the device has no %llu bytes more for the hand-written loop; %llu are its already",
                (unsigned long long)bytes, (unsigned long long)launches->fixed_bytes);
        extent->allocated = true;
        extent->moved = ar_size_round_up(extent->segment, PLACE_BYTES) + place - extent->begin;
        launches->fixed_bytes += bytes;
    }
    visit_operands(launches, move_operand);
    return AR_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static enum ar_status launch_all(const struct launches *launches, struct ar_device *device,
                                 uint64_t *marks)
{
    const struct ar_device_ops *ops = device->ops;
    size_t marked = 0;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < launches->count && status == AR_OK; i++) {
        const struct launch *launch = &launches->items[i];
        switch (launch->kind) {
        case LAUNCH_WORK:
            status = ops->kernel_op(device, &launches->kernel_ops[launch->value]);
            break;
        case LAUNCH_KERNEL:
            ops->kernel(device, launch->stream, launch->value);
            break;
        case LAUNCH_RECORD:
            ops->event_record(device, launch->value, launch->stream);
            break;
        case LAUNCH_WAIT:
            ops->stream_wait(device, launch->stream, launch->value);
            break;
        case LAUNCH_SYNC:
            ops->sync(device, launch->stream);
            break;
        case LAUNCH_MARK:
            marks[marked++] = ops->mark(device);
            break;
        }
    }
    return status;
}

enum ar_status launches_run(const struct launches *launches, struct ar_device *device,
                            uint64_t *mark_ns, struct ar_error *error)
{
    enum ar_status status = launch_all(launches, device, mark_ns);
    if (status != AR_OK) {
        device->ops->sync(device, TRACE_NO_STREAM);
        return ar_error_set(error, status, "the hand-written loop could not launch its work: %s",
                            device->ops->problem(device));
    }
    for (size_t i = 0; i < launches->marks; i++)
        mark_ns[i] = device->ops->mark_ns(device, mark_ns[i]);
    device->ops->sync(device, TRACE_NO_STREAM);
    return AR_OK;
}

void launches_close(struct launches *launches, struct ar_device *device)
{
    for (size_t i = 0; i < launches->extent_count; i++)
        if (launches->extents[i].allocated)
            (void)ar_backing_segment_free(device->backing, launches->extents[i].segment);
    free(launches->items);
    free(launches->kernel_ops);
    free(launches->extents);
    *launches = (struct launches){0};
}
