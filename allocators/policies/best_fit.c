/* best-fit: the smallest hole that is large enough, the lowest among equals, in one arena without
 * a bound. The machinery is in fit/; here is only that the holes are ordered by size, and that the
 * hole at the end may be kept for last ("wilderness preservation": Korn and Vo, In search of a better
 * malloc, 1985). */
#include "allocators/policies/fit/fit.h"

static const struct ar_option best_fit_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    FIT_OPTIONS,
    {"wilderness", AR_OPTION_BOOL, offsetof(struct fit_values, wilderness), "no", 0, 0, NULL,
     "whether the hole at the arena's end counts as endless, and so serves last"},
    {0}};

extern const struct ar_policy_ops best_fit_policy;

static enum ar_status best_fit_create(const struct ar_policy_context *context, const void *values,
                                      struct ar_policy **out, struct ar_error *error)
{
    return fit_create(&best_fit_policy, AR_RANGE_BY_SIZE, context, values, out, error);
}

const struct ar_policy_ops best_fit_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "best-fit",
    .summary = "the smallest hole that is large enough, in one arena without a bound",
    .reference = "textbook: Knuth, The Art of Computer Programming, vol. 1, 2.5",
    .capabilities = FIT_CAPABILITIES,
    .options = best_fit_options,
    .values_bytes = sizeof(struct fit_values),
    .create = best_fit_create,
    FIT_HOOKS,
};
