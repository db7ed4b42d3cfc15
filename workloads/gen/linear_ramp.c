/* Linear ramp: blocks of UNIT, 2 UNIT, ... STEPS x UNIT, as a batch or a sequence that grows.
 * 1. live=1: each block is freed before the next, larger one is asked for.
 * 2. live=2: each block is freed once the next one is there, as in `x = grow(x)`.
 * No freed block fits a later request by itself. Numbers in known_answer.md. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

struct linear_ramp_values {
    struct gen_common common;
    uint64_t live, steps, unit;
};

struct linear_ramp {
    struct emit emit;
    struct linear_ramp_values values;
    struct emit_block last;
    uint64_t step;
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct linear_ramp *self = (struct linear_ramp *)emit;
    (void)error;
    self->step = 0;
    self->last.held = false;
    return AR_OK;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct linear_ramp *self = (struct linear_ramp *)emit;
    (void)error;
    if (self->step == self->values.steps) {
        emit_free(emit, &self->last);
        return AR_OK;
    }
    self->step++;
    if (self->values.live == 1)
        emit_free(emit, &self->last);
    struct emit_block block = emit_alloc(emit, self->step * self->values.unit, NULL);
    emit_free(emit, &self->last);
    self->last = block;
    return AR_OK;
}

static const struct emit_program program = {
    .name = "linear_ramp",
    .source_bytes = sizeof(struct linear_ramp),
    .start = start,
    .advance = advance,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    ((struct linear_ramp *)emit)->values = *(const struct linear_ramp_values *)values;
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"live", AR_OPTION_COUNT, offsetof(struct linear_ramp_values, live), "1", 1, 2, NULL,
     "blocks live while one follows another: 1 or 2"},
    {"steps", AR_OPTION_COUNT, offsetof(struct linear_ramp_values, steps), "40", 1, 1e6, NULL,
     "blocks in all; block k has k units"},
    {"unit", AR_OPTION_BYTES, offsetof(struct linear_ramp_values, unit), "16MiB", 1, 1e11, NULL,
     "bytes of the first block, and that each has more than the one before"},
    {.name = NULL},
};

const struct gen_ops linear_ramp_generator = {
    .name = "linear_ramp",
    .summary = "one block after another, each a little larger than the last",
    .page = "workloads/gen/known_answer.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct linear_ramp_values),
    .create = create,
};
