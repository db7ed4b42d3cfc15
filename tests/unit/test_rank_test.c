/* The rank test against known values: without ties those of the published tables, and by hand. */
#include <math.h>

#include "bench/statistics/statistics.h"
#include "tests/support/test.h"

static struct rank_test of(const double *old, size_t old_count, const double *new_,
                           size_t new_count)
{
    struct rank_test test = {0};
    assert_ok(rank_test(old, old_count, new_, new_count, &test, &test_error));
    return test;
}

/* All of one side above the other: 2 of the C(18, 9) = 48620 orders are as extreme. */
TEST(nine_against_nine)
{
    const double old[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const double more[] = {11, 12, 13, 14, 15, 16, 17, 18, 19};
    struct rank_test test = of(old, 9, more, 9);
    assert_true(fabs(test.p - 2.0 / 48620) < 1e-12);
    assert_true(test.delta == 1 && test.low > 1);
    test = of(more, 9, old, 9);
    assert_true(test.delta == -1 && test.high < 1);
}

/* {1, 2} against {3, 4}: 2 of 6. */
TEST(two_against_two)
{
    const double old[] = {1, 2};
    const double more[] = {3, 4};
    assert_true(fabs(of(old, 2, more, 2).p - 2.0 / 6) < 1e-12);
}

/* With ties at mean ranks: {1, 2} against {2, 3} has the ranks 1 2.5 | 2.5 4; sums 6.5 or more from
 * the mean 5 by 1.5: 4+2.5 twice and 1+2.5 twice, of 6. */
TEST(ties_are_counted_exactly)
{
    const double old[] = {1, 2};
    const double more[] = {2, 3};
    assert_true(fabs(of(old, 2, more, 2).p - 4.0 / 6) < 1e-12);
}

/* Forty against forty, shifted: the normal approximation with the correction for continuity and, in
 * the last case, for ties, computed by its formula. */
TEST(large_samples_go_by_the_normal_distribution)
{
    EACH_ROW (row, 2) {
        double old[40], more[40];
        for (int v = 0; v < 40; v++) {
            old[v] = 100 + v;
            more[v] = 100 + v + cases_real(&row, 0);
        }
        assert_true(fabs(of(old, 40, more, 40).p - cases_real(&row, 1)) < 1e-9);
        assert_true(fabs(of(more, 40, old, 40).p - cases_real(&row, 1)) < 1e-9);
    }
}

TEST(the_same_is_no_difference)
{
    const double old[] = {5, 5, 5, 5, 5, 5, 5, 5, 5};
    struct rank_test test = of(old, 9, old, 9);
    assert_true(test.p == 1 && test.delta == 0 && test.ratio == 1 && test.sees == 0);
}

/* The critical value of U at 5 %, two-sided, for 9 and 9 is 17: the interval lies between the 18th
 * quotient from below and from above. */
TEST(the_interval_is_that_of_the_tables)
{
    double old[9];
    double more[9];
    for (int i = 0; i < 9; i++) {
        old[i] = 1;
        more[i] = 10 + i; /* each quotient nine times */
    }
    struct rank_test test = of(old, 9, more, 9);
    assert_true(test.low == 11 && test.high == 17 && test.ratio == 14);
}

TEST(many_are_corrected)
{
    double p[] = {0.01, 0.04, 0.03, 0.005};
    assert_ok(rank_test_holm(p, 4, &test_error));
    assert_true(fabs(p[3] - 0.02) < 1e-12 && fabs(p[0] - 0.03) < 1e-12);
    assert_true(fabs(p[2] - 0.06) < 1e-12 && fabs(p[1] - 0.06) < 1e-12);
}

TEST(what_is_no_factor_is_refused)
{
    struct rank_test test;
    const double values[] = {0, 1};
    assert_int_equal(rank_test(values, 2, values, 2, &test, &test_error), AR_INVALID);
    assert_int_equal(rank_test(values, 0, values + 1, 1, &test, &test_error), AR_INVALID);
}
