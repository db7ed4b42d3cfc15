/* The BFC allocator with every knob there is, for experiments; greedy and growth are its two
 * usual settings. See bfc/core.h. */
#include "allocators/policies/bfc/core.h"

static const char *const recorders[] = {"xla", "tensorflow", NULL};

static const struct ar_option options[] = {
    BFC_OPTIONS,
    {"growth", AR_OPTION_BOOL, offsetof(struct bfc_values, growth), "false", 0, 0, NULL,
     "regions by doubling instead of the whole limit at the first request"},
    BFC_GROWTH_OPTIONS,
    BFC_TWO_ENDED_OPTIONS,
    {0},
};

extern const struct ar_policy_ops bfc_policy;

static enum ar_status create(const struct ar_policy_context *context, const void *values,
                             struct ar_policy **out, struct ar_error *error)
{
    return bfc_create_as(&bfc_policy, context, values, out, error);
}

const struct ar_policy_ops bfc_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "bfc",
    .summary = "the allocator of TensorFlow, XLA and JAX with every knob",
    .reference = "openxla/xla bfc_allocator.cc, August 2026",
    .recorders = recorders,
    .capabilities = BFC_CAPABILITIES,
    .options = options,
    .values_bytes = sizeof(struct bfc_values),
    .create = create,
    BFC_HOOKS,
};
