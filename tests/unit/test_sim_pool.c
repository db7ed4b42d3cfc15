/* The simulated device's stream-ordered pool: reuse by each of its ways, pages and the threshold,
 * costs, misuse. One stream against recordings of a card: tests/golden/test_async.c. */
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { A, B };

#define PAGE (32 * AR_MIB)

static const struct ar_backing_pool as_the_driver = {
    .follow_events = true, .opportunistic = true, .internal = true};

static struct ar_device *open_pool(const char *spec, struct ar_backing_pool settings)
{
    struct ar_device *device = sim_test_open(spec);
    assert_int_equal(device->backing->ops->pool_open(device->backing, &settings), AR_OK);
    return device;
}

static uint64_t take(struct ar_device *device, uint64_t bytes, uint32_t stream)
{
    uint64_t address;
    assert_int_equal(device->backing->ops->pool_alloc(device->backing, bytes, stream, &address),
                     AR_OK);
    return address;
}

static void give(struct ar_device *device, uint64_t address, uint32_t stream)
{
    assert_int_equal(device->backing->ops->pool_free(device->backing, address, stream), AR_OK);
}

static uint64_t reserved(struct ar_device *device)
{
    uint64_t used_bytes;
    uint64_t reserved_bytes;
    device->backing->ops->pool_memory(device->backing, &used_bytes, &reserved_bytes);
    assert_true(used_bytes <= reserved_bytes);
    assert_int_equal(device->counters.physical_bytes, reserved_bytes);
    return reserved_bytes;
}

/* A block that a busy stream B freed, then one of the same size on A: is it the same memory? */
static bool reused(struct ar_device *device, bool ordered, bool done)
{
    const struct ar_device_ops *ops = device->ops;
    uint64_t first = take(device, AR_MIB, B);
    ops->kernel(device, B, 1000000);
    give(device, first, B);
    if (ordered) {
        ops->event_record(device, 1, B);
        ops->stream_wait(device, A, 1);
    }
    if (done)
        ops->advance(device, 2000000);
    return take(device, AR_MIB, A) == first;
}

