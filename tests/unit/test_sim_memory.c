/* The simulated device's driver allocations: costs at the measured points, shared pages,
 * capacity, what waits, the cleaning of freed memory. Expected times are the measurements. */
#include "tests/support/sim.h"
#include "tests/support/test.h"

/* Host time that the next call takes. */
static uint64_t alloc_ns(struct ar_device *device, uint64_t bytes, uint64_t *address)
{
    uint64_t before_ns = device->ops->now(device);
    *address = sim_test_alloc(device, bytes);
    return device->ops->now(device) - before_ns;
}

static uint64_t free_ns(struct ar_device *device, uint64_t address)
{
    uint64_t before_ns = device->ops->now(device);
    sim_test_free(device, address);
    return device->ops->now(device) - before_ns;
}

/* One size allocated and freed repeatedly, and several together: the two ways of measuring. */
TEST(costs_are_the_measured_ones)
{
    EACH_ROW (row, 5) {
        CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
        uint64_t first, second;
        assert_int_equal(alloc_ns(device, cases_number(&row, 0), &first), cases_number(&row, 2));
        assert_int_equal(free_ns(device, first), cases_number(&row, 3));
        assert_int_equal(alloc_ns(device, cases_number(&row, 0), &first), cases_number(&row, 1));
        assert_int_equal(alloc_ns(device, cases_number(&row, 0), &second), cases_number(&row, 2));
        assert_int_equal(free_ns(device, first), cases_number(&row, 4));
        assert_int_equal(free_ns(device, second), cases_number(&row, 3));
    }
}

TEST(small_ones_cost_a_page_or_a_share)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t first, second;
    (void)alloc_ns(device, 4096, &first);
    assert_int_equal(free_ns(device, first), 28380);
    assert_int_equal(alloc_ns(device, 4096, &first), 31680);
    assert_int_equal(alloc_ns(device, 4096, &second), 1120);
    assert_int_equal(free_ns(device, second), 1230);
    assert_int_equal(alloc_ns(device, 256, &second), 2020);
}

TEST(sizes_between_lie_between)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address, before_ns = 94440;
    /* Held costs fall from 94.44 us at 64 MiB to 60.48 us at 256 MiB. */
    for (uint64_t bytes = 66 * AR_MIB; bytes < 256 * AR_MIB; bytes += 2 * AR_MIB) {
        uint64_t ns = alloc_ns(device, bytes, &address);
        assert_true(ns < before_ns && ns > 60480);
        before_ns = ns;
    }
    /* In log-log the middle of a line is the geometric mean of its ends. */
    assert_in_range(alloc_ns(device, 128 * AR_MIB, &address), 75574, 75576);
}

TEST(small_ones_share_pages)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    const struct ar_device_counters *count = &device->counters;
    uint64_t addresses[40];
    for (int i = 0; i < 40; i++)
        addresses[i] = sim_test_alloc(device, 64 * AR_KIB);
    /* 32 of 64 KiB fill a page of 2 MiB. */
    assert_int_equal(count->physical_bytes, 4 * AR_MIB);
    for (int i = 1; i < 40; i++)
        assert_true(addresses[i] >= addresses[i - 1] + 64 * AR_KIB);
    for (int i = 32; i < 40; i++)
        sim_test_free(device, addresses[i]);
    assert_int_equal(count->physical_bytes, 2 * AR_MIB);
    /* The space of a freed one is found again, without a new page. */
    sim_test_free(device, addresses[7]);
    assert_int_equal(sim_test_alloc(device, 64 * AR_KIB - 100), addresses[7]);
    assert_int_equal(count->physical_bytes, 2 * AR_MIB);
    sim_test_free(device, addresses[7]);
    for (int i = 0; i < 32; i++)
        if (i != 7)
            sim_test_free(device, addresses[i]);
    assert_int_equal(count->physical_bytes, 0);
    assert_int_equal(count->peak_physical_bytes, 4 * AR_MIB);
}

