/* See eager.h.
 *
 * Kernel times: peaks from NVIDIA's H100 SXM5 datasheet, dense: float32 without tensor cores
 * 67 TFLOP/s (frameworks do not use TF32 by default), 16 bits 989 TFLOP/s, int8 1979 TOP/s, memory
 * 3.35 TB/s; PCIe 5 x16 64 GB/s, of which pageable copies reach a quarter.
 *
 * The plan of a sum over rows follows PyTorch 2.11's reduction kernel on a card of 132
 * multiprocessors; it gives the scratch memory that was recorded:
 * 1. A thread adds `vector` neighbouring columns: 4, or fewer if columns is not a multiple of 4.
 * 2. A block has at most 512 / vector threads: up to 32 along the columns, the rest along rows.
 * 3. Rows are divided among a block's threads if each gets at least 16, or if there are 256 rows.
 * 4. If a thread still has 256 rows or more, they are divided among blocks, so that each has
 *    at least 16: partial sums of 4 bytes, one per thread column, go through memory. */
#include "workloads/gen/eager.h"

#define LATENCY_NS          1500u
#define MEMORY_BYTES_PER_NS 2345u /* 70 % of 3350 */
#define UPLOAD_BYTES_PER_NS 16u

#define MULTIPROCESSORS  132u
#define THREADS_PER_UNIT 2048u
#define BLOCK_THREADS    512u
#define WARP             32u
#define LEAST_PER_THREAD 16u
#define MOST_PER_THREAD  256u

/* ---- kernel times ---- */

uint64_t numeric_weight_bytes(enum numeric type)
{
    static const uint64_t bytes[] = {4, 2, 2, 1};
    return bytes[type];
}

uint64_t numeric_value_bytes(enum numeric type)
{
    return type == NUMERIC_FLOAT32 ? 4 : 2;
}

uint64_t roofline_bytes_ns(uint64_t bytes)
{
    return LATENCY_NS + bytes / MEMORY_BYTES_PER_NS;
}

uint64_t roofline_product_ns(enum numeric type, uint64_t rows, uint64_t columns, uint64_t inner)
{
    static const uint64_t flops_per_ns[] = {46900, 692300, 692300, 1385300}; /* 70 % */
    uint64_t elements = rows * columns + rows * inner + inner * columns;
    uint64_t memory_ns = elements * numeric_value_bytes(type) / MEMORY_BYTES_PER_NS;
    uint64_t compute_ns = 2 * rows * columns * inner / flops_per_ns[type];
    return LATENCY_NS + (compute_ns > memory_ns ? compute_ns : memory_ns);
}

uint64_t roofline_upload_ns(uint64_t bytes)
{
    return LATENCY_NS + bytes / UPLOAD_BYTES_PER_NS;
}

/* ---- operations ---- */

void eager_start(struct eager *self, struct emit *emit, enum numeric type)
{
    *self = (struct eager){.emit = emit, .type = type};
}

void eager_kernel(struct eager *self, uint64_t time_ns, const struct emit_kernel_op *kernel_op)
{
    if (self->kernel_ops)
        emit_kernel_op(self->emit, time_ns, kernel_op);
    else
        emit_kernel(self->emit, time_ns);
}

const char *eager_type(const struct eager *self)
{
    static const char *const names[] = {"f32", "f16", "bf16", "f16"};
    return names[self->type];
}

struct emit_kernel_op eager_set(const char *type)
{
    return (struct emit_kernel_op){.op = "set", .type = type};
}

struct emit_kernel_op eager_combine(const char *type, const struct emit_block *a,
                                    const struct emit_block *b)
{
    return (struct emit_kernel_op){.op = "elementwise", .type = type, .in = {a, b}};
}

struct emit_block eager_make(struct eager *self, uint64_t output_bytes, uint64_t read_bytes,
                             const char *tag, struct emit_kernel_op kernel_op)
{
    struct emit_block output = emit_alloc(self->emit, output_bytes, tag);
    kernel_op.out = &output;
    eager_kernel(self, roofline_bytes_ns(output_bytes + read_bytes), &kernel_op);
    return output;
}

