/* Random numbers: the published values of the generator, and the shape of each distribution. */
#include <math.h>

#include "allocators/base/rng.h"
#include "tests/support/test.h"

/* xoshiro256** seeded through splitmix64, computed without this code. */
TEST(known_values)
{
    static const struct {
        uint64_t seed, values[3];
    } cases[] = {
        {0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0}},
        {42, {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1}},
    };
    for (int c = 0; c < 2; c++) {
        struct ar_rng rng = ar_rng_of(cases[c].seed);
        for (int i = 0; i < 3; i++)
            assert_true(ar_rng_next(&rng) == cases[c].values[i]);
    }
}

TEST(below_and_between)
{
    struct ar_rng rng = ar_rng_of(1);
    uint64_t seen[10] = {0};
    for (int i = 0; i < 100000; i++)
        seen[ar_rng_below(&rng, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(seen[i], 9600, 10400);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ar_rng_below(&rng, 1), 0);
        assert_in_range(ar_rng_between(&rng, 5, 7), 5, 7);
        assert_true(ar_rng_between(&rng, UINT64_MAX - 1, UINT64_MAX) >= UINT64_MAX - 1);
    }
    (void)ar_rng_between(&rng, 0, UINT64_MAX);
}

TEST(unit)
{
    struct ar_rng rng = ar_rng_of(2);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double x = ar_rng_unit(&rng);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005);
}

/* Each of the 26 doublings from 1 to 2^26 gets one in 26. */
TEST(log_uniform)
{
    struct ar_rng rng = ar_rng_of(3);
    uint64_t seen[27] = {0};
    for (int i = 0; i < 260000; i++) {
        uint64_t x = ar_rng_log_uniform(&rng, 1, UINT64_C(1) << 26);
        assert_in_range(x, 1, UINT64_C(1) << 26);
        seen[63 - __builtin_clzll(x)]++;
    }
    for (int i = 0; i < 26; i++)
        assert_in_range(seen[i], 9500, 10500);
    for (int i = 0; i < 100; i++)
        assert_int_equal(ar_rng_log_uniform(&rng, 7, 7), 7);
}

TEST(normal_and_log_normal)
{
    struct ar_rng rng = ar_rng_of(4);
    double sum = 0;
    double squares = 0;
    int below_median = 0;
    for (int i = 0; i < 100000; i++) {
        double x = ar_rng_normal(&rng);
        sum += x;
        squares += x * x;
        below_median += ar_rng_log_normal(&rng, 2.0, 0.5) < exp(2.0);
    }
    assert_true(fabs(sum / 100000) < 0.015);
    assert_true(fabs(squares / 100000 - 1) < 0.02);
    assert_in_range(below_median, 49300, 50700);
}

TEST(powers_and_logarithms)
{
    for (double x = -40.3; x < 60; x += 0.37) {
        assert_true(fabs(ar_rng_exp2(x) / exp2(x) - 1) < 1e-12);
        assert_true(fabs(ar_rng_log2(exp2(x)) - x) < 1e-11);
    }
    assert_true(ar_rng_exp2(10) == 1024);
    assert_true(ar_rng_log2(1) == 0);
}
