#include "tests/support/experiment_rig.h"

#include "tests/support/test.h"
#include "workloads/workload.h"

void experiment_rig_over(struct experiment_rig *rig, const char *policy, const char *device,
                         struct trace_source *source)
{
    memset(rig, 0, sizeof *rig);
    rig->source = source;
    if (ar_spec_parse(policy, &rig->policy, &rig->error) ||
        ar_spec_parse(device, &rig->device, &rig->error))
        fail_msg("%s", rig->error.text);
    rig->experiment = (struct experiment){
        .policy = &rig->policy,
        .device = &rig->device,
        .source = source,
        .measure = REPLAY_METRICS_EXACT,
        .seed = 1,
    };
}

void experiment_rig_open(struct experiment_rig *rig, const char *policy, const char *device,
                         const char *workload)
{
    struct trace_source *source;
    assert_ok(workload_open(workload, &source, &test_error));
    experiment_rig_over(rig, policy, device, source);
}

void experiment_rig_run(struct experiment_rig *rig)
{
    if (experiment_run(&rig->experiment, &rig->result, &rig->props, &rig->error))
        fail_msg("%s", rig->error.text);
}

void experiment_rig_close(struct experiment_rig *rig)
{
    replay_result_close(&rig->result);
    trace_close(rig->source);
    ar_spec_close(&rig->policy);
    ar_spec_close(&rig->device);
}
