/* Order flip: COUNT blocks of BYTES, all freed, then half as many of twice the size; or the
 * large ones first. A policy that cannot join its segments holds both generations.
 * Source: the PyTorch developer notes on expandable segments. Numbers in known_answer.md. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include <stdlib.h>

struct order_flip_values {
    struct gen_common common;
    uint64_t count, bytes;
    bool reverse;
};

struct order_flip {
    struct emit emit;
    struct order_flip_values values;
    struct emit_block *blocks;
    uint64_t generation;
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    (void)error;
    ((struct order_flip *)emit)->generation = 0;
    return AR_OK;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct order_flip *self = (struct order_flip *)emit;
    (void)error;
    if (self->generation == 2)
        return AR_OK;
    bool large = (self->generation++ == 1) != self->values.reverse;
    uint64_t count = large ? self->values.count / 2 : self->values.count;
    uint64_t bytes = large ? self->values.bytes * 2 : self->values.bytes;
    for (uint64_t i = 0; i < count; i++)
        self->blocks[i] = emit_alloc(emit, bytes, NULL);
    for (uint64_t i = 0; i < count; i++)
        emit_free(emit, &self->blocks[i]);
    return AR_OK;
}

static void release(struct emit *emit)
{
    free(((struct order_flip *)emit)->blocks);
}

static const struct emit_program program = {
    .name = "order_flip",
    .source_bytes = sizeof(struct order_flip),
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
    struct order_flip *self = (struct order_flip *)emit;
    self->values = *(const struct order_flip_values *)values;
    self->blocks = calloc(self->values.count, sizeof *self->blocks);
    if (!self->blocks) {
        trace_close(&emit->source);
        return ar_error_set(error, AR_HOST_MEMORY, "generator order_flip: no host memory");
    }
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"count", AR_OPTION_COUNT, offsetof(struct order_flip_values, count), "8", 2, 1e7, NULL,
     "small blocks; half as many large ones"},
    {"bytes", AR_OPTION_BYTES, offsetof(struct order_flip_values, bytes), "16MiB", 1, 1e15, NULL,
     "bytes of a small block; a large one has twice that"},
    {"reverse", AR_OPTION_BOOL, offsetof(struct order_flip_values, reverse), "no", 0, 0, NULL,
     "the large blocks first"},
    {.name = NULL},
};

const struct gen_ops order_flip_generator = {
    .name = "order_flip",
    .summary = "blocks of one size, all freed, then half as many of twice the size",
    .page = "workloads/gen/known_answer.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct order_flip_values),
    .create = create,
};
