/* Pool boundary: one block of FIRST bytes, freed, then one of SECOND bytes. Where a policy
 * keeps requests of different sizes in different pools, the freed memory of the one cannot
 * serve the other. Source: PyTorch's small and large pools. Numbers in known_answer.md. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

struct pool_boundary_values {
    struct gen_common common;
    uint64_t first, second;
};

struct pool_boundary {
    struct emit emit;
    struct pool_boundary_values values;
    bool done;
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    (void)error;
    ((struct pool_boundary *)emit)->done = false;
    return AR_OK;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct pool_boundary *self = (struct pool_boundary *)emit;
    (void)error;
    if (self->done)
        return AR_OK;
    self->done = true;
    struct emit_block block = emit_alloc(emit, self->values.first, NULL);
    emit_free(emit, &block);
    block = emit_alloc(emit, self->values.second, NULL);
    emit_free(emit, &block);
    return AR_OK;
}

static const struct emit_program program = {
    .name = "pool_boundary",
    .source_bytes = sizeof(struct pool_boundary),
    .start = start,
    .advance = advance,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    ((struct pool_boundary *)emit)->values = *(const struct pool_boundary_values *)values;
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"first", AR_OPTION_BYTES, offsetof(struct pool_boundary_values, first), "2MiB", 1, 1e17, NULL,
     "bytes of the block that is freed before the second"},
    {"second", AR_OPTION_BYTES, offsetof(struct pool_boundary_values, second), "512KiB", 1, 1e17,
     NULL, "bytes of the block after it"},
    {.name = NULL},
};

const struct gen_ops pool_boundary_generator = {
    .name = "pool_boundary",
    .summary = "a large block, freed, then a small one: is the memory shared between pools?",
    .page = "workloads/gen/known_answer.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct pool_boundary_values),
    .create = create,
};
