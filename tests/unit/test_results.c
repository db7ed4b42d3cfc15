/* The results of a suite: grouping and medians, pairs of replicates, places in the tables. */
#include "bench/report/result_writers.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

static struct run_record run_of(const char *policy, uint64_t seed, uint64_t reserved_bytes)
{
    struct run_record record = {
        .policy_spec = policy,
        .workload_spec = "random",
        .device_spec = "sim",
        .drawn_device_spec = "sim",
        .ranked = true,
        .seed = seed,
        .passed = true,
        .cause = REPLAY_CAUSE_CAPACITY,
    };
    metric_set(&record.metrics, METRIC_peak_reserved_bytes, reserved_bytes);
    metric_set(&record.metrics, METRIC_peak_physical_bytes, reserved_bytes);
    return record;
}

static struct results grouped(const struct run_record *runs, size_t count)
{
    struct results results;
    assert_ok(results_open(&results, runs, count, &test_error));
    return results;
}

/* ---- groups --------------------------------------------------------------------------------- */

TEST(runs_have_four_levels)
{
    struct run_record runs[] = {run_of("a", 1, 1), run_of("a", 2, 1), run_of("b", 1, 1),
                                run_of("b", 2, 1), run_of("c", 1, 1), run_of("c", 2, 1),
                                run_of("a", 1, 1), run_of("a", 2, 1)};
    runs[6].workload_spec = runs[7].workload_spec = "another";
    struct results results = grouped(runs, 8);
    assert_int_equal(results.group_count, 2);
    assert_int_equal(results.policies_most, 3);
    assert_true(results.replicated && !results.repeated);
    assert_int_equal(results.groups[0].policy_count, 3);
    assert_ptr_equal(results.groups[0].policies[1].runs[0], &runs[2]);
    assert_int_equal(results.groups[0].policies[2].replicate_count, 2);
    assert_ptr_equal(results.groups[0].policies[2].medians[1], &runs[5]);
    assert_ptr_equal(results.groups[1].runs, &runs[6]);
    assert_int_equal(results.groups[1].run_count, 2);
    assert_true(result_group_has_pairs(&results.groups[0]));
    assert_false(result_group_has_pairs(&results.groups[1]));
    results_close(&results);
    results = grouped(NULL, 0);
    assert_int_equal(results.group_count, 0);
    results_close(&results);
}

