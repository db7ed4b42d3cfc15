/* Slopes, the test for a trend and intervals, against published and hand-made values. */
#include <math.h>

#include "bench/statistics/statistics.h"
#include "tests/support/test.h"

static bool is_near(double value, double wanted, double part)
{
    return fabs(value - wanted) <= part * fabs(wanted);
}

TEST(slopes)
{
    const double x[] = {1, 2, 3, 4}, line[] = {5, 7, 9, 11}, flat[] = {0.1, 0.1, 0.1, 0.1};
    assert_true(is_near(trend_slope(x, line, 4), 2, 1e-12));
    assert_true(trend_slope(x, flat, 4) == 0);
    assert_true(trend_slope(x, line, 1) == 0);
}

/* Ten values in order: S = 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / sqrt(125) = 3.9355. */
TEST(a_rise_is_a_trend)
{
    const double rise[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const double turn[] = {1, 3, 5, 7, 9, 10, 8, 6, 4, 2};
    const double flat[] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    assert_true(is_near(trend_test(rise, 1, 10), erfc(44 / sqrt(125) / sqrt(2)), 1e-9));
    assert_true(trend_test(turn, 1, 10) > 0.5);
    assert_true(trend_test(flat, 1, 10) == 1);
}

/* Two series of five: each S = 10, variance 5 * 4 * 15 / 18; together z = 19 / sqrt(2 * 50/3). */
TEST(series_add_up)
{
    const double two[] = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50};
    const double apart[] = {1, 2, 3, 4, 5, 50, 40, 30, 20, 10};
    assert_true(is_near(trend_test(two, 2, 5), erfc(19 / sqrt(100.0 / 3) / sqrt(2)), 1e-9));
    assert_true(trend_test(apart, 2, 5) == 1);
}

/* Five values with mean 3 and deviation sqrt(2.5): t(4, 0.95) = 2.1318 (tables). */
TEST(a_further_run)
{
    const double values[] = {1, 2, 3, 4, 5}, equal[] = {7, 7, 7}, wide[] = {1, 10, 100};
    struct trend_interval interval = trend_of_seeds(values, 5);
    assert_true(is_near(interval.estimate, 3, 1e-12));
    assert_true(is_near(interval.high - 3, 2.13185 * sqrt(2.5 * 1.2), 1e-5));
    assert_true(is_near(3 - interval.low, 2.13185 * sqrt(2.5 * 1.2), 1e-5));
    interval = trend_of_seeds(equal, 3);
    assert_true(interval.low == 7 && interval.high == 7);
    interval = trend_of_levels(wide, 3); /* t(2, 0.95) = 2.91999, of log10: mean 1, deviation 1 */
    assert_true(is_near(interval.low, pow(10, 1 - 2.91999 * sqrt(4.0 / 3)), 1e-4));
    assert_true(is_near(interval.estimate, 37, 1e-12));
}

TEST(one_series)
{
    double x[200], steady[200], noisy[200];
    struct trend_interval interval;
    for (int i = 0; i < 200; i++) {
        x[i] = i;
        steady[i] = 10 + 3 * i;
        noisy[i] = 10 + 3 * i + (i * 7919 % 13);
    }
    assert_ok(trend_of_series(x, steady, 200, &interval, &test_error));
    assert_true(is_near(interval.low, 3, 1e-9) && is_near(interval.high, 3, 1e-9));
    assert_ok(trend_of_series(x, noisy, 200, &interval, &test_error));
    assert_true(interval.low < 3 && interval.high > 3 && is_near(interval.estimate, 3, 0.01));
}

/* Clopper and Pearson at 90 %: 0 of 5 is at most 1 - 0.05^(1/5). */
TEST(counts)
{
    struct trend_interval none = trend_of_count(0, 5), all = trend_of_count(5, 5),
                          half = trend_of_count(5, 10);
    assert_true(none.low == 0 && is_near(none.high, 1 - pow(0.05, 0.2), 1e-9));
    assert_true(all.high == 1 && is_near(all.low, pow(0.05, 0.2), 1e-9));
    assert_true(is_near(half.low, 0.22244, 1e-4) && is_near(half.high, 0.77756, 1e-4));
}
