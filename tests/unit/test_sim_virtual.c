/* The simulated device's virtual memory: what each call does, costs, and every misuse. */
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define PAGE (2 * AR_MIB)

static uint64_t reserve(struct ar_device *device, uint64_t bytes)
{
    uint64_t address;
    assert_int_equal(ar_backing_reserve(device->backing, bytes, &address), AR_OK);
    return address;
}

static uint64_t create(struct ar_device *device, uint64_t bytes)
{
    ar_backing_handle handle;
    assert_int_equal(ar_backing_create(device->backing, bytes, &handle), AR_OK);
    return handle;
}

static void map(struct ar_device *device, uint64_t address, uint64_t handle)
{
    assert_int_equal(ar_backing_map(device->backing, address, handle), AR_OK);
}

TEST(costs_are_the_measured_ones)
{
    EACH_ROW (row, 8) {
        CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
        uint64_t bytes = cases_number(&row, 0);
        uint64_t address = reserve(device, bytes);
        uint64_t handle = create(device, bytes);
        map(device, address, handle);
        assert_int_equal(ar_backing_access(device->backing, address, bytes), AR_OK);
        assert_int_equal(ar_backing_unmap(device->backing, address, bytes), AR_OK);
        assert_int_equal(ar_backing_destroy(device->backing, handle), AR_OK);
        assert_int_equal(ar_backing_release(device->backing, address), AR_OK);
        const uint64_t *ns = device->counters.call_ns;
        assert_int_equal(ns[AR_DEVICE_CALL_reserve], cases_number(&row, 1));
        assert_int_equal(ns[AR_DEVICE_CALL_create], cases_number(&row, 2));
        assert_int_equal(ns[AR_DEVICE_CALL_map], cases_number(&row, 3));
        assert_int_equal(ns[AR_DEVICE_CALL_access], cases_number(&row, 4));
        assert_int_equal(ns[AR_DEVICE_CALL_unmap], cases_number(&row, 5));
        assert_int_equal(ns[AR_DEVICE_CALL_destroy], cases_number(&row, 6));
        assert_int_equal(ns[AR_DEVICE_CALL_release], cases_number(&row, 7));
        assert_int_equal(device->counters.driver_ns, device->ops->now(device));
    }
}

/* 512 pages into 1 GiB: access at once took 12.5 ms, unmap 9 ms, all of it a second time
 * elsewhere 16 ms. The model adds up single pages, whose medians come from another run. */
TEST(many_pages_cost_as_many)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address = reserve(device, AR_GIB), again = reserve(device, AR_GIB);
    uint64_t handles[512];
    for (uint64_t i = 0; i < 512; i++)
        map(device, address + i * PAGE, handles[i] = create(device, PAGE));
    assert_int_equal(ar_backing_access(device->backing, address, AR_GIB), AR_OK);
    assert_in_range(device->counters.call_ns[AR_DEVICE_CALL_access], 11900000, 13100000);
    assert_int_equal(device->counters.calls[AR_DEVICE_CALL_access], 1);
    uint64_t before_ns = device->ops->now(device);
    for (uint64_t i = 0; i < 512; i++)
        map(device, again + i * PAGE, handles[i]);
    assert_int_equal(ar_backing_access(device->backing, again, AR_GIB), AR_OK);
    assert_in_range(device->ops->now(device) - before_ns, 15400000, 17000000);
    assert_int_equal(device->counters.physical_bytes, AR_GIB);
    assert_int_equal(ar_backing_unmap(device->backing, address, AR_GIB), AR_OK);
    assert_in_range(device->counters.call_ns[AR_DEVICE_CALL_unmap], 8200000, 9500000);
}

