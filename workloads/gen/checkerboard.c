/* Checkerboard: COUNT blocks of BYTES, every second one freed (the first, the third, ...), then
 * one request of twice the size: half of the memory is free and no hole fits. At a capacity of
 * COUNT x BYTES only a policy that remaps pages can serve it. Numbers in known_answer.md. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include <stdlib.h>

struct checkerboard_values {
    struct gen_common common;
    uint64_t count, bytes;
};

struct checkerboard {
    struct emit emit;
    struct checkerboard_values values;
    struct emit_block *blocks;
    bool done;
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    (void)error;
    ((struct checkerboard *)emit)->done = false;
    return AR_OK;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct checkerboard *self = (struct checkerboard *)emit;
    (void)error;
    if (self->done)
        return AR_OK;
    self->done = true;
    for (uint64_t i = 0; i < self->values.count; i++)
        self->blocks[i] = emit_alloc(emit, self->values.bytes, NULL);
    for (uint64_t i = 0; i < self->values.count; i += 2)
        emit_free(emit, &self->blocks[i]);
    struct emit_block large = emit_alloc(emit, 2 * self->values.bytes, NULL);
    emit_free(emit, &large);
    for (uint64_t i = 1; i < self->values.count; i += 2)
        emit_free(emit, &self->blocks[i]);
    return AR_OK;
}

static void release(struct emit *emit)
{
    free(((struct checkerboard *)emit)->blocks);
}

static const struct emit_program program = {
    .name = "checkerboard",
    .source_bytes = sizeof(struct checkerboard),
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
    struct checkerboard *self = (struct checkerboard *)emit;
    self->values = *(const struct checkerboard_values *)values;
    self->blocks = calloc(self->values.count, sizeof *self->blocks);
    if (!self->blocks) {
        trace_close(&emit->source);
        return ar_error_set(error, AR_HOST_MEMORY, "generator checkerboard: no host memory");
    }
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"count", AR_OPTION_COUNT, offsetof(struct checkerboard_values, count), "64", 2, 1e7, NULL,
     "blocks; every second one is freed"},
    {"bytes", AR_OPTION_BYTES, offsetof(struct checkerboard_values, bytes), "8MiB", 1, 1e15, NULL,
     "bytes of one block; the request at the end has twice that"},
    {.name = NULL},
};

const struct gen_ops checkerboard_generator = {
    .name = "checkerboard",
    .summary = "every second block freed, then a request that no hole fits",
    .page = "workloads/gen/known_answer.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct checkerboard_values),
    .create = create,
};
