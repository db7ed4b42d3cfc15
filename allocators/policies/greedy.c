/* TensorFlow's and JAX's default: the whole limit is obtained at the first request and divided
 * by best fit with coalescing. See bfc/core.h. */
#include "allocators/policies/bfc/core.h"

static const char *const recorders[] = {"xla", "tensorflow", NULL};

static const struct ar_option options[] = {
    BFC_OPTIONS,
    BFC_TWO_ENDED_OPTIONS,
    {0},
};

extern const struct ar_policy_ops greedy_policy;

static enum ar_status create(const struct ar_policy_context *context, const void *values,
                             struct ar_policy **out, struct ar_error *error)
{
    struct bfc_values mine = *(const struct bfc_values *)values;
    mine.growth = false;
    return bfc_create_as(&greedy_policy, context, &mine, out, error);
}

const struct ar_policy_ops greedy_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "greedy",
    .summary =
        "TensorFlow's default: all of the limit at the first request, best fit with coalescing",
    .reference = "openxla/xla bfc_allocator.cc, August 2026; preallocating",
    .recorders = recorders,
    .capabilities = BFC_CAPABILITIES,
    .options = options,
    .values_bytes = sizeof(struct bfc_values),
    .create = create,
    BFC_HOOKS,
};
