/* See jax.h. A recording at the driver tells sizes in pages of 2 MiB; within a page they follow from
 * what the operations mean, and are assumptions:
 * 1. A key is 16 bytes, the two numbers before it 4 and 8.
 * 2. Draws of 1 MiB or more take scratch memory of an eighth of a byte for each number: that gives the
 *    pages of six recorded sizes; smaller ones took none.
 * 3. The workspace of a product is 32 MiB and a little, from 512 rows on; smaller ones take as much as
 *    their result. */
#include "workloads/gen/jax.h"

#define SCRATCH_FROM    (UINT64_C(1) << 20)
#define WORKSPACE_ROWS  512u
#define WORKSPACE_BYTES (EAGER_WORKSPACE_BYTES + 512)
#define SCALAR_BYTES    4u

static struct emit_block make(struct eager *self, uint64_t bytes, const char *tag)
{
    return eager_make(self, bytes, 0, tag, eager_set(eager_type(self)));
}

struct emit_block jax_key(struct eager *self)
{
    struct emit_block number = make(self, SCALAR_BYTES, "key");
    struct emit_block wide = make(self, 2 * SCALAR_BYTES, "key");
    emit_free(self->emit, &number);
    struct emit_block key = make(self, 4 * SCALAR_BYTES, "key");
    emit_free(self->emit, &wide);
    return key;
}

struct emit_block jax_normal(struct eager *self, struct emit_block *key, uint64_t elements,
                             const char *tag)
{
    uint64_t bytes = elements * numeric_value_bytes(self->type);
    struct emit_block array = make(self, bytes, tag);
    if (bytes >= SCRATCH_FROM) {
        struct emit_block scratch = make(self, elements / 8, "scratch");
        emit_free(self->emit, &scratch);
    }
    emit_free(self->emit, key);
    return array;
}

struct emit_block jax_fill(struct eager *self, uint64_t bytes, const char *tag)
{
    struct emit_block number = make(self, SCALAR_BYTES, "scalar");
    struct emit_block converted = make(self, SCALAR_BYTES, "scalar");
    emit_free(self->emit, &number);
    struct emit_block array = make(self, bytes, tag);
    emit_free(self->emit, &converted);
    return array;
}

struct emit_block jax_multiply(struct eager *self, struct eager_shape shape, const char *tag,
                               const struct emit_block *left, const struct emit_block *right)
{
    uint64_t bytes = shape.rows * shape.columns * numeric_value_bytes(self->type);
    struct emit_block output = emit_alloc(self->emit, bytes, tag);
    struct emit_block workspace =
        emit_alloc(self->emit, shape.rows < WORKSPACE_ROWS ? bytes : WORKSPACE_BYTES, "workspace");
    eager_kernel(self, roofline_product_ns(self->type, shape.rows, shape.columns, shape.inner),
                 &(struct emit_kernel_op){.op = "matmul",
                                          .type = eager_type(self),
                                          .out = &output,
                                          .in = {left, right},
                                          .shape = {shape.rows, shape.columns, shape.inner}});
    emit_free(self->emit, &workspace);
    return output;
}
