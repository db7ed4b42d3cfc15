/* Shared by the kernels and their host side: names, records that kernels write, and arguments
 * passed by value. The same layout in C and in CUDA C++: fixed widths, no padding. */
#pragma once

#include <stdint.h>

/* The kernels of kernels.cu by name; those of a set in the order of
 * enum kernel_format. */
#define KERNELS_OF_SET(X, set) X(set##_f32) X(set##_f16) X(set##_bf16) X(set##_i8) X(set##_i64)
#define KERNELS(X)                                                                                 \
    X(fill)                                                                                        \
    X(verify)                                                                                      \
    X(set)                                                                                         \
    X(copy)                                                                                        \
    X(touch)                                                                                       \
    X(spin_timer)                                                                                  \
    X(spin_clock)                                                                                  \
    X(time_timer)                                                                                  \
    X(gather_1)                                                                                    \
    X(gather_4)                                                                                    \
    X(gather_16)                                                                                   \
    KERNELS_OF_SET(X, elementwise)                                                                 \
    KERNELS_OF_SET(X, reduce)                                                                      \
    KERNELS_OF_SET(X, scatter_add)                                                                 \
    KERNELS_OF_SET(X, matmul)

/* The module's variable `kernels_wrong`: the findings of all verifications. Zero at first. */
struct kernels_wrong {
    uint64_t lock;
    uint64_t count;  /* of wrong bytes */
    uint64_t number; /* of the verification that found the first, from 1; 0: none */
    uint64_t address, block, offset;
    uint32_t expected, found;
};

/* The module's variable `kernels_timer`: how coarse the card's timer is. */
struct kernels_timer {
    uint64_t changes;            /* seen */
    uint64_t total_ns, least_ns; /* between the first and the last; the smallest step */
};

struct kernels_inputs {
    uint64_t address[4];
    uint32_t count, zero;
};

struct kernels_matrix {
    uint64_t rows, columns, pitch; /* pitch: elements from row to row */
};

struct kernels_rows {
    uint64_t rows, columns, table_rows;
    uint64_t index; /* address of `rows` names of rows, each of index_bytes: 4 or 8 */
    uint32_t index_bytes, zero;
};

struct kernels_product {
    uint64_t m, n, k, pitch_a; /* pitch_a: elements from row to row of the left one */
};

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
