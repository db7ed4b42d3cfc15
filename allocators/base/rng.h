/* Random numbers that are the same on every machine: xoshiro256** with a seed through splitmix64
 * (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018), and the
 * distributions of workloads. They use basic IEEE operations and no libm, whose last bit differs
 * between versions. */
#ifndef ALLOCATORS_BASE_RNG_H
#define ALLOCATORS_BASE_RNG_H

#include <stdint.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

struct ar_rng {
    uint64_t state[4];
};

AR_API void ar_rng_seed(struct ar_rng *rng, uint64_t seed);
/* The same as a value. */
static inline struct ar_rng ar_rng_of(uint64_t seed)
{
    struct ar_rng rng;
    ar_rng_seed(&rng, seed);
    return rng;
}

AR_API uint64_t ar_rng_next(struct ar_rng *rng);

/* Uniform in [0, bound), without bias; bound above 0. */
AR_API uint64_t ar_rng_below(struct ar_rng *rng, uint64_t bound);
/* Uniform in [least, most], both inclusive. */
AR_API uint64_t ar_rng_between(struct ar_rng *rng, uint64_t least, uint64_t most);
/* Uniform in [0, 1), 53 bits. */
AR_API double ar_rng_unit(struct ar_rng *rng);
/* Log-uniform in [least, most], 0 < least <= most: every doubling is equally likely. */
AR_API uint64_t ar_rng_log_uniform(struct ar_rng *rng, uint64_t least, uint64_t most);
/* Standard normal (the sum of twelve uniforms minus six, so the tails end at 6 sigma). */
AR_API double ar_rng_normal(struct ar_rng *rng);
/* exp(mu + sigma * normal). */
AR_API double ar_rng_log_normal(struct ar_rng *rng, double mu, double sigma);

/* 2^x and log2(x) by basic operations, relative error below 1e-12; |x| < 1000, x > 0. */
AR_API double ar_rng_exp2(double x);
AR_API double ar_rng_log2(double x);

AR_END_DECLS

#endif