TEST(repetitions_become_one)
{
    struct run_record runs[] = {run_of("a", 1, 30), run_of("a", 1, 10), run_of("a", 1, 20),
                                run_of("a", 2, 40), run_of("b", 1, 99), run_of("b", 1, 5)};
    runs[1].repetition = runs[5].repetition = 1;
    runs[2].repetition = 2;
    runs[5].passed = false;
    CLOSED(results_close) struct results results = grouped(runs, 6);
    const struct result_policy *a = &results.groups[0].policies[0];
    const struct result_policy *b = &results.groups[0].policies[1];
    assert_true(results.repeated);
    assert_int_equal(a->replicate_count, 2);
    assert_int_equal(a->passed_count, 2);
    assert_int_equal(a->replicates[0].run_count, 3);
    assert_true(a->medians[0]->passed);
    assert_int_equal(a->medians[0]->metrics.at[METRIC_peak_physical_bytes].integer, 20);
    assert_int_equal(a->medians[0]->metrics.at[METRIC_slowdown].kind, METRIC_NULL);
    assert_int_equal(a->medians[1]->metrics.at[METRIC_peak_reserved_bytes].integer, 40);
    assert_int_equal(
        runs_statistic(&a->runs[3], 1, METRIC_peak_physical_bytes, results.values).count, 1);
    assert_ptr_equal(b->medians[0], &runs[5]); /* the first that failed */
    assert_ptr_equal(b->median, &runs[5]);
    assert_int_equal(b->passed_count, 0);
    assert_int_equal(b->replicates[0].passed_count, 1);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* The reserved bytes of "a" and "b" with each seed; "b" has its seeds in another order. */
static const uint64_t first[] = {100, 100, 100, 100, 100, 100, 100};
static const uint64_t second[] = {50, 100, 200, 80, 90, 70, 60};
#define SEEDS COUNT(first)

static void fill(struct run_record *runs)
{
    for (size_t i = 0; i < SEEDS; i++) {
        runs[i] = run_of("a", i + 1, first[i]);
        runs[2 * SEEDS - 1 - i] = run_of("b", i + 1, second[i]);
    }
}

/* "b" compared with "a". */
static struct result_pairs pairs_of(const struct run_record *runs, enum metric metric)
{
    struct results results = grouped(runs, 2 * SEEDS);
    const struct result_policy *policies = results.groups[0].policies;
    struct result_pairs pairs = result_pairs_of(&policies[1], &policies[0], metric, results.values);
    results_close(&results);
    return pairs;
}

TEST(seeds_make_the_pairs)
{
    struct run_record runs[2 * SEEDS];
    fill(runs);
    runs[2].metrics.at[METRIC_peak_reserved_bytes].integer = 400; /* seed 3: 200 by 400 */
    struct result_pairs pairs = pairs_of(runs, METRIC_peak_reserved_bytes);
    assert_int_equal(pairs.ratio.count, 7);
    assert_int_equal(pairs.less, 6);
    assert_int_equal(pairs.equal, 1);
    assert_int_equal(pairs.more, 0);
    /* 0.5 0.5 0.6 0.7 0.8 0.9 1; seven values: from the least to the most */
    assert_true(pairs.ratio.median > 0.6999 && pairs.ratio.median < 0.7001);
    assert_true(pairs.ratio.has_interval);
    assert_true(pairs.ratio.low > 0.4999 && pairs.ratio.low < 0.5001);
    assert_true(pairs.ratio.high > 0.9999 && pairs.ratio.high < 1.0001);
    /* -200 -50 -40 -30 -20 -10 0: differences stand in another order than ratios */
    assert_int_equal(pairs.difference.count, 7);
    assert_true(pairs.difference.median == -30 && pairs.difference.has_interval);
    assert_true(pairs.difference.low == -200 && pairs.difference.high == 0);
}

TEST(what_one_of_them_lacks_is_no_pair)
{
    struct run_record runs[2 * SEEDS];
    fill(runs);
    runs[0].passed = false;                                            /* "a", seed 1 */
    runs[SEEDS].passed = false;                                        /* "b", seed 7 */
    runs[2].metrics.at[METRIC_peak_reserved_bytes].kind = METRIC_NULL; /* "a", seed 3 */
    runs[3].metrics.at[METRIC_peak_reserved_bytes].integer = 0;        /* "a", seed 4 */
    runs[4].seed = 99;                                                 /* "a", seed 5 */
    struct result_pairs pairs = pairs_of(runs, METRIC_peak_reserved_bytes);
    /* seeds 2, 4 and 6 are left: 100, 80 and 70 by 100, 0 and 100. One by 0 is no ratio; of two
     * the lower is the median */
    assert_int_equal(pairs.difference.count, 3);
    assert_true(pairs.difference.least == -30 && pairs.difference.median == 0 &&
                pairs.difference.most == 80);
    assert_int_equal(pairs.ratio.count, 2);
    assert_int_equal(pairs.less, 1);
    assert_int_equal(pairs.equal, 1);
    assert_int_equal(pairs.more, 1);
    assert_true(pairs.ratio.median > 0.6999 && pairs.ratio.median < 0.7001);
    assert_false(pairs.ratio.has_interval);
    pairs = pairs_of(runs, METRIC_slowdown);
    assert_int_equal(pairs.ratio.count + pairs.difference.count, 0);
    assert_int_equal(pairs.less + pairs.equal + pairs.more, 0);
}

static bool have_pairs(const struct run_record *runs, size_t count)
{
    struct results results = grouped(runs, count);
    bool have = results_have_pairs(&results);
    results_close(&results);
    return have;
}

TEST(pairs_need_replicates_and_policies)
{
    struct run_record runs[2 * SEEDS];
    fill(runs);
    assert_true(have_pairs(runs, 2 * SEEDS));
    assert_false(have_pairs(runs, SEEDS)); /* one policy */
    struct run_record single[] = {run_of("a", 1, 1), run_of("b", 1, 1)};
    assert_false(have_pairs(single, 2));
    single[1].workload_spec = "another"; /* two groups */
    single[1].seed = 2;
    assert_false(have_pairs(single, 2));
}

/* ---- the slowdown that is compared ---------------------------------------------------------- */

static struct metric_value real(double value)
{
    return (struct metric_value){.kind = METRIC_REAL, .real = value};
}

/* A run that passed, with so many steps in two seconds. */
static struct run_record steps_of(double steps)
{
    struct run_record record = {.passed = true};
    record.metrics.at[METRIC_device_time_ns] = real(2e9);
    record.metrics.at[METRIC_steps_per_s] = real(steps / 2);
    record.metrics.at[METRIC_slowdown] = real(1.3);
    record.metrics.at[METRIC_steady_slowdown] = real(1.01);
    return record;
}

TEST(steady_where_all_have_it)
{
    struct run_record runs[] = {steps_of(2), steps_of(100), steps_of(7)};
    assert_int_equal(slowdown_metric_of(runs, 3), METRIC_steady_slowdown);
    assert_int_equal(slowdown_metric_of(runs, 1), METRIC_steady_slowdown);
}

TEST(whole_where_one_lacks_it)
{
    struct run_record runs[] = {steps_of(7), steps_of(7), steps_of(7)};
    runs[1].metrics.at[METRIC_steady_slowdown] = (struct metric_value){.kind = METRIC_NULL};
    assert_int_equal(slowdown_metric_of(runs, 3), METRIC_slowdown);
    assert_int_equal(slowdown_metric_of(runs + 2, 1), METRIC_steady_slowdown);
}

/* The only step is the first one, in which libraries load. */
TEST(one_step_is_not_steady)
{
    struct run_record runs[] = {steps_of(1), steps_of(1)};
    assert_int_equal(slowdown_metric_of(runs, 2), METRIC_slowdown);
}

TEST(a_run_that_did_not_finish_does_not_count)
{
    struct run_record runs[] = {{.passed = false}, steps_of(7), {.passed = false}};
    assert_int_equal(slowdown_metric_of(runs, 3), METRIC_steady_slowdown);
    assert_int_equal(slowdown_metric_of(runs, 1), METRIC_slowdown);
    assert_int_equal(slowdown_metric_of(runs, 0), METRIC_slowdown);
}

/* ---- places in the tables ------------------------------------------------------------------- */

/* The first two columns of each row that has a policy, in the order of the table: "1= a". */
static void places_are(result_table *print, const struct run_record *runs, size_t count,
                       const char *const *wanted, size_t wanted_count)
{
    CLOSED(results_close) struct results results = grouped(runs, count);
    struct capture capture;
    char *rest = NULL, place[8], policy[8];
    size_t row = 0;
    assert_ok(print(&results, capture_begin(&capture), TABLE_TEXT, &test_error));
    FREED char *text = capture_end(&capture);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char shown[20];
        if (sscanf(line, "%7s %7s", place, policy) != 2 || !strchr("-123", place[0]))
            continue;
        snprintf(shown, sizeof shown, "%s %s", place, policy);
        assert_true(row < wanted_count);
        assert_string_equal(shown, wanted[row]);
        row++;
    }
    assert_int_equal(row, wanted_count);
}

