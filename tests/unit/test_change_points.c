/* Change points with known answers: steps planted in noise are found where they are, and nothing is
 * found where nothing was planted. */
#include <math.h>

#include "allocators/base/rng.h"
#include "bench/statistics/statistics.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"

#define MOST 400

static const struct change_rules RULES = {.effect = 0.05, .alpha = 0.001};

static size_t find(const double *values, size_t count, enum change_kind kind,
                   const struct change_rules *rules, struct change_point *points)
{
    size_t found = 0;
    assert_ok(change_points_find(values, count, kind, rules, points, &found, &test_error));
    return found;
}

/* `level` with noise of `spread` of it. */
static void noise(struct ar_rng *rng, double *values, size_t count, double level, double spread)
{
    for (size_t i = 0; i < count; i++)
        values[i] = level * exp(spread * ar_rng_normal(rng));
}

/* One measurement in twenty is far off, as on a machine that others use. */
static void disturb(struct ar_rng *rng, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ar_rng_below(rng, 20) == 0)
            values[i] *= 1.5;
}

TEST(an_exact_figure_changes_where_it_differs)
{
    const double values[] = {7, 7, 8, 8, 8, 7};
    struct change_point points[6];
    assert_int_equal(find(values, 6, CHANGE_EXACT, &RULES, points), 2);
    assert_true(points[0].at == 2 && points[0].before == 7 && points[0].after == 8);
    assert_true(points[1].at == 5 && points[1].before == 8 && points[1].after == 7);
    assert_int_equal(find(values, 2, CHANGE_EXACT, &RULES, points), 0);
    assert_int_equal(find(values, 0, CHANGE_EXACT, &RULES, points), 0);
}

/* One byte in 2^40 is a change, and infinity (a run that finished) equals itself. */
TEST(exact_is_exact)
{
    const double bytes[] = {1099511627776.0, 1099511627777.0};
    const double outcomes[] = {(double)INFINITY, (double)INFINITY, 12};
    struct change_point points[3];
    assert_int_equal(find(bytes, 2, CHANGE_EXACT, &RULES, points), 1);
    assert_int_equal(find(outcomes, 3, CHANGE_EXACT, &RULES, points), 1);
    assert_int_equal(points[0].at, 2);
}

/* 0.4 % a commit: from 100 no single step counts, the third is the first beyond 1 %. */
TEST(counts_that_drift_are_seen_when_it_adds_up)
{
    const double values[] = {100, 100.4, 100.8, 101.2, 101.6, 102.0};
    const struct change_rules rules = {.effect = 0.01};
    struct change_point points[6];
    assert_int_equal(find(values, 6, CHANGE_COUNT, &rules, points), 1);
    assert_true(points[0].at == 3 && points[0].before == 100 && points[0].after == 101.2);
    assert_int_equal(find(values, 3, CHANGE_COUNT, &rules, points), 0);
}

TEST(fifty_unchanged_rows_raise_no_alarm)
{
    struct ar_rng rng;
    for (uint64_t seed = 1; seed <= test_amount(50, 50); seed++) {
        double values[50];
        struct change_point points[50];
        ar_rng_seed(&rng, seed);
        noise(&rng, values, 50, 1000, 0.01 + 0.002 * (double)seed);
        disturb(&rng, values, seed % 2 ? 50 : 0);
        /* As a service would: judged again at every commit. */
        for (size_t count = 1; count <= 50; count++)
            assert_int_equal(find(values, count, CHANGE_TIMED, &RULES, points), 0);
    }
}

/* Of 15 %, up or down, in noise of 1 %; then the same with disturbed values, which beside the step
 * may be taken for some of the other side. */
TEST(a_planted_step_is_found_at_its_place)
{
    struct ar_rng rng;
    for (uint64_t seed = 1; seed <= test_amount(50, 50); seed++) {
        double values[60];
        struct change_point points[60];
        size_t at = 15 + seed % 31;
        double factor = seed % 2 ? 1.15 : 0.85;
        ar_rng_seed(&rng, seed);
        noise(&rng, values, at, 1000, 0.01);
        noise(&rng, values + at, 60 - at, 1000 * factor, 0.01);
        assert_int_equal(find(values, 60, CHANGE_TIMED, &RULES, points), 1);
        assert_int_equal(points[0].at, at);
        assert_true(fabs(points[0].before / 1000 - 1) < 0.02);
        assert_true(fabs(points[0].after / (1000 * factor) - 1) < 0.02);
        assert_true(points[0].p <= RULES.alpha);
        disturb(&rng, values, 60);
        assert_int_equal(find(values, 60, CHANGE_TIMED, &RULES, points), 1);
        assert_in_range(points[0].at, at - 3, at + 3);
    }
}

