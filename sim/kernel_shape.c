#include "sim/kernel_shape.h"

uint64_t kernel_shape_element_bytes(enum ar_device_type type)
{
    static const uint64_t bytes[] = {
        [AR_DEVICE_F32] = 4,  [AR_DEVICE_TF32] = 4, [AR_DEVICE_F16] = 2,
        [AR_DEVICE_BF16] = 2, [AR_DEVICE_I8] = 1,   [AR_DEVICE_I64] = 8};
    return bytes[type];
}

static uint64_t or_one(uint64_t length)
{
    return length ? length : 1;
}

/* The elements of that size that an operand has; 0 if it cannot be used. */
static uint64_t held(const struct ar_device_operand *operand, uint64_t unit_bytes)
{
    return operand->address % unit_bytes ? 0 : operand->bytes / unit_bytes;
}

/* The elements of the shape; UINT64_MAX if it has no lengths. */
static uint64_t named(const struct ar_kernel_op *op)
{
    bool shaped = op->m || op->n || op->k;
    uint64_t rows = kernel_shape_times(or_one(op->m), or_one(op->n));
    return shaped ? kernel_shape_times(rows, or_one(op->k)) : UINT64_MAX;
}

struct kernel_shape_matmul kernel_shape_matmul(const struct ar_kernel_op *op)
{
    struct kernel_shape_matmul shape = {.n = op->n, .pitch_elements = op->k};
    uint64_t unit_bytes = kernel_shape_element_bytes(op->type);
    if (op->m && op->n && op->k) {
        shape.k = ar_least(op->k, held(&op->in[1], unit_bytes) / op->n);
        shape.m = ar_least(op->m, held(&op->in[0], unit_bytes) / op->k);
        shape.m = ar_least(shape.m, held(&op->out, unit_bytes) / op->n);
    }
    return shape.m && shape.k ? shape : (struct kernel_shape_matmul){.m = 0};
}

struct kernel_shape_elementwise kernel_shape_elementwise(const struct ar_kernel_op *op)
{
    struct kernel_shape_elementwise shape = {.input_count = 0};
    uint64_t unit_bytes = kernel_shape_element_bytes(op->type);
    shape.element_count = ar_least(named(op), held(&op->out, unit_bytes));
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!op->in[i].bytes)
            continue;
        shape.element_count = ar_least(shape.element_count, held(&op->in[i], unit_bytes));
        shape.inputs[shape.input_count++] = i;
    }
    shape.operand_bytes = shape.element_count * unit_bytes;
    return shape.element_count && shape.input_count
               ? shape
               : (struct kernel_shape_elementwise){.inputs = {0}};
}

struct kernel_shape_reduce kernel_shape_reduce(const struct ar_kernel_op *op)
{
    uint64_t unit_bytes = kernel_shape_element_bytes(op->type), pitch = or_one(op->n);
    struct kernel_shape_reduce shape = {
        .row_count = ar_least(op->m, held(&op->in[0], unit_bytes) / pitch),
        .column_count = ar_least(pitch, held(&op->out, unit_bytes)),
        .pitch_elements = pitch,
    };
    return shape.row_count && shape.column_count ? shape
                                                 : (struct kernel_shape_reduce){.row_count = 0};
}

/* The rows that have a number in in[1], of a table of table_bytes. */
static struct kernel_shape_rows rows_of(const struct ar_kernel_op *op,
                                        const struct ar_device_operand *rows, uint64_t table_bytes)
{
    const struct ar_device_operand *index = &op->in[1];
    bool wide = index->bytes / 8 >= op->m && index->address % 8 == 0;
    struct kernel_shape_rows shape = {.column_count = or_one(op->n), .index_bytes = wide ? 8 : 4};
    shape.row_bytes = kernel_shape_times(shape.column_count, kernel_shape_element_bytes(op->type));
    shape.row_count = ar_least(op->m, held(index, shape.index_bytes));
    shape.row_count = ar_least(shape.row_count, rows->bytes / shape.row_bytes);
    shape.table_row_count = table_bytes / shape.row_bytes;
    return shape.row_count && shape.table_row_count ? shape
                                                    : (struct kernel_shape_rows){.row_count = 0};
}

/* Rows are moved as bytes and need no alignment. */
struct kernel_shape_rows kernel_shape_gather(const struct ar_kernel_op *op)
{
    return rows_of(op, &op->out, op->in[0].bytes);
}

/* Single bytes are exchanged in words of 4 bytes, which must lie inside the table. */
struct kernel_shape_rows kernel_shape_scatter_add(const struct ar_kernel_op *op)
{
    const struct ar_device_operand *table = &op->out, *rows = &op->in[0];
    uint64_t unit_bytes = kernel_shape_element_bytes(op->type);
    uint64_t word_bytes = unit_bytes == 1 ? 4 : unit_bytes;
    if (table->address % word_bytes || rows->address % unit_bytes)
        return (struct kernel_shape_rows){.row_count = 0};
    return rows_of(op, rows, unit_bytes == 1 ? table->bytes - table->bytes % 4 : table->bytes);
}

uint64_t kernel_shape_copy_bytes(const struct ar_kernel_op *op)
{
    return ar_least(kernel_shape_set_bytes(op), op->in[0].bytes);
}

uint64_t kernel_shape_set_bytes(const struct ar_kernel_op *op)
{
    return ar_least(op->out.bytes,
                    kernel_shape_times(named(op), kernel_shape_element_bytes(op->type)));
}
