/* `mosaic`: its rules, blocks that are glued from the ends of others, and how rarely it asks the
 * device how much memory is free. */
#include "allocators/base/rng.h"
#include "allocators/policies/vmm/vmm.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { SLOTS = 48 };

TEST(a_bad_rule_is_an_error_of_the_policy)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=64MiB");
    struct policy_rig rig;
    assert_int_equal(policy_rig_open(&rig, "mosaic:handle='left+'", device->backing, 0),
                     AR_INVALID);
    assert_non_null(strstr(rig.error.text, "policy mosaic: rule handle, character 6 of \"left+\""));
    (void)policy_rig_close(&rig);
}

/* ---- glued blocks ---------------------------------------------------------------------------- */

static void check(struct device_rig *rig)
{
    struct policy_walk_sums sums = policy_walk_sum(rig->policy.policy);
    device_rig_check(rig);
    assert_false(sums.gap || sums.out_of_order);
}

static enum ar_status take(struct device_rig *rig, uint64_t bytes, uint32_t stream,
                           struct ar_policy_block *block)
{
    const struct ar_policy_request request = {.bytes = bytes, .stream = stream};
    return device_rig_ask(rig, &request, block);
}

/* Handles of 8 MiB, all of them in use, with two free blocks of 5 MiB. Each of them ends or begins
 * with 4 MiB of a handle. */
static void two_free_blocks(struct device_rig *rig, const char *policy,
                            struct ar_policy_block blocks[5])
{
    static const uint64_t sizes[5] = {7, 5, 8, 5, 15};
    device_rig_open(rig, policy, "sim:capacity=40MiB");
    for (int i = 0; i < 5; i++)
        assert_int_equal(take(rig, sizes[i] * AR_MIB, 0, &blocks[i]), AR_OK);
    assert_int_equal(rig->device->counters.calls[AR_DEVICE_CALL_create], 5);
    device_rig_give(rig, &blocks[1], 0);
    device_rig_give(rig, &blocks[3], 0);
}

TEST(a_block_is_glued_from_the_ends_of_two_handles)
{
    struct device_rig rig;
    struct ar_policy_block blocks[5], glued, other;
    two_free_blocks(&rig, "mosaic:handle=4,glue=no", blocks);
    assert_int_equal(take(&rig, 8 * AR_MIB, 0, &glued), AR_NO_MEMORY);
    device_rig_close(&rig);
    two_free_blocks(&rig, "mosaic:handle=4", blocks);
    assert_int_equal(ar_policy_servable(rig.policy.policy, AR_POLICY_EFFORT_WAIT), 5 * AR_MIB);
    assert_int_equal(ar_policy_servable(rig.policy.policy, AR_POLICY_EFFORT_TRIM), 8 * AR_MIB);
    assert_int_equal(take(&rig, 8 * AR_MIB, 0, &glued), AR_OK);
    check(&rig);
    assert_int_equal(rig.device->counters.calls[AR_DEVICE_CALL_create], 5);
    assert_int_equal(take(&rig, 3 * AR_MIB, 0, &other), AR_NO_MEMORY);
    device_rig_give(&rig, &glued, 0);
    check(&rig);
    assert_int_equal(take(&rig, 5 * AR_MIB, 0, &blocks[1]), AR_OK);
    assert_int_equal(take(&rig, 5 * AR_MIB, 0, &blocks[3]), AR_OK);
    check(&rig);
    for (int i = 0; i < 5; i++)
        device_rig_give(&rig, &blocks[i], 0);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    device_rig_close(&rig);
}

TEST(a_glued_block_may_live_to_the_end)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block blocks[5], glued;
    two_free_blocks(&rig, "mosaic:handle=4", blocks);
    assert_int_equal(take(&rig, 8 * AR_MIB, 0, &glued), AR_OK);
    device_rig_give(&rig, &blocks[0], 0);
}

