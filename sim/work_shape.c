#include "sim/work_shape.h"

#include <stdbool.h>

uint64_t work_shape_element_bytes(enum device_type type)
{
    static const uint64_t bytes[] = {[DEVICE_F32] = 4,  [DEVICE_TF32] = 4, [DEVICE_F16] = 2,
                                     [DEVICE_BF16] = 2, [DEVICE_I8] = 1,   [DEVICE_I64] = 8};
    return bytes[type];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t or_one(uint64_t length)
{
    return length ? length : 1;
}

/* Elements of so many bytes that an operand holds; 0 where it cannot be used. */
static uint64_t held(const struct device_operand *operand, uint64_t unit_bytes)
{
    return operand->address % unit_bytes ? 0 : operand->bytes / unit_bytes;
}

/* Elements that the shape names; none: whatever fits. */
static uint64_t named(const struct device_work *work)
{
    bool shaped = work->m || work->n || work->k;
    uint64_t rows = work_shape_times(or_one(work->m), or_one(work->n));
    return shaped ? work_shape_times(rows, or_one(work->k)) : UINT64_MAX;
}

struct work_shape_matmul work_shape_matmul(const struct device_work *work)
{
    struct work_shape_matmul shape = {.n = work->n, .pitch_elements = work->k};
    uint64_t unit_bytes = work_shape_element_bytes(work->type);
    if (work->m && work->n && work->k) {
        shape.k = least(work->k, held(&work->in[1], unit_bytes) / work->n);
        shape.m = least(work->m, held(&work->in[0], unit_bytes) / work->k);
        shape.m = least(shape.m, held(&work->out, unit_bytes) / work->n);
    }
    return shape.m && shape.k ? shape : (struct work_shape_matmul){.m = 0};
}

struct work_shape_elementwise work_shape_elementwise(const struct device_work *work)
{
    struct work_shape_elementwise shape = {.input_count = 0};
    uint64_t unit_bytes = work_shape_element_bytes(work->type);
    shape.element_count = least(named(work), held(&work->out, unit_bytes));
    for (uint32_t i = 0; i < work->input_count; i++) {
        if (!work->in[i].bytes)
            continue;
        shape.element_count = least(shape.element_count, held(&work->in[i], unit_bytes));
        shape.inputs[shape.input_count++] = i;
    }
    shape.operand_bytes = shape.element_count * unit_bytes;
    return shape.element_count && shape.input_count
               ? shape
               : (struct work_shape_elementwise){.inputs = {0}};
}

struct work_shape_reduce work_shape_reduce(const struct device_work *work)
{
    uint64_t unit_bytes = work_shape_element_bytes(work->type), pitch = or_one(work->n);
    struct work_shape_reduce shape = {
        .row_count = least(work->m, held(&work->in[0], unit_bytes) / pitch),
        .column_count = least(pitch, held(&work->out, unit_bytes)),
        .pitch_elements = pitch,
    };
    return shape.row_count && shape.column_count ? shape
                                                 : (struct work_shape_reduce){.row_count = 0};
}

/* Of `rows` as many as are named, of a table of table_bytes. */
static struct work_shape_rows rows_of(const struct device_work *work,
                                      const struct device_operand *rows, uint64_t table_bytes)
{
    const struct device_operand *index = &work->in[1];
    bool wide = index->bytes / 8 >= work->m && index->address % 8 == 0;
    struct work_shape_rows shape = {.column_count = or_one(work->n), .index_bytes = wide ? 8 : 4};
    shape.row_bytes = work_shape_times(shape.column_count, work_shape_element_bytes(work->type));
    shape.row_count = least(work->m, held(index, shape.index_bytes));
    shape.row_count = least(shape.row_count, rows->bytes / shape.row_bytes);
    shape.table_row_count = table_bytes / shape.row_bytes;
    return shape.row_count && shape.table_row_count ? shape
                                                    : (struct work_shape_rows){.row_count = 0};
}

/* Rows are moved as bytes, from and to any address. */
struct work_shape_rows work_shape_gather(const struct device_work *work)
{
    return rows_of(work, &work->out, work->in[0].bytes);
}

/* Single bytes are exchanged in words of 4, which must lie inside the table. */
struct work_shape_rows work_shape_scatter_add(const struct device_work *work)
{
    const struct device_operand *table = &work->out, *rows = &work->in[0];
    uint64_t unit_bytes = work_shape_element_bytes(work->type);
    uint64_t word_bytes = unit_bytes == 1 ? 4 : unit_bytes;
    if (table->address % word_bytes || rows->address % unit_bytes)
        return (struct work_shape_rows){.row_count = 0};
    return rows_of(work, rows, unit_bytes == 1 ? table->bytes - table->bytes % 4 : table->bytes);
}

uint64_t work_shape_copy_bytes(const struct device_work *work)
{
    return least(work_shape_set_bytes(work), work->in[0].bytes);
}

uint64_t work_shape_set_bytes(const struct device_work *work)
{
    return least(work->out.bytes,
                 work_shape_times(named(work), work_shape_element_bytes(work->type)));
}
