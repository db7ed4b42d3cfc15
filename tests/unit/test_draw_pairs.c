/* Draws in pairs: counts, ratios and what makes no pair, against figures worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "bench/report/draw_pairs.h"

static struct run_record run_of(const char *policy, uint64_t seed, uint64_t reserved_bytes)
{
    struct run_record record = {
        .policy_spec = policy,
        .workload_spec = "random",
        .device_spec = "sim",
        .drawn_device_spec = "sim",
        .seed = seed,
        .passed = true,
    };
    record.metrics.at[METRIC_peak_reserved_bytes] =
        (struct metric_value){.kind = METRIC_INTEGER, .integer = reserved_bytes};
    return record;
}

/* Of each draw what "a" and "b" reserve; "b" has its draws in another order. */
static const uint64_t first[] = {100, 100, 100, 100, 100, 100, 100};
static const uint64_t second[] = {50, 100, 200, 80, 90, 70, 60};
#define DRAWS (sizeof first / sizeof first[0])

static void fill(struct run_record *runs)
{
    for (size_t i = 0; i < DRAWS; i++) {
        runs[i] = run_of("a", i + 1, first[i]);
        runs[2 * DRAWS - 1 - i] = run_of("b", i + 1, second[i]);
    }
}

/* "b" against "a". */
static struct draw_pairs pairs_of(const struct run_record *runs, enum metric metric)
{
    double values[2 * DRAWS];
    return draw_pairs_of(&runs[DRAWS], runs, runs + 2 * DRAWS, metric, values);
}

static void seeds_make_the_pairs(void **state)
{
    (void)state;
    struct run_record runs[2 * DRAWS];
    fill(runs);
    runs[2].metrics.at[METRIC_peak_reserved_bytes].integer = 400; /* seed 3: 200 by 400 */
    struct draw_pairs pairs = pairs_of(runs, METRIC_peak_reserved_bytes);
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

static void what_one_of_them_lacks_is_no_pair(void **state)
{
    (void)state;
    struct run_record runs[2 * DRAWS];
    fill(runs);
    runs[0].passed = false;                                            /* "a", seed 1 */
    runs[DRAWS].passed = false;                                        /* "b", seed 7 */
    runs[2].metrics.at[METRIC_peak_reserved_bytes].kind = METRIC_NULL; /* "a", seed 3 */
    runs[3].metrics.at[METRIC_peak_reserved_bytes].integer = 0;        /* "a", seed 4 */
    runs[4].seed = 99;                                                 /* "a", seed 5 */
    struct draw_pairs pairs = pairs_of(runs, METRIC_peak_reserved_bytes);
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

/* What draw_pairs_each() calls for. */
struct visits {
    size_t count;
    const struct run_record *first[4], *base[4], *end[4];
};

static void note(void *argument, const struct run_record *at, const struct run_record *base,
                 const struct run_record *end)
{
    struct visits *visits = argument;
    assert_true(visits->count < 4);
    visits->first[visits->count] = at;
    visits->base[visits->count] = base;
    visits->end[visits->count++] = end;
}

static void each_policy_meets_the_first(void **state)
{
    (void)state;
    struct visits visits = {0};
    struct run_record runs[] = {run_of("a", 1, 1), run_of("a", 2, 1), run_of("b", 1, 1),
                                run_of("b", 2, 1), run_of("c", 1, 1), run_of("c", 2, 1),
                                run_of("a", 1, 1), run_of("a", 2, 1)};
    runs[6].workload_spec = runs[7].workload_spec = "another";
    draw_pairs_each(runs, 8, note, &visits);
    assert_int_equal(visits.count, 2);
    assert_ptr_equal(visits.first[0], &runs[2]);
    assert_ptr_equal(visits.first[1], &runs[4]);
    for (size_t i = 0; i < 2; i++) {
        assert_ptr_equal(visits.base[i], runs);
        assert_ptr_equal(visits.end[i], &runs[6]);
    }
}

static void pairs_want_draws_and_policies(void **state)
{
    (void)state;
    struct run_record runs[2 * DRAWS];
    fill(runs);
    assert_true(draw_pairs_any(runs, 2 * DRAWS));
    assert_false(draw_pairs_any(runs, DRAWS)); /* one policy */
    struct run_record single[] = {run_of("a", 1, 1), run_of("b", 1, 1)};
    assert_false(draw_pairs_any(single, 2));
    single[1].workload_spec = "another"; /* two groups */
    single[1].seed = 2;
    assert_false(draw_pairs_any(single, 2));
}

static void repetitions_are_condensed(void **state)
{
    (void)state;
    struct run_record runs[] = {run_of("a", 1, 10), run_of("a", 1, 30), run_of("a", 1, 20),
                                run_of("a", 2, 40)};
    runs[1].repetition = 1;
    runs[2].repetition = 2;
    size_t kept = 0;
    struct run_record *records = statistic_condense(runs, 4, &kept);
    assert_non_null(records);
    assert_int_equal(kept, 2);
    assert_int_equal(records[0].metrics.at[METRIC_peak_reserved_bytes].integer, 20);
    assert_int_equal(records[1].metrics.at[METRIC_peak_reserved_bytes].integer, 40);
    free(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_make_the_pairs),
        cmocka_unit_test(what_one_of_them_lacks_is_no_pair),
        cmocka_unit_test(each_policy_meets_the_first),
        cmocka_unit_test(pairs_want_draws_and_policies),
        cmocka_unit_test(repetitions_are_condensed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