/* Random sizes against the sum of pages that hold at least one of them. */
TEST(pages_are_charged_once)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t held[64] = {0}, bytes[64];
    uint32_t random = 1;
    for (int step = 0; step < 4000; step++) {
        random = random * 1664525u + 1013904223u;
        uint32_t slot = random >> 26;
        if (held[slot]) {
            sim_test_free(device, held[slot]);
            held[slot] = 0;
        } else {
            bytes[slot] = 1 + (random >> 4) % (2 * AR_MIB - 1);
            held[slot] = sim_test_alloc(device, bytes[slot]);
        }
        uint64_t pages[64] = {0}, count = 0;
        for (int i = 0; i < 64; i++) {
            if (!held[i])
                continue;
            uint64_t page = held[i] / (2 * AR_MIB), seen = 0;
            assert_int_equal((held[i] + bytes[i] - 1) / (2 * AR_MIB), page);
            for (uint64_t at = 0; at < count; at++)
                seen += pages[at] == page;
            if (!seen)
                pages[count++] = page;
            for (int other = 0; other < i; other++)
                assert_true(!held[other] || held[other] + bytes[other] <= held[i] ||
                            held[i] + bytes[i] <= held[other]);
        }
        assert_int_equal(device->counters.physical_bytes, count * 2 * AR_MIB);
    }
}

TEST(capacity_refuses)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=10MiB,others=1");
    uint64_t free_bytes, total_bytes, address;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    assert_int_equal(free_bytes, 8 * AR_MIB); /* other processes have a page */
    assert_int_equal(total_bytes, 10 * AR_MIB);
    uint64_t first = sim_test_alloc(device, 5 * AR_MIB); /* three pages */
    assert_int_equal(device->ops->outside(device, 1 * AR_MIB), AR_OK);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 1, &address), AR_REFUSED);
    assert_int_equal(device->counters.refused, 1);
    assert_string_equal(ar_backing_problem(device->backing), ""); /* no misuse */
    assert_int_equal(device->counters.calls[AR_DEVICE_CALL_alloc], 2);
    assert_int_equal(device->ops->outside(device, 3 * AR_MIB), AR_REFUSED);
    assert_int_equal(device->counters.outside_bytes, 2 * AR_MIB);
    assert_int_equal(device->ops->outside(device, 0), AR_OK);
    (void)sim_test_alloc(device, 1);
    sim_test_free(device, first);
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    assert_int_equal(free_bytes, 6 * AR_MIB);
    assert_int_equal(device->counters.peak_physical_bytes, 8 * AR_MIB);
}

TEST(whole_card)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t free_bytes, total_bytes, address;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    assert_int_equal(total_bytes, UINT64_C(85017493504));
    assert_int_equal(device->props.total_bytes, UINT64_C(85017493504));
    assert_int_equal(device->props.capacity_bytes, UINT64_C(84470000000));
    address = sim_test_alloc(device, free_bytes);
    assert_int_equal(address % (2 * AR_MIB), 0);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 1, &address), AR_REFUSED);
    assert_int_equal(ar_backing_segment_alloc(device->backing, UINT64_MAX, &address), AR_REFUSED);
}

TEST(free_waits_for_all_work)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t large = sim_test_alloc(device, 64 * AR_MIB);
    uint64_t small = sim_test_alloc(device, 4096);
    (void)sim_test_alloc(device, 4096);
    uint64_t start_ns = device->ops->now(device);
    device->ops->kernel(device, 3, 20000000);
    (void)sim_test_alloc(device, 2 * AR_MIB); /* does not wait */
    assert_true(device->ops->now(device) < start_ns + 1000000);
    assert_int_equal(device->counters.stall_ns, 0);
    uint64_t driver_ns = device->counters.driver_ns;
    sim_test_free(device, small); /* a free in a shared page does */
    assert_int_equal(device->ops->now(device), start_ns + 20000000 + 1230);
    assert_int_equal(device->counters.driver_ns, driver_ns + 1230);
    /* All time was spent in calls until then: the rest is the wait. */
    assert_int_equal(device->counters.stall_ns, start_ns + 20000000 - driver_ns);
    assert_int_equal(device->ops->idle_at(device), device->ops->now(device));
    sim_test_free(device, large);
}

