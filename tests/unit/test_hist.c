/* The histogram compared with a sorted array: quantiles within the stated error, exact extremes. */
#include "allocators/base/hist.h"
#include "allocators/base/rng.h"
#include "tests/support/test.h"

#define VALUES 20000

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

TEST(buckets_tile_all_numbers)
{
    assert_int_equal(ar_hist_bucket_least(0), 0);
    for (uint32_t i = 0; i + 1 < AR_HIST_BUCKETS; i++) {
        uint64_t least = ar_hist_bucket_least(i), most = ar_hist_bucket_most(i);
        assert_int_equal(ar_hist_bucket(least), i);
        assert_int_equal(ar_hist_bucket(most), i);
        assert_int_equal(ar_hist_bucket_least(i + 1), most + 1);
        assert_true(most - least <= least / 64);
    }
    assert_int_equal(ar_hist_bucket(UINT64_MAX), AR_HIST_BUCKETS - 1);
    assert_true(ar_hist_bucket_most(AR_HIST_BUCKETS - 1) == UINT64_MAX);
}

TEST(quantiles_lie_within_the_stated_error)
{
    static const double fractions[] = {0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
    FREED struct ar_hist *hist = calloc(1, sizeof *hist);
    FREED uint64_t *values = malloc(VALUES * sizeof *values);
    struct ar_rng rng = ar_rng_of(7);
    for (int i = 0; i < VALUES; i++) {
        values[i] = ar_rng_log_uniform(&rng, 1, UINT64_C(1) << 50);
        ar_hist_add(hist, values[i], 1);
    }
    qsort(values, VALUES, sizeof *values, by_size);
    for (unsigned i = 0; i < COUNT(fractions); i++) {
        double exact = fractions[i] * VALUES;
        size_t rank = (size_t)exact + ((double)(size_t)exact < exact);
        uint64_t truth = values[rank ? rank - 1 : 0], found = ar_hist_quantile(hist, fractions[i]);
        uint64_t off = found > truth ? found - truth : truth - found;
        assert_true(off <= truth / 128 + 1);
    }
    assert_int_equal(ar_hist_quantile(hist, 1), values[VALUES - 1]);
    assert_int_equal(hist->least, values[0]);
}

TEST(small_numbers_are_exact)
{
    FREED struct ar_hist *hist = calloc(1, sizeof *hist);
    for (uint64_t value = 1; value <= 100; value++)
        ar_hist_add(hist, value, 1);
    assert_int_equal(ar_hist_quantile(hist, 0.5), 50);
    assert_int_equal(ar_hist_quantile(hist, 0.9), 90);
    assert_int_equal(ar_hist_quantile(hist, 0.99), 99);
    assert_int_equal(ar_hist_quantile(hist, 0), 1);
}

TEST(merging_is_adding)
{
    struct ar_hist *all = calloc(1, sizeof *all), *left = calloc(1, sizeof *left),
                   *right = calloc(1, sizeof *right);
    struct ar_rng rng = ar_rng_of(3);
    for (int i = 0; i < 1000; i++) {
        uint64_t value = ar_rng_below(&rng, 1000000), times = ar_rng_below(&rng, 3);
        ar_hist_add(all, value, times);
        ar_hist_add(i % 2 ? left : right, value, times);
    }
    ar_hist_merge(left, right);
    assert_memory_equal(all, left, sizeof *all);
    ar_hist_clear(right);
    assert_int_equal(ar_hist_quantile(right, 0.5), 0);
    ar_hist_merge(left, right);
    assert_memory_equal(all, left, sizeof *all);
    free(all);
    free(left);
    free(right);
}
