/* The time of the simulated device: many fences, what is prepared, waits for many streams. Kernels,
 * events and races, step by step: tests/steps/sim_streams. */
#include <unistd.h>

#include "allocators/base/rng.h"
#include "sim/sim_device/clock.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { A, B };

TEST(many_fences_that_nobody_polls)
{
    enum { COUNT = 20000 };
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    static struct ar_backing_ticket tickets[COUNT];
    for (int i = 0; i < COUNT; i++) {
        device->ops->kernel(device, A, 10);
        tickets[i] = ar_backing_fence(device->backing, A);
    }
    for (int i = COUNT - 1; i >= 0; i -= 1000)
        assert_int_equal(ar_backing_done(device->backing, tickets[i]),
                         10 * (uint64_t)(i + 1) <= device->ops->now(device));
    ar_backing_wait(device->backing, tickets[COUNT - 1]);
    assert_int_equal(device->ops->now(device), 10 * COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_true(ar_backing_done(device->backing, tickets[i]));
}

/* Of 4,096 fences that are past the older half is joined. A poll of one of the others still shows
 * that the work before it is done, and not that later work is. */
TEST(the_newer_half_of_many_fences_is_remembered)
{
    enum { COUNT = 4096 };
    static const struct {
        int freed_at, polled;
        uint64_t races;
    } cases[] = {
        {COUNT / 2, COUNT / 2, 0}, {COUNT / 2, COUNT / 2 - 1, 1}, {COUNT / 2, COUNT - 1, 0},
        {COUNT - 1, COUNT - 2, 1}, {COUNT - 1, COUNT - 1, 0},     {COUNT - 1, 0, 1},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
        struct ar_backing_ticket tickets[COUNT];
        uint64_t address = sim_test_alloc(device, 4 * AR_MIB);
        device->ops->handed_out(device, address, AR_MIB, A, false, 1);
        for (int i = 0; i < COUNT; i++) {
            device->ops->kernel(device, A, 10);
            if (i == cases[k].freed_at)
                device->ops->used(device, address, AR_MIB, A, 2);
            tickets[i] = ar_backing_fence(device->backing, A);
        }
        device->ops->advance(device, 1000000);
        device->ops->kernel(device, A, 10);
        (void)ar_backing_fence(device->backing, A);
        assert_true(ar_backing_done(device->backing, tickets[cases[k].polled]));
        device->ops->handed_out(device, address, AR_MIB, B, false, 3);
        assert_int_equal(device->counters.races, cases[k].races);
        device->ops->handed_out(device, address, AR_MIB, A, false, 4);
    }
}

static void prepare(struct ar_device *device, enum ar_kernel_op_kind kind, enum ar_device_type type,
                    uint64_t m, uint64_t n, uint64_t k)
{
    const struct ar_kernel_op op = {.kind = kind, .type = type, .m = m, .n = n, .k = k};
    device->ops->prepare(device, &op);
}

/* The first product loads the library, the first of a type and order of lengths its kernels. */
TEST(products_are_prepared_once)
{
    static const char text[] = "# allocrig-profile 1\nname: products\ntotal_bytes: 85017493504\n"
                               "usable_bytes: 84470000000\npage_bytes: 2097152\n"
                               "granule_bytes: 512\nfirst_address: 2097152\n"
                               "cost: product_first 1 5000\ncost: product_new 1 70\n";
    char path[] = "/tmp/allocrig-products-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    char spec[64];
    snprintf(spec, sizeof spec, "sim:profile=%s", path);
    struct ar_device *device = sim_test_open(spec);
    unlink(path);
    prepare(device, AR_KERNEL_OP_gather, AR_DEVICE_F32, 64, 8, 0);
    assert_int_equal(device->ops->now(device), 0);
    prepare(device, AR_KERNEL_OP_matmul, AR_DEVICE_F32, 4096, 512, 13);
    assert_int_equal(device->ops->now(device), 5000);
    prepare(device, AR_KERNEL_OP_matmul, AR_DEVICE_F32, 8192, 512, 13); /* the same order */
    assert_int_equal(device->ops->now(device), 5000);
    prepare(device, AR_KERNEL_OP_matmul, AR_DEVICE_F32, 4096, 64, 512);
    assert_int_equal(device->ops->now(device), 5070);
    prepare(device, AR_KERNEL_OP_matmul, AR_DEVICE_BF16, 4096, 64, 512);
    assert_int_equal(device->ops->now(device), 5140);
    prepare(device, AR_KERNEL_OP_matmul, AR_DEVICE_F32, 4096, 512, 13);
    assert_int_equal(device->ops->now(device), 5140);
    ar_device_close(device);
    device = sim_test_open("sim");
    assert_null(device->ops->prepare); /* the profile has no such costs */
    ar_device_close(device);
}

TEST(streams_without_work_need_no_entry)
{
    struct sim_clock clock;
    sim_clock_open(&clock, 1024);
    sim_clock_kernel(&clock, 3, 10);
    assert_true(sim_clock_fence_is_nothing(&clock, 2));
    assert_false(sim_clock_fence_is_nothing(&clock, 3));
    assert_true(sim_clock_fence_is_nothing(&clock, SIM_STREAMS_MOST - 1));
    assert_false(sim_clock_fence_is_nothing(&clock, SIM_STREAMS_MOST)); /* an error */
    sim_clock_close(&clock);
}

/* A fence and its wait for each stream, once all in one call and once one by one: the same times,
 * counts and knowledge, in any state of the streams. */
TEST(waits_for_many_streams_are_those_for_each)
{
    enum { STREAMS = 300, TURNS = 20000 };
    static const char *const devices[] = {"sim", "sim:profile=h100-rested", "sim:profile=h200"};
    for (int d = 0; d < 3; d++) {
        struct ar_device *one = sim_test_open(devices[d]), *other = sim_test_open(devices[d]);
        struct ar_device *both[] = {one, other};
        struct ar_rng rng = ar_rng_of(7);
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            uint64_t what = ar_rng_below(&rng, 64), value = ar_rng_below(&rng, 4000);
            uint32_t a = (uint32_t)ar_rng_below(&rng, STREAMS);
            uint32_t b = (uint32_t)ar_rng_below(&rng, STREAMS);
            for (int i = 0; i < 2; i++) {
                struct ar_backing *backing = both[i]->backing;
                if (what < 20)
                    both[i]->ops->kernel(both[i], a, value);
                else if (what < 30)
                    both[i]->ops->event_record(both[i], value % 16, a);
                else if (what < 40)
                    both[i]->ops->stream_wait(both[i], a, value % 16);
                else if (what < 44)
                    ar_backing_order(backing, a, ar_backing_fence(backing, b));
                else if (what < 48)
                    (void)ar_backing_done(backing, ar_backing_fence(backing, a));
                else if (what < 52)
                    ar_backing_wait(backing, ar_backing_fence(backing, a));
                else if (what < 54)
                    both[i]->ops->sync(both[i], value % 2 ? a : SIM_ALL_STREAMS);
                else if (what < 60)
                    both[i]->ops->advance(both[i], value);
                else if (i == 0)
                    ar_backing_wait_streams(backing, a);
                else
                    for (uint32_t s = 0; s < a; s++)
                        ar_backing_wait(backing, ar_backing_fence(backing, s));
            }
            assert_int_equal(one->ops->now(one), other->ops->now(other));
            assert_int_equal(one->ops->idle_at(one), other->ops->idle_at(other));
            assert_memory_equal(&one->counters, &other->counters, sizeof one->counters);
        }
        assert_true(one->counters.stall_ns > 0);
        ar_device_close(one);
        ar_device_close(other);
    }
}
