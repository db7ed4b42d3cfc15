/* The pattern that `fill` writes and `verify` expects: each byte of a block is a function of the
 * block's number and of its own offset. One definition for card and host, so that the host can
 * say what a byte should have been.
 *
 *  1. A block's number gives a 64-bit key (the finalizer of splitmix64: Steele, Lea, Flood, "Fast
 *     splittable pseudorandom number generators", 2014).
 *  2. The word w (8 bytes, little endian, at offset 8 w) is a mix of key + w * odd constant. The
 *     mix is one to one, so that no two words of a block are equal: a displaced run of 8 bytes or
 *     more is found for certain, a displaced byte with 255 chances in 256.
 *  3. Block numbers are never used twice, so that what an earlier block left is another pattern. */
#ifndef BENCH_CUDA_PATTERN_H
#define BENCH_CUDA_PATTERN_H

#include <stdint.h>

#ifdef __CUDACC__
#define PATTERN_FUNCTION static __host__ __device__ inline
#else
#define PATTERN_FUNCTION static inline
#endif

PATTERN_FUNCTION uint64_t pattern_key(uint64_t block)
{
    uint64_t x = block + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The word at offset 8 * index. Two multiplications: it must keep up with the card's memory. */
PATTERN_FUNCTION uint64_t pattern_word(uint64_t key, uint64_t index)
{
    uint64_t x = key + index * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* The 8 bytes from any offset on, as they lie in memory. */
PATTERN_FUNCTION uint64_t pattern_bytes(uint64_t key, uint64_t offset)
{
    uint64_t word = pattern_word(key, offset / 8);
    unsigned shift = (unsigned)(offset % 8) * 8;
    if (shift)
        word = (word >> shift) | (pattern_word(key, offset / 8 + 1) << (64 - shift));
    return word;
}

PATTERN_FUNCTION uint8_t pattern_byte(uint64_t block, uint64_t offset)
{
    return (uint8_t)pattern_bytes(pattern_key(block), offset);
}

#endif
