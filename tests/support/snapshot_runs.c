#include "tests/support/snapshot_runs.h"

#include "sim/fidelity/fidelity.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"

static enum ar_status at_the_end(void *argument, const struct ar_policy *policy,
                                 struct ar_error *error)
{
    FILE *nowhere = fopen("/dev/null", "wb");
    assert_non_null(nowhere);
    enum ar_status status = run_snapshot_write(argument, policy, nowhere, error);
    fclose(nowhere);
    return status;
}

void snapshot_run(struct run_snapshot *out, const char *policy, const char *workload)
{
    struct experiment_rig rig;
    const struct observer observer = {
        .memory = run_snapshot_observe, .finished = at_the_end, .argument = out};
    run_snapshot_open(out, "run");
    experiment_rig_open(&rig, policy, "sim", workload);
    rig.experiment.observer = &observer;
    experiment_rig_run(&rig);
    experiment_rig_close(&rig);
    assert_true(out->image.entry_count && out->image.block_count);
}

struct trace_source *snapshot_open(const char *path, const uint32_t *device, const char *what)
{
    struct trace_source *source;
    if (device ? trace_open_device(path, *device, false, &source, &test_error)
               : trace_open(path, &source, &test_error))
        fail_msg("%s: %s", what, test_error.text);
    assert_string_equal(source->info.format, "snapshot");
    return source;
}

void snapshot_check_agrees(struct trace_source *source, const char *what)
{
    CLOSED(ar_spec_close) struct ar_spec policy;
    CLOSED(fidelity_result_close) struct fidelity_result result;
    char text[1024];
    if (fidelity_default_spec(&source->info, text, sizeof text, &test_error) ||
        ar_spec_parse(text, &policy, &test_error))
        fail_msg("%s: %s", what, test_error.text);
    const struct fidelity config = {.policy = &policy, .source = source, .seed = 1};
    if (fidelity_run(&config, &result, &test_error))
        fail_msg("%s: %s", what, test_error.text);
    if (result.difference.found)
        fail_msg("%s: event %" PRIu64 ": the policy %s, the recording %s", what,
                 result.difference.event, result.difference.policy, result.difference.recording);
    assert_true(result.agrees && result.rows && result.end_blocks);
    assert_int_equal(result.rows, result.rows_met);
    assert_int_equal(result.end_blocks, result.end_blocks_met);
}

void snapshot_check_comes_back(struct trace_source *source, const char *path, const char *what)
{
    if (format_write(&format_writer_snapshot, source, path, false, &test_error))
        fail_msg("%s: %s", what, test_error.text);
    CLOSED(close_trace) struct trace_source *again = snapshot_open(path, NULL, what);
    if (memcmp(source->info.sha256, again->info.sha256, sizeof source->info.sha256) != 0)
        fail_msg("%s: written as a snapshot and read it is another trace", what);
}
