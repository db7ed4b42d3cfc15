/* Batches of nearly the same size: what PyTorch's rounding of sizes to a few steps between
 * powers of two was made for (pytorch/pytorch#74213). jitter_batch.md has the numbers.
 * Each step draws a number of rows and makes `tensors` blocks of rows x row bytes; the blocks
 * of the step before are let go at its end, so two steps' blocks overlap. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include "allocators/base/rng.h"
#include "workloads/gen/draws.h"
#include "workloads/gen/roofline.h"

struct jitter_values {
    struct gen_common common;
    const char *rows;
    uint64_t steps, row, tensors, overlap;
    int draw;
};

struct jitter {
    struct emit emit;
    struct jitter_values values; /* the texts are not used after create */
    struct ar_rng rng;
    struct draws rows;
    struct emit_list before, now; /* of the step before, of this one */
    uint64_t step;
    bool ended;
};

static struct jitter *jitter_of(struct emit *emit)
{
    return (struct jitter *)emit;
}

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct jitter *self = jitter_of(emit);
    (void)error;
    ar_rng_seed(&self->rng, self->values.common.seed);
    draws_start(&self->rows);
    emit_list_clear(&self->before);
    emit_list_clear(&self->now);
    self->step = 0;
    self->ended = false;
    return AR_OK;
}

/* Blocks go in the order in which they came. */
static void drop(struct jitter *self, struct emit_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        emit_free(&self->emit, &list->items[i]);
    emit_list_clear(list);
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct jitter *self = jitter_of(emit);
    (void)error;
    if (self->ended)
        return AR_OK;
    if (self->step == self->values.steps) {
        drop(self, &self->before);
        self->ended = true;
        return AR_OK;
    }
    uint64_t bytes = draws_next(&self->rows, &self->rng) * self->values.row;
    for (uint64_t i = 0; i < self->values.tensors; i++) {
        emit_list_push(emit, &self->now, emit_alloc(emit, bytes, "batch"));
        emit_kernel(emit, roofline_bytes_ns(2 * bytes));
    }
    drop(self, &self->before);
    if (self->values.overlap == 1) {
        drop(self, &self->now);
    } else {
        struct emit_list swap = self->before;
        self->before = self->now;
        self->now = swap;
    }
    emit_step(emit);
    self->step++;
    return AR_OK;
}

static void release(struct emit *emit)
{
    struct jitter *self = jitter_of(emit);
    draws_close(&self->rows);
    emit_list_close(&self->before);
    emit_list_close(&self->now);
}

static const struct emit_program program = {
    .name = "jitter_batch",
    .source_bytes = sizeof(struct jitter),
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    struct jitter *self = jitter_of(emit);
    self->values = *(const struct jitter_values *)values;
    status = draws_parse(&self->rows, self->values.rows, (enum draws_order)self->values.draw, 1,
                         1u << 30, "generator jitter_batch", "rows", error);
    if (status == AR_OK)
        *out = &emit->source;
    else
        trace_close(&emit->source);
    return status;
}

#define AT(field) offsetof(struct jitter_values, field)

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"steps", AR_OPTION_COUNT, AT(steps), "1000", 1, 1e9, NULL, "batches"},
    {"rows", AR_OPTION_TEXT, AT(rows), "900-1100", 0, 0, NULL,
     "list of the rows of a batch, or of ranges to draw from"},
    {"draw", AR_OPTION_CHOICE, AT(draw), "random", 0, 0, DRAWS_CHOICES,
     "whether the rows are drawn or taken in turn"},
    {"row", AR_OPTION_BYTES, AT(row), "256KiB", 1, 1e12, NULL, "bytes of a row"},
    {"tensors", AR_OPTION_COUNT, AT(tensors), "4", 1, 1e6, NULL, "blocks of each batch"},
    {"overlap", AR_OPTION_COUNT, AT(overlap), "2", 1, 2, NULL, "batches live at once"},
    {.name = NULL},
};

const struct gen_ops jitter_batch_generator = {
    .name = "jitter_batch",
    .summary = "batches of nearly the same size, two of them live at once",
    .page = "workloads/gen/jitter_batch.md",
    .options = options,
    .values_bytes = sizeof(struct jitter_values),
    .create = create,
};
