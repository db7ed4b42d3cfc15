/* The ladder of causes, step by step, on a policy and a device that only have numbers; and that the
 * quick answer is the same. */
#include "sim/replay.h"
#include "tests/support/fake_device.h"
#include "tests/support/test.h"

/* 10 free for stream 1, 20 for others, 40 pending, 80 free on the device, of 1000 altogether;
 * 160 held by tenants, 320 outside. */
static const struct ar_policy_range ranges[] = {
    {.address = 0, .bytes = 10, .stream = 1, .state = AR_POLICY_RANGE_FREE},
    {.address = 10, .bytes = 300, .stream = 1, .state = AR_POLICY_RANGE_USED},
    {.address = 310, .bytes = 15, .stream = 2, .state = AR_POLICY_RANGE_FREE},
    {.address = 325, .bytes = 5, .stream = 1, .pool = 3, .state = AR_POLICY_RANGE_FREE},
    {.address = 330, .bytes = 40, .stream = 1, .state = AR_POLICY_RANGE_PENDING},
    {.address = 370, .bytes = 500, .stream = 1, .state = AR_POLICY_RANGE_UNMAPPED},
};

static void stub_walk(const struct ar_policy *self, ar_policy_visit *visit, void *argument)
{
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (!visit(argument, &ranges[i]))
            return;
}

static void stub_room(const struct ar_policy *self, struct ar_policy_room *out)
{
    ar_policy_room_fill(out, 10, 0, 0);
}

/* Serves requests of up to 8 bytes from its free ranges. */
static bool stub_would_fit(struct ar_policy *self, const struct ar_policy_request *request)
{
    return request->bytes <= 8;
}

static const struct ar_policy_ops stub_ops = {
    .name = "stub", .walk = stub_walk, .room = stub_room, .would_fit = stub_would_fit};

static struct ar_policy stub = {
    .ops = &stub_ops,
    .totals = {.reserved_bytes = 370,
               .granted_bytes = 300,
               .pending_bytes = 40,
               .releasable_bytes = 5},
};

static struct fake_device *card(void)
{
    struct fake_device *device = fake_device_open(1000);
    device->memory.held_bytes = 920;
    device->base.counters.others_bytes = 160;
    device->base.counters.outside_bytes = 320;
    return device;
}

static void check(const struct fake_device *device, uint64_t limit_bytes, uint64_t bytes,
                  enum replay_cause expected)
{
    const struct ar_policy_request request = {.bytes = bytes, .stream = 1};
    struct cause_ladder ladder;
    cause_ladder_fill(&ladder, &stub, &device->base, &request, limit_bytes);
    assert_int_equal(cause_of_ladder(&ladder, bytes), expected);
    assert_int_equal(cause_of_failure(&stub, &device->base, &request, limit_bytes), expected);
}

TEST(each_step_adds_to_the_one_before)
{
    struct fake_device *device = card();
    const struct ar_policy_request request = {.bytes = 81, .stream = 1};
    struct cause_ladder ladder;
    cause_ladder_fill(&ladder, &stub, &device->base, &request, 0);
    assert_int_equal(ladder.obtainable_bytes, 80);
    assert_int_equal(ladder.same_bytes, 90);
    assert_int_equal(ladder.other_bytes, 110);
    assert_int_equal(ladder.pending_bytes, 150);
    assert_int_equal(ladder.tenant_bytes, 310);
    assert_int_equal(ladder.outside_bytes, 630);
    check(device, 0, 90, REPLAY_CAUSE_FRAGMENTATION);
    check(device, 0, 110, REPLAY_CAUSE_FRAGMENTATION);
    check(device, 0, 111, REPLAY_CAUSE_PENDING);
    check(device, 0, 150, REPLAY_CAUSE_PENDING);
    check(device, 0, 151, REPLAY_CAUSE_TENANT);
    check(device, 0, 310, REPLAY_CAUSE_TENANT);
    check(device, 0, 311, REPLAY_CAUSE_OUTSIDE);
    check(device, 0, 630, REPLAY_CAUSE_OUTSIDE);
    check(device, 0, 631, REPLAY_CAUSE_CAPACITY);
    fake_device_close(device);
}

TEST(a_policy_at_its_limit_gets_nothing_of_others)
{
    struct fake_device *device = card();
    check(device, 370, 30, REPLAY_CAUSE_FRAGMENTATION);
    check(device, 370, 31, REPLAY_CAUSE_PENDING);
    check(device, 370, 71, REPLAY_CAUSE_CAPACITY);
    check(device, 300, 71, REPLAY_CAUSE_CAPACITY); /* holds more than its limit already */
    check(device, 500, 30 + 80, REPLAY_CAUSE_FRAGMENTATION);
    check(device, 500, 70 + 80 + 50, REPLAY_CAUSE_TENANT);
    check(device, 500, 70 + 80 + 51, REPLAY_CAUSE_CAPACITY);
    fake_device_close(device);
}

/* The device has enough free memory, but the policy does not use it: it is not counted. */
TEST(a_rule_of_the_policys_own_is_capacity)
{
    struct fake_device *device = fake_device_open(UINT64_MAX);
    check(device, 0, UINT64_C(1) << 59, REPLAY_CAUSE_CAPACITY);
    check(device, 0, 30, REPLAY_CAUSE_FRAGMENTATION);
    check(device, 0, 31, REPLAY_CAUSE_PENDING);
    check(device, 0, 71, REPLAY_CAUSE_CAPACITY);
    fake_device_close(device);
}

/* A block that the policy would take now comes before all else. */
TEST(a_block_that_came_back_is_its_own_cause)
{
    struct fake_device *device = card();
    check(device, 0, 8, REPLAY_CAUSE_RETURNED);
    check(device, 0, 9, REPLAY_CAUSE_FRAGMENTATION);
    check(device, 370, 8, REPLAY_CAUSE_RETURNED);
    fake_device_close(device);
}

/* Beside the pool: 80 free, 5 in whole segments, 30 free in all, 40 pending, 160 of tenants. */
TEST(memory_beside_the_pool_has_its_own_ladder)
{
    struct fake_device *device = card();
    struct cause_ladder ladder;
    cause_ladder_fill_beside(&ladder, &stub, &device->base);
    assert_true(ladder.beside && !ladder.again);
    assert_int_equal(ladder.obtainable_bytes, 80);
    assert_int_equal(ladder.cached_bytes, 85);
    assert_int_equal(ladder.other_bytes, 110);
    assert_int_equal(ladder.pending_bytes, 150);
    assert_int_equal(ladder.tenant_bytes, 310);
    assert_int_equal(cause_of_ladder(&ladder, 81), REPLAY_CAUSE_CACHE);
    assert_int_equal(cause_of_ladder(&ladder, 110), REPLAY_CAUSE_CACHE);
    assert_int_equal(cause_of_ladder(&ladder, 111), REPLAY_CAUSE_PENDING);
    assert_int_equal(cause_of_ladder(&ladder, 151), REPLAY_CAUSE_TENANT);
    assert_int_equal(cause_of_ladder(&ladder, 310), REPLAY_CAUSE_TENANT);
    assert_int_equal(cause_of_ladder(&ladder, 311), REPLAY_CAUSE_CAPACITY);
    fake_device_close(device);
}
