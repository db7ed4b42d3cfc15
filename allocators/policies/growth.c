/* TensorFlow under set_memory_growth, JAX with XLA_PYTHON_CLIENT_PREALLOCATE=false: regions by
 * doubling, each divided by best fit with coalescing. See bfc/core.h. */
#include "allocators/policies/bfc/core.h"

static const char *const recorders[] = {"xla", "tensorflow", NULL};

static const struct ar_option options[] = {
    BFC_OPTIONS,
    BFC_GROWTH_OPTIONS,
    {0},
};

extern const struct ar_policy_ops growth_policy;

static enum ar_status create(const struct ar_policy_context *context, const void *values,
                             struct ar_policy **out, struct ar_error *error)
{
    struct bfc_values mine = *(const struct bfc_values *)values;
    mine.growth = true;
    return bfc_create_as(&growth_policy, context, &mine, out, error);
}

const struct ar_policy_ops growth_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "growth",
    .summary =
        "TensorFlow's set_memory_growth: regions by doubling, best fit with coalescing inside each",
    .reference = "openxla/xla bfc_allocator.cc, August 2026; growing",
    .recorders = recorders,
    .capabilities = BFC_CAPABILITIES,
    .options = options,
    .values_bytes = sizeof(struct bfc_values),
    .create = create,
    BFC_HOOKS,
};
