/* Real work on blocks: cuts each shape to what its operands hold and launches the kernel, or has
 * cuBLAS do it. An operand that is not there or not aligned to its type ends it: nothing is done. */
#include "bench/cuda/kernels_state.h"

#include <limits.h>
#include <stdio.h>

static enum kernel_format format_of(enum device_type type)
{
    static const enum kernel_format formats[] = {
        [DEVICE_F32] = FORMAT_F32,   [DEVICE_TF32] = FORMAT_F32, [DEVICE_F16] = FORMAT_F16,
        [DEVICE_BF16] = FORMAT_BF16, [DEVICE_I8] = FORMAT_I8,    [DEVICE_I64] = FORMAT_I64};
    return formats[type];
}

static uint64_t element_bytes(enum device_type type)
{
    static const uint64_t bytes[] = {[DEVICE_F32] = 4,  [DEVICE_TF32] = 4, [DEVICE_F16] = 2,
                                     [DEVICE_BF16] = 2, [DEVICE_I8] = 1,   [DEVICE_I64] = 8};
    return bytes[type];
}

/* The kernel of a set for a format: sets stand in the order of the formats. */
static enum kernel of_set(enum kernel first, enum kernel_format format)
{
    return (enum kernel)((int)first + (int)format);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Elements that an operand holds; 0 where it cannot be used. */
static uint64_t held(const struct device_operand *operand, uint64_t unit)
{
    return operand->address % unit ? 0 : operand->bytes / unit;
}

/* Elements that the shape names: all dimensions that it has; none: whatever fits. */
static uint64_t named(const struct device_work *work)
{
    uint64_t count =
        times(times(work->m ? work->m : 1, work->n ? work->n : 1), work->k ? work->k : 1);
    return work->m || work->n || work->k ? count : UINT64_MAX;
}

static enum status elementwise(struct kernels *self, const struct device_work *work,
                               CUstream stream)
{
    uint64_t unit = element_bytes(work->type);
    uint64_t count = least(named(work), held(&work->out, unit));
    struct kernels_inputs in = {.count = 0};
    for (uint32_t i = 0; i < work->input_count; i++) {
        if (!work->in[i].bytes)
            continue;
        count = least(count, held(&work->in[i], unit));
        in.address[in.count++] = work->in[i].address;
    }
    if (!count || !in.count)
        return STATUS_OK;
    uint64_t out = work->out.address;
    void *arguments[] = {&out, &in, &count};
    return kernels_launch(self, of_set(KERNEL_elementwise_f32, format_of(work->type)),
                          kernels_grid(self, times(count, unit) / 16), stream, arguments,
                          times(count, unit));
}

static enum status reduce(struct kernels *self, const struct device_work *work, CUstream stream)
{
    uint64_t unit = element_bytes(work->type), pitch = work->n ? work->n : 1;
    struct kernels_matrix shape = {
        .rows = least(work->m, held(&work->in[0], unit) / pitch),
        .columns = least(pitch, held(&work->out, unit)),
        .pitch = pitch,
    };
    if (!shape.rows || !shape.columns)
        return STATUS_OK;
    unsigned width = 1;
    while (width < 32 && width < shape.columns)
        width *= 2;
    uint64_t out = work->out.address, in = work->in[0].address;
    void *arguments[] = {&out, &in, &shape, &width};
    return kernels_launch(self, of_set(KERNEL_reduce_f32, format_of(work->type)),
                          kernels_grid(self, times(shape.columns / width + 1, 256)), stream,
                          arguments, times(times(shape.rows, pitch), unit));
}

/* The names of rows in `index`, of which there are `wanted`: 8 bytes wide if it holds so many. */
static void names_of(const struct device_operand *index, uint64_t wanted, struct kernels_rows *rows)
{
    bool wide = index->bytes / 8 >= wanted && index->address % 8 == 0;
    rows->index_bytes = wide ? 8 : 4;
    rows->index = index->address;
    rows->rows = least(wanted, held(index, rows->index_bytes));
}

static bool aligned(uint64_t unit, uint64_t a, uint64_t b, uint64_t c)
{
    return (a | b | c) % unit == 0;
}

static enum status gather(struct kernels *self, const struct device_work *work, CUstream stream)
{
    uint64_t unit = element_bytes(work->type);
    uint64_t row_bytes = times(work->n ? work->n : 1, unit);
    uint64_t out = work->out.address, table = work->in[0].address;
    struct kernels_rows rows = {.table_rows = work->in[0].bytes / row_bytes};
    names_of(&work->in[1], work->m, &rows);
    rows.rows = least(rows.rows, work->out.bytes / row_bytes);
    if (!rows.rows || !rows.table_rows)
        return STATUS_OK;
    enum kernel kernel = KERNEL_gather_1;
    rows.columns = row_bytes;
    if (aligned(16, out, table, row_bytes)) {
        kernel = KERNEL_gather_16;
        rows.columns = row_bytes / 16;
    } else if (aligned(4, out, table, row_bytes)) {
        kernel = KERNEL_gather_4;
        rows.columns = row_bytes / 4;
    }
    struct kernel_grid grid = kernels_grid(self, times(rows.rows, 32));
    grid.x = 32;
    grid.y = 8;
    void *arguments[] = {&out, &table, &rows};
    return kernels_launch(self, kernel, grid, stream, arguments, times(rows.rows, row_bytes));
}

static enum status scatter_add(struct kernels *self, const struct device_work *work,
                               CUstream stream)
{
    uint64_t unit = element_bytes(work->type), columns = work->n ? work->n : 1;
    uint64_t row_bytes = times(columns, unit);
    uint64_t table = work->out.address, in = work->in[0].address;
    uint64_t table_bytes = work->out.bytes;
    if (work->type == DEVICE_I8) { /* bytes are exchanged in words, which must lie inside */
        if (table % 4)
            return STATUS_OK;
        table_bytes -= table_bytes % 4;
    }
    struct kernels_rows rows = {.columns = columns, .table_rows = table_bytes / row_bytes};
    names_of(&work->in[1], work->m, &rows);
    rows.rows = least(rows.rows, work->in[0].bytes / row_bytes);
    if (!rows.rows || !rows.table_rows || !aligned(unit, table, in, 0))
        return STATUS_OK;
    struct kernel_grid grid = kernels_grid(self, times(rows.rows, 32));
    grid.x = 32;
    grid.y = 8;
    void *arguments[] = {&table, &in, &rows};
    return kernels_launch(self, of_set(KERNEL_scatter_add_f32, format_of(work->type)), grid, stream,
                          arguments, times(rows.rows, row_bytes));
}

static enum status copy(struct kernels *self, const struct device_work *work, CUstream stream)
{
    uint64_t unit = element_bytes(work->type);
    uint64_t bytes = least(least(work->out.bytes, work->in[0].bytes), times(named(work), unit));
    uint64_t out = work->out.address, in = work->in[0].address;
    void *arguments[] = {&out, &in, &bytes};
    if (!bytes)
        return STATUS_OK;
    return kernels_launch(self, KERNEL_copy, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

/* The kernel repeats 8 bytes, counted from the address on. */
static enum status set(struct kernels *self, const struct device_work *work, CUstream stream)
{
    static const uint64_t ones[] = {
        [FORMAT_F32] = 0x3f8000003f800000,
        [FORMAT_F16] = 0x3c003c003c003c00,
        [FORMAT_BF16] = 0x3f803f803f803f80,
        [FORMAT_I8] = 0x0101010101010101,
        [FORMAT_I64] = 1,
    };
    uint64_t bytes = least(work->out.bytes, times(named(work), element_bytes(work->type)));
    uint64_t out = work->out.address, one = ones[format_of(work->type)];
    void *arguments[] = {&out, &bytes, &one};
    if (!bytes)
        return STATUS_OK;
    return kernels_launch(self, KERNEL_set, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

/* ---- matrix products ---------------------------------------------------------------------------- */

static enum status open_matmul(struct kernels *self)
{
    struct error why;
    if (self->blas_tried)
        return STATUS_OK;
    enum status status = blas_open(self->api, &self->blas, &why);
    if (status == STATUS_OK) {
        snprintf(self->matmul, sizeof self->matmul, "%s", blas_name(self->blas));
    } else if (status == STATUS_MISSING) {
        snprintf(self->matmul, sizeof self->matmul,
                 "a plain kernel of this program, slower than cuBLAS: %.160s", why.text);
        status = STATUS_OK;
    } else { /* no memory: the next product tries again */
        snprintf(self->problem, sizeof self->problem, "%.500s", why.text);
        return status;
    }
    self->blas_tried = true;
    return status;
}

enum status kernels_choose_matmul(struct kernels *self, enum kernels_matmul choice)
{
    blas_close(self->blas);
    self->blas = NULL;
    self->blas_tried = choice == KERNELS_PLAIN;
    snprintf(self->matmul, sizeof self->matmul, "%s",
             choice == KERNELS_PLAIN ? "a plain kernel of this program, as asked for" : "");
    return choice == KERNELS_CUBLAS_EARLY ? open_matmul(self) : STATUS_OK;
}

static enum status plain_matmul(struct kernels *self, const struct device_work *work,
                                struct kernels_product *shape, CUstream stream)
{
    uint64_t out = work->out.address, a = work->in[0].address, b = work->in[1].address;
    uint64_t tiles = times((shape->m + 15) / 16, (shape->n + 15) / 16);
    struct kernel_grid grid = kernels_grid(self, times(tiles, 256));
    grid.x = 16;
    grid.y = 16;
    void *arguments[] = {&out, &a, &b, shape};
    return kernels_launch(self, of_set(KERNEL_matmul_f32, format_of(work->type)), grid, stream,
                          arguments, work->out.bytes);
}

static enum status matmul(struct kernels *self, const struct device_work *work, CUstream stream)
{
    if (!work->m || !work->n || !work->k)
        return STATUS_OK;
    uint64_t unit = element_bytes(work->type);
    struct kernels_product shape = {.n = work->n, .pitch_a = work->k};
    shape.k = least(work->k, held(&work->in[1], unit) / work->n);
    shape.m = least(work->m, held(&work->in[0], unit) / work->k);
    shape.m = least(shape.m, held(&work->out, unit) / work->n);
    if (!shape.m || !shape.k)
        return STATUS_OK;
    bool small = work->m <= INT_MAX && work->n <= INT_MAX && work->k <= INT_MAX;
    bool floats = work->type != DEVICE_I8 && work->type != DEVICE_I64;
    if (!small || !floats)
        return plain_matmul(self, work, &shape, stream);
    enum status status = open_matmul(self);
    if (status != STATUS_OK)
        return status;
    if (!self->blas)
        return plain_matmul(self, work, &shape, stream);
    struct blas_product product = {
        .type = work->type,
        .out = work->out.address,
        .a = work->in[0].address,
        .b = work->in[1].address,
        .m = shape.m,
        .n = shape.n,
        .k = shape.k,
        .pitch_a = shape.pitch_a,
    };
    struct error why;
    status = blas_matmul(self->blas, &product, stream, &why);
    if (status != STATUS_OK)
        snprintf(self->problem, sizeof self->problem, "%.500s", why.text);
    return status;
}

enum status kernels_work(struct kernels *self, const struct device_work *work, CUstream stream)
{
    typedef enum status (*function)(struct kernels *, const struct device_work *, CUstream);
    static const function functions[DEVICE_WORK_COUNT] = {
        [DEVICE_WORK_matmul] = matmul,
        [DEVICE_WORK_elementwise] = elementwise,
        [DEVICE_WORK_reduce] = reduce,
        [DEVICE_WORK_gather] = gather,
        [DEVICE_WORK_scatter_add] = scatter_add,
        [DEVICE_WORK_copy] = copy,
        [DEVICE_WORK_set] = set,
    };
    return functions[work->kind](self, work, stream);
}