struct emit_block eager_map(struct eager *self, uint64_t output_bytes, uint64_t read_bytes,
                            const char *tag)
{
    return eager_make(self, output_bytes, read_bytes, tag, (struct emit_kernel_op){.op = NULL});
}

struct emit_block eager_layer(struct eager *self, uint64_t rows, uint64_t columns, uint64_t inner,
                              const char *tag)
{
    const struct eager_shape shape = {rows, columns, inner};
    return eager_multiply(self, EAGER_FORWARD, shape, true, tag, NULL, NULL);
}

struct emit_block eager_gradient(struct eager *self, uint64_t rows, uint64_t columns,
                                 uint64_t inner)
{
    const struct eager_shape shape = {rows, columns, inner};
    return eager_multiply(self, EAGER_BACKWARD, shape, false, "gradient", NULL, NULL);
}

struct emit_block eager_multiply(struct eager *self, enum eager_thread thread,
                                 struct eager_shape shape, bool bias, const char *tag,
                                 const struct emit_block *left, const struct emit_block *right)
{
    uint64_t bytes = shape.rows * shape.columns * numeric_value_bytes(self->type);
    struct emit_block output = emit_alloc(self->emit, bytes, tag);
    if (!self->workspace[thread].held)
        self->workspace[thread] = emit_alloc(self->emit, EAGER_WORKSPACE_BYTES, "workspace");
    if (bias && !self->fused_workspace.held)
        self->fused_workspace = emit_alloc(self->emit, EAGER_FUSED_WORKSPACE_BYTES, "workspace");
    /* The backward pass of int8 models runs in 16 bits. */
    enum numeric type = self->type;
    if (type == NUMERIC_INT8 && thread == EAGER_BACKWARD)
        type = NUMERIC_FLOAT16;
    eager_kernel(self, roofline_product_ns(type, shape.rows, shape.columns, shape.inner),
                 &(struct emit_kernel_op){.op = "matmul",
                                          .type = type == NUMERIC_INT8 ? "i8" : eager_type(self),
                                          .out = &output,
                                          .in = {left, right},
                                          .shape = {shape.rows, shape.columns, shape.inner}});
    return output;
}

/* The largest power of two that is at most x, and at most `most`; x above 0. */
static uint64_t power_below(uint64_t x, uint64_t most)
{
    uint64_t power = 1;
    while (power * 2 <= x && power * 2 <= most)
        power *= 2;
    return power;
}

void eager_sum_scratch(uint64_t rows, uint64_t columns, uint64_t *partial_bytes,
                       uint64_t *counter_bytes)
{
    *partial_bytes = *counter_bytes = 0;
    if (columns == 1) /* along the fastest dimension: one block takes up to 131072 values */
        return;
    uint64_t vector = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
    uint64_t threads = BLOCK_THREADS / vector;
    uint64_t across = power_below(columns / vector, threads);
    uint64_t width = ar_least(across, WARP);
    uint64_t height = ar_least(power_below(rows, threads), threads / width);
    width = ar_least(across, threads / height);
    uint64_t grid = ar_divide_up(columns / vector, width);
    if (rows < height * LEAST_PER_THREAD && rows < MOST_PER_THREAD)
        return;
    uint64_t per_thread = ar_divide_up(rows, height);
    uint64_t target = MULTIPROCESSORS * (THREADS_PER_UNIT / (width * height));
    if (per_thread < MOST_PER_THREAD || grid > target)
        return;
    uint64_t blocks =
        ar_least(ar_divide_up(target, grid), ar_divide_up(per_thread, LEAST_PER_THREAD));
    uint64_t least = ar_divide_up(per_thread, MOST_PER_THREAD);
    blocks = blocks < least ? least : blocks;
    if (blocks < 2)
        return;
    *partial_bytes = 4 * columns * blocks * width * vector;
    *counter_bytes = 4 * grid;
}

