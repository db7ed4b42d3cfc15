/* Medians and their intervals against values of the binomial tables; places by intervals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/placed_rows.h"
#include "bench/statistics/statistics.h"

/* The values 1 to n, in an order that is none. */
static struct statistic of_first(size_t n)
{
    double *values = calloc(n, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[(i * 7919) % n] = (double)(i + 1);
    struct statistic statistic = statistic_of(values, n);
    free(values);
    return statistic;
}

/* n, rank from below, level: from tables of the binomial distribution. */
static void intervals_are_those_of_the_tables(void **state)
{
    (void)state;
    static const struct {
        size_t n, rank;
        double level;
    } rows[] = {{6, 1, 0.96875},   {7, 1, 0.984375},   {8, 1, 0.992188},
                {9, 2, 0.960938},  {10, 2, 0.978516},  {15, 4, 0.964844},
                {20, 6, 0.958611}, {30, 10, 0.957226}, {100, 40, 0.964800}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct statistic statistic = of_first(rows[i].n);
        assert_true(statistic.has_interval);
        assert_true(statistic.low == (double)rows[i].rank);
        assert_true(statistic.high == (double)(rows[i].n + 1 - rows[i].rank));
        assert_true(fabs(statistic.level - rows[i].level) < 1e-5);
    }
}

static void few_values_have_no_interval(void **state)
{
    (void)state;
    for (size_t n = 1; n < 6; n++) {
        struct statistic statistic = of_first(n);
        assert_false(statistic.has_interval);
        assert_true(statistic.least == 1 && statistic.most == (double)n);
        assert_true(statistic.median == (double)((n + 1) / 2));
    }
    assert_int_equal(statistic_of(NULL, 0).count, 0);
}

static void large_counts_are_no_trouble(void **state)
{
    (void)state;
    struct statistic statistic = of_first(10000);
    assert_true(statistic.has_interval && statistic.level >= 0.95 && statistic.level < 0.96);
    assert_true(statistic.low == 4902 && statistic.high == 5099);
}

static struct statistic between(double low, double high)
{
    return (struct statistic){.count = 6, .has_interval = true, .low = low, .high = high};
}

static void places_are_stated_by_intervals(void **state)
{
    (void)state;
    const struct statistic of[] = {
        between(1, 2), between(3, 5), between(5, 6), between(7, 8), {.count = 3}};
    static const size_t wanted[] = {1, 2, 2, 4, 0};
    static const bool wanted_shared[] = {false, true, true, false, false};
    size_t places[5];
    bool shared[5];
    statistic_places(of, 5, places, shared);
    assert_memory_equal(places, wanted, sizeof wanted);
    assert_memory_equal(shared, wanted_shared, sizeof wanted_shared);
}

/* Six draws that do the same to both: ranges overlap widely, and one has less in each pair. */
static void pairs_tell_apart_what_ranges_do_not(void **state)
{
    (void)state;
    double room[9];
    const double a[] = {10, 20, 30, 40, 50, 60};
    const double b[] = {11, 21, 31, 41, 51, 61};
    assert_int_equal(statistic_pair_order(a, b, 6, room), -1);
    assert_int_equal(statistic_pair_order(b, a, 6, room), 1);
    assert_int_equal(statistic_pair_order(a, a, 6, room), 0);
    /* five have no interval: their ranges decide, which overlap here and do not there */
    assert_int_equal(statistic_pair_order(a, b, 5, room), 0);
    const double c[] = {51, 52, 53, 54, 55};
    assert_int_equal(statistic_pair_order(a, c, 5, room), -1);
    assert_int_equal(statistic_pair_order(c, a, 5, room), 1);
    assert_int_equal(statistic_pair_order(a, c, 0, room), 0);
}

/* Of six pairs all must point one way, of nine all but one, as in the binomial tables; a pair of
 * equal ones points no way. */
static void one_pair_of_nine_may_differ(void **state)
{
    (void)state;
    double room[9];
    const double nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    double other[] = {2, 2, 2, 2, 2, 0, 2, 2, 2};
    assert_int_equal(statistic_pair_order(nine, other, 9, room), -1);
    assert_int_equal(statistic_pair_order(nine, other, 6, room), 0);
    other[0] = 1;
    assert_int_equal(statistic_pair_order(nine, other, 9, room), 0);
}

/* a below b below c in every pair; d is not told apart from b and c; e has none. */
static void places_are_stated_by_pairs(void **state)
{
    (void)state;
    const double rows[] = {1,   10, 2,  9,  3,  8,  /* a */
                           2,   11, 3,  10, 4,  9,  /* b */
                           20,  13, 20, 11, 20, 10, /* c */
                           19,  11, 19, 11, 19, 10, /* d */
                           NAN, 0,  0,  0,  0,  0}; /* e */
    static const size_t wanted[] = {1, 2, 3, 2, 0};
    static const bool wanted_shared[] = {false, true, true, true, false};
    size_t places[5];
    bool shared[5];
    double room[6];
    statistic_places_paired(rows, 5, 6, room, places, shared);
    assert_memory_equal(places, wanted, sizeof wanted);
    assert_memory_equal(shared, wanted_shared, sizeof wanted_shared);
}

/* By the median; what has none stands last, in the order in which it came. */
static void rows_stand_by_their_medians(void **state)
{
    const struct {
        double low, median, high; /* median 0: none */
    } given[] = {{5, 6, 7}, {0, 0, 0}, {1, 2, 3}, {0, 0, 0}, {2, 4, 5}};
    const size_t places[] = {1, 1, 2, 0, 0};
    const size_t wanted[] = {2, 4, 0, 1, 3};
    const bool shared[] = {true, true, true, false, false};
    struct placed_rows rows;
    struct ar_error error;
    (void)state;
    assert_int_equal(placed_rows_open(&rows, 5, &error), AR_OK);
    for (size_t i = 0; i < 5; i++) {
        bool has = given[i].median > 0;
        placed_rows_add(&rows, (struct placed_row){.runs = i,
                                                   .by = {.count = has,
                                                          .median = given[i].median,
                                                          .has_interval = has,
                                                          .low = given[i].low,
                                                          .high = given[i].high}});
    }
    placed_rows_place(&rows);
    assert_int_equal(rows.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(rows.items[i].runs, wanted[i]);
        assert_int_equal(rows.items[i].place, places[i]);
        assert_int_equal(rows.items[i].shared, shared[i]);
    }
    placed_rows_close(&rows);
}

static struct run_record run(const char *policy, unsigned repetition, uint64_t seed, bool passed,
                             uint64_t physical)
{
    struct run_record record = {.policy_spec = policy,
                                .workload_spec = "w",
                                .device_spec = "sim",
                                .repetition = repetition,
                                .seed = seed,
                                .passed = passed,
                                .cause = REPLAY_CAUSE_CAPACITY};
    metric_set(&record.metrics, METRIC_peak_physical_bytes, physical);
    return record;
}

/* Draws stand in another order in the second policy; the third did not finish in each, and the
 * fourth, of which every pair has more than the others', comes first. */
static void rows_are_placed_by_their_draws(void **state)
{
    (void)state;
    struct run_record runs[24];
    for (uint64_t i = 0; i < 6; i++) {
        runs[i] = run("d", 0, 1 + i, true, 1000 + 100 * i);
        runs[6 + i] = run("a", 0, 1 + i, true, 100 * i);
        runs[12 + i] = run("b", 0, 6 - i, true, 100 * (5 - i) + 1);
        runs[18 + i] = run("c", 0, 1 + i, i != 3, 5);
    }
    struct placed_rows rows;
    struct ar_error error;
    assert_int_equal(placed_rows_open(&rows, 24, &error), AR_OK);
    for (size_t i = 0; i < 24; i += 6) {
        struct placed_row row = {.first = &runs[i], .runs = 6, .passed = i == 18 ? 5 : 6};
        if (row.passed == 6)
            row.by =
                statistic_over_draws(&runs[i], runs + 24, METRIC_peak_physical_bytes, rows.values);
        placed_rows_add(&rows, row);
    }
    placed_rows_place_paired(&rows, runs + 24, METRIC_peak_physical_bytes);
    static const char *const order[] = {"a", "b", "d", "c"};
    static const size_t places[] = {1, 2, 3, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(rows.items[i].first->policy_spec, order[i]);
        assert_int_equal(rows.items[i].place, places[i]);
        assert_false(rows.items[i].shared);
    }
    placed_rows_close(&rows);
}

static void repetitions_become_one(void **state)
{
    (void)state;
    const struct run_record runs[] = {run("a", 0, 1, true, 30), run("a", 1, 1, true, 10),
                                      run("a", 2, 1, true, 20), run("b", 0, 1, true, 99),
                                      run("b", 1, 1, false, 5), run("a", 0, 2, true, 7)};
    double values[6];
    struct run_record one = statistic_record(&runs[0], runs + 6, values);
    assert_true(one.passed);
    assert_int_equal(one.metrics.at[METRIC_peak_physical_bytes].integer, 20);
    assert_int_equal(one.metrics.at[METRIC_slowdown].kind, METRIC_NULL);
    assert_false(statistic_record(&runs[3], runs + 6, values).passed);
    assert_int_equal(statistic_gather(&runs[5], runs + 6, METRIC_peak_physical_bytes, values).count,
                     1);
    assert_false(statistic_same_run(&runs[0], &runs[5]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_those_of_the_tables),
        cmocka_unit_test(few_values_have_no_interval),
        cmocka_unit_test(large_counts_are_no_trouble),
        cmocka_unit_test(places_are_stated_by_intervals),
        cmocka_unit_test(pairs_tell_apart_what_ranges_do_not),
        cmocka_unit_test(one_pair_of_nine_may_differ),
        cmocka_unit_test(places_are_stated_by_pairs),
        cmocka_unit_test(rows_stand_by_their_medians),
        cmocka_unit_test(rows_are_placed_by_their_draws),
        cmocka_unit_test(repetitions_become_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
