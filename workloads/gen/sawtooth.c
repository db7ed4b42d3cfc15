/* Sawtooth: a buffer that grows by a factor, FROM to TO, the old one let go once the new one
 * is there. In one arena a buffer can move into its own earlier places only where the factor g
 * has g * g - g - 1 <= 0, that is g <= 1.618. Numbers in known_answer.md. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

struct sawtooth_values {
    struct gen_common common;
    uint64_t from, to;
    double factor;
};

struct sawtooth {
    struct emit emit;
    struct sawtooth_values values;
    struct emit_block last;
    uint64_t bytes; /* of the next buffer; above `to`: none follows */
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    struct sawtooth *self = (struct sawtooth *)emit;
    (void)error;
    self->last.held = false;
    self->bytes = self->values.from;
    return AR_OK;
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct sawtooth *self = (struct sawtooth *)emit;
    (void)error;
    if (self->bytes > self->values.to) {
        emit_free(emit, &self->last);
        return AR_OK;
    }
    struct emit_block block = emit_alloc(emit, self->bytes, NULL);
    emit_free(emit, &self->last);
    self->last = block;
    uint64_t grown = (uint64_t)((double)self->bytes * self->values.factor);
    self->bytes = grown > self->bytes ? grown : self->bytes + 1;
    return AR_OK;
}

static const struct emit_program program = {
    .name = "sawtooth",
    .source_bytes = sizeof(struct sawtooth),
    .start = start,
    .advance = advance,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    const struct sawtooth_values *wanted = values;
    if (wanted->to < wanted->from)
        return ar_error_set(
            error, AR_INVALID,
            "generator sawtooth: to is below from; the buffer grows, so give a to of "
            "at least from");
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    ((struct sawtooth *)emit)->values = *wanted;
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"from", AR_OPTION_BYTES, offsetof(struct sawtooth_values, from), "16MiB", 1, 1e17, NULL,
     "bytes of the first buffer"},
    {"to", AR_OPTION_BYTES, offsetof(struct sawtooth_values, to), "4GiB", 1, 1e17, NULL,
     "no buffer is larger than this"},
    {"factor", AR_OPTION_FRACTION, offsetof(struct sawtooth_values, factor), "2", 1.001, 1024, NULL,
     "a buffer's size / that of the one before"},
    {.name = NULL},
};

const struct gen_ops sawtooth_generator = {
    .name = "sawtooth",
    .summary = "a buffer that grows by a factor, old and new live together",
    .page = "workloads/gen/known_answer.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct sawtooth_values),
    .create = create,
};
