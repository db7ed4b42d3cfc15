/* The policy torch on a simulated card, of which nothing is left when the rig closes. */
#ifndef TESTS_SUPPORT_TORCH_RIG_H
#define TESTS_SUPPORT_TORCH_RIG_H

#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

struct torch_rig {
    struct ar_device *device;
    struct policy_rig policy;
};

static inline void open_rig(struct torch_rig *rig, const char *policy, const char *device)
{
    rig->device = sim_test_open(device);
    if (policy_rig_open(&rig->policy, policy, rig->device->backing, 0))
        fail_msg("%s: %s", policy, rig->policy.error.text);
}

static inline void close_rig(struct torch_rig *rig)
{
    struct ar_error error;
    if (ar_policy_validate(rig->policy.policy, &error))
        fail_msg("%s", error.text);
    assert_int_equal(policy_rig_close(&rig->policy), 0);
    assert_string_equal(rig->device->ops->problem(rig->device), "");
    assert_int_equal(rig->device->counters.physical_bytes, 0);
    ar_device_close(rig->device);
}

#endif
