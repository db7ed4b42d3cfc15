/* The simulated device's time: kernels, the launch queue, events, fences, and races. */
#include <unistd.h>

#include "allocators/base/rng.h"
#include "sim/sim_device/clock.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { A, B, C, D };

TEST(kernels_follow_each_other)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    const struct ar_device_ops *ops = device->ops;
    ops->kernel(device, A, 100);
    ops->kernel(device, A, 50);
    ops->kernel(device, B, 70);
    assert_int_equal(ops->now(device), 0);
    assert_int_equal(ops->idle_at(device), 150);
    ops->sync(device, B);
    assert_int_equal(ops->now(device), 70);
    ops->advance(device, 1000);
    assert_int_equal(ops->idle_at(device), 1070);
    ops->kernel(device, A, 5); /* starts now, not when the stream became idle */
    assert_int_equal(ops->idle_at(device), 1075);
    ops->sync(device, UINT32_MAX);
    assert_int_equal(ops->now(device), 1075);
    assert_int_equal(device->counters.stall_ns, 0);
}

TEST(the_launch_queue_holds_the_host)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:launch_queue=3");
    const struct ar_device_ops *ops = device->ops;
    for (int i = 0; i < 3; i++)
        ops->kernel(device, A, 100);
    assert_int_equal(ops->now(device), 0);
    ops->kernel(device, A, 100); /* waits for the first of the three before it */
    assert_int_equal(ops->now(device), 100);
    ops->kernel(device, A, 100);
    assert_int_equal(ops->now(device), 200);
    for (int i = 0; i < 3; i++)
        ops->kernel(device, B, 1);
    assert_int_equal(ops->now(device), 200);
    assert_int_equal(ops->idle_at(device), 500);
    assert_int_equal(device->counters.stall_ns, 0);
}

TEST(events_order_streams)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    const struct ar_device_ops *ops = device->ops;
    ops->stream_wait(device, B, 7); /* never recorded: no wait */
    ops->kernel(device, A, 100);
    ops->event_record(device, 7, A);
    ops->kernel(device, A, 100);
    ops->stream_wait(device, B, 7);
    ops->kernel(device, B, 10);
    ops->sync(device, B);
    assert_int_equal(ops->now(device), 110);
    ops->event_record(device, 7, A); /* again: the later point counts */
    ops->stream_wait(device, C, 7);
    ops->kernel(device, C, 1);
    ops->sync(device, C);
    assert_int_equal(ops->now(device), 201);
}

/* A new number for each record; events that the host knows to be past are not kept. */
TEST(many_events)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    const struct ar_device_ops *ops = device->ops;
    uint64_t address = sim_test_alloc(device, AR_MIB), pending = 0;
    for (uint64_t event = 1; event < 50000; event++) {
        ops->kernel(device, A, 10);
        ops->event_record(device, event, A);
        if (event % 100 == 0)
            ops->sync(device, A);
    }
    ops->kernel(device, A, 1000);
    ops->used(device, address, AR_MIB, A, 1);
    ops->event_record(device, pending, A);
    for (uint64_t event = 50000; event < 60000; event++)
        ops->event_record(device, event, B);
    ops->stream_wait(device, C, 49999); /* long past */
    ops->handed_out(device, address, AR_KIB, C, false, 2);
    assert_int_equal(device->counters.races, 1);
    ops->stream_wait(device, C, pending); /* still there */
    ops->handed_out(device, address + AR_KIB, AR_KIB, C, false, 3);
    assert_int_equal(device->counters.races, 1);
}

TEST(fences_are_polled_and_waited_for)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    struct ar_backing_ticket idle = ar_backing_fence(backing, A);
    assert_true(ar_backing_done(backing, idle));
    device->ops->kernel(device, A, 100);
    struct ar_backing_ticket first = ar_backing_fence(backing, A);
    device->ops->kernel(device, A, 100);
    struct ar_backing_ticket second = ar_backing_fence(backing, A);
    assert_false(ar_backing_done(backing, first));
    ar_backing_wait(backing, first);
    assert_int_equal(device->ops->now(device), 100);
    assert_int_equal(device->counters.stall_ns, 100);
    assert_true(ar_backing_done(backing, first));
    assert_false(ar_backing_done(backing, second));
    device->ops->advance(device, 100);
    assert_true(ar_backing_done(backing, second));
    ar_backing_wait(backing, first); /* long done: no wait */
    assert_int_equal(device->ops->now(device), 200);
    assert_true(device->counters.calls[AR_DEVICE_CALL_event] >= 9);
}

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

