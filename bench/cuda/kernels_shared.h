/* Shared by the kernels and their host side: names, records that kernels write, and arguments
 * passed by value. The same layout in C and in CUDA C++: fixed widths, no padding. */
#ifndef BENCH_CUDA_KERNELS_SHARED_H
#define BENCH_CUDA_KERNELS_SHARED_H

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

#endif
