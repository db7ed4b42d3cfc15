/* The search for capacities, compared with brute force: every multiple of 2 MiB. */
#include "sim/search/search.h"
#include "tests/support/amount.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

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

/* Edges between coarse points are found to 2 MiB. */
TEST(edges_are_refined)
{
    struct capacity_result found;
    capacity_of("direct", "linear_ramp:live=1", 2, &found);
    assert_int_equal(found.live_peak_bytes, 640 * AR_MIB);
    assert_int_equal(found.first_pass_bytes, 640 * AR_MIB);
    assert_int_equal(found.safe_bytes, 640 * AR_MIB);
    assert_int_equal(found.no_flush_bytes, 640 * AR_MIB); /* all capacities, the first one too */
    assert_int_equal(found.no_retry_bytes, 640 * AR_MIB);
    assert_int_equal(found.gap_count, 0);
    capacity_result_close(&found);
    /* 512 MiB of 8 MiB blocks, every second freed, then 16 MiB: nothing fits between. */
    capacity_of("first-fit", "checkerboard", 2, &found);
    assert_int_equal(found.safe_bytes, 528 * AR_MIB);
    capacity_result_close(&found);
}

/* A small program passes at the first segments of the policy, which are larger than four times its
 * live peak. */
TEST(a_small_program_passes_somewhere)
{
    struct capacity_result found;
    capacity_of("torch", "random:events=20,target=64KiB,min=1KiB,max=16KiB", 2, &found);
    assert_int_equal(found.first_pass_bytes, 2 * AR_MIB);
    capacity_result_close(&found);
    capacity_of("torch", "random:events=6,target=2MiB,min=1100KiB,max=1200KiB", 2, &found);
    assert_true(found.live_peak_bytes < 3 * AR_MIB);
    assert_int_equal(found.first_pass_bytes, 20 * AR_MIB);
    assert_int_equal(found.safe_bytes, 20 * AR_MIB);
    capacity_result_close(&found);
}

static void capacity_of_events(const char *policy, const char *events,
                               struct capacity_result *found)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_over(&rig, policy, "sim", tiny_trace(events));
    if (capacity_find(&rig.experiment, 1, found, &rig.error))
        fail_msg("%s", rig.error.text);
}

/* Blocks of 502 and 498 MiB, the first freed, then 504 MiB: 1504 MiB are needed, between two points
 * of the grid that are 6 MiB apart. */
TEST(the_last_two_mib_are_found)
{
    CLOSED(capacity_result_close) struct capacity_result found;
    capacity_of_events("first-fit", "a,0,526385152 a,1,522190848 f,0 a,2,528482304", &found);
    assert_int_equal(found.live_peak_bytes, 1002 * AR_MIB);
    assert_int_equal(found.first_pass_bytes, 1504 * AR_MIB);
    assert_int_equal(found.safe_bytes, 1504 * AR_MIB);
}

/* 2 and 1 MiB, the first freed, then 3 MiB behind them: the second point of the grid. And 502 MiB
 * that PyTorch caches while it asks for 600: without flush both must fit, between two points. */
TEST(edges_at_the_begin_and_without_flush)
{
    struct capacity_result found;
    capacity_of_events("first-fit", "a,0,2097152 a,1,1048576 f,0 a,2,3145728", &found);
    assert_int_equal(found.live_peak_bytes, 4 * AR_MIB);
    assert_int_equal(found.first_pass_bytes, 6 * AR_MIB);
    capacity_result_close(&found);
    capacity_of_events("torch", "a,0,526385152 f,0 a,1,629145600", &found);
    assert_int_equal(found.first_pass_bytes, 600 * AR_MIB);
    assert_int_equal(found.no_flush_bytes, 1102 * AR_MIB);
    assert_int_equal(found.no_retry_bytes, 1102 * AR_MIB);
    capacity_result_close(&found);
}

/* TensorFlow leaves 225 MiB to the system, from 2 GiB on 1800 MiB: 560 MiB are served below, and
 * not up to the end of the grid at four times the live peak. So no capacity of it is safe. */
TEST(a_gap_up_to_the_end_leaves_no_safe_capacity)
{
    CLOSED(capacity_result_close) struct capacity_result found;
    capacity_of_events("growth", "a,0,587202560 f,0", &found);
    assert_in_range(found.first_pass_bytes, 785 * AR_MIB, 790 * AR_MIB);
    assert_int_equal(found.gap_count, 1);
    assert_int_equal(found.gaps[0].from_bytes, 2048 * AR_MIB);
    assert_int_equal(found.gaps[0].to_bytes, 2240 * AR_MIB);
    assert_int_equal(found.safe_bytes, 0);
}

TEST(an_adaptive_workload_is_written_down_once)
{
    CLOSED(capacity_result_close) struct capacity_result found;
    capacity_of("direct", "robson", 2, &found);
    assert_true(found.safe_bytes >= found.live_peak_bytes);
    assert_true(found.runs > 1);
}

TEST(a_policy_within_its_own_limit_may_never_pass)
{
    CLOSED(capacity_result_close) struct capacity_result found;
    capacity_of("growth:limit=100MiB", "linear_ramp:live=1", 1, &found);
    assert_int_equal(found.first_pass_bytes, 0);
    assert_int_equal(found.safe_bytes, 0);
    assert_int_equal(found.gap_count, 0);
}