TEST(memory_is_charged_once_until_it_is_unmapped_everywhere)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=64MiB");
    struct ar_backing *backing = device->backing;
    uint64_t range = reserve(device, 1024 * AR_MIB), handle = create(device, 40 * AR_MIB), other;
    assert_int_equal(ar_backing_create(backing, 26 * AR_MIB, &other), AR_REFUSED);
    map(device, range, handle);
    map(device, range + 512 * AR_MIB, handle);
    assert_int_equal(device->counters.physical_bytes, 40 * AR_MIB);
    assert_int_equal(ar_backing_destroy(backing, handle), AR_OK);
    assert_int_equal(ar_backing_unmap(backing, range, 40 * AR_MIB), AR_OK);
    assert_int_equal(device->counters.physical_bytes, 40 * AR_MIB);
    assert_int_equal(ar_backing_unmap(backing, range + 512 * AR_MIB, 40 * AR_MIB), AR_OK);
    assert_int_equal(device->counters.physical_bytes, 0);
    assert_int_equal(device->counters.peak_physical_bytes, 40 * AR_MIB);
    assert_int_equal(ar_backing_create(backing, 64 * AR_MIB, &other), AR_OK);
    assert_true(other != handle);
}

TEST(misuse_of_sizes_and_ranges)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    uint64_t out, range = reserve(device, 16 * AR_MIB), handle = create(device, 4 * AR_MIB);
    sim_test_misuse(device, ar_backing_reserve(backing, PAGE + 1, &out), "no multiple of the page");
    sim_test_misuse(device, ar_backing_create(backing, AR_MIB, &out), "no multiple of the page");
    sim_test_misuse(device, ar_backing_create(backing, 0, &out), "no multiple of the page");
    sim_test_misuse(device, ar_backing_map(backing, range + 512, handle),
                    "not the start of a page");
    sim_test_misuse(device, ar_backing_map(backing, range + 16 * AR_MIB, handle),
                    "in no reserved range");
    sim_test_misuse(device, ar_backing_map(backing, range + 14 * AR_MIB, handle), "beyond the end");
    sim_test_misuse(device, ar_backing_map(backing, range, handle + 1), "never created");
    uint64_t segment = sim_test_alloc(device, 4 * AR_MIB);
    sim_test_misuse(device, ar_backing_map(backing, segment, handle), "in no reserved range");
    sim_test_misuse(device, ar_backing_release(backing, segment), "no reserved range starts");
    sim_test_misuse(device, ar_backing_release(backing, range + PAGE), "no reserved range starts");
    sim_test_misuse(device, ar_backing_destroy(backing, 99), "destroyed before, or never created");
    map(device, range + 4 * AR_MIB, handle);
    sim_test_misuse(device, ar_backing_map(backing, range + PAGE, handle),
                    "overlaps what is mapped");
    sim_test_misuse(device, ar_backing_map(backing, range + 6 * AR_MIB, handle), "overlaps what");
    sim_test_misuse(device, ar_backing_release(backing, range), "are mapped; unmap them first");
    assert_int_equal(ar_backing_destroy(backing, handle), AR_OK);
    sim_test_misuse(device, ar_backing_destroy(backing, handle), "destroyed before");
    sim_test_misuse(device, ar_backing_map(backing, range + 8 * AR_MIB, handle),
                    "destroyed before");
}

TEST(misuse_of_mappings)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    uint64_t range = reserve(device, 32 * AR_MIB);
    uint64_t first = create(device, 4 * AR_MIB), second = create(device, 4 * AR_MIB);
    map(device, range, first);
    map(device, range + 8 * AR_MIB, second);
    sim_test_misuse(device, ar_backing_access(backing, range, 12 * AR_MIB), "nothing is mapped at");
    sim_test_misuse(device, ar_backing_access(backing, range, PAGE), "only a part");
    sim_test_misuse(device, ar_backing_access(backing, range, 5), "no multiple");
    sim_test_misuse(device, ar_backing_unmap(backing, range + PAGE, PAGE), "only a part");
    sim_test_misuse(device, ar_backing_unmap(backing, range + 4 * AR_MIB, 4 * AR_MIB),
                    "nothing is mapped");
    sim_test_misuse(device, ar_backing_unmap(backing, range, 12 * AR_MIB), "nothing is mapped");
    assert_int_equal(ar_backing_unmap(backing, range, 4 * AR_MIB), AR_OK);
    sim_test_misuse(device, ar_backing_unmap(backing, range, 4 * AR_MIB), "nothing is mapped");
    assert_int_equal(ar_backing_unmap(backing, range + 8 * AR_MIB, 4 * AR_MIB), AR_OK);
    assert_int_equal(ar_backing_release(backing, range), AR_OK);
    sim_test_misuse(device, ar_backing_release(backing, range), "released before");
    assert_int_equal(device->counters.physical_bytes, 8 * AR_MIB);
}

