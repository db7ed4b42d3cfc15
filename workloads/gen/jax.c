/* See jax.h. A recording at the driver has sizes in pages of 2 MiB; within a page sizes follow from
 * the meaning of the operations, and are assumptions:
 * 1. A key is 16 bytes, the two numbers before it 4 and 8.
 * 2. Draws of 1 MiB or more take scratch memory of an eighth of a byte for each number: that gives
 *    the pages of six recorded sizes; smaller ones took none.
 * 3. The workspace of a product is 32 MiB + 512 bytes from 512 rows on; below, it is as large as
 *    the result. */
#include "workloads/gen/jax.h"

/* ---- operations ---- */

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

/* An array of one number: two scalars on the way to it. */
static struct emit_block jax_fill(struct eager *self, uint64_t bytes, const char *tag)
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

/* ---- embedding ----
 *
 * Tables that are made when they are first used, and a step that is compiled as a whole: it reads
 * tables and makes new ones, so both are live while it runs. It has little memory of its own,
 * because the gradient is computed in the memory of the new table. The order is the recorded
 * one. */

#define ID_BYTES 4u

void jax_embedding_start(struct jax_embedding *self, struct eager *eager)
{
    self->count = 0;
    self->value.held = false;
    self->key = jax_key(eager);
}

void jax_embedding_add(struct jax_embedding *self, struct eager *eager, uint64_t elements)
{
    struct jax_table *table = &self->tables[self->count++];
    struct emit_block key = jax_key(eager);
    *table = (struct jax_table){.elements = elements};
    table->rows = jax_normal(eager, &key, elements, "table");
}

/* Integers between two bounds, which are arrays as well. */
static struct emit_block draw_ids(struct eager *eager, uint64_t count)
{
    struct emit_block key = jax_key(eager);
    struct emit_block least = make(eager, SCALAR_BYTES, "scalar");
    struct emit_block most = make(eager, SCALAR_BYTES, "scalar");
    struct emit_block ids = make(eager, count * ID_BYTES, "ids");
    struct emit_block scratch = make(eager, count * ID_BYTES, "scratch");
    emit_free(eager->emit, &scratch);
    emit_free(eager->emit, &least);
    emit_free(eager->emit, &most);
    emit_free(eager->emit, &key);
    return ids;
}

/* The largest table first, the order in which the compiled step requests its results. */
static void put_in_order(struct jax_embedding *self)
{
    for (size_t i = 0; i < self->count; i++) {
        size_t at = i;
        for (; at && self->tables[self->order[at - 1]].elements < self->tables[i].elements; at--)
            self->order[at] = self->order[at - 1];
        self->order[at] = i;
    }
}

static void run_step(struct jax_embedding *self, struct eager *eager, uint64_t batch,
                     uint64_t width)
{
    uint64_t value = numeric_value_bytes(eager->type);
    struct emit_block target = jax_fill(eager, batch * width * value, "target");
    put_in_order(self);
    for (size_t i = 0; i < self->count; i++) {
        struct jax_table *table = &self->tables[self->order[i]];
        table->made = make(eager, table->elements * value, "table");
    }
    struct emit_block first = make(eager, batch * width * value, "temporary");
    struct emit_block loss = make(eager, value, "loss");
    struct emit_block second = make(eager, batch * width * value, "temporary");
    emit_free(eager->emit, &first);
    emit_free(eager->emit, &second);
    emit_free(eager->emit, &target);
    emit_free(eager->emit, &self->value);
    self->value = loss;
    for (size_t i = self->count; i-- > 0;) {
        emit_free(eager->emit, &self->tables[i].rows);
        self->tables[i].rows = self->tables[i].made;
    }
}

void jax_embedding_step(struct jax_embedding *self, struct eager *eager, uint64_t batch,
                        uint64_t width, const uint64_t *bags)
{
    for (size_t i = 0; i < self->count; i++)
        self->tables[i].made = draw_ids(eager, batch * bags[i]);
    for (size_t i = self->count; i-- > 0;) {
        emit_free(eager->emit, &self->tables[i].ids);
        self->tables[i].ids = self->tables[i].made;
    }
    run_step(self, eager, batch, width);
}

void jax_embedding_finish(struct jax_embedding *self, struct eager *eager)
{
    emit_free(eager->emit, &self->key);
    for (size_t i = self->count; i-- > 0;)
        emit_free(eager->emit, &self->tables[i].ids);
    emit_free(eager->emit, &self->value);
    for (size_t i = self->count; i-- > 0;)
        emit_free(eager->emit, &self->tables[i].rows);
}

/* ---- tape ----
 *
 * One layer under jax.value_and_grad, not compiled as a whole: each operation is a program of its
 * own and makes a new array. The tables below are the recorded order of a step, in which 30 arrays
 * are made; the meaning of each array follows from the operations, and is an assumption where two
 * orders are possible. The arrays left by a step (input, loss, gradients, parameters) are freed by
 * the next. */

enum size { SHEET, SQUARE, ROW, NUMBER, SIZE_COUNT };
enum act { MAKE, DROP, DROP_OLD };

enum {
    INPUT = 3,
    PRODUCT,
    RESULT = 6,
    DIFFERENCE,
    LOSS = 12,
    OF_BIAS = 20,
    TRANSPOSED = 21,
    OF_WEIGHT = 23,
    WEIGHT = 26,
    BIAS = 29
};