struct emit_block eager_sum_rows(struct eager *self, uint64_t rows, uint64_t columns,
                                 const struct emit_block *outgoing)
{
    uint64_t value = numeric_value_bytes(self->type);
    uint64_t partial_bytes;
    uint64_t counter_bytes;
    eager_sum_scratch(rows, columns, &partial_bytes, &counter_bytes);
    struct emit_block gradient = emit_alloc(self->emit, columns * value, "gradient");
    struct emit_block partial = {.held = false};
    struct emit_block counters = {.held = false};
    if (partial_bytes) {
        partial = emit_alloc(self->emit, partial_bytes, "scratch");
        counters = emit_alloc(self->emit, counter_bytes, "scratch");
        struct emit_kernel_op clear = eager_set("i8");
        clear.out = &counters;
        eager_kernel(self, roofline_bytes_ns(counter_bytes), &clear);
    }
    eager_kernel(self, roofline_bytes_ns(rows * columns * value),
                 &(struct emit_kernel_op){.op = "reduce",
                                          .type = eager_type(self),
                                          .out = &gradient,
                                          .in = {outgoing},
                                          .shape = {rows, columns}});
    emit_free(self->emit, &counters);
    emit_free(self->emit, &partial);
    return gradient;
}

/* ---- parameters ---- */

unsigned optimizer_states(enum optimizer optimizer)
{
    static const unsigned states[] = {0, 0, 1, 1, 2};
    return states[optimizer];
}

void parameter_make(struct eager *eager, struct parameter *self, uint64_t elements, uint64_t bytes)
{
    *self = (struct parameter){.elements = elements};
    self->value = emit_alloc(eager->emit, bytes, "parameter");
    struct emit_kernel_op kernel_op = eager_set(eager_type(eager));
    kernel_op.out = &self->value;
    eager_kernel(eager, roofline_bytes_ns(bytes), &kernel_op);
}

void parameter_accumulate(struct eager *eager, struct parameter *self, struct emit_block gradient)
{
    if (!self->gradient.held) {
        self->gradient = gradient;
        return;
    }
    struct emit_kernel_op kernel_op = eager_combine(eager_type(eager), &self->gradient, &gradient);
    kernel_op.out = &self->gradient;
    eager_kernel(eager, roofline_bytes_ns(3 * gradient.bytes), &kernel_op);
    emit_free(eager->emit, &gradient);
}

void parameter_prepare(struct eager *eager, struct parameter *self, enum optimizer optimizer,
                       bool master)
{
    if (optimizer == OPTIMIZER_NONE)
        return;
    if (master && !self->master.held)
        self->master = eager_make(eager, 4 * self->elements, self->value.bytes, "master",
                                  eager_combine(EAGER_F32, &self->value, NULL));
    for (unsigned i = 0; i < optimizer_states(optimizer); i++)
        if (!self->state[i].held)
            self->state[i] =
                eager_make(eager, 4 * self->elements, 0, "optimizer", eager_set(EAGER_F32));
}

void parameter_update(struct eager *eager, struct parameter *const *parameters, size_t count,
                      enum optimizer optimizer, bool master, struct emit_block *scratch)
{
    if (optimizer == OPTIMIZER_NONE)
        return;
    for (size_t i = 0; i < count; i++)
        parameter_prepare(eager, parameters[i], optimizer, master);
    for (size_t i = 0; i < count; i++) {
        struct parameter *self = parameters[i];
        uint64_t states = optimizer_states(optimizer) + (master ? 1 : 0);
        if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAGRAD)
            scratch[i] = eager_make(
                eager, 4 * self->elements, 4 * self->elements, "optimizer scratch",
                eager_combine(EAGER_F32, &self->state[optimizer == OPTIMIZER_ADAM], NULL));
        eager_kernel(eager,
                     roofline_bytes_ns(2 * self->value.bytes + self->gradient.bytes +
                                       8 * states * self->elements),
                     &(struct emit_kernel_op){
                         .op = "elementwise",
                         .type = eager_type(eager),
                         .out = &self->value,
                         .in = {&self->gradient, &self->state[0], &self->state[1], &self->master}});
    }
    if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAGRAD)
        for (size_t i = 0; i < count; i++)
            emit_free(eager->emit, &scratch[i]);
}

void parameter_drop(struct eager *eager, struct parameter *self)
{
    emit_free(eager->emit, &self->gradient);
    emit_free(eager->emit, &self->state[1]);
    emit_free(eager->emit, &self->state[0]);
    emit_free(eager->emit, &self->master);
    emit_free(eager->emit, &self->value);
}
