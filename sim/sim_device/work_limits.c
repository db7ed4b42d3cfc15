#include "sim/sim_device/work_limits.h"

#define STRIP_COLUMNS 32u /* that a block of threads sums side by side */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t element_bytes(enum device_type type)
{
    static const uint64_t bytes[] = {[DEVICE_F32] = 4,  [DEVICE_TF32] = 4, [DEVICE_F16] = 2,
                                     [DEVICE_BF16] = 2, [DEVICE_I8] = 1,   [DEVICE_I64] = 8};
    return bytes[type];
}

static uint64_t or_one(uint64_t length)
{
    return length ? length : 1;
}

/* Elements that the shape names; none: whatever fits. */
static uint64_t named(const struct device_work *work)
{
    bool shaped = work->m || work->n || work->k;
    return shaped ? times(times(or_one(work->m), or_one(work->n)), or_one(work->k)) : UINT64_MAX;
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
    uint64_t unit = element_bytes(work->type), m = 0, k = 0, n = work->n;
    if (work->m && work->n && work->k) {
        k = least(work->k, work->in[1].bytes / unit / n);
        m = least(work->m, work->in[0].bytes / unit / work->k);
        m = least(m, work->out.bytes / unit / n);
    }
    uint64_t elements = plus(plus(times(m, n), times(m, k)), times(k, n));
    return two(out, cubes[work->type], times(times(m, n), times(k, 2)), thin[work->type],
               m && k ? times(elements, unit) : 0);
}

static unsigned elementwise(const struct device_work *work, struct sim_work_limit *out)
{
    uint64_t unit = element_bytes(work->type), operands = 1;
    uint64_t count = least(named(work), work->out.bytes / unit);
    for (uint32_t i = 0; i < work->input_count; i++) {
        if (!work->in[i].bytes)
            continue;
        count = least(count, work->in[i].bytes / unit);
        operands++;
    }
    return one(out, SIM_WORK_elementwise, operands > 1 ? times(times(count, unit), operands) : 0);
}

static unsigned copy(const struct device_work *work, struct sim_work_limit *out)
{
    uint64_t bytes = least(work->out.bytes, work->in[0].bytes);
    return one(out, SIM_WORK_copy,
               times(least(bytes, times(named(work), element_bytes(work->type))), 2));
}

static unsigned set(const struct device_work *work, struct sim_work_limit *out)
{
    return one(out, SIM_WORK_set,
               least(work->out.bytes, times(named(work), element_bytes(work->type))));
}

static unsigned reduce(const struct device_work *work, struct sim_work_limit *out)
{
    uint64_t unit = element_bytes(work->type), pitch = or_one(work->n);
    if (unit != 4 && unit != 2)
        return 0;
    uint64_t rows = least(work->m, work->in[0].bytes / unit / pitch);
    uint64_t columns = least(pitch, work->out.bytes / unit);
    return two(out, SIM_WORK_reduce, times(times(rows, columns), unit),
               unit == 4 ? SIM_WORK_strip_32 : SIM_WORK_strip_16,
               times(rows, least(columns, STRIP_COLUMNS)));
}

/* Rows that `index` names, of those that are wanted: 8 bytes each if it holds so many, else 4. */
static uint64_t rows_named(const struct device_work *work, const struct device_operand *rows,
                           const struct device_operand *table, uint64_t row_bytes)
{
    const struct device_operand *index = &work->in[1];
    uint64_t index_bytes = index->bytes / 8 >= work->m ? 8 : 4;
    uint64_t count = least(least(work->m, index->bytes / index_bytes), rows->bytes / row_bytes);
    return table->bytes / row_bytes ? count : 0;
}

static unsigned gather(const struct device_work *work, struct sim_work_limit *out)
{
    uint64_t row_bytes = times(or_one(work->n), element_bytes(work->type));
    uint64_t rows = rows_named(work, &work->out, &work->in[0], row_bytes);
    return two(out, SIM_WORK_gather, times(times(rows, row_bytes), 2), SIM_WORK_gather_rows, rows);
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
    uint64_t row_bytes = times(or_one(work->n), element_bytes(work->type));
    uint64_t rows = rows_named(work, &work->in[0], &work->out, row_bytes);
    return two(out, adds[work->type], times(rows, row_bytes), SIM_WORK_scatter_rows, rows);
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
    return functions[work->kind](work, out);
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
