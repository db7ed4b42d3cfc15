/* Real work on blocks: launches the kernel for what sim/kernel_shape.h says that the work covers, or has
 * cuBLAS do it. Where that is nothing, nothing is done. */
#include "bench/cuda/kernels_state.h"

#include <limits.h>
#include <stdio.h>

#include "sim/kernel_shape.h"

static enum kernel_format format_of(enum ar_device_type type)
{
    static const enum kernel_format formats[] = {
        [AR_DEVICE_F32] = FORMAT_F32, [AR_DEVICE_TF32] = FORMAT_F32,
        [AR_DEVICE_F16] = FORMAT_F16, [AR_DEVICE_BF16] = FORMAT_BF16,
        [AR_DEVICE_I8] = FORMAT_I8,   [AR_DEVICE_I64] = FORMAT_I64};
    return formats[type];
}

/* The kernel of a set for a format: sets stand in the order of the formats. */
static enum kernel of_set(enum kernel first, enum kernel_format format)
{
    return (enum kernel)((int)first + (int)format);
}

static enum ar_status elementwise(struct kernels *self, const struct ar_kernel_op *op,
                                  CUstream stream)
{
    struct kernel_shape_elementwise shape = kernel_shape_elementwise(op);
    struct kernels_inputs in = {.count = shape.input_count};
    if (!shape.element_count)
        return AR_OK;
    for (uint32_t i = 0; i < shape.input_count; i++)
        in.address[i] = op->in[shape.inputs[i]].address;
    uint64_t out = op->out.address;
    void *arguments[] = {&out, &in, &shape.element_count};
    return kernels_launch(self, of_set(KERNEL_elementwise_f32, format_of(op->type)),
                          kernels_grid(self, shape.operand_bytes / 16), stream, arguments,
                          shape.operand_bytes);
}

static enum ar_status reduce(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    struct kernel_shape_reduce cut = kernel_shape_reduce(op);
    struct kernels_matrix shape = {
        .rows = cut.row_count, .columns = cut.column_count, .pitch = cut.pitch_elements};
    if (!shape.rows)
        return AR_OK;
    unsigned width = 1;
    while (width < 32 && width < shape.columns)
        width *= 2;
    uint64_t out = op->out.address, in = op->in[0].address;
    void *arguments[] = {&out, &in, &shape, &width};
    return kernels_launch(self, of_set(KERNEL_reduce_f32, format_of(op->type)),
                          kernels_grid(self, kernel_shape_times(shape.columns / width + 1, 256)),
                          stream, arguments,
                          shape.rows * shape.pitch * kernel_shape_element_bytes(op->type));
}

/* For kernels that take a row with a group of 32 threads. */
static struct kernel_grid grid_of_rows(const struct kernels *self, uint64_t rows)
{
    struct kernel_grid grid = kernels_grid(self, kernel_shape_times(rows, 32));
    grid.x = 32;
    grid.y = 8;
    return grid;
}

static struct kernels_rows rows_of(const struct ar_kernel_op *op,
                                   const struct kernel_shape_rows *shape)
{
    return (struct kernels_rows){
        .rows = shape->row_count,
        .columns = shape->column_count,
        .table_rows = shape->table_row_count,
        .index = op->in[1].address,
        .index_bytes = shape->index_bytes,
    };
}

/* In the widest words that both ends and the length of a row allow. */
static enum ar_status gather(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    struct kernel_shape_rows shape = kernel_shape_gather(op);
    struct kernels_rows rows = rows_of(op, &shape);
    uint64_t out = op->out.address, table = op->in[0].address;
    if (!rows.rows)
        return AR_OK;
    uint64_t together = out | table | shape.row_bytes, word_bytes = 1;
    enum kernel kernel = KERNEL_gather_1;
    if (together % 16 == 0) {
        kernel = KERNEL_gather_16;
        word_bytes = 16;
    } else if (together % 4 == 0) {
        kernel = KERNEL_gather_4;
        word_bytes = 4;
    }
    rows.columns = shape.row_bytes / word_bytes;
    void *arguments[] = {&out, &table, &rows};
    return kernels_launch(self, kernel, grid_of_rows(self, rows.rows), stream, arguments,
                          rows.rows * shape.row_bytes);
}

static enum ar_status scatter_add(struct kernels *self, const struct ar_kernel_op *op,
                                  CUstream stream)
{
    struct kernel_shape_rows shape = kernel_shape_scatter_add(op);
    struct kernels_rows rows = rows_of(op, &shape);
    uint64_t table = op->out.address, in = op->in[0].address;
    if (!rows.rows)
        return AR_OK;
    void *arguments[] = {&table, &in, &rows};
    return kernels_launch(self, of_set(KERNEL_scatter_add_f32, format_of(op->type)),
                          grid_of_rows(self, rows.rows), stream, arguments,
                          rows.rows * shape.row_bytes);
}

