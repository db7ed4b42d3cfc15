/* Many driver allocations of the simulated device. Rules and costs: tests/steps/sim_memory. */
#include "tests/support/sim.h"
#include "tests/support/test.h"

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
