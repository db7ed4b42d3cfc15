/* What a work on memory (sim/device.h, AR_KERNEL_OPS) really covers: its shape, cut to what its
 * operands hold. The kernels of a card are given this, and the simulated device takes its time for
 * it, so that what is timed is what is done.
 *
 * 1. An operand holds as many whole elements as its bytes have room for, and none where its address
 *    is not aligned to what is read or written there at once.
 * 2. The first length that an operand is too short for is cut: rows of a matrix, k of a product's
 *    right side. The width of rows (n), by which they are found, stays.
 * 3. A length that the shape does not name is 1; without any, elementwise, copy and set go as far as
 *    the operands do.
 * 4. Products of lengths that do not fit into 64 bits are UINT64_MAX: more than any operand holds.
 *
 * Where nothing is left to do all of a result is 0. */
#ifndef SIM_KERNEL_OP_SHAPE_H
#define SIM_KERNEL_OP_SHAPE_H

#include <stdint.h>

#include "sim/device.h"

/* Bytes of one element: 1, 2, 4 or 8. */
uint64_t kernel_shape_element_bytes(enum ar_device_type type);

/* a * b, UINT64_MAX where that does not fit. */
static inline uint64_t kernel_shape_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* out (m x n) = in[0] (m x k) * in[1] (k x n), lengths in elements. Rows of in[0] begin
 * pitch_elements from each other, which is more than k where k is cut. */
struct kernel_shape_matmul {
    uint64_t m, n, k, pitch_elements;
};

struct kernel_shape_matmul kernel_shape_matmul(const struct ar_kernel_op *op);

/* Elements of out and of each input that is there, and their bytes in each of these; which inputs
 * are there: in[inputs[0]] and so on. */
struct kernel_shape_elementwise {
    uint64_t element_count, operand_bytes;
    uint32_t input_count, inputs[AR_KERNEL_OP_INPUTS];
};

struct kernel_shape_elementwise kernel_shape_elementwise(const struct ar_kernel_op *op);

/* Rows of in[0] that are summed and columns of out that get a sum. Rows begin pitch_elements from each
 * other, which is more than columns where out is too short. */
struct kernel_shape_reduce {
    uint64_t row_count, column_count, pitch_elements;
};

struct kernel_shape_reduce kernel_shape_reduce(const struct ar_kernel_op *op);

/* Rows that move between a table and what holds one behind the other; how long one is; how many the
 * table has; and how wide their names in in[1] are: 8 bytes if it holds so many, else 4. */
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

#endif
