/* The known answers through the whole program: generator, engine, policy, and the simulated
 * device with the profile `bump`. Sums are derived in workloads/gen/known_answer.md. */
#include "sim/replay.h"
#include "tests/support/test.h"
#include "workloads/workload.h"

static const char *const fits[] = {"first-fit", "best-fit"};

/* Runs one experiment; the caller closes the result. */
static void run(const char *workload, const char *policy, const char *device,
                struct replay_result *result)
{
    struct ar_spec specs[2];
    struct ar_device_props props;
    struct experiment experiment = {
        .policy = &specs[0], .device = &specs[1], .measure = REPLAY_METRICS_EXACT};
    if (ar_spec_parse(policy, &specs[0], &test_error) ||
        ar_spec_parse(device, &specs[1], &test_error) ||
        workload_open(workload, &experiment.source, &test_error))
        fail_msg("%s", test_error.text);
    if (experiment_run(&experiment, result, &props, &test_error) != AR_OK)
        fail_msg("%s under %s: %s", workload, policy, test_error.text);
    trace_close(experiment.source);
    ar_spec_close(&specs[0]);
    ar_spec_close(&specs[1]);
}

static uint64_t peak_reserved(const char *workload, const char *policy)
{
    struct replay_result result;
    run(workload, policy, "sim:profile=bump", &result);
    assert_true(result.passed);
    uint64_t peak = result.metrics.at[METRIC_peak_reserved_bytes].integer;
    assert_int_equal(result.metrics.at[METRIC_peak_physical_bytes].integer, peak);
    replay_result_close(&result);
    return peak;
}

TEST(both_fits)
{
    for (int fit = 0; fit < 2; fit++) {
        assert_int_equal(peak_reserved("order_flip", fits[fit]), 128 * AR_MIB);
        assert_int_equal(peak_reserved("pool_boundary", fits[fit]), 2 * AR_MIB);
        assert_int_equal(peak_reserved("linear_ramp:live=1", fits[fit]), 640 * AR_MIB);
        assert_int_equal(peak_reserved("linear_ramp:live=2", fits[fit]), 1872 * AR_MIB);
        assert_int_equal(peak_reserved("sawtooth:factor=2", fits[fit]), 8176 * AR_MIB);
        assert_int_equal(peak_reserved("checkerboard:count=64,bytes=8MiB", fits[fit]),
                         528 * AR_MIB);
    }
}

TEST(growth)
{
    assert_int_equal(peak_reserved("order_flip", "growth"), 256 * AR_MIB);
    assert_int_equal(peak_reserved("pool_boundary", "growth"), 2 * AR_MIB);
    assert_int_equal(peak_reserved("linear_ramp", "growth"), 2032 * AR_MIB);
    assert_int_equal(peak_reserved("sawtooth", "growth"), 8176 * AR_MIB);
}

TEST(robson)
{
    for (int fit = 0; fit < 2; fit++) {
        assert_int_equal(peak_reserved("robson:m=1024,n=16", fits[fit]), 3057);
        assert_int_equal(peak_reserved("robson:m=1024,n=64", fits[fit]), 4033);
        assert_int_equal(peak_reserved("robson:m=1024,n=256", fits[fit]), 4865);
        assert_int_equal(peak_reserved("robson:m=4096,n=64", fits[fit]), 16321);
        assert_int_equal(peak_reserved("robson:m=4096,n=256", fits[fit]), 20225);
        assert_int_equal(peak_reserved("robson:m=4096,n=1024", fits[fit]), 23553);
        assert_int_equal(peak_reserved("robson:m=16384,n=1024", fits[fit]), 97281);
    }
}

TEST(checkerboard_at_capacity)
{
    for (int fit = 0; fit < 2; fit++) {
        CLOSED(replay_result_close) struct replay_result result;
        run("checkerboard", fits[fit], "sim:profile=bump,capacity=512MiB", &result);
        assert_false(result.passed);
        assert_int_equal(result.cause, REPLAY_CAUSE_FRAGMENTATION);
        assert_int_equal(result.first_failed_bytes, 16 * AR_MIB);
        /* 64 requests, 32 frees, then the one that fails. */
        assert_int_equal(result.first_failed_event, 96);
        assert_int_equal(result.metrics.at[METRIC_failed_by_fragmentation].integer, 1);
    }
}

/* The generators that imitate programs pass, and their kernels give the steps a length. */
TEST(programs)
{
    static const char *const workloads[] = {"embedding:steps=20", "gradient_tape:steps=6",
                                            "matmul_cache:repeat=2"};
    for (int i = 0; i < 3; i++) {
        CLOSED(replay_result_close) struct replay_result result;
        run(workloads[i], "growth", "sim:profile=h100", &result);
        assert_true(result.passed);
        assert_true(result.steps > 5);
        assert_true(metric_number(&result.metrics, METRIC_slowdown, 0) >= 1);
    }
}