/* By the median of the slowdown. Six repetitions: their interval is from the least to the most. A
 * policy without a slowdown comes last, in the order of the runs. */
TEST(rows_are_in_the_order_of_their_medians)
{
    static const double slowdowns[5][3] = {{5, 6, 7}, {0}, {1, 2, 3}, {0}, {2, 4, 5}};
    static const char *const policies[] = {"p0", "p1", "p2", "p3", "p4"};
    static const char *const wanted[] = {"1= p2", "1= p4", "2= p0", "- p1", "- p3"};
    struct run_record runs[30];
    for (size_t i = 0; i < 30; i++) {
        runs[i] = run_of(policies[i / 6], 1, 1);
        runs[i].repetition = (unsigned)(i % 6);
        if (slowdowns[i / 6][0] > 0)
            metric_set_real(&runs[i].metrics, METRIC_slowdown, slowdowns[i / 6][i % 6 / 2]);
    }
    places_are(repetitions_table_print, runs, 30, wanted, 5);
}

/* The seeds are in another order in the second policy; the third did not finish with each, and the
 * fourth, which has more than the others in every pair, comes first. */
TEST(rows_are_placed_by_their_pairs)
{
    static const char *const wanted[] = {"1 a", "2 b", "3 d", "- c"};
    struct run_record runs[24];
    for (uint64_t i = 0; i < 6; i++) {
        runs[i] = run_of("d", 1 + i, 1000 + 100 * i);
        runs[6 + i] = run_of("a", 1 + i, 100 * i);
        runs[12 + i] = run_of("b", 6 - i, 100 * (5 - i) + 1);
        runs[18 + i] = run_of("c", 1 + i, 5);
        runs[18 + i].passed = i != 3;
    }
    places_are(spread_table_print, runs, 24, wanted, 4);
}
