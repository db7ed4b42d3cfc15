/* Two methods of a pipeline, the first run once more: each leaves an output and drops what it
 * worked with (DiamondLightSource/httomo#667). An output that is carved from the cached
 * work space spoils it for the method that needs it whole. a_b_a.md draws it.
 * Method A: an output, kept; work space, dropped. Method B: an output only. By default the
 * seven events of the report; `rounds` repeats B and A. */
#include "workloads/gen/emit.h"
#include "workloads/gen/gen.h"

#include "workloads/gen/roofline.h"

struct aba_values {
    struct gen_common common;
    uint64_t output, work, rounds;
    bool trim, kernels;
};

struct aba {
    struct emit emit;
    struct aba_values values;
    uint64_t turn; /* even: method A, odd: method B */
};

static enum ar_status start(struct emit *emit, struct ar_error *error)
{
    (void)error;
    ((struct aba *)emit)->turn = 0;
    return AR_OK;
}

static void run_kernel(struct aba *self, uint64_t bytes)
{
    if (self->values.kernels)
        emit_kernel(&self->emit, roofline_bytes_ns(bytes));
}

static enum ar_status advance(struct emit *emit, struct ar_error *error)
{
    struct aba *self = (struct aba *)emit;
    const struct aba_values *values = &self->values;
    (void)error;
    if (self->turn == 1 + 2 * values->rounds)
        return AR_OK;
    bool first = self->turn++ % 2 == 0;
    (void)emit_alloc(emit, values->output, "output");
    run_kernel(self, values->output);
    if (first) {
        struct emit_block work = emit_alloc(emit, values->work, "work");
        run_kernel(self, 2 * values->work);
        emit_free(emit, &work);
        if (values->trim)
            emit_trim(emit);
    }
    if (values->kernels)
        emit_step(emit);
    return AR_OK;
}

static const struct emit_program program = {
    .name = "a_b_a",
    .source_bytes = sizeof(struct aba),
    .start = start,
    .advance = advance,
};

static enum ar_status create(const void *values, struct trace_source **out, struct ar_error *error)
{
    struct emit *emit;
    enum ar_status status = emit_create(&program, &emit, error);
    if (status != AR_OK)
        return status;
    ((struct aba *)emit)->values = *(const struct aba_values *)values;
    *out = &emit->source;
    return AR_OK;
}

static const struct ar_option options[] = {
    GEN_COMMON_OPTIONS,
    {"output", AR_OPTION_BYTES, offsetof(struct aba_values, output), "1GiB", 1, 1e15, NULL,
     "bytes that a method leaves"},
    {"work", AR_OPTION_BYTES, offsetof(struct aba_values, work), "4GiB", 1, 1e15, NULL,
     "bytes that method A works with"},
    {"rounds", AR_OPTION_COUNT, offsetof(struct aba_values, rounds), "1", 1, 1e6, NULL,
     "times that B and A follow the first A; outputs pile up"},
    {"trim", AR_OPTION_BOOL, offsetof(struct aba_values, trim), "no", 0, 0, NULL,
     "the program gives its cache back after each A"},
    {"kernels", AR_OPTION_BOOL, offsetof(struct aba_values, kernels), "no", 0, 0, NULL,
     "with a kernel for each block, and a step for each method"},
    {.name = NULL},
};

const struct gen_ops a_b_a_generator = {
    .name = "a_b_a",
    .summary = "two methods, the first once more: outputs carved from cached work space",
    .page = "workloads/gen/a_b_a.md",
    .capabilities = GEN_KNOWN_ANSWER | GEN_ADVERSARIAL,
    .options = options,
    .values_bytes = sizeof(struct aba_values),
    .create = create,
};