/* A block that A freed under work of 1000 ns goes to B. */
static struct ar_device *free_requested_by_a(uint64_t *address)
{
    struct ar_device *device = sim_test_open("sim");
    *address = sim_test_alloc(device, 4 * AR_MIB);
    assert_int_equal(device->ops->handed_out(device, *address, AR_MIB, A, false, 1), 0);
    device->ops->kernel(device, A, 1000);
    device->ops->used(device, *address, AR_MIB, A, 2);
    return device;
}

TEST(a_race_is_caught)
{
    uint64_t address;
    CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
    /* The same stream, and other memory, are no race. */
    device->ops->handed_out(device, address + AR_MIB, AR_MIB, B, false, 3);
    assert_int_equal(device->counters.races, 0);
    assert_string_equal(device->ops->race_text(device), "");
    assert_int_equal(device->ops->handed_out(device, address + AR_MIB - 512, AR_MIB, B, false, 4),
                     0);
    assert_int_equal(device->counters.races, 1);
    const char *text = device->ops->race_text(device);
    assert_non_null(strstr(text, "event 4:"));
    assert_non_null(strstr(text, "512 bytes that stream 0 may still use"));
    assert_non_null(strstr(text, "freed at event 2"));
    device->ops->handed_out(device, address, AR_MIB - 512, A, false, 5);
    assert_int_equal(device->counters.races, 1);
    assert_int_equal(device->counters.stall_ns, 0);
}

TEST(time_alone_does_not_order)
{
    uint64_t address;
    CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
    device->ops->advance(device, 1000000);
    device->ops->handed_out(device, address, AR_MIB, B, false, 3);
    assert_int_equal(device->counters.races, 1);
}

TEST(ordering_waits_the_right_time)
{
    uint64_t address;
    CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
    const struct ar_device_ops *ops = device->ops;
    uint64_t start_ns = ops->now(device);
    ops->kernel(device, B, 300);
    assert_int_equal(ops->handed_out(device, address, AR_MIB, B, true, 3), 700);
    assert_int_equal(device->counters.stall_ns, 700);
    assert_int_equal(device->counters.races, 0);
    ops->kernel(device, B, 5);
    ops->sync(device, B);
    assert_int_equal(ops->now(device), start_ns + 1005);
    /* B's use comes after A's, so a block for A again only depends on B's. */
    ops->used(device, address, AR_MIB, B, 4);
    ops->event_record(device, 0, B);
    ops->stream_wait(device, A, 0);
    ops->handed_out(device, address, AR_MIB, A, false, 5);
    assert_int_equal(device->counters.races, 0);
}

TEST(a_host_wait_orders)
{
    for (int way = 0; way < 4; way++) {
        uint64_t address;
        CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
        struct ar_backing_ticket ticket = ar_backing_fence(device->backing, A);
        if (way == 0)
            device->ops->sync(device, A);
        else if (way == 1)
            device->ops->sync(device, UINT32_MAX);
        else if (way == 2)
            ar_backing_wait(device->backing, ticket);
        else
            sim_test_free(device, sim_test_alloc(device, 2 * AR_MIB));
        device->ops->handed_out(device, address, AR_MIB, B, false, 3);
        assert_int_equal(device->counters.races, 0);
    }
}

/* A stream waits for an event; the host continues, without learning that the work is done. */
TEST(a_stream_waits_for_a_fence)
{
    uint64_t address;
    CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
    const struct ar_device_ops *ops = device->ops;
    struct ar_backing_ticket ticket = ar_backing_fence(device->backing, A);
    uint64_t start_ns = ops->now(device);
    ops->kernel(device, B, 300);
    ar_backing_order(device->backing, B, ticket);
    assert_int_equal(ops->now(device), start_ns);
    assert_int_equal(device->counters.stall_ns, 700);
    ar_backing_order(device->backing, B, ticket); /* it does so already */
    ar_backing_order(device->backing, A, ticket);
    assert_int_equal(device->counters.stall_ns, 700);
    ops->handed_out(device, address, AR_MIB, B, false, 3);
    assert_int_equal(device->counters.races, 0);
    assert_false(ar_backing_done(device->backing, ticket));
    ops->kernel(device, B, 5);
    ops->sync(device, B);
    assert_int_equal(ops->now(device), start_ns + 1005);
}

TEST(a_fence_before_the_work_does_not)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address = sim_test_alloc(device, AR_MIB);
    struct ar_backing_ticket early = ar_backing_fence(device->backing, A);
    device->ops->handed_out(device, address, AR_MIB, A, false, 0);
    device->ops->kernel(device, A, 10);
    device->ops->used(device, address, AR_MIB, A, 1);
    ar_backing_wait(device->backing, early);
    device->ops->handed_out(device, address, AR_MIB, B, false, 2);
    assert_int_equal(device->counters.races, 1);
}

