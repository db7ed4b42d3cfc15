#include "sim/sim_device/work_limits.h"

#include "sim/work_shape.h"

#define STRIP_COLUMNS 32u /* that a block of threads sums side by side */

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static unsigned one(struct sim_work_limit *out, enum sim_work work, uint64_t size)
{
    out[0] = (struct sim_work_limit){work, size};
    return 1;
}

static unsigned two(struct sim_work_limit *out, enum sim_work first, uint64_t first_size,
                    enum sim_work second, uint64_t second_size)
{
    out[0] = (struct sim_work_limit){first, first_size};
    out[1] = (struct sim_work_limit){second, second_size};
    return 2;
}

static unsigned matmul(const struct device_work *work, struct sim_work_limit *out)
{
    static const enum sim_work cubes[] = {
        [DEVICE_F32] = SIM_WORK_matmul_f32,
        [DEVICE_TF32] = SIM_WORK_matmul_tf32,
        [DEVICE_F16] = SIM_WORK_matmul_f16,
        [DEVICE_BF16] = SIM_WORK_matmul_bf16,
    };
    static const enum sim_work thin[] = {
        [DEVICE_F32] = SIM_WORK_thin_f32,
        [DEVICE_TF32] = SIM_WORK_thin_tf32,
        [DEVICE_F16] = SIM_WORK_thin_f16,
        [DEVICE_BF16] = SIM_WORK_thin_bf16,
    };
    if (work->type == DEVICE_I8 || work->type == DEVICE_I64)
        return 0;
    struct work_shape_matmul shape = work_shape_matmul(work);
    uint64_t out_count = work_shape_times(shape.m, shape.n);
    uint64_t elements = plus(plus(out_count, work_shape_times(shape.m, shape.k)),
                             work_shape_times(shape.k, shape.n));
    return two(out, cubes[work->type], work_shape_times(out_count, work_shape_times(shape.k, 2)),
               thin[work->type], work_shape_times(elements, work_shape_element_bytes(work->type)));
}

static unsigned elementwise(const struct device_work *work, struct sim_work_limit *out)
{
    struct work_shape_elementwise shape = work_shape_elementwise(work);
    return one(out, SIM_WORK_elementwise,
               work_shape_times(shape.operand_bytes, shape.input_count + 1));
}

static unsigned copy(const struct device_work *work, struct sim_work_limit *out)
{
    return one(out, SIM_WORK_copy, work_shape_times(work_shape_copy_bytes(work), 2));
}

static unsigned set(const struct device_work *work, struct sim_work_limit *out)
{
    return one(out, SIM_WORK_set, work_shape_set_bytes(work));
}

static unsigned reduce(const struct device_work *work, struct sim_work_limit *out)
{
    uint64_t unit = work_shape_element_bytes(work->type);
    if (unit != 4 && unit != 2)
        return 0;
    struct work_shape_reduce shape = work_shape_reduce(work);
    uint64_t strip = shape.column_count < STRIP_COLUMNS ? shape.column_count : STRIP_COLUMNS;
    return two(out, SIM_WORK_reduce,
               work_shape_times(work_shape_times(shape.row_count, shape.column_count), unit),
               unit == 4 ? SIM_WORK_strip_32 : SIM_WORK_strip_16,
               work_shape_times(shape.row_count, strip));
}

static unsigned gather(const struct device_work *work, struct sim_work_limit *out)
{
    struct work_shape_rows shape = work_shape_gather(work);
    return two(out, SIM_WORK_gather,
               work_shape_times(work_shape_times(shape.row_count, shape.row_bytes), 2),
               SIM_WORK_gather_rows, shape.row_count);
}

static unsigned scatter_add(const struct device_work *work, struct sim_work_limit *out)
{
    static const enum sim_work adds[] = {
        [DEVICE_F32] = SIM_WORK_scatter_add_f32,
        [DEVICE_TF32] = SIM_WORK_scatter_add_f32,
        [DEVICE_F16] = SIM_WORK_scatter_add_f16,
        [DEVICE_BF16] = SIM_WORK_scatter_add_bf16,
    };
    if (work->type == DEVICE_I8 || work->type == DEVICE_I64)
        return 0;
    struct work_shape_rows shape = work_shape_scatter_add(work);
    return two(out, adds[work->type], work_shape_times(shape.row_count, shape.row_bytes),
               SIM_WORK_scatter_rows, shape.row_count);
}

/* The same work on operands of the same sizes that are aligned to everything. */
static struct device_work anywhere(const struct device_work *work)
{
    struct device_work same = *work;
    same.out.address = 0;
    for (uint32_t i = 0; i < DEVICE_WORK_INPUTS; i++)
        same.in[i].address = 0;
    return same;
}

unsigned sim_work_limits(const struct device_work *work, struct sim_work_limit out[SIM_WORK_LIMITS])
{
    typedef unsigned (*function)(const struct device_work *, struct sim_work_limit *);
    static const function functions[DEVICE_WORK_COUNT] = {
        [DEVICE_WORK_matmul] = matmul,
        [DEVICE_WORK_elementwise] = elementwise,
        [DEVICE_WORK_reduce] = reduce,
        [DEVICE_WORK_gather] = gather,
        [DEVICE_WORK_scatter_add] = scatter_add,
        [DEVICE_WORK_copy] = copy,
        [DEVICE_WORK_set] = set,
    };
    struct device_work same = anywhere(work);
    return functions[work->kind](&same, out);
}

uint64_t sim_work_ns(struct sim_profile *profile, const struct device_work *work)
{
    struct sim_work_limit limits[SIM_WORK_LIMITS];
    unsigned count = sim_work_limits(work, limits);
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!profile->works[limits[i].work].count)
            return 0;
        if (!limits[i].size)
            return 1;
        uint64_t ns = sim_profile_work(profile, limits[i].work, limits[i].size);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return count && !longest_ns ? 1 : longest_ns;
}
