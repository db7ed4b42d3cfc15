/* Random numbers that are the same on every machine: xoshiro256** seeded through splitmix64
 * (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018), and the
 * distributions that workloads draw from. Only IEEE basic operations are used, no libm whose
 * last bit differs between versions. */
#ifndef ALLOCATORS_BASE_RNG_H
#define ALLOCATORS_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);

/* Uniform in [0, bound), without bias; bound above 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);
/* Uniform in [least, most], both inclusive. */
uint64_t rng_between(struct rng *rng, uint64_t least, uint64_t most);
/* Uniform in [0, 1), 53 bits. */
double rng_unit(struct rng *rng);
/* Log-uniform in [least, most], 0 < least <= most: every doubling is equally likely. */
uint64_t rng_log_uniform(struct rng *rng, uint64_t least, uint64_t most);
/* Standard normal (the sum of twelve uniforms minus six: tails end at 6 sigma). */
double rng_normal(struct rng *rng);
/* exp(mu + sigma * normal). */
double rng_log_normal(struct rng *rng, double mu, double sigma);

/* 2^x and log2(x) by basic operations, relative error below 1e-12; |x| < 1000, x > 0. */
double rng_exp2(double x);
double rng_log2(double x);

#endif