/* Random requests on a full card, some used by a second stream. */
static void scramble(const char *policy, uint64_t seed, uint64_t *glued)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_rng rng = ar_rng_of(seed);
    struct ar_policy_block blocks[SLOTS];
    bool live[SLOTS] = {false};
    device_rig_open(&rig, policy, "sim:capacity=192MiB");
    for (int turn = 0; turn < 3000; turn++) {
        uint32_t slot = (uint32_t)ar_rng_below(&rng, SLOTS);
        uint64_t bytes = ar_rng_below(&rng, 5) ? 1 + ar_rng_below(&rng, 14 * AR_MIB)
                                               : 1 + ar_rng_below(&rng, 700 * AR_KIB);
        uint32_t stream = slot % 4 == 0;
        if (!live[slot])
            live[slot] = take(&rig, bytes, stream, &blocks[slot]) == AR_OK;
        else {
            if (ar_rng_below(&rng, 6) == 0)
                assert_int_equal(ar_policy_use(rig.policy.policy, &blocks[slot], 2), AR_OK);
            device_rig_give(&rig, &blocks[slot], stream);
            live[slot] = false;
        }
        if (turn % 8 == 0)
            check(&rig);
    }
    *glued += ((const struct vmm *)rig.policy.policy)->glued;
}

TEST(glued_blocks_survive_random_requests)
{
    uint64_t glued = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        scramble("mosaic", seed, &glued);
        scramble("mosaic:handle=4", seed, &glued);
        scramble("mosaic:handle=8,unmap='start',fit='size+loss',place='before+after'", seed,
                 &glued);
    }
    assert_true(glued > 100);
}

/* ---- free memory of the device --------------------------------------------------------------- */

static uint64_t asked;
static void (*real_memory)(struct ar_backing *self, uint64_t *free_bytes, uint64_t *total_bytes);

static void count_memory(struct ar_backing *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    asked++;
    real_memory(self, free_bytes, total_bytes);
}

/* The same step again and again on a card that is nearly full. Returns how often the device was
 * asked. */
static uint64_t steps(const char *policy)
{
    struct device_rig rig;
    struct ar_policy_block block[2];
    device_rig_open(&rig, policy, "sim:capacity=128MiB");
    struct ar_backing_ops ops = *rig.device->backing->ops;
    const struct ar_backing_ops *own = rig.device->backing->ops;
    real_memory = ops.memory;
    ops.memory = count_memory;
    asked = 0;
    rig.device->backing->ops = &ops;
    for (int step = 0; step < 200; step++) {
        assert_int_equal(take(&rig, 60 * AR_MIB, 0, &block[0]), AR_OK);
        assert_int_equal(take(&rig, 50 * AR_MIB, 0, &block[1]), AR_OK);
        device_rig_give(&rig, &block[0], 0);
        device_rig_give(&rig, &block[1], 0);
    }
    rig.device->backing->ops = own;
    device_rig_close(&rig);
    return asked;
}

TEST(the_device_is_seldom_asked)
{
    assert_true(steps("vmm") > 200);
    assert_true(steps("mosaic") < 20);
}

/* Memory that another user took since the device was asked is no fault. */
TEST(memory_that_is_gone_is_noticed)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block[3];
    device_rig_open(&rig, "mosaic", "sim:capacity=128MiB");
    assert_int_equal(take(&rig, 20 * AR_MIB, 0, &block[0]), AR_OK);
    assert_int_equal(take(&rig, 40 * AR_MIB, 0, &block[1]), AR_OK);
    device_rig_give(&rig, &block[1], 0);
    assert_int_equal(rig.device->ops->outside(rig.device, 60 * AR_MIB), AR_OK);
    assert_int_equal(take(&rig, 46 * AR_MIB, 1, &block[1]), AR_OK);
    assert_int_equal(take(&rig, 60 * AR_MIB, 1, &block[2]), AR_NO_MEMORY);
}
