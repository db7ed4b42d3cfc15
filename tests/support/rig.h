/* One replay on a fake device that keeps all rows and samples, for tests of the engine. */
#pragma once

#include "allocators/registry.h"
#include "sim/replay.h"
#include "tests/support/fake_device.h"

#define RIG_MOST 256

struct rig {
    struct fake_device *device;
    struct ar_host host;
    struct ar_policy_context context;
    struct ar_policy *policy;
    struct trace_source *source;
    struct observer observer;    /* rows and samples */
    struct replay_config config; /* change it between rig_open and rig_run */
    struct replay_result result;
    struct ar_error error;
    struct replay_row rows[RIG_MOST];
    struct replay_sample samples[RIG_MOST];
    unsigned row_count, sample_count;
};

extern struct rig rig; /* large; one test at a time */

/* A case that uses it, which is closed at the end. */
#define RIG_TEST(name) TEST_WITH(name, NULL, rig_teardown)
int rig_teardown(void **state);

/* The policy of a spec over a device of `cap_bytes`, and a tiny trace. Rows and samples are kept,
 * metrics are exact. Closes what the rig had. Fails the test if something is wrong. */
void rig_open(struct rig *rig, const char *policy, uint64_t cap_bytes, const char *events);
/* The replay must be OK. */
void rig_run(struct rig *rig);
void rig_close(struct rig *rig);

/* A metric, -1 if it is null. */
double rig_metric(const struct rig *rig, enum metric metric);
