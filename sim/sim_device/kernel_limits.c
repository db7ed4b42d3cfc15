#include "sim/sim_device/kernel_limits.h"

#include "sim/kernel_shape.h"

#define STRIP_COLUMNS 32u /* summed together by a block of threads */

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static unsigned one(struct sim_kernel_limit *out, enum sim_kernel_op op, uint64_t size)
{
    out[0] = (struct sim_kernel_limit){op, size};
    return 1;
}

static unsigned two(struct sim_kernel_limit *out, enum sim_kernel_op first, uint64_t first_size,
                    enum sim_kernel_op second, uint64_t second_size)
{
    out[0] = (struct sim_kernel_limit){first, first_size};
    out[1] = (struct sim_kernel_limit){second, second_size};
    return 2;
}

static unsigned matmul(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    static const enum sim_kernel_op cubes[] = {
        [AR_DEVICE_F32] = SIM_KERNEL_OP_matmul_f32,
        [AR_DEVICE_TF32] = SIM_KERNEL_OP_matmul_tf32,
        [AR_DEVICE_F16] = SIM_KERNEL_OP_matmul_f16,
        [AR_DEVICE_BF16] = SIM_KERNEL_OP_matmul_bf16,
    };
    static const enum sim_kernel_op thin[] = {
        [AR_DEVICE_F32] = SIM_KERNEL_OP_thin_f32,
        [AR_DEVICE_TF32] = SIM_KERNEL_OP_thin_tf32,
        [AR_DEVICE_F16] = SIM_KERNEL_OP_thin_f16,
        [AR_DEVICE_BF16] = SIM_KERNEL_OP_thin_bf16,
    };
    if (op->type == AR_DEVICE_I8 || op->type == AR_DEVICE_I64)
        return 0;
    struct kernel_shape_matmul shape = kernel_shape_matmul(op);
    uint64_t out_count = kernel_shape_times(shape.m, shape.n);
    uint64_t elements = plus(plus(out_count, kernel_shape_times(shape.m, shape.k)),
                             kernel_shape_times(shape.k, shape.n));
    return two(out, cubes[op->type], kernel_shape_times(out_count, kernel_shape_times(shape.k, 2)),
               thin[op->type], kernel_shape_times(elements, kernel_shape_element_bytes(op->type)));
}

static unsigned elementwise(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    struct kernel_shape_elementwise shape = kernel_shape_elementwise(op);
    return one(out, SIM_KERNEL_OP_elementwise,
               kernel_shape_times(shape.operand_bytes, shape.input_count + 1));
}

static unsigned copy(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    return one(out, SIM_KERNEL_OP_copy, kernel_shape_times(kernel_shape_copy_bytes(op), 2));
}

static unsigned set(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    return one(out, SIM_KERNEL_OP_set, kernel_shape_set_bytes(op));
}

static unsigned reduce(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    uint64_t unit = kernel_shape_element_bytes(op->type);
    if (unit != 4 && unit != 2)
        return 0;
    struct kernel_shape_reduce shape = kernel_shape_reduce(op);
    uint64_t strip = shape.column_count < STRIP_COLUMNS ? shape.column_count : STRIP_COLUMNS;
    return two(out, SIM_KERNEL_OP_reduce,
               kernel_shape_times(kernel_shape_times(shape.row_count, shape.column_count), unit),
               unit == 4 ? SIM_KERNEL_OP_strip_32 : SIM_KERNEL_OP_strip_16,
               kernel_shape_times(shape.row_count, strip));
}

static unsigned gather(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    struct kernel_shape_rows shape = kernel_shape_gather(op);
    return two(out, SIM_KERNEL_OP_gather,
               kernel_shape_times(kernel_shape_times(shape.row_count, shape.row_bytes), 2),
               SIM_KERNEL_OP_gather_rows, shape.row_count);
}

static unsigned scatter_add(const struct ar_kernel_op *op, struct sim_kernel_limit *out)
{
    static const enum sim_kernel_op adds[] = {
        [AR_DEVICE_F32] = SIM_KERNEL_OP_scatter_add_f32,
        [AR_DEVICE_TF32] = SIM_KERNEL_OP_scatter_add_f32,
        [AR_DEVICE_F16] = SIM_KERNEL_OP_scatter_add_f16,
        [AR_DEVICE_BF16] = SIM_KERNEL_OP_scatter_add_bf16,
    };
    if (op->type == AR_DEVICE_I8 || op->type == AR_DEVICE_I64)
        return 0;
    struct kernel_shape_rows shape = kernel_shape_scatter_add(op);
    return two(out, adds[op->type], kernel_shape_times(shape.row_count, shape.row_bytes),
               SIM_KERNEL_OP_scatter_rows, shape.row_count);
}

/* The same operation on operands of the same sizes with full alignment. */
static struct ar_kernel_op anywhere(const struct ar_kernel_op *op)
{
    struct ar_kernel_op same = *op;
    same.out.address = 0;
    for (uint32_t i = 0; i < AR_KERNEL_OP_INPUTS; i++)
        same.in[i].address = 0;
    return same;
}

unsigned sim_kernel_limits(const struct ar_kernel_op *op,
                           struct sim_kernel_limit out[SIM_KERNEL_LIMITS])
{
    typedef unsigned (*function)(const struct ar_kernel_op *, struct sim_kernel_limit *);
    static const function functions[AR_KERNEL_OP_COUNT] = {
        [AR_KERNEL_OP_matmul] = matmul,
        [AR_KERNEL_OP_elementwise] = elementwise,
        [AR_KERNEL_OP_reduce] = reduce,
        [AR_KERNEL_OP_gather] = gather,
        [AR_KERNEL_OP_scatter_add] = scatter_add,
        [AR_KERNEL_OP_copy] = copy,
        [AR_KERNEL_OP_set] = set,
    };
    struct ar_kernel_op same = anywhere(op);
    return functions[op->kind](&same, out);
}

uint64_t sim_kernel_op_ns(const struct sim_profile *profile, const struct ar_kernel_op *op,
                          struct sim_recent recent[SIM_KERNEL_OP_COUNT])
{
    struct sim_kernel_limit limits[SIM_KERNEL_LIMITS];
    unsigned count = sim_kernel_limits(op, limits);
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!profile->kernel_ops[limits[i].op].count)
            return 0;
        if (!limits[i].size)
            return 1;
        struct sim_recent *last = &recent[limits[i].op];
        if (last->size != limits[i].size) {
            last->size = limits[i].size;
            last->ns = sim_profile_kernel_op(profile, limits[i].op, last->size);
        }
        AR_RAISE(longest_ns, last->ns);
    }
    return count && !longest_ns ? 1 : longest_ns;
}
