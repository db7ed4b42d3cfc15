/* The extent of a kernel op (sim/device.h, AR_KERNEL_OPS): its shape, cut to the bytes of its
 * operands. The CUDA kernels get this, and the simulated device computes the time from it, so both
 * are about the same work.
 *
 * 1. An operand has as many whole elements as its bytes hold, and none if its address is not
 *    aligned to the width of the accesses.
 * 2. The first length that an operand is too short for is cut: rows of a matrix, k of the right
 *    side of a product. The width of rows (n) stays, because rows are found by it.
 * 3. A length that is not in the shape is 1. Without any, elementwise, copy and set extend to the
 *    end of the operands.
 * 4. Products of lengths beyond 64 bits are UINT64_MAX, more than any operand holds.
 *
 * If nothing is left to do, the whole result is 0. */
#pragma once

#include "sim/device.h"

/* Bytes of one element: 1, 2, 4 or 8. */
uint64_t kernel_shape_element_bytes(enum ar_device_type type);

/* a * b, or UINT64_MAX beyond 64 bits. */
static inline uint64_t kernel_shape_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* out (m x n) = in[0] (m x k) * in[1] (k x n), lengths in elements. The distance of the rows of
 * in[0] is pitch_elements, more than k if k is cut. */
struct kernel_shape_matmul {
    uint64_t m, n, k, pitch_elements;
};

struct kernel_shape_matmul kernel_shape_matmul(const struct ar_kernel_op *op);

/* The elements of out and of each input that exists, and their bytes. The inputs that exist are
 * in[inputs[0]] and so on. */
struct kernel_shape_elementwise {
    uint64_t element_count, operand_bytes;
    uint32_t input_count, inputs[AR_KERNEL_OP_INPUTS];
};

struct kernel_shape_elementwise kernel_shape_elementwise(const struct ar_kernel_op *op);

/* The rows of in[0] that are summed, and the columns of out that get a sum. The distance of the
 * rows is pitch_elements, more than columns if out is too short. */
struct kernel_shape_reduce {
    uint64_t row_count, column_count, pitch_elements;
};

struct kernel_shape_reduce kernel_shape_reduce(const struct ar_kernel_op *op);

/* The rows that move between a table and an array of rows; the length of one; the number of rows of
 * the table; and the width of their numbers in in[1]: 8 bytes if it has space for them, else 4. */
struct kernel_shape_rows {
    uint64_t row_count, column_count, row_bytes, table_row_count;
    uint32_t index_bytes;
};

struct kernel_shape_rows kernel_shape_gather(const struct ar_kernel_op *op);
struct kernel_shape_rows kernel_shape_scatter_add(const struct ar_kernel_op *op);

/* Bytes read, and as many written. */
uint64_t kernel_shape_copy_bytes(const struct ar_kernel_op *op);

/* Bytes written. */
uint64_t kernel_shape_set_bytes(const struct ar_kernel_op *op);
