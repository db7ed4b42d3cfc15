#include "allocators/base/rng.h"

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void ar_rng_seed(struct ar_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rng->state[i] = splitmix(&seed);
}

uint64_t ar_rng_next(struct ar_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t ar_rng_below(struct ar_rng *rng, uint64_t bound)
{
    /* Values under 2^64 mod bound would make the low residues more likely. */
    uint64_t refuse = (UINT64_MAX - bound + 1) % bound;
    uint64_t x;
    do
        x = ar_rng_next(rng);
    while (x < refuse);
    return x % bound;
}

uint64_t ar_rng_between(struct ar_rng *rng, uint64_t least, uint64_t most)
{
    uint64_t span = most - least;
    return span == UINT64_MAX ? ar_rng_next(rng) : least + ar_rng_below(rng, span + 1);
}

double ar_rng_unit(struct ar_rng *rng)
{
    return (double)(ar_rng_next(rng) >> 11) * 0x1p-53;
}

uint64_t ar_rng_log_uniform(struct ar_rng *rng, uint64_t least, uint64_t most)
{
    double low = ar_rng_log2((double)least);
    double high = ar_rng_log2((double)most);
    double x = ar_rng_exp2(low + (high - low) * ar_rng_unit(rng));
    uint64_t value = (uint64_t)x;
    return value < least ? least : value > most ? most : value;
}

double ar_rng_normal(struct ar_rng *rng)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += ar_rng_unit(rng);
    return sum;
}

double ar_rng_log_normal(struct ar_rng *rng, double mu, double sigma)
{
    const double log2_e = 1.4426950408889634;
    return ar_rng_exp2((mu + sigma * ar_rng_normal(rng)) * log2_e);
}

double ar_rng_exp2(double x)
{
    /* x = n + f with |f| <= 1/2; 2^f by the series of exp(f ln 2), 16 terms. */
    int n = (int)(x < 0 ? x - 0.5 : x + 0.5);
    double y = (x - n) * 0.6931471805599453;
    double sum = 1.0;
    for (int k = 16; k >= 1; k--)
        sum = 1.0 + sum * y / k;
    for (; n > 0; n--)
        sum *= 2.0;
    for (; n < 0; n++)
        sum *= 0.5;
    return sum;
}

double ar_rng_log2(double x)
{
    /* x = 2^n * m with m in [sqrt 1/2, sqrt 2); ln m = 2 atanh((m - 1) / (m + 1)). */
    int n = 0;
    for (; x >= 1.4142135623730951; n++)
        x *= 0.5;
    for (; x < 0.7071067811865476; n--)
        x *= 2.0;
    double z = (x - 1.0) / (x + 1.0);
    double square = z * z;
    double sum = 0.0;
    for (int k = 31; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return n + 2.0 * z * sum * 1.4426950408889634;
}