TEST(streams_share_by_each_way)
{
    static const struct {
        struct ar_backing_pool settings;
        bool ordered, done, reused;
    } cases[] = {
        {{.follow_events = true}, true, false, true},
        {{.follow_events = true}, false, false, false},
        {{.follow_events = true}, false, true, false}, /* the host has not looked */
        {{.opportunistic = true}, false, true, true},
        {{.opportunistic = true}, false, false, false},
        {{.opportunistic = true}, true, false, false},
        {{.internal = true}, false, false, false}, /* there is free memory: no wait */
        {{0}, true, true, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLOSED(close_device) struct ar_device *device = open_pool("sim", cases[i].settings);
        assert_int_equal(reused(device, cases[i].ordered, cases[i].done), cases[i].reused);
        assert_int_equal(device->counters.stall_ns, 0);
    }
}

/* If memory is short, the stream waits, and then the reuse is no race. */
TEST(internal_dependencies_wait)
{
    for (int internal = 0; internal < 2; internal++) {
        CLOSED(close_device)
        struct ar_device *device =
            open_pool("sim:capacity=32MiB", (struct ar_backing_pool){.internal = internal});
        uint64_t first = take(device, PAGE, B);
        uint64_t address;
        device->ops->used(device, first, PAGE, B, 1);
        device->ops->kernel(device, B, 1000000);
        device->ops->used(device, first, PAGE, B, 2);
        give(device, first, B);
        enum ar_status status =
            device->backing->ops->pool_alloc(device->backing, PAGE, A, &address);
        assert_int_equal(status, internal ? AR_OK : AR_REFUSED);
        assert_int_equal(device->counters.refused, !internal);
        if (internal) {
            assert_int_equal(address, first);
            assert_in_range(device->counters.stall_ns, 900000, 1000000);
            assert_int_equal(device->ops->handed_out(device, address, PAGE, A, false, 3), 0);
            assert_int_equal(device->counters.races, 0);
        }
    }
}

TEST(memory_goes_back_when_the_host_waits)
{
    CLOSED(close_device) struct ar_device *device = open_pool("sim", as_the_driver);
    uint64_t blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = take(device, PAGE, A);
    assert_int_equal(reserved(device), 4 * PAGE);
    give(device, blocks[0], A);
    device->ops->kernel(device, A, 1000);
    give(device, blocks[2], A); /* after the kernel */
    assert_int_equal(reserved(device), 4 * PAGE);
    device->ops->sync(device, B);                 /* this tells the host nothing about A */
    assert_int_equal(reserved(device), 3 * PAGE); /* but A had no work before the first free */
    device->ops->sync(device, A);
    assert_int_equal(reserved(device), 2 * PAGE);
    struct ar_backing_pool keeps = as_the_driver;
    keeps.release_threshold_bytes = PAGE;
    assert_int_equal(device->backing->ops->pool_open(device->backing, &keeps), AR_OK);
    give(device, blocks[1], A);
    give(device, blocks[3], A);
    device->backing->ops->wait(device->backing, device->backing->ops->fence(device->backing, A));
    assert_int_equal(reserved(device), PAGE);
    assert_int_equal(device->backing->ops->pool_trim(device->backing, 0), AR_OK);
    assert_int_equal(reserved(device), 0);
}

/* A request that fits no free block uses their pages, not new ones. */
TEST(pages_move)
{
    struct ar_backing_pool settings = as_the_driver;
    settings.release_threshold_bytes = UINT64_MAX;
    settings.most_bytes = 5 * PAGE;
    CLOSED(close_device) struct ar_device *device = open_pool("sim", settings);
    uint64_t blocks[5];
    for (int i = 0; i < 5; i++)
        blocks[i] = take(device, PAGE, A);
    give(device, blocks[1], A);
    give(device, blocks[3], A);
    uint64_t both = take(device, 2 * PAGE, A);
    assert_true(both > blocks[4]);
    assert_int_equal(reserved(device), 5 * PAGE);
    uint64_t address;
    assert_int_equal(device->backing->ops->pool_alloc(device->backing, 1, A, &address),
                     AR_REFUSED); /* the pool's maximum */
    assert_int_equal(reserved(device), 5 * PAGE);
}

TEST(calls_cost_what_was_measured)
{
    CLOSED(close_device) struct ar_device *device = open_pool("sim", as_the_driver);
    const uint64_t *ns = device->counters.call_ns;
    uint64_t first = take(device, 2 * AR_MIB, A);
    assert_in_range(ns[AR_DEVICE_CALL_pool_alloc], 51000, 51700);
    give(device, first, A);
    assert_int_equal(ns[AR_DEVICE_CALL_pool_free], 650);
    uint64_t before = ns[AR_DEVICE_CALL_pool_alloc];
    assert_int_equal(take(device, 2 * AR_MIB, A), first);
    assert_int_equal(ns[AR_DEVICE_CALL_pool_alloc] - before, 510);
    device->ops->kernel(device, A, 1000000);
    give(device, first, A);
    before = ns[AR_DEVICE_CALL_pool_alloc];
    take(device, 2 * AR_MIB, B);
    assert_in_range(ns[AR_DEVICE_CALL_pool_alloc] - before, 16000, 22000);
}

TEST(misuse_is_refused)
{
    CLOSED(close_device) struct ar_device *device = open_pool("sim", as_the_driver);
    struct ar_backing *backing = device->backing;
    uint64_t first = take(device, AR_MIB, A);
    uint64_t address;
    sim_test_misuse(device, backing->ops->pool_free(backing, first + 512, A), "no block");
    sim_test_misuse(device, backing->ops->segment_free(backing, first), "stream-ordered");
    sim_test_misuse(device, backing->ops->pool_alloc(backing, 0, A, &address), "no bytes");
    give(device, first, A);
    sim_test_misuse(device, backing->ops->pool_free(backing, first, A), "freed before");
    assert_int_equal(backing->ops->pool_alloc(backing, UINT64_C(1) << 59, A, &address), AR_REFUSED);
}

/* A request that the pool refuses waits for the work of all streams, the first among them, and is
 * then served from what they freed. */
TEST(a_refused_request_waits_for_all_streams)
{
    for (uint32_t stream = 0; stream < 3; stream++) {
        CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=64MiB");
        struct policy_rig rig;
        struct ar_policy_block block, other;
        assert_int_equal(
            policy_rig_open(&rig, "async:retry=true,internal=false", device->backing, 0), AR_OK);
        const struct ar_policy_request first = {.bytes = 40 * AR_MIB, .stream = stream};
        const struct ar_policy_request second = {.bytes = 40 * AR_MIB, .stream = 3};
        assert_int_equal(ar_policy_alloc(rig.policy, &first, &block), AR_OK);
        device->ops->kernel(device, stream, 50000000);
        assert_int_equal(ar_policy_free(rig.policy, &block, stream), AR_OK);
        assert_int_equal(ar_policy_alloc(rig.policy, &second, &other), AR_OK);
        assert_true(device->ops->now(device) >= 50000000);
        assert_int_equal(ar_policy_free(rig.policy, &other, 3), AR_OK);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}
