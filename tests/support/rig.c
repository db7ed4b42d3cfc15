#include "tests/support/rig.h"

#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

static enum ar_status keep_row(void *argument, const struct replay_row *row, struct ar_error *error)
{
    struct rig *rig = argument;
    assert_true(rig->row_count < RIG_MOST);
    rig->rows[rig->row_count++] = *row;
    return AR_OK;
}

static enum ar_status keep_sample(void *argument, const struct replay_sample *sample,
                                  struct ar_error *error)
{
    struct rig *rig = argument;
    assert_true(rig->sample_count < RIG_MOST);
    rig->samples[rig->sample_count++] = *sample;
    return AR_OK;
}

void rig_open(struct rig *rig, const char *policy, uint64_t cap_bytes, const char *events)
{
    struct ar_spec spec;
    memset(rig, 0, sizeof *rig);
    rig->device = fake_device_open(cap_bytes);
    assert_non_null(rig->device);
    rig->context =
        (struct ar_policy_context){.backing = rig->device->base.backing, .host = &rig->host};
    if (ar_spec_parse(policy, &spec, &rig->error) ||
        registry_create(&spec, &rig->context, &rig->policy, &rig->error))
        fail_msg("%s", rig->error.text);
    ar_spec_close(&spec);
    rig->source = tiny_trace(events);
    rig->observer = (struct observer){.row = keep_row, .sample = keep_sample, .argument = rig};
    rig->config = (struct replay_config){
        .policy = rig->policy,
        .device = &rig->device->base,
        .source = rig->source,
        .measure = REPLAY_METRICS_EXACT,
        .policy_host = &rig->host,
        .observer = &rig->observer,
    };
}

void rig_run(struct rig *rig)
{
    if (replay_run(&rig->config, &rig->result, &rig->error))
        fail_msg("%s", rig->error.text);
}

void rig_close(struct rig *rig)
{
    replay_result_close(&rig->result);
    trace_close(rig->source);
    ar_policy_destroy(rig->policy);
    fake_device_close(rig->device);
}

double rig_metric(const struct rig *rig, enum metric metric)
{
    return metric_number(&rig->result.metrics, metric, -1);
}
