/* Medians and their intervals against values of the binomial tables; places by intervals. */
#include <math.h>

#include "bench/statistics/statistics.h"
#include "tests/support/test.h"

/* The values 1 to n, in no particular order. */
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
TEST(intervals_are_those_of_the_tables)
{
    EACH_ROW (row, 3) {
        struct statistic statistic = of_first(cases_number(&row, 0));
        assert_true(statistic.has_interval);
        assert_true(statistic.low == (double)cases_number(&row, 1));
        assert_true(statistic.high == (double)(cases_number(&row, 0) + 1 - cases_number(&row, 1)));
        assert_true(fabs(statistic.level - cases_real(&row, 2)) < 1e-5);
    }
}

TEST(few_values_have_no_interval)
{
    for (size_t n = 1; n < 6; n++) {
        struct statistic statistic = of_first(n);
        assert_false(statistic.has_interval);
        assert_true(statistic.least == 1 && statistic.most == (double)n);
        assert_true(statistic.median == (double)((n + 1) / 2));
    }
    assert_int_equal(statistic_of(NULL, 0).count, 0);
}

TEST(large_counts_are_no_trouble)
{
    struct statistic statistic = of_first(10000);
    assert_true(statistic.has_interval && statistic.level >= 0.95 && statistic.level < 0.96);
    assert_true(statistic.low == 4902 && statistic.high == 5099);
}

static struct statistic between(double low, double high)
{
    return (struct statistic){.count = 6, .has_interval = true, .low = low, .high = high};
}

static void places_equal(const struct statistic_place *places, const struct statistic_place *wanted,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(places[i].place, wanted[i].place);
        assert_int_equal(places[i].shared, wanted[i].shared);
    }
}

TEST(places_are_stated_by_intervals)
{
    const struct statistic of[] = {
        between(1, 2), between(3, 5), between(5, 6), between(7, 8), {.count = 3}};
    static const struct statistic_place wanted[] = {
        {1, false}, {2, true}, {2, true}, {4, false}, {0, false}};
    struct statistic_place places[5];
    statistic_places(of, 5, places);
    places_equal(places, wanted, 5);
}

/* Six seeds that affect both alike: ranges overlap widely, and one has less in each pair. */
TEST(pairs_tell_apart_what_ranges_do_not)
{
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
TEST(one_pair_of_nine_may_differ)
{
    double room[9];
    const double nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    double other[] = {2, 2, 2, 2, 2, 0, 2, 2, 2};
    assert_int_equal(statistic_pair_order(nine, other, 9, room), -1);
    assert_int_equal(statistic_pair_order(nine, other, 6, room), 0);
    other[0] = 1;
    assert_int_equal(statistic_pair_order(nine, other, 9, room), 0);
}

/* a below b below c in every pair; d is not told apart from b and c; e has none. */
TEST(places_are_stated_by_pairs)
{
    const double rows[] = {1,   10, 2,  9,  3,  8,  /* a */
                           2,   11, 3,  10, 4,  9,  /* b */
                           20,  13, 20, 11, 20, 10, /* c */
                           19,  11, 19, 11, 19, 10, /* d */
                           NAN, 0,  0,  0,  0,  0}; /* e */
    static const struct statistic_place wanted[] = {
        {1, false}, {2, true}, {3, true}, {2, true}, {0, false}};
    struct statistic_place places[5];
    double room[6];
    statistic_places_paired(rows, 5, 6, room, places);
    places_equal(places, wanted, 5);
}

/* One value each: their order, and those that are equal share a place. */
TEST(one_value_each_has_a_place)
{
    const double rows[] = {5, 3, NAN, 3, 9};
    static const struct statistic_place wanted[] = {
        {3, false}, {1, true}, {0, false}, {1, true}, {4, false}};
    struct statistic_place places[5];
    double room[1];
    statistic_places_paired(rows, 5, 1, room, places);
    places_equal(places, wanted, 5);
}
