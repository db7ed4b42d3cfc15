/* Host time of calls: the policy's, the driver's, the clock's. */
#include "sim/replay/timing.h"
#include "tests/support/test.h"

/* A call of 1000 ns in which the device measured 700 with `readings` of the clock. */
static struct latency *one_call(struct ar_device *device, uint64_t readings)
{
    struct latency *latency = latency_open(device);
    assert_non_null(latency);
    latency->clock_ns = 40;
    latency_begin(latency, device);
    latency->passed_ns = 1000;
    device->counters.driver_ns += 500;
    device->counters.stall_ns += 200;
    device->counters.clock_readings += readings;
    latency_add_alloc(latency, device, 0, (struct latency_place){0});
    latency_begin(latency, device); /* what was before a call is not of it */
    latency->passed_ns = 30;
    latency_add_free(latency, device, 0);
    return latency;
}

TEST(what_the_device_measured_is_not_the_policys)
{
    static const struct {
        uint64_t readings, own_ns;
    } cases[] = {{0, 300}, {2, 260}, {4, 220}, {14, 20}, {16, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ar_device card = {.counters.clock_readings = 1000};
        struct latency *latency = one_call(&card, cases[i].readings);
        assert_int_equal(ar_hist_quantile(&latency->alloc, 1), cases[i].own_ns);
        assert_int_equal(ar_hist_quantile(&latency->alloc_total, 1), 1000);
        assert_int_equal(ar_hist_quantile(&latency->free, 1), 30);
        latency_close(latency);
    }
}

/* The time of a simulated driver was never on the host's clock. */
TEST(modelled_time_is_added_to_the_total)
{
    const uint64_t clock_ns = 0;
    struct ar_device simulated = {.clock_ns = &clock_ns};
    struct latency *latency = one_call(&simulated, 0);
    assert_int_equal(ar_hist_quantile(&latency->alloc, 1), 1000);
    latency_close(latency);
}