static enum ar_status copy(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    uint64_t bytes = kernel_shape_copy_bytes(op);
    uint64_t out = op->out.address, in = op->in[0].address;
    void *arguments[] = {&out, &in, &bytes};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_copy, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

/* The kernel repeats 8 bytes, counted from the address on. */
static enum ar_status set(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    static const uint64_t ones[] = {
        [FORMAT_F32] = 0x3f8000003f800000,
        [FORMAT_F16] = 0x3c003c003c003c00,
        [FORMAT_BF16] = 0x3f803f803f803f80,
        [FORMAT_I8] = 0x0101010101010101,
        [FORMAT_I64] = 1,
    };
    uint64_t bytes = kernel_shape_set_bytes(op);
    uint64_t out = op->out.address, one = ones[format_of(op->type)];
    void *arguments[] = {&out, &bytes, &one};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_set, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

/* ---- matrix products ---------------------------------------------------------------------------- */

static enum ar_status open_matmul(struct kernels *self)
{
    struct ar_error why;
    if (self->blas_tried)
        return AR_OK;
    enum ar_status status = blas_open(self->api, &self->blas, &why);
    if (status == AR_OK) {
        snprintf(self->matmul, sizeof self->matmul, "%s", blas_name(self->blas));
    } else if (status == AR_MISSING) {
        snprintf(self->matmul, sizeof self->matmul,
                 "a plain kernel of this program, slower than cuBLAS: %.160s", why.text);
        status = AR_OK;
    } else { /* no memory: the next product tries again */
        snprintf(self->problem, sizeof self->problem, "%.500s", why.text);
        return status;
    }
    self->blas_tried = true;
    return status;
}

enum ar_status kernels_choose_matmul(struct kernels *self, enum kernels_matmul choice)
{
    blas_close(self->blas);
    self->blas = NULL;
    self->blas_tried = choice == KERNELS_PLAIN;
    snprintf(self->matmul, sizeof self->matmul, "%s",
             choice == KERNELS_PLAIN ? "a plain kernel of this program, as asked for" : "");
    return choice == KERNELS_CUBLAS_EARLY ? open_matmul(self) : AR_OK;
}

static enum ar_status plain_matmul(struct kernels *self, const struct ar_kernel_op *op,
                                   struct kernels_product *shape, CUstream stream)
{
    uint64_t out = op->out.address, a = op->in[0].address, b = op->in[1].address;
    uint64_t tiles = kernel_shape_times((shape->m + 15) / 16, (shape->n + 15) / 16);
    struct kernel_grid grid = kernels_grid(self, kernel_shape_times(tiles, 256));
    grid.x = 16;
    grid.y = 16;
    void *arguments[] = {&out, &a, &b, shape};
    return kernels_launch(self, of_set(KERNEL_matmul_f32, format_of(op->type)), grid, stream,
                          arguments, op->out.bytes);
}

static enum ar_status matmul(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    struct kernel_shape_matmul cut = kernel_shape_matmul(op);
    struct kernels_product shape = {
        .m = cut.m, .n = cut.n, .k = cut.k, .pitch_a = cut.pitch_elements};
    if (!shape.m)
        return AR_OK;
    bool small = op->m <= INT_MAX && op->n <= INT_MAX && op->k <= INT_MAX;
    bool floats = op->type != AR_DEVICE_I8 && op->type != AR_DEVICE_I64;
    if (!small || !floats)
        return plain_matmul(self, op, &shape, stream);
    enum ar_status status = open_matmul(self);
    if (status != AR_OK)
        return status;
    if (!self->blas)
        return plain_matmul(self, op, &shape, stream);
    struct blas_product product = {
        .type = op->type,
        .out = op->out.address,
        .a = op->in[0].address,
        .b = op->in[1].address,
        .m = shape.m,
        .n = shape.n,
        .k = shape.k,
        .pitch_a = shape.pitch_a,
    };
    struct ar_error why;
    status = blas_matmul(self->blas, &product, stream, &why);
    if (status != AR_OK)
        snprintf(self->problem, sizeof self->problem, "%.500s", why.text);
    return status;
}

enum ar_status kernels_op(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    typedef enum ar_status (*function)(struct kernels *, const struct ar_kernel_op *, CUstream);
    static const function functions[AR_KERNEL_OP_COUNT] = {
        [AR_KERNEL_OP_matmul] = matmul,
        [AR_KERNEL_OP_elementwise] = elementwise,
        [AR_KERNEL_OP_reduce] = reduce,
        [AR_KERNEL_OP_gather] = gather,
        [AR_KERNEL_OP_scatter_add] = scatter_add,
        [AR_KERNEL_OP_copy] = copy,
        [AR_KERNEL_OP_set] = set,
    };
    return functions[op->kind](self, op, stream);
}