TEST(unmap_under_pending_work)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    uint64_t range = reserve(device, 32 * AR_MIB), handle = create(device, 4 * AR_MIB);
    map(device, range, handle);
    map(device, range + 16 * AR_MIB, handle);
    assert_int_equal(ar_backing_access(backing, range, 4 * AR_MIB), AR_OK);
    device->ops->kernel(device, 1, 5000000);
    device->ops->used(device, range + AR_MIB, 1000, 1, 42);
    struct ar_backing_ticket ticket = ar_backing_fence(backing, 1);
    sim_test_misuse(device, ar_backing_unmap(backing, range, 4 * AR_MIB),
                    "stream 1 may still use it");
    sim_test_misuse(device, ar_backing_unmap(backing, range, 4 * AR_MIB), "freed at event 42");
    /* Passed time is not enough: the host has not looked. */
    device->ops->advance(device, 6000000);
    sim_test_misuse(device, ar_backing_unmap(backing, range, 4 * AR_MIB), "may still use it");
    /* The other mapping of the same memory was not used. */
    assert_int_equal(ar_backing_unmap(backing, range + 16 * AR_MIB, 4 * AR_MIB), AR_OK);
    assert_true(ar_backing_done(backing, ticket));
    assert_int_equal(ar_backing_unmap(backing, range, 4 * AR_MIB), AR_OK);
}

/* A copy waits for all work and takes the time of the profile: on the card, or at 10 bytes for a
 * nanosecond from or to the host. It is counted as a wait. */
TEST(copies)
{
    struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    uint64_t range = reserve(device, 32 * AR_MIB);
    char host[1];
    map(device, range, create(device, 16 * AR_MIB));
    sim_test_misuse(device, ar_backing_copy(backing, range, range + PAGE, PAGE),
                    "nothing is mapped and usable at");
    assert_int_equal(ar_backing_access(backing, range, 16 * AR_MIB), AR_OK);
    sim_test_misuse(device, ar_backing_copy(backing, range + 15 * AR_MIB, range, PAGE),
                    "a copy at");
    sim_test_misuse(device, ar_backing_copy_out(backing, host, range + 16 * AR_MIB, 1), "a copy");
    sim_test_misuse(device, ar_backing_copy_in(backing, range + 16 * AR_MIB, host, 1), "a copy");
    device->ops->kernel(device, 1, 5000000);
    uint64_t begun_ns = device->ops->now(device);
    assert_int_equal(ar_backing_copy(backing, range, range + 8 * AR_MIB, 8 * AR_MIB), AR_OK);
    uint64_t ended_ns = device->ops->now(device);
    assert_in_range(ended_ns - begun_ns, 5000000, 5050000);
    assert_int_equal(device->counters.stall_ns, ended_ns - begun_ns);
    begun_ns = ended_ns;
    assert_int_equal(ar_backing_copy_out(backing, host, range, 8 * AR_MIB), AR_OK);
    ended_ns = device->ops->now(device);
    assert_in_range(ended_ns - begun_ns, 8 * AR_MIB / 10, 8 * AR_MIB / 10 + 20000);
    assert_int_equal(ar_backing_copy_in(backing, range, host, 8 * AR_MIB), AR_OK);
    assert_int_equal(device->ops->now(device) - ended_ns, ended_ns - begun_ns);
    ar_device_close(device);
}