/* A, event, B, event, C: C comes after A though it never waited for it. D does not. */
TEST(order_is_transitive)
{
    for (uint32_t last = C; last <= D; last++) {
        uint64_t address;
        CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
        const struct ar_device_ops *ops = device->ops;
        ops->event_record(device, 0, A);
        ops->stream_wait(device, B, 0);
        ops->event_record(device, 1, B);
        ops->kernel(device, B, 10);
        ops->stream_wait(device, C, 1);
        ops->handed_out(device, address, AR_MIB, last, false, 3);
        assert_int_equal(device->counters.races, last == D);
    }
}

/* The host knows that B is done, and B came after A: so A is done. */
TEST(what_the_host_knows_is_transitive)
{
    for (int polled = 0; polled < 2; polled++) {
        uint64_t address;
        CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
        device->ops->event_record(device, 0, A);
        device->ops->stream_wait(device, B, 0);
        if (polled) {
            struct ar_backing_ticket ticket = ar_backing_fence(device->backing, B);
            device->ops->advance(device, 2000);
            assert_true(ar_backing_done(device->backing, ticket));
        } else {
            device->ops->sync(device, B);
        }
        device->ops->handed_out(device, address, AR_MIB, C, false, 3);
        assert_int_equal(device->counters.races, 0);
    }
}

TEST(an_event_before_the_use_does_not_order)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address = sim_test_alloc(device, AR_MIB);
    device->ops->event_record(device, 0, A);
    device->ops->handed_out(device, address, AR_MIB, A, false, 0); /* no kernel is ever seen */
    device->ops->used(device, address, AR_MIB, A, 1);
    device->ops->stream_wait(device, B, 0);
    device->ops->handed_out(device, address, AR_MIB, B, false, 2);
    assert_int_equal(device->counters.races, 1);
}

/* Two streams use a block; being after one of them is not enough. */
TEST(every_user_counts)
{
    uint64_t address;
    CLOSED(close_device) struct ar_device *device = free_requested_by_a(&address);
    const struct ar_device_ops *ops = device->ops;
    ops->kernel(device, B, 3000);
    ops->used(device, address + 4096, 4096, B, 2);
    ops->event_record(device, 0, A);
    ops->stream_wait(device, C, 0);
    ops->handed_out(device, address, 4096, C, false, 3);
    assert_int_equal(device->counters.races, 0);
    assert_int_equal(ops->handed_out(device, address + 4096, 8192, C, true, 4), 2000);
    ops->handed_out(device, address + 12288, 4096, D, false, 5);
    assert_int_equal(device->counters.races, 1);
    assert_non_null(strstr(ops->race_text(device), "stream 0 may still use"));
}

/* The same memory, mapped and served at another address. */
TEST(races_follow_the_memory)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    const struct ar_device_ops *ops = device->ops;
    uint64_t range, handle;
    assert_int_equal(ar_backing_reserve(backing, 16 * AR_MIB, &range), AR_OK);
    assert_int_equal(ar_backing_create(backing, 2 * AR_MIB, &handle), AR_OK);
    assert_int_equal(ar_backing_map(backing, range, handle), AR_OK);
    assert_int_equal(ar_backing_map(backing, range + 8 * AR_MIB, handle), AR_OK);
    ops->handed_out(device, range, AR_MIB, A, false, 0);
    assert_int_equal(device->counters.races, 1);
    assert_non_null(strstr(ops->race_text(device), "mapped without access"));
    assert_int_equal(ar_backing_access(backing, range, 2 * AR_MIB), AR_OK);
    assert_int_equal(ar_backing_access(backing, range + 8 * AR_MIB, 2 * AR_MIB), AR_OK);
    ops->kernel(device, A, 1000);
    ops->used(device, range, AR_MIB, A, 1);
    ops->handed_out(device, range + 8 * AR_MIB + 512 * AR_KIB, 4096, B, false, 2);
    assert_int_equal(device->counters.races, 2);
    ops->handed_out(device, range + 9 * AR_MIB, 4096, B, false, 3); /* the other half */
    assert_int_equal(device->counters.races, 2);
    ops->handed_out(device, range + 2 * AR_MIB, 4096, B, false, 4);
    assert_int_equal(device->counters.races, 3); /* nothing is mapped there */
}

TEST(a_stream_beyond_all_bounds)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address;
    device->ops->kernel(device, 300, 10);
    assert_int_equal(device->ops->idle_at(device), 10);
    device->ops->kernel(device, 4000000000u, 10);
    sim_test_misuse(device, ar_backing_segment_alloc(device->backing, 512, &address),
                    "a stream beyond 65535");
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
