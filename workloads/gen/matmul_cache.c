/* Products whose inputs are dropped, and what a library holds on to after the first of each
 * kind. For each shape, `repeat` times: two square matrices are drawn, each is multiplied with
 * itself, both are let go; a third is drawn and multiplied. The results are bound to one name,
 * so each lives until the next is there.
 * 1. The library's workspace is made at its first product and stays.
 * 2. The first product of a shape tries `probes` algorithms, each with its own scratch memory,
 *    taken as a request that may fail; the one without scratch is the last resort.
 * 3. It then loads the kernel that won: code outside of the pool, and `kept` bytes of tables
 *    in the pool, which stay. A shape that was there before finds both.
 * Sizes are derived in matmul_cache.md. */

#include <stdlib.h>

#include "allocators/base/rng.h"
#include "workloads/gen/draws.h"
#include "workloads/gen/gen.h"
#include "workloads/gen/jax.h"

struct matmul_values {
    struct gen_common common;
    const char *shapes;
    uint64_t repeat, probes, kept, context, module, workspaces;
    int type, program;
};

struct matmul {
    struct emit emit;
    struct matmul_values values; /* the texts are not used after create */
    struct ar_rng rng;
    struct draws shapes;
    struct eager eager;
    struct kernel {
        uint64_t shape;
        struct emit_block tables;
    } * kernels; /* loaded so far; room for one per shape of the list */
    size_t kernel_count;
    struct emit_block last_input, result;
    uint64_t turn; /* shapes x repeat of them */
    uint64_t shape;
    uint64_t outside_bytes;
    bool ended;
};

static struct matmul *matmul_of(struct emit *emit)
{
    return (struct matmul *)emit;
}

static void hold_outside(struct matmul *self, uint64_t bytes)
{
    if (bytes == 0)
        return;
    self->outside_bytes += bytes;
    emit_outside(&self->emit, self->outside_bytes);
}

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct matmul *self = matmul_of(emit);
    (void)error;
    ar_rng_seed(&self->rng, self->values.common.seed);
    draws_start(&self->shapes);
    eager_start(&self->eager, emit, (enum numeric)self->values.type);
    self->eager.kernel_ops = true;
    self->kernel_count = 0;
    self->last_input.held = self->result.held = false;
    self->turn = 0;
    self->outside_bytes = 0;
    self->ended = false;
    hold_outside(self, self->values.context);
    for (uint64_t i = 0; i < self->values.workspaces; i++)
        self->eager.workspace[i] = emit_alloc(emit, EAGER_WORKSPACE_BYTES, "workspace");
    return AR_OK;
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

/* The product of a matrix with itself takes the name of the result before it. */
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

/* The program returns; the libraries keep what they hold. */
static void finish(struct matmul *self)
{
    emit_free(&self->emit, &self->result);
    emit_free(&self->emit, &self->last_input);
    self->ended = true;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct matmul *self = matmul_of(emit);
    (void)error;
    if (self->ended)
        return AR_OK;
    if (self->turn == self->shapes.count * self->values.repeat) {
        finish(self);
        return AR_OK;
    }
    if (self->turn % self->values.repeat == 0)
        self->shape = draws_next(&self->shapes, &self->rng);
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
    return AR_OK;
}

static void release(struct emit *emit)
{
    struct matmul *self = matmul_of(emit);
    draws_close(&self->shapes);
    free(self->kernels);
}

static const struct emit_program program = {
    .name = "matmul_cache",
    .source_bytes = sizeof(struct matmul),
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    static const char owner[] = "generator matmul_cache";
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    struct matmul *self = matmul_of(emit);
    self->values = *(const struct matmul_values *)values;
    status = draws_parse(&self->shapes, self->values.shapes, DRAWS_CYCLE, 1, 1u << 20, owner,
                         "shapes", error);
    if (status == AR_OK) {
        self->kernels = calloc(self->shapes.count, sizeof *self->kernels);
        if (!self->kernels)
            status = ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory", owner);
    }
    if (status == AR_OK)
        *out = &emit->source;
    else
        trace_close(&emit->source);
    return status;
}

#define AT(field) offsetof(struct matmul_values, field)

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"shapes", AR_OPTION_TEXT, AT(shapes), "512;1000;4000;512;8000;2048;4000;6000;1000;3000", 0, 0,
     NULL, "list of the rows of the square matrices, in order"},
    {"repeat", AR_OPTION_COUNT, AT(repeat), "20", 1, 1e6, NULL,
     "steps with each shape of the list"},
    {"dtype", AR_OPTION_CHOICE, AT(type), "float32", 0, 0, NUMERIC_CHOICES,
     "of the matrices; int8 products are drawn and given in 16 bits"},
    {"program", AR_OPTION_CHOICE, AT(program), "eager", 0, 0, PROGRAM_CHOICES,
     "who runs it: jax has keys for its random numbers and a workspace for each product"},
    {"probes", AR_OPTION_COUNT, AT(probes), "4", 0, 8, NULL,
     "algorithms tried at the first product of a shape"},
    {"kept", AR_OPTION_BYTES, AT(kept), "1MiB", 0, 1e12, NULL,
     "held in the pool for each kernel that was loaded"},
    {"module", AR_OPTION_BYTES, AT(module), "4MiB", 0, 1e12, NULL,
     "held outside of the pool for each kernel that was loaded"},
    {"context", AR_OPTION_BYTES, AT(context), "274MiB", 0, 1e12, NULL,
     "held outside of the pool from the start"},
    {"workspaces", AR_OPTION_COUNT, AT(workspaces), "0", 0, 2, NULL,
     "library workspaces of 32 MiB that an earlier program has left"},
    {.name = NULL},
};

const struct gen_ops matmul_cache_generator = {
    .name = "matmul_cache",
    .summary = "products whose inputs are dropped; workspace, probes and kernels kept",
    .page = "workloads/gen/matmul_cache.md",
    .options = options,
    .values_bytes = sizeof(struct matmul_values),
    .create = create,
};
