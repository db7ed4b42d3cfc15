#include "bench/host/harness.h"

#include <math.h>
#include <stdlib.h>

#include "allocators/registry.h"
#include "bench/host/launches.h"
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

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double harness_median(double *values, size_t count)
{
    if (!count)
        return 0;
    qsort(values, count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
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
    struct ar_policy_context context = {.backing = config->device->backing, .host = &host};
    struct ar_policy *policy = NULL;
    replay_result_close(&bout->last);
    enum ar_status status = trace_rewind(bout->source, bout->error);
    if (status == AR_OK)
        status = registry_create(config->policy, &context, &policy, bout->error);
    if (status != AR_OK)
        return status;
    struct replay_config replay = {
        .policy = policy, .device = config->device, .source = bout->source, .policy_host = &host};
    status = replay_run(&replay, &bout->last, bout->error);
    config->device->ops->sync(config->device, TRACE_NO_STREAM);
    ar_policy_destroy(policy);
    if (status == AR_OK && !bout->last.passed)
        status =
            ar_error_set(bout->error, AR_NEGATIVE,
                         "event %llu of %s could not be served; give the card to this alone, or "
                         "take a smaller workload",
                         (unsigned long long)bout->last.first_failed_event, config->workload);
    return status;
}

static enum ar_status time_engine(struct bout *bout, double *ns)
{
    enum ar_status status = run_engine(bout);
    if (status == AR_OK)
        *ns = steady_ns(bout, bout->last.step_end_ns, bout->last.begun_ns, bout->last.steps);
    return status;
}

/* The marks are those of the engine: one at the beginning, one at the end of each step. */
static enum ar_status time_loop(struct bout *bout, double *ns)
{
    enum ar_status status =
        launches_run(&bout->launches, bout->config->device, bout->mark_ns, bout->error);
    if (status == AR_OK)
        *ns = steady_ns(bout, bout->mark_ns + 1, bout->mark_ns[0], bout->last.steps);
    return status;
}

/* Rule 1. */
static enum ar_status prepare(struct bout *bout)
{
    struct ar_device *device = bout->config->device;
    struct launch_recorder recorder;
    launches_record(&recorder, &bout->launches, device);
    enum ar_status status = run_engine(bout);
    enum ar_status ended = launches_end(&recorder, device, status == AR_OK ? bout->error : NULL);
    if (status == AR_OK)
        status = ended;
    if (status != AR_OK)
        return status;
    if (bout->last.steps < 2 || bout->launches.marks < bout->last.steps + 1)
        return ar_error_set(bout->error, AR_INVALID,
                            "%s: at least two steps are needed, that is, marks called \"step\"",
                            bout->config->workload);
    bout->step_ns = calloc((size_t)bout->last.steps, sizeof *bout->step_ns);
    bout->mark_ns = calloc(bout->launches.marks, sizeof *bout->mark_ns);
    if (!bout->step_ns || !bout->mark_ns)
        return ar_error_set(bout->error, AR_HOST_MEMORY, "no host memory for %llu steps",
                            (unsigned long long)bout->last.steps);
    return launches_fix(&bout->launches, device, bout->error);
}

/* Rule 2. */
static enum ar_status run_block(struct bout *bout, struct harness_block *block)
{
    enum ar_status status = time_engine(bout, &block->engine_ns[0]);
    if (status == AR_OK)
        status = time_loop(bout, &block->loop_ns[0]);
    if (status == AR_OK)
        status = time_loop(bout, &block->loop_ns[1]);
    if (status == AR_OK)
        status = time_engine(bout, &block->engine_ns[1]);
    if (status != AR_OK)
        return status;
    double loop_ns = block->loop_ns[0] + block->loop_ns[1];
    if (loop_ns <= 0)
        return ar_error_set(bout->error, AR_INVALID, "%s: its steps take no time",
                            bout->config->workload);
    block->added = (block->engine_ns[0] + block->engine_ns[1]) / loop_ns - 1;
    return AR_OK;
}

/* Rule 3. */
static enum ar_status conclude(const struct bout *bout, struct harness_result *result)
{
    size_t count = result->block_count;
    double *values = calloc(2 * count, sizeof *values);
    if (!values)
        return ar_error_set(bout->error, AR_HOST_MEMORY, "no host memory for %zu blocks", count);
    for (size_t i = 0; i < 2 * count; i++)
        values[i] = result->blocks[i / 2].engine_ns[i % 2];
    result->engine_ns = harness_median(values, 2 * count);
    for (size_t i = 0; i < 2 * count; i++)
        values[i] = result->blocks[i / 2].loop_ns[i % 2];
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
        return ar_error_set(bout->error, AR_INVALID, "0 blocks of runs: choose at least 1");
    result->blocks = calloc(config->blocks, sizeof *result->blocks);
    if (!result->blocks)
        return ar_error_set(bout->error, AR_HOST_MEMORY, "no host memory for %u blocks",
                            config->blocks);
    enum ar_status status = workload_open(config->workload, &bout->source, bout->error);
    if (status == AR_OK)
        status = prepare(bout);
    if (status == AR_OK)
        status = time_loop(bout, &warm_ns);
    if (status == AR_OK)
        status = time_engine(bout, &warm_ns);
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