TEST(calls_cost_more_on_a_busy_card)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address, handle;
    device->ops->kernel(device, 0, 1000000000);
    /* Measured: 193 to 238 us for 2 MiB where an idle card took 43. */
    assert_in_range(alloc_ns(device, 2 * AR_MIB, &address), 160000, 238000);
    assert_int_equal(ar_backing_reserve(device->backing, 2 * AR_MIB, &address), AR_OK);
    assert_int_equal(ar_backing_create(device->backing, 2 * AR_MIB, &handle), AR_OK);
    assert_int_equal(ar_backing_map(device->backing, address, handle), AR_OK);
    assert_int_equal(ar_backing_access(device->backing, address, 2 * AR_MIB), AR_OK);
    assert_in_range(device->counters.call_ns[AR_DEVICE_CALL_access], 46000, 145000);
    assert_int_equal(ar_backing_unmap(device->backing, address, 2 * AR_MIB), AR_OK);
    assert_in_range(device->counters.call_ns[AR_DEVICE_CALL_unmap], 79000, 141000);
    assert_int_equal(device->counters.stall_ns, 0);
}

TEST(freed_memory_is_cleaned_first)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    uint64_t address, handle;
    /* 40 GiB: 2 to 17 ms; just after a free of the same size 115 to 120 ms. */
    assert_in_range(alloc_ns(device, 40 * AR_GIB, &address), 2000000, 17000000);
    sim_test_free(device, address);
    uint64_t driver_ns = device->counters.driver_ns;
    uint64_t stall_ns = device->counters.stall_ns;
    assert_in_range(alloc_ns(device, 40 * AR_GIB, &address), 115000000, 120000000);
    assert_in_range(device->counters.driver_ns - driver_ns, 2000000, 17000000);
    assert_true(device->counters.stall_ns - stall_ns > 110000000);
    sim_test_free(device, address);
    device->ops->advance(device, 200000000);
    assert_in_range(alloc_ns(device, 40 * AR_GIB, &address), 2000000, 17000000);
    sim_test_free(device, address);
    device->ops->advance(device, 200000000);
    /* 8 GiB by create: least 73 us, most 39.9 ms. */
    uint64_t before_ns = device->ops->now(device);
    assert_int_equal(ar_backing_create(device->backing, 8 * AR_GIB, &handle), AR_OK);
    assert_int_equal(device->ops->now(device) - before_ns, 73200);
    assert_int_equal(ar_backing_destroy(device->backing, handle), AR_OK);
    before_ns = device->ops->now(device);
    assert_int_equal(ar_backing_create(device->backing, 8 * AR_GIB, &handle), AR_OK);
    assert_in_range(device->ops->now(device) - before_ns, 20000000, 39900000);
}

TEST(small_requests_wait_only_for_what_they_need)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:capacity=1GiB");
    uint64_t address;
    sim_test_free(device, sim_test_alloc(device, AR_GIB));
    /* Nothing of the card is clean: 2 MiB need 5.6 us at 374 GB/s, less the time of the free. */
    uint64_t stall_ns = device->counters.stall_ns;
    (void)alloc_ns(device, 2 * AR_MIB, &address);
    assert_in_range(device->counters.stall_ns - stall_ns, 5600, 5610);
    stall_ns = device->counters.stall_ns;
    (void)alloc_ns(device, 2 * AR_MIB, &address); /* longer than the cleaning */
    assert_int_equal(device->counters.stall_ns, stall_ns);
}

