/* first-fit: the lowest hole that is large enough, in one arena without a bound. The machinery
 * is in fit/; here is only that the holes are ordered by address. */
#include "allocators/policies/fit/fit.h"

static const struct ar_option first_fit_options[] = {AR_POLICY_COMMON_OPTIONS, FIT_OPTIONS, {0}};

extern const struct ar_policy_ops first_fit_policy;

static enum ar_status first_fit_create(const struct ar_policy_context *context, const void *values,
                                       struct ar_policy **out, struct ar_error *error)
{
    return fit_create(&first_fit_policy, AR_RANGE_BY_ADDRESS, context, values, out, error);
}

const struct ar_policy_ops first_fit_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "first-fit",
    .summary = "the lowest hole that is large enough, in one arena without a bound",
    .reference = "textbook: Knuth, The Art of Computer Programming, vol. 1, 2.5",
    .capabilities = FIT_CAPABILITIES,
    .options = first_fit_options,
    .values_bytes = sizeof(struct fit_values),
    .create = first_fit_create,
    FIT_HOOKS,
};