struct action {
    uint8_t act, block, size;
    const char *tag;
};

static const struct action forward_actions[] = {
    {MAKE, RESULT, SHEET, "output"},
    {DROP, PRODUCT, 0, NULL},
    {MAKE, DIFFERENCE, SHEET, "difference"},
    {MAKE, 8, SHEET, "power"},
    {MAKE, 9, SHEET, "squares"},
    {MAKE, 10, NUMBER, "scalar"},
    {MAKE, 11, SHEET, "tape"}, /* twice the difference: kept for the backward pass */
    {DROP, 10, 0, NULL},
    {DROP, 8, 0, NULL},
    {DROP, DIFFERENCE, 0, NULL},
    {MAKE, LOSS, NUMBER, "loss"},
    {DROP, 9, 0, NULL},
    {DROP, RESULT, 0, NULL},
};

static const struct action backward_actions[] = {
    {MAKE, 13, NUMBER, "gradient"},
    {MAKE, 14, SHEET, "gradient"},
    {DROP, 13, 0, NULL},
    {MAKE, 15, NUMBER, "scalar"},
    {MAKE, 16, SHEET, "gradient"},
    {MAKE, 17, NUMBER, "scalar"},
    {MAKE, 18, SHEET, "gradient"},
    {DROP, 17, 0, NULL},
    {DROP, 15, 0, NULL},
    {MAKE, 19, ROW, "gradient"},
    {MAKE, OF_BIAS, ROW, "gradient"},
    {DROP, 19, 0, NULL},
    {DROP, 18, 0, NULL},
};

static const struct action update_actions[] = {
    {MAKE, OF_WEIGHT, SQUARE, "gradient"},
    {DROP, TRANSPOSED, 0, NULL},
    {DROP, 16, 0, NULL},
    {DROP, 14, 0, NULL},
    {DROP, 11, 0, NULL},
    {DROP_OLD, LOSS, 0, NULL},
    {DROP_OLD, OF_WEIGHT, 0, NULL},
    {DROP_OLD, OF_BIAS, 0, NULL},
    {MAKE, 24, NUMBER, "scalar"},
    {MAKE, 25, SQUARE, "step"},
    {DROP, 24, 0, NULL},
    {MAKE, WEIGHT, SQUARE, "weight"},
    {DROP, 25, 0, NULL},
    {MAKE, 27, NUMBER, "scalar"},
    {MAKE, 28, ROW, "step"},
    {DROP, 27, 0, NULL},
    {MAKE, BIAS, ROW, "bias"},
    {DROP, 28, 0, NULL},
    {DROP_OLD, BIAS, 0, NULL},
    {DROP_OLD, WEIGHT, 0, NULL},
};

struct step_context {
    struct eager *eager;
    struct emit_block *blocks, *old;
    uint64_t sizes[SIZE_COUNT];
};

static void run_actions(const struct step_context *context, const struct action *actions,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct action *action = &actions[i];
        if (action->act == MAKE)
            context->blocks[action->block] =
                make(context->eager, context->sizes[action->size], action->tag);
        else
            emit_free(context->eager->emit, action->act == DROP ? &context->blocks[action->block]
                                                                : &context->old[action->block]);
    }
}

#define RUN(context, actions) run_actions(context, actions, sizeof(actions) / sizeof *(actions))

void jax_tape_start(struct jax_tape *tape, struct eager *eager, uint64_t width)
{
    uint64_t value = numeric_value_bytes(eager->type);
    memset(tape, 0, sizeof *tape);
    tape->blocks[WEIGHT] = jax_fill(eager, width * width * value, "weight");
    tape->blocks[BIAS] = jax_fill(eager, width * value, "bias");
}

void jax_tape_step(struct jax_tape *tape, struct eager *eager, uint64_t rows, uint64_t width)
{
    uint64_t value = numeric_value_bytes(eager->type);
    struct jax_tape old = *tape;
    const struct step_context context = {
        .eager = eager,
        .blocks = tape->blocks,
        .old = old.blocks,
        .sizes = {[SHEET] = rows * width * value,
                  [SQUARE] = width * width * value,
                  [ROW] = width * value,
                  [NUMBER] = value},
    };
    struct emit_block *blocks = tape->blocks;
    struct emit_block key = jax_key(eager);
    blocks[INPUT] = jax_normal(eager, &key, rows * width, "input");
    emit_free(eager->emit, &old.blocks[INPUT]);
    blocks[PRODUCT] = jax_multiply(eager, (struct eager_shape){rows, width, width}, "product",
                                   &blocks[INPUT], &old.blocks[WEIGHT]);
    RUN(&context, forward_actions);
    RUN(&context, backward_actions);
    blocks[TRANSPOSED] = jax_multiply(eager, (struct eager_shape){width, width, rows}, "gradient",
                                      &blocks[16], &blocks[INPUT]);
    RUN(&context, update_actions);
}

void jax_tape_finish(struct jax_tape *tape, struct eager *eager)
{
    static const uint8_t last[] = {INPUT, LOSS, OF_WEIGHT, OF_BIAS, BIAS, WEIGHT};
    for (size_t i = 0; i < sizeof last; i++)
        emit_free(eager->emit, &tape->blocks[last[i]]);
}
