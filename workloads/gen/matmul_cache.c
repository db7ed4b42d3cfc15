/* Products whose inputs are freed, and the memory that a library keeps after the first product of
 * each shape. For each shape, `repeat` times: two square matrices are drawn, each is multiplied
 * with itself, both are freed; a third is drawn and multiplied. The results are bound to one name,
 * so each lives until the next is made.
 * 1. The library's workspace is made at its first product and stays.
 * 2. The first product of a shape tries `probes` algorithms, each with its own scratch memory from
 *    a request that may fail; the last one tried needs no scratch memory.
 * 3. It then loads the fastest kernel: code outside of the pool, and `kept` bytes of tables in the
 *    pool, which stay. A later product of the shape uses both.
 * Sizes are derived in matmul_cache.md. */
#include "workloads/gen/jax.h"

struct matmul_values {
    struct gen_common common;
    const char *shapes;
    uint64_t repeat, probes, kept, context, module, workspaces;
    int dtype, program;
};

struct matmul {
    struct emit emit;
    struct matmul_values values; /* the texts are valid in open() */
    struct samples shapes;
    struct kernel {
        uint64_t shape;
        struct emit_block tables;
    } * kernels; /* loaded so far; room for one per shape of the list */
    struct eager eager;
    size_t kernel_count;
    struct emit_block last_input, result;
    uint64_t turn; /* of shapes x repeat */
    uint64_t shape;
    uint64_t outside_bytes;
};

static void hold_outside(struct matmul *self, uint64_t bytes)
{
    if (bytes == 0)
        return;
    self->outside_bytes += bytes;
    emit_outside(&self->emit, self->outside_bytes);
}

static void start(struct emit *emit)
{
    struct matmul *self = (struct matmul *)emit;
    eager_start(&self->eager, emit, (enum numeric)self->values.dtype);
    self->eager.kernel_ops = true;
    hold_outside(self, self->values.context);
    for (uint64_t i = 0; i < self->values.workspaces; i++)
        self->eager.workspace[i] = emit_alloc(emit, EAGER_WORKSPACE_BYTES, "workspace");
}

static uint64_t square_bytes(const struct matmul *self)
{
    return self->shape * self->shape * numeric_value_bytes(self->eager.type);
}

/* Rule 2: algorithm k divides the inner dimension by 2^k and adds up as many float32 results. */
static void probe_algorithms(struct matmul *self, const struct emit_block *matrix)
{
    uint64_t time_ns = roofline_product_ns(self->eager.type, self->shape, self->shape, self->shape);
    for (uint64_t k = self->values.probes; k > 0; k--) {
        uint64_t bytes = self->shape * self->shape * 4 << (k - 1);
        struct emit_block scratch = {.held = false};
        if (k > 1)
            scratch = emit_probe(&self->emit, bytes, "scratch");
        eager_kernel(&self->eager, time_ns + (k > 1 ? roofline_bytes_ns(2 * bytes) : 0),
                     &(struct emit_kernel_op){.op = "matmul",
                                              .type = eager_type(&self->eager),
                                              .out = &scratch,
                                              .in = {matrix, matrix},
                                              .shape = {self->shape, self->shape, self->shape}});
        emit_free(&self->emit, &scratch);
    }
}

/* Rules 2 and 3. */
static void first_use(struct matmul *self, const struct emit_block *matrix)
{
    for (size_t i = 0; i < self->kernel_count; i++)
        if (self->kernels[i].shape == self->shape)
            return;
    struct kernel *kernel = &self->kernels[self->kernel_count++];
    *kernel = (struct kernel){.shape = self->shape};
    probe_algorithms(self, matrix);
    hold_outside(self, self->values.module);
    if (self->values.kept)
        kernel->tables = emit_alloc(&self->emit, self->values.kept, "kernel");
}

static struct emit_block draw_matrix(struct matmul *self)
{
    if (self->values.program == PROGRAM_JAX) {
        struct emit_block key = jax_key(&self->eager);
        return jax_normal(&self->eager, &key, self->shape * self->shape, "input");
    }
    return eager_make(&self->eager, square_bytes(self), 0, "input",
                      eager_set(eager_type(&self->eager)));
}

/* The product of a matrix with itself replaces the result before it. */
static void multiply(struct matmul *self, const struct emit_block *matrix)
{
    uint64_t n = self->shape;
    first_use(self, matrix);
    const struct eager_shape shape = {n, n, n};
    struct emit_block product =
        self->values.program == PROGRAM_JAX
            ? jax_multiply(&self->eager, shape, "product", matrix, matrix)
            : eager_multiply(&self->eager, EAGER_FORWARD, shape, false, "product", matrix, matrix);
    emit_free(&self->emit, &self->result);
    self->result = product;
}

/* The program returns; the libraries keep their memory. */
static void finish(struct matmul *self)
{
    emit_free(&self->emit, &self->result);
    emit_free(&self->emit, &self->last_input);
    emit_end(&self->emit);
}

static void advance(struct emit *emit)
{
    struct matmul *self = (struct matmul *)emit;
    if (self->turn == self->shapes.count * self->values.repeat) {
        finish(self);
        return;
    }
    if (self->turn % self->values.repeat == 0)
        self->shape = samples_next(&self->shapes, &self->emit.rng);
    struct emit_block first = draw_matrix(self);
    struct emit_block second = draw_matrix(self);
    multiply(self, &first);
    multiply(self, &second);
    emit_free(emit, &first);
    emit_free(emit, &second);
    struct emit_block third = draw_matrix(self);
    emit_free(emit, &self->last_input);
    self->last_input = third;
    multiply(self, &third);
    emit_step(emit);
    self->turn++;
}

static void open(struct emit *emit)
{
    struct matmul *self = (struct matmul *)emit;
    samples_open(emit, &self->shapes, self->values.shapes, SAMPLES_CYCLE, 1, 1u << 20, "shapes");
    self->kernels = emit_array(emit, self->shapes.count, sizeof *self->kernels);
}

#define AR_OPT_OF struct matmul_values

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    AR_OPT_TEXT(shapes, "512;1000;4000;512;8000;2048;4000;6000;1000;3000",
                "list of the rows of the square matrices, in order"),
    AR_OPT_COUNT(repeat, "20", 1, 1e6, "steps with each shape of the list"),
    AR_OPT_CHOICE(dtype, "float32", NUMERIC_CHOICES,
                  "of the matrices; int8 products are drawn and given in 16 bits"),
    AR_OPT_CHOICE(
        program, "eager", PROGRAM_CHOICES,
        "the framework: jax has keys for its random numbers and a workspace for each product"),
    AR_OPT_COUNT(probes, "4", 0, 8, "algorithms tried at the first product of a shape"),
    AR_OPT_BYTES(kept, "1MiB", 0, 1e12, "held in the pool for each kernel that was loaded"),
    AR_OPT_BYTES(module, "4MiB", 0, 1e12,
                 "held outside of the pool for each kernel that was loaded"),
    AR_OPT_BYTES(context, "274MiB", 0, 1e12, "held outside of the pool from the start"),
    AR_OPT_COUNT(workspaces, "0", 0, 2,
                 "library workspaces of 32 MiB that an earlier program left"),
    {.name = NULL},
};

const struct gen_ops matmul_cache_generator = {
    .name = "matmul_cache",
    .summary = "products whose inputs are freed; workspace, probes and kernels kept",
    .page = "workloads/gen/matmul_cache.md",
    .options = options,
    GEN_LAYOUT(matmul, eager),
    .open = open,
    .start = start,
    .advance = advance,
};