/* Wherever it stands, also beside an end. */
TEST(a_clean_step_is_found_exactly)
{
    struct ar_rng rng = ar_rng_of(7);
    for (size_t at = CHANGE_LEAST; at <= 40 - CHANGE_LEAST; at++) {
        double values[40];
        struct change_point points[40];
        for (size_t i = 0; i < 40; i++)
            values[i] = (i < at ? 1000 : 1060) + (double)ar_rng_below(&rng, 20);
        assert_int_equal(find(values, 40, CHANGE_TIMED, &RULES, points), 1);
        assert_int_equal(points[0].at, at);
        for (size_t i = 0; i < 40; i++) /* a coarse clock: equal values */
            values[i] = i < at ? 1000 : 1060;
        assert_int_equal(find(values, 40, CHANGE_TIMED, &RULES, points), 1);
        assert_int_equal(points[0].at, at);
    }
}

/* Up, further up, and back, 80 values each: more than the window holds. */
TEST(several_steps_are_told_apart)
{
    struct ar_rng rng = ar_rng_of(3);
    double values[MOST];
    struct change_point points[MOST];
    static const double levels[] = {1000, 1200, 1500, 1000};
    for (size_t i = 0; i < 4; i++)
        noise(&rng, values + 80 * i, 80, levels[i], 0.01);
    assert_int_equal(find(values, 320, CHANGE_TIMED, &RULES, points), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(points[i].at, 80 * (i + 1));
        assert_true(fabs(points[i].before / levels[i] - 1) < 0.02);
        assert_true(fabs(points[i].after / levels[i + 1] - 1) < 0.02);
    }
}

/* A step of 2 % is surely there and does not count; the one of 20 % after it does. */
TEST(a_small_step_hides_no_large_one)
{
    double values[90];
    struct change_point points[90];
    for (size_t i = 0; i < 90; i++)
        values[i] = (i < 30 ? 1000 : i < 60 ? 1020 : 1224) + (double)(i % 5);
    assert_int_equal(find(values, 90, CHANGE_TIMED, &RULES, points), 1);
    assert_int_equal(points[0].at, 60);
}

TEST(one_disturbed_value_is_no_change)
{
    double values[40];
    struct change_point points[40];
    for (size_t i = 0; i < 40; i++)
        values[i] = i == 20 || i == 39 ? 5000 : 1000 + (double)(i % 7);
    assert_int_equal(find(values, 40, CHANGE_TIMED, &RULES, points), 0);
}

/* As often as the delay says, and not one value earlier. */
TEST(the_delay_is_kept)
{
    double values[60];
    struct change_point points[60];
    size_t delay = change_points_delay(30, RULES.alpha);
    /* 26 places times 2 / C(35, 5), 324632 ways: 1.6e-4 */
    assert_int_equal(delay, 5);
    assert_int_equal(change_points_delay(30, 1e-5), 7); /* 28 places, 2 / C(37, 7): 5.4e-6 */
    assert_int_equal(change_points_delay(4, RULES.alpha), 0);
    for (size_t i = 0; i < 60; i++)
        values[i] = (i < 30 ? 1000 : 1200) + (double)(i % 7);
    assert_int_equal(find(values, 30 + delay - 1, CHANGE_TIMED, &RULES, points), 0);
    assert_int_equal(find(values, 30 + delay, CHANGE_TIMED, &RULES, points), 1);
    assert_int_equal(points[0].at, 30);
}

TEST(times_that_are_none_are_refused)
{
    const double values[] = {1, 0, 1};
    struct change_point points[3];
    size_t found = 0;
    assert_int_equal(
        change_points_find(values, 3, CHANGE_TIMED, &RULES, points, &found, &test_error),
        AR_INVALID);
}
