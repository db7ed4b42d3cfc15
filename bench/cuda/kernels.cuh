/* What the kernels say in the card's own instructions; a host that runs them brings another one. */
#ifndef BENCH_CUDA_KERNELS_CUH
#define BENCH_CUDA_KERNELS_CUH

#include <stdint.h>

/* Nanoseconds; moves in steps. */
static __device__ inline uint64_t card_timer()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ inline float card_float_of_half(uint16_t x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
    return wide;
}

/* To the nearest, ties to even. */
static __device__ inline uint16_t card_half_of_float(float x)
{
    uint16_t narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
    return narrow;
}

#endif
