#include "tests/support/policy_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum ar_status policy_rig_open(struct policy_rig *rig, const char *text, struct ar_backing *backing,
                               uint64_t fail_at)
{
    memset(rig, 0, sizeof *rig);
    enum ar_status status = ar_spec_parse(text, &rig->spec, &rig->error);
    if (status)
        return status;
    rig->host.fail_at = fail_at;
    rig->context = (struct ar_policy_context){.backing = backing, .host = &rig->host, .seed = 1};
    return registry_create(&rig->spec, &rig->context, &rig->policy, &rig->error);
}

uint64_t policy_rig_close(struct policy_rig *rig)
{
    ar_policy_destroy(rig->policy);
    rig->policy = NULL;
    ar_spec_close(&rig->spec);
    return rig->host.now_bytes;
}

void policy_rig_close_empty(struct policy_rig *rig, const char *name, struct memory *memory)
{
    uint64_t lost = policy_rig_close(rig);
    uint64_t held = memory_held(memory);
    if (lost || held)
        fail_msg("%s on %s leaves %" PRIu64 " host bytes and %" PRIu64 " device bytes behind", name,
                 memory->name, lost, held);
    memory_close(memory);
}

enum ar_status policy_rig_alloc(struct policy_rig *rig, uint64_t bytes, struct ar_policy_block *out)
{
    const struct ar_policy_request request = {.bytes = bytes};
    return ar_policy_alloc(rig->policy, &request, out);
}

enum ar_status policy_rig_free(struct policy_rig *rig, const struct ar_policy_block *block)
{
    return ar_policy_free(rig->policy, block, 0);
}

struct ar_policy_block policy_rig_take(struct policy_rig *rig, uint64_t bytes)
{
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(rig, bytes, &block), AR_OK);
    assert_ok(ar_policy_validate(rig->policy, &test_error));
    return block;
}

void policy_rig_give(struct policy_rig *rig, struct ar_policy_block block)
{
    assert_int_equal(policy_rig_free(rig, &block), AR_OK);
    assert_ok(ar_policy_validate(rig->policy, &test_error));
}

uint64_t policy_rig_figure(const struct policy_rig *rig, const char *wanted)
{
    char name[64];
    uint64_t value;
    for (size_t i = 0; ar_policy_report(rig->policy, i, name, sizeof name, &value); i++)
        if (strcmp(name, wanted) == 0)
            return value;
    fail_msg("no figure %s", wanted);
    return 0;
}

/* ---- with memory of their own ---- */

struct fake_backing fake_rig_backing;

static void must_open(struct policy_rig *rig, const char *text, struct ar_backing *backing)
{
    if (policy_rig_open(rig, text, backing, 0))
        fail_msg("%s: %s", text, rig->error.text);
}

void fake_rig_open(struct policy_rig *rig, const char *text, uint64_t cap_bytes)
{
    fake_backing_open(&fake_rig_backing, cap_bytes);
    must_open(rig, text, &fake_rig_backing.base);
}

void fake_rig_close(struct policy_rig *rig)
{
    assert_ok(ar_policy_validate(rig->policy, &test_error));
    assert_int_equal(policy_rig_close(rig), 0);
    assert_int_equal(fake_rig_backing.held_bytes, 0);
}

void device_rig_open_on(struct device_rig *rig, const char *policy, struct ar_device *device)
{
    *rig = (struct device_rig){.device = device};
    must_open(&rig->policy, policy, device->backing);
}

void device_rig_open(struct device_rig *rig, const char *policy, const char *device)
{
    device_rig_open_on(rig, policy, sim_test_open(device));
}

void device_rig_check(const struct device_rig *rig)
{
    const struct ar_policy *policy = rig->policy.policy;
    if (ar_policy_validate(policy, &test_error))
        fail_msg("event %" PRIu64 ": %s", rig->event, test_error.text);
    assert_string_equal(rig->device->ops->problem(rig->device), "");
    assert_string_equal(rig->device->ops->race_text(rig->device), "");
    assert_int_equal(policy->totals.reserved_bytes, rig->device->counters.physical_bytes);
}

void device_rig_close(struct device_rig *rig)
{
    device_rig_check(rig);
    assert_int_equal(policy_rig_close(&rig->policy), 0);
    assert_string_equal(rig->device->ops->problem(rig->device), "");
    assert_int_equal(rig->device->counters.physical_bytes, 0);
    ar_device_close(rig->device);
}

enum ar_status device_rig_ask(struct device_rig *rig, const struct ar_policy_request *request,
                              struct ar_policy_block *block)
{
    enum ar_status status = ar_policy_alloc(rig->policy.policy, request, block);
    rig->event++;
    if (status == AR_OK)
        (void)rig->device->ops->handed_out(rig->device, block->address, block->granted_bytes,
                                           request->stream, false, rig->event);
    return status;
}

void device_rig_give(struct device_rig *rig, const struct ar_policy_block *block, uint32_t stream)
{
    rig->device->ops->used(rig->device, block->address, block->granted_bytes, stream, ++rig->event);
    assert_int_equal(ar_policy_free(rig->policy.policy, block, stream), AR_OK);
}

static bool find(const char *text, const struct ar_policy_ops **out, struct ar_error *error)
{
    struct ar_spec spec = {0};
    enum ar_status status = ar_spec_parse(text, &spec, error);
    AR_THEN(status, registry_lookup(&spec, out, error));
    ar_spec_close(&spec);
    return status == AR_OK;
}

const char *policy_rig_each(size_t index)
{
    const char *given = getenv("POLICY");
    const struct ar_policy_ops *found;
    if (given && index == 0 && !find(given, &found, &test_error)) {
        fprintf(stderr, "POLICY: %s\n", test_error.text);
        exit(2);
    }
    const struct ar_policy_ops *ops = given ? NULL : registry_policy(index);
    return given && index == 0 ? given : ops ? ops->name : NULL;
}

bool policy_rig_has(const char *text, enum ar_policy_capability capability)
{
    const struct ar_policy_ops *ops;
    return find(text, &ops, &test_error) && (ops->capabilities & capability);
}

static bool add_up(void *argument, const struct ar_policy_range *range)
{
    struct policy_walk_sums *sums = argument;
    sums->out_of_order |= range->address < sums->end || range->bytes == 0;
    sums->gap |=
        sums->segment == range->segment_address && sums->end != range->address && sums->end != 0;
    sums->end = range->address + range->bytes;
    sums->segment = range->segment_address;
    sums->bytes[range->state] += range->bytes;
    sums->ranges[range->state]++;
    sums->requested_bytes += range->requested_bytes;
    if (range->state == AR_POLICY_RANGE_FREE && range->bytes > sums->largest_free_block_bytes)
        sums->largest_free_block_bytes = range->bytes;
    return true;
}

struct policy_walk_sums policy_walk_sum(const struct ar_policy *policy)
{
    struct policy_walk_sums sums = {.segment = UINT64_MAX};
    ar_policy_walk(policy, add_up, &sums);
    return sums;
}
