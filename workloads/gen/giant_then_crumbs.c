/* A short-lived giant, then long-lived crumbs where it lay, then the giant again
 * (pytorch/pytorch#35901): a policy that divides the giant's cached segment for the crumbs
 * can never use it as a whole again. giant_then_crumbs.md has the reported figures.
 * Each iteration frees the crumbs of the one before only after the giant has come and gone, so
 * that they never leave the way free. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include "workloads/gen/roofline.h"

struct crumbs_values {
    struct gen_common common;
    uint64_t giant, total, iterations;
    bool trim;
};

struct crumbs {
    struct emit emit;
    struct crumbs_values values;
    struct emit_list kept;
    uint64_t iteration;
    bool ended;
};

static struct crumbs *crumbs_of(struct emit *emit)
{
    return (struct crumbs *)emit;
}

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    (void)error;
    crumbs_of(emit)->iteration = 0;
    crumbs_of(emit)->ended = false;
    emit_list_clear(&crumbs_of(emit)->kept);
    return AR_OK;
}

/* The sizes that the report lists, over and over until the total is reached. */
static void make_crumbs(struct crumbs *self)
{
    static const uint64_t sizes[] = {16515072, 16515072, 11400192, 18191360, 18191360};
    uint64_t left = self->values.total;
    for (unsigned i = 0; left > 0; i++) {
        uint64_t bytes = sizes[i % (sizeof sizes / sizeof sizes[0])];
        bytes = bytes < left ? bytes : left;
        emit_list_push(&self->emit, &self->kept, emit_alloc(&self->emit, bytes, "crumb"));
        emit_kernel(&self->emit, roofline_bytes_ns(bytes));
        left -= bytes;
    }
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct crumbs *self = crumbs_of(emit);
    (void)error;
    if (self->ended)
        return AR_OK;
    if (self->iteration == self->values.iterations) {
        emit_list_free(emit, &self->kept, self->kept.count);
        self->ended = true;
        return AR_OK;
    }
    struct emit_block giant = emit_alloc(emit, self->values.giant, "giant");
    emit_kernel(emit, roofline_bytes_ns(2 * self->values.giant));
    emit_free(emit, &giant);
    emit_list_free(emit, &self->kept, self->kept.count);
    if (self->values.trim)
        emit_trim(emit);
    make_crumbs(self);
    emit_step(emit);
    self->iteration++;
    return AR_OK;
}

static void release(struct emit *emit)
{
    emit_list_close(&crumbs_of(emit)->kept);
}

static const struct emit_program program = {
    .name = "giant_then_crumbs",
    .source_bytes = sizeof(struct crumbs),
    .start = start,
    .advance = advance,
    .release = release,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    const struct crumbs_values *wanted = values;
    struct emit *emit;
    if (wanted->total >= wanted->giant)
        return ar_error_set(
            error, AR_INVALID,
            "generator giant_then_crumbs: total must be below giant, since the crumbs "
            "are to lie where the giant lay");
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    crumbs_of(emit)->values = *wanted;
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"giant", AR_OPTION_BYTES, offsetof(struct crumbs_values, giant), "11643387904", 1, 1e15, NULL,
     "bytes of the giant"},
    {"total", AR_OPTION_BYTES, offsetof(struct crumbs_values, total), "499214336", 1, 1e15, NULL,
     "bytes of all crumbs together"},
    {"iterations", AR_OPTION_COUNT, offsetof(struct crumbs_values, iterations), "2", 1, 1e6, NULL,
     "times that the giant comes and goes"},
    {"trim", AR_OPTION_BOOL, offsetof(struct crumbs_values, trim), "no", 0, 0, NULL,
     "the program gives its cache back when the giant has gone"},
    {.name = NULL},
};

const struct gen_ops giant_then_crumbs_generator = {
    .name = "giant_then_crumbs",
    .summary = "a short-lived giant, long-lived crumbs in its place, and the giant again",
    .page = "workloads/gen/giant_then_crumbs.md",
    .capabilities = GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct crumbs_values),
    .create = create,
};
