/* `torch` with expandable segments: the device refuses in the middle of a request, and many
 * streams. */
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define PAGE (20 * AR_MIB)

static uint64_t calls(const struct device_rig *rig, enum ar_device_call call)
{
    return rig->device->counters.calls[call];
}

static void check(struct device_rig *rig, uint64_t reserved_bytes)
{
    assert_ok(ar_policy_validate(rig->policy.policy, &test_error));
    assert_int_equal(rig->policy.policy->totals.reserved_bytes, reserved_bytes);
    assert_int_equal(rig->device->counters.physical_bytes, reserved_bytes);
}

/* All handles of a run are created before any is mapped: they are destroyed again, and no page was
 * mapped. */
TEST(test_refused_in_the_middle_of_a_run)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block kept, refused;
    device_rig_open(&rig, "torch:expandable_segments=true", "sim:capacity=70MiB");
    assert_int_equal(policy_rig_alloc(&rig.policy, 15 * AR_MIB, &kept), AR_OK);
    check(&rig, PAGE);
    /* 5 MiB are free before it, 3 pages are missing, 2 can be obtained: it is tried twice. */
    assert_int_equal(policy_rig_alloc(&rig.policy, 60 * AR_MIB, &refused), AR_NO_MEMORY);
    check(&rig, PAGE);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_create), 1 + 3 + 3);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_destroy), 2 + 2);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_map), 1);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_unmap), 0);
    /* The range is unchanged: a smaller request grows it from its end. */
    assert_int_equal(policy_rig_alloc(&rig.policy, 40 * AR_MIB, &refused), AR_OK);
    assert_int_equal(refused.address, kept.address + 15 * AR_MIB);
    check(&rig, 3 * PAGE);
}

/* A range with a free page between unmapped ones grows in two runs. The second is refused. The
 * first stays mapped and is released with all free memory before the second try. */
TEST(test_refused_after_a_run)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block[3];
    device_rig_open(&rig, "torch:expandable_segments=true", "sim:capacity=100MiB");
    for (int i = 0; i < 3; i++)
        assert_int_equal(policy_rig_alloc(&rig.policy, PAGE, &block[i]), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &block[0]), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &block[2]), AR_OK);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    check(&rig, PAGE);
    assert_int_equal(policy_rig_free(&rig.policy, &block[1]), AR_OK);
    uint64_t mapped = calls(&rig, AR_DEVICE_CALL_map), unmapped = calls(&rig, AR_DEVICE_CALL_unmap);
    assert_int_equal(policy_rig_alloc(&rig.policy, 6 * PAGE, &block[0]), AR_NO_MEMORY);
    check(&rig, 0);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_map) - mapped, 1);
    assert_int_equal(calls(&rig, AR_DEVICE_CALL_unmap) - unmapped, 2);
    assert_int_equal(policy_rig_alloc(&rig.policy, 5 * PAGE, &block[0]), AR_OK);
    check(&rig, 5 * PAGE);
}

/* Every stream has its own free blocks, for any number of streams. */
TEST(test_many_streams)
{
    enum { STREAMS = 20000 };
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "torch:expandable_segments=true", "sim");
    FREED struct ar_policy_block *blocks = calloc(STREAMS, sizeof *blocks);
    assert_non_null(blocks);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < STREAMS; i++) {
            const struct ar_policy_request request = {.bytes = 1000, .stream = i};
            uint64_t before = blocks[i].address;
            assert_int_equal(ar_policy_alloc(rig.policy.policy, &request, &blocks[i]), AR_OK);
            assert_true(!round || blocks[i].address == before);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
            assert_int_equal(ar_policy_free(rig.policy.policy, &blocks[i], i), AR_OK);
    }
    check(&rig, STREAMS * 2 * AR_MIB);
}
