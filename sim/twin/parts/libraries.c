/* What the driver loads for libraries of a process when they are first used, outside of its pool,
 * by rules/context.h: kernels of PyTorch, cuBLAS, attention, and streams. It stays until the
 * process ends. */

#include "sim/twin/part.h"

enum { USES = 6 };

struct values {
    uint64_t bytes[USES];
};

struct libraries {
    struct twin_part base;
};

static const char *const names[USES] = {"kernels",  "products", "attention",
                                        "backward", "streams",  "others"};

#define OPTION(use) offsetof(struct values, bytes) + (use) * sizeof(uint64_t)

static const struct ar_option options[] = {
    {"kernels", AR_OPTION_BYTES, OPTION(0), "92MiB", 0, 0, NULL,
     "at the first kernel of PyTorch; these defaults are those of PyTorch 2.11 on an H200"},
    {"products", AR_OPTION_BYTES, OPTION(1), "66MiB", 0, 0, NULL,
     "at the first matrix product: cuBLAS"},
    {"attention", AR_OPTION_BYTES, OPTION(2), "8MiB", 0, 0, NULL, "at the first fused attention"},
    {"backward", AR_OPTION_BYTES, OPTION(3), "8MiB", 0, 0, NULL,
     "at the first backward pass of it"},
    {"streams", AR_OPTION_BYTES, OPTION(4), "70MiB", 0, 0, NULL, "at the first torch.cuda.Stream"},
    {"others", AR_OPTION_BYTES, OPTION(5), "0", 0, 0, NULL,
     "of other libraries, such as cuDNN or NCCL's kernels"},
    {0},
};

static const struct twin_action actions[] = {
    {"load", "[kernels] [products] [attention] [backward] [streams] [others]",
     "the first use of these, or of all; nothing at a second one", 0, USES},
    {0},
};

static enum ar_status load(struct twin_part *base, const char *name, struct ar_error *error)
{
    const struct values *values = base->values;
    for (unsigned i = 0; i < USES; i++)
        if (strcmp(name, names[i]) == 0) {
            twin_outside(base, twin_owner(base, name), values->bytes[i]);
            return AR_OK;
        }
    return ar_invalid(
        error, "load %.40s: write kernels, products, attention, backward, streams or others", name);
}

static enum ar_status libraries_act(struct twin_part *base, const struct twin_call *call,
                                    bool *more AR_UNUSED, struct ar_error *error)
{
    for (size_t i = 0; i < call->argument_count; i++)
        AR_TRY(load(base, call->arguments[i], error));
    for (size_t i = 0; i < USES && !call->argument_count; i++)
        AR_TRY(load(base, names[i], error));
    return AR_OK;
}

const struct twin_part_ops libraries_part = {
    .kind = "libraries",
    .summary = "kernels and streams that the driver loads for libraries",
    .options = options,
    .values_bytes = sizeof(struct values),
    .part_bytes = sizeof(struct libraries),
    .actions = actions,
    .act = libraries_act,
};