TEST(misuse_has_a_sentence)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_backing *backing = device->backing;
    uint64_t address = sim_test_alloc(device, 4 * AR_MIB), range;
    sim_test_misuse(device, ar_backing_segment_alloc(backing, 0, &range), "no bytes");
    sim_test_misuse(device, ar_backing_segment_free(backing, address + 512),
                    "lies inside segment 0");
    sim_test_misuse(device, ar_backing_segment_free(backing, 77), "where no segment lies");
    assert_int_equal(ar_backing_reserve(backing, 4 * AR_MIB, &range), AR_OK);
    sim_test_misuse(device, ar_backing_segment_free(backing, range), "release the range instead");
    sim_test_free(device, address);
    sim_test_misuse(device, ar_backing_segment_free(backing, address), "it was freed before");
    assert_false(device->bad_input);
}

TEST(segments_are_found_by_address)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct ar_device_segment segment;
    uint64_t large = sim_test_alloc(device, 3 * AR_MIB);
    uint64_t small = sim_test_alloc(device, 1000), range;
    assert_int_equal(ar_backing_reserve(device->backing, 64 * AR_MIB, &range), AR_OK);
    assert_int_equal(device->counters.segments_made, 3);
    assert_true(device->ops->segment_of(device, large + 3 * AR_MIB - 1, &segment));
    assert_int_equal(segment.ordinal, 0);
    assert_int_equal(segment.address, large);
    assert_int_equal(segment.bytes, 3 * AR_MIB);
    assert_true(device->ops->segment_of(device, small + 999, &segment));
    assert_int_equal(segment.ordinal, 1);
    assert_false(device->ops->segment_of(device, small + 1000, &segment));
    assert_true(device->ops->segment_of(device, range + 5, &segment));
    assert_int_equal(segment.ordinal, 2);
    sim_test_free(device, large);
    assert_false(device->ops->segment_of(device, large, &segment));
    assert_int_equal(sim_test_alloc(device, 2 * AR_MIB), range + 64 * AR_MIB);
    assert_true(device->ops->segment_of(device, range + 64 * AR_MIB, &segment));
    assert_int_equal(segment.ordinal, 3);
}

TEST(bump_counts_bytes)
{
    struct ar_device *device = sim_test_open("sim:profile=bump");
    uint64_t address, handle;
    assert_int_equal(sim_test_alloc(device, 1), 0);
    assert_int_equal(sim_test_alloc(device, 10), 1);
    assert_int_equal(sim_test_alloc(device, 3 * AR_MIB), 11);
    sim_test_free(device, 1);
    assert_int_equal(sim_test_alloc(device, 7), 11 + 3 * AR_MIB);
    assert_int_equal(device->counters.physical_bytes, 8 + 3 * AR_MIB);
    assert_int_equal(device->counters.peak_physical_bytes, 11 + 3 * AR_MIB);
    assert_int_equal(device->ops->now(device), 0);
    assert_int_equal(device->counters.driver_ns, 0);
    assert_int_equal(device->counters.calls[AR_DEVICE_CALL_alloc], 4);
    assert_true(device->backing->adjacent);
    assert_int_equal(device->backing->page_bytes, 0);
    assert_int_equal(device->props.capacity_bytes, UINT64_MAX);
    assert_int_equal(ar_backing_reserve(device->backing, 1, &address), AR_UNSUPPORTED);
    assert_int_equal(ar_backing_create(device->backing, 1, &handle), AR_UNSUPPORTED);
    ar_device_close(device);

    device = sim_test_open("sim:profile=bump,capacity=1000");
    (void)sim_test_alloc(device, 999);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 2, &address), AR_REFUSED);
    assert_int_equal(sim_test_alloc(device, 1), 999);
    ar_device_close(device);
}

/* 10^5 segments, freed or not: each call looks at a few of them only. */
TEST(many_segments)
{
    enum { COUNT = 100000 };
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim:profile=bump");
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(sim_test_alloc(device, 16), 16 * i);
    for (uint64_t i = 0; i < COUNT; i += 2)
        sim_test_free(device, 16 * i);
    struct ar_device_segment segment;
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(device->ops->segment_of(device, 16 * i + 3, &segment), i % 2);
    assert_int_equal(device->counters.physical_bytes, COUNT * 8);
}
