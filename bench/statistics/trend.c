#include "bench/statistics/statistics.h"

#include <math.h>

#include "allocators/base/rng.h"

#define RESAMPLES 999

double trend_slope(const double *x, const double *y, size_t count)
{
    double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
    for (size_t i = 0; i < count; i++) {
        mean_x += x[i] / (double)count;
        mean_y += (y[i] - y[0]) / (double)count; /* equal values have a slope of exactly 0 */
    }
    for (size_t i = 0; i < count; i++) {
        xy += (x[i] - mean_x) * (y[i] - y[0] - mean_y);
        xx += (x[i] - mean_x) * (x[i] - mean_x);
    }
    return xx > 0 ? xy / xx : 0;
}

/* ---- the test ---- */

/* The means of up to TREND_BLOCKS blocks. Returns their number. */
static size_t block_means(const double *values, size_t count, double *means)
{
    size_t blocks = count < TREND_BLOCKS ? count : TREND_BLOCKS;
    for (size_t block = 0; block < blocks; block++) {
        size_t from = block * count / blocks, end = (block + 1) * count / blocks;
        double above = 0; /* so that the mean of equal values is exact */
        for (size_t i = from; i < end; i++)
            above += values[i] - values[from];
        means[block] = values[from] + above / (double)(end - from);
    }
    return blocks;
}

/* Adds Kendall's statistic of a series and its variance, with ties. */
static void add_kendall(const double *values, size_t count, double *sum, double *variance)
{
    double n = (double)count, ties = 0;
    for (size_t i = 0; i < count; i++) {
        size_t equal = 0;
        bool first = true;
        for (size_t j = 0; j < count; j++) {
            equal += values[j] == values[i];
            first &= j >= i || values[j] != values[i];
            if (j > i)
                *sum += (values[j] > values[i]) - (values[j] < values[i]);
        }
        double t = (double)equal;
        if (first)
            ties += t * (t - 1) * (2 * t + 5);
    }
    *variance += (n * (n - 1) * (2 * n + 5) - ties) / 18;
}

double trend_test(const double *values, size_t series, size_t count)
{
    double sum = 0, variance = 0, means[TREND_BLOCKS];
    for (size_t i = 0; i < series; i++) {
        size_t blocks = block_means(values + i * count, count, means);
        add_kendall(means, blocks, &sum, &variance);
    }
    if (variance <= 0 || fabs(sum) <= 1)
        return 1;
    return erfc((fabs(sum) - 1) / sqrt(variance) / sqrt(2));
}

/* ---- intervals ---- */

/* The regularized incomplete beta function, by its continued fraction (Lentz's method; Abramowitz
 * and Stegun 26.5.8). */
static double beta_part(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    if (x > (a + 1) / (a + b + 2))
        return 1 - beta_part(b, a, 1 - x);
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a;
    double c = 1, d = 1 / fmax(1 - (a + b) * x / (a + 1), 1e-300), f = d;
    for (int m = 1; m < 300; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        f *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        f *= c * d;
    }
    return front * f;
}

/* The value at which beta_part(a, b, .) is `part`, by bisection. */
static double beta_quantile(double a, double b, double part)
{
    double low = 0, high = 1;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (beta_part(a, b, middle) < part)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Student's t that is exceeded, to both sides, with probability 1 - TREND_LEVEL. */
static double student(double freedom)
{
    double x = beta_quantile(freedom / 2, 0.5, 1 - TREND_LEVEL);
    return sqrt(freedom * (1 - x) / x);
}

/* Of the values, or of their logarithms. */
static struct trend_interval interval_of(const double *values, size_t count, bool logs)
{
    double mean = 0, middle = 0, squares = 0, least = values[0], most = values[0];
    for (size_t i = 0; i < count; i++) {
        mean += (values[i] - values[0]) / (double)count;
        middle += (logs ? log(values[i] / values[0]) : values[i] - values[0]) / (double)count;
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    mean += values[0];
    if (count < 2 || most <= least)
        return (struct trend_interval){mean, least, most};
    for (size_t i = 0; i < count; i++)
        squares += pow((logs ? log(values[i] / values[0]) : values[i] - values[0]) - middle, 2);
    double reach = student((double)(count - 1)) *
                   sqrt(squares / (double)(count - 1) * (1 + 1 / (double)count));
    double low = logs ? values[0] * exp(middle - reach) : mean - reach,
           high = logs ? values[0] * exp(middle + reach) : mean + reach;
    return (struct trend_interval){mean, fmin(low, least), fmax(high, most)};
}

struct trend_interval trend_of_seeds(const double *values, size_t count)
{
    return interval_of(values, count, false);
}

struct trend_interval trend_of_levels(const double *values, size_t count)
{
    bool positive = true;
    for (size_t i = 0; i < count; i++)
        positive &= values[i] > 0;
    return interval_of(values, count, positive);
}

/* The length of the blocks of the bootstrap: the cube root of the number of values. */
static size_t block_length(size_t count)
{
    size_t length = 1;
    while ((length + 1) * (length + 1) * (length + 1) <= count)
        length++;
    return length;
}

enum ar_status trend_of_series(const double *x, const double *y, size_t count,
                               struct trend_interval *out, struct ar_error *error)
{
    struct ar_rng rng = ar_rng_of(1);
    *out = (struct trend_interval){0};
    if (count < 3)
        return AR_OK;
    AR_FREED double *again = malloc((count + 1) * sizeof *again);
    AR_FREED double *slopes = malloc(RESAMPLES * sizeof *slopes);
    AR_TRY_MEMORY(again && slopes, error, "a trend");
    size_t length = block_length(count - 1);
    for (size_t i = 0; i < RESAMPLES; i++) {
        again[0] = y[0];
        for (size_t at = 1; at < count;) {
            size_t from = 1 + (size_t)ar_rng_below(&rng, count - length);
            for (size_t j = 0; j < length && at < count; j++, at++)
                again[at] = again[at - 1] + y[from + j] - y[from + j - 1];
        }
        slopes[i] = trend_slope(x, again, count);
    }
    statistic_sort(slopes, RESAMPLES);
    size_t beyond = (size_t)((1 - TREND_LEVEL) / 2 * (RESAMPLES + 1));
    *out = (struct trend_interval){trend_slope(x, y, count), slopes[beyond - 1],
                                   slopes[RESAMPLES - beyond]};
    return AR_OK;
}

struct trend_interval trend_of_count(size_t hits, size_t count)
{
    double k = (double)hits, n = (double)count, part = (1 - TREND_LEVEL) / 2;
    return (struct trend_interval){
        .estimate = count ? k / n : 0,
        .low = hits ? beta_quantile(k, n - k + 1, part) : 0,
        .high = hits < count ? beta_quantile(k + 1, n - k, 1 - part) : 1,
    };
}
