#include "tests/support/rig.h"

#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

struct rig rig;

static enum ar_status keep_row(void *argument, const struct replay_row *row, struct ar_error *error)
{
    struct rig *self = argument;
    assert_true(self->row_count < RIG_MOST);
    self->rows[self->row_count++] = *row;
    return AR_OK;
}

static enum ar_status keep_sample(void *argument, const struct replay_sample *sample,
                                  struct ar_error *error)
{
    struct rig *self = argument;
    assert_true(self->sample_count < RIG_MOST);
    self->samples[self->sample_count++] = *sample;
    return AR_OK;
}

void rig_open(struct rig *self, const char *policy, uint64_t cap_bytes, const char *events)
{
    struct ar_spec spec;
    rig_close(self);
    self->device = fake_device_open(cap_bytes);
    assert_non_null(self->device);
    self->context =
        (struct ar_policy_context){.backing = self->device->base.backing, .host = &self->host};
    if (ar_spec_parse(policy, &spec, &self->error) ||
        registry_create(&spec, &self->context, &self->policy, &self->error))
        fail_msg("%s", self->error.text);
    ar_spec_close(&spec);
    self->source = tiny_trace(events);
    self->observer = (struct observer){.row = keep_row, .sample = keep_sample, .argument = self};
    self->config = (struct replay_config){
        .policy = self->policy,
        .device = &self->device->base,
        .source = self->source,
        .measure = REPLAY_METRICS_EXACT,
        .policy_host = &self->host,
        .observer = &self->observer,
    };
}

void rig_run(struct rig *self)
{
    if (replay_run(&self->config, &self->result, &self->error))
        fail_msg("%s", self->error.text);
}

void rig_close(struct rig *self)
{
    if (!self->device)
        return;
    replay_result_close(&self->result);
    trace_close(self->source);
    ar_policy_destroy(self->policy);
    fake_device_close(self->device);
    memset(self, 0, sizeof *self);
}

int rig_teardown(void **state)
{
    rig_close(&rig);
    return 0;
}

double rig_metric(const struct rig *self, enum metric metric)
{
    return metric_number(&self->result.metrics, metric, -1);
}
