/* What the kernels and their host side pass each other: records that kernels write, and arguments
 * passed by value. The same layout in C and in CUDA C++: fixed widths, no padding. */
#ifndef BENCH_CUDA_KERNELS_SHARED_H
#define BENCH_CUDA_KERNELS_SHARED_H

#include <stdint.h>

/* The module's variable `kernels_wrong`: what all verifications found. Zero at first. */
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
