/* The search for capacities, compared with brute force: every multiple of 2 MiB. Known ones:
 * tests/steps/explain. */
#include "sim/search/search.h"
#include "tests/support/amount.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"

#define UNIT   (2 * AR_MIB)
#define POINTS 512

enum { NO_FLUSH = 1, NO_RETRY = 2 };

/* Of the multiples of 2 MiB from `start_bytes` to the end of the grid, which ones pass, and which
 * do so without flush or retry. */
static size_t brute_force(const char *policy, const char *workload, uint64_t start_bytes,
                          bool *passes, unsigned *without)
{
    size_t count = 0;
    for (uint64_t at = start_bytes; at <= capacity_grid_end(start_bytes); at += UNIT) {
        char device[64];
        CLOSED(experiment_rig_close) struct experiment_rig rig;
        snprintf(device, sizeof device, "sim:capacity=%llu", (unsigned long long)at);
        experiment_rig_open(&rig, policy, device, workload);
        rig.experiment.measure = REPLAY_METRICS_NONE;
        experiment_rig_run(&rig);
        assert_true(count < POINTS);
        passes[count] = rig.result.passed;
        without[count] = 0;
        if (rig.result.passed)
            without[count] = (rig.result.metrics.at[METRIC_flushes].integer ? 0 : NO_FLUSH) |
                             (rig.result.metrics.at[METRIC_retries].integer ? 0 : NO_RETRY);
        count++;
    }
    return count;
}

/* The capacity from which on all show the bit; 0: the last one does not. */
static uint64_t always_from(const unsigned *without, size_t count, unsigned bit,
                            uint64_t start_bytes)
{
    size_t first = count;
    while (first && without[first - 1] & bit)
        first--;
    return first < count ? start_bytes + first * UNIT : 0;
}

/* Small workloads, where the grid itself has steps of 2 MiB: the answers must be the same. */
static size_t compare(const char *policy, const char *workload)
{
    bool passes[POINTS];
    unsigned without[POINTS];
    struct experiment_rig rig;
    struct capacity_result found;
    experiment_rig_open(&rig, policy, "sim:capacity=4GiB", workload);
    assert_int_equal(capacity_find(&rig.experiment, 2, &found, &rig.error), AR_OK);
    uint64_t start_bytes = ar_size_round_up(found.live_peak_bytes, UNIT);
    assert_true(start_bytes <= 40 * AR_MIB);
    size_t count = brute_force(policy, workload, start_bytes, passes, without);
    uint64_t first_bytes = 0, safe_bytes = 0;
    size_t gaps = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = start_bytes + i * UNIT;
        if (passes[i] && !first_bytes)
            first_bytes = at;
        if (passes[i] && (i == 0 || !passes[i - 1]))
            safe_bytes = at;
        if (!passes[i] && first_bytes) {
            safe_bytes = 0;
            if (passes[i - 1])
                assert_int_equal(found.gaps[gaps].from_bytes, at);
            if (i + 1 == count || passes[i + 1])
                assert_int_equal(found.gaps[gaps++].to_bytes, at);
        }
    }
    assert_int_equal(found.first_pass_bytes, first_bytes);
    assert_int_equal(found.safe_bytes, safe_bytes);
    assert_int_equal(found.gap_count, gaps);
    assert_int_equal(found.no_flush_bytes, always_from(without, count, NO_FLUSH, start_bytes));
    assert_int_equal(found.no_retry_bytes, always_from(without, count, NO_RETRY, start_bytes));
    capacity_result_close(&found);
    experiment_rig_close(&rig);
    return gaps;
}

TEST(the_search_finds_what_brute_force_finds)
{
    static const char *const policies[] = {"growth:framework=jax", "first-fit", "direct", "torch",
                                           "cupy"};
    size_t gaps = 0;
    for (size_t i = 0; i < COUNT(policies); i++)
        for (int seed = 1; seed <= (int)test_amount(8, 8); seed++) {
            char workload[128];
            snprintf(workload, sizeof workload,
                     "random:events=600,target=30MiB,min=64KiB,max=16MiB,seed=%d", seed);
            gaps += compare(policies[i], workload);
        }
    print_message("%zu gaps\n", gaps);
    assert_true(gaps > 0); /* passing is not monotone, and the test has a case of it */
}

static void capacity_of(const char *policy, const char *workload, unsigned jobs,
                        struct capacity_result *found)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_open(&rig, policy, "sim", workload);
    if (capacity_find(&rig.experiment, jobs, found, &rig.error))
        fail_msg("%s", rig.error.text);
}

TEST(the_number_of_workers_changes_nothing)
{
    struct capacity_result one, many;
    const char *workload = "random:events=400,target=700MiB,min=1MiB,max=200MiB,seed=3";
    capacity_of("growth", workload, 1, &one);
    capacity_of("growth", workload, 5, &many);
    assert_int_equal(one.live_peak_bytes, many.live_peak_bytes);
    assert_int_equal(one.first_pass_bytes, many.first_pass_bytes);
    assert_int_equal(one.safe_bytes, many.safe_bytes);
    assert_int_equal(one.runs, many.runs);
    assert_int_equal(one.gap_count, many.gap_count);
    for (size_t i = 0; i < one.gap_count; i++) {
        assert_int_equal(one.gaps[i].from_bytes, many.gaps[i].from_bytes);
        assert_int_equal(one.gaps[i].to_bytes, many.gaps[i].to_bytes);
    }
    capacity_result_close(&one);
    capacity_result_close(&many);
}
