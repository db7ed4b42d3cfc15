/* Each allocation of host memory fails once: the work ends with AR_HOST_MEMORY, or does without.
 * Under ASan nothing is used after it is freed, freed twice or left. */
#include "allocators/registry.h"
#include "allocators/spec.h"
#include "sim/explain/explain.h"
#include "sim/fidelity/fidelity.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/scarce.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/learned/model.h"
#include "workloads/workload.h"

#define SNAPSHOT "tests/golden/data/snapshots/tape_small.pickle.gz"

/* Of `number` only every 7th from 150 on: the rest repeats. */
static void fail_each(enum ar_status (*work)(const void *argument), const void *argument)
{
    unsigned long number = 1;
    for (bool reached = true; reached; number += number < 150 ? 1 : 7) {
        scarce_begin(number, 1);
        enum ar_status status = work(argument);
        reached = scarce_end();
        if (status != AR_OK && (!reached || status != AR_HOST_MEMORY))
            fail_msg("allocation %lu: status %d: %s", number, (int)status, test_error.text);
    }
    assert_true(number > 10);
}

static enum ar_status open_trace(const void *path)
{
    struct trace_source *source = NULL;
    enum ar_status status = trace_open(path, &source, &test_error);
    trace_close(source);
    return status;
}

TEST(readers)
{
    static const char *const paths[] = {
        SNAPSHOT,
        "tests/golden/data/two_gpus.trace",
        "tests/golden/data/kineto/mlp.json.gz",
        "tests/golden/data/jax/step.prof",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        fail_each(open_trace, paths[i]);
}

static enum ar_status compare(const void *given)
{
    struct trace_source *source = (struct trace_source *)(uintptr_t)given;
    char text[1024];
    struct ar_spec policy;
    struct fidelity_result result = {0};
    AR_TRY(fidelity_default_spec(&source->info, text, sizeof text, &test_error));
    AR_TRY(ar_spec_parse(text, &policy, &test_error));
    const struct fidelity config = {.policy = &policy, .source = source, .seed = 1};
    enum ar_status status = fidelity_run(&config, &result, &test_error);
    assert_true(status || result.agrees);
    fidelity_result_close(&result);
    ar_spec_close(&policy);
    return status;
}

static enum ar_status learn(const void *given)
{
    struct trace_source *source = (struct trace_source *)(uintptr_t)given;
    struct learned_model *model = NULL;
    AR_TRY(trace_rewind(source, &test_error));
    AR_TRY(learned_model_make(source, NULL, &model, &test_error));
    learned_model_close(model);
    return AR_OK;
}

TEST(fidelity_and_learning)
{
    static const char *const recordings[] = {
        SNAPSHOT, "tests/golden/data/random/fraction_of_unknown_card.pickle.gz"};
    struct trace_source *source;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        assert_ok(trace_open_recording(recordings[i], &source, &test_error));
        fail_each(compare, source);
        trace_close(source);
    }
    source = trace_rig_source(SNAPSHOT);
    fail_each(learn, source);
    trace_close(source);
}

static enum ar_status explain(const void *given)
{
    const struct experiment *experiment = given;
    struct explain_result result;
    enum ar_status status = explain_failure(experiment, &result, &test_error);
    explain_result_close(&result);
    return status;
}

TEST(explanations)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_open(&rig, "torch", "sim:capacity=40MiB", SNAPSHOT);
    rig.experiment.stop_on_failure = true;
    fail_each(explain, &rig.experiment);
}

/* Too little host memory is never a refusal of the device. */
static void replay_without(const char *policy)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    bool reached = true;
    experiment_rig_open(&rig, policy, "sim", "tests/golden/data/two_gpus.trace:device=1");
    rig.experiment.measure = REPLAY_METRICS_NONE;
    rig.experiment.stop_on_failure = true;
    for (unsigned long number = 1; reached; number++) {
        CLOSED(replay_result_close) struct replay_result result = {0};
        scarce_begin(number, 2); /* a policy tries again */
        enum ar_status status = experiment_run(&rig.experiment, &result, NULL, &test_error);
        reached = scarce_end();
        if (status == AR_OK ? !result.passed : status != AR_HOST_MEMORY)
            fail_msg("%s, allocation %lu: status %d, event %" PRIu64 ": %s", policy, number,
                     (int)status, result.first_failed_event, test_error.text);
    }
}

TEST(policies)
{
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)) != NULL; i++)
        replay_without(ops->name);
    replay_without("torch:expandable_segments=true");
}
