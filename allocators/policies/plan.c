/* plan: every lifetime is known before the first request, and each block has its place. What an
 * allocator could reach with foresight: a bound, not a competitor.
 *
 * 1. Sizes are rounded to the granule.
 * 2. The lowest plan of several orders of placement; where it is above the live peak, an exact
 *    search goes on for a number of steps, which are the same on every machine.
 * 3. The engine shows it the trace itself, so every request has its place, unless one of a
 *    capacity below the plan's, or a probe that fails, comes in between: planned/planned.c.
 *
 * Source: MiniMalloc (Moffitt, ASPLOS 2023), which it equals where the search is done; allocrig
 * `bound` gives the plan itself and says whether it is the lowest. */
#include "allocators/base/size.h"
#include "allocators/planning/exact.h"
#include "allocators/planning/orders.h"
#include "allocators/policies/planned/planned.h"

extern const struct ar_policy_ops plan_policy;

struct plan_values {
    struct ar_policy_common common;
    uint64_t granule_bytes, steps;
};

struct plan {
    struct planned planned;
    uint64_t steps;
};

static const struct ar_option plan_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"granule", AR_OPTION_BYTES, offsetof(struct plan_values, granule_bytes), "0", 0, AR_GIB, NULL,
     "bytes that sizes and addresses are rounded up to, a power of two; 0: 1 where the device's "
     "own granule is 1, else 256"},
    {"steps", AR_OPTION_COUNT, offsetof(struct plan_values, steps), "4000", 0, 1000000000, NULL,
     "of the search for a lower plan; 0: none"},
    {0},
};

static enum ar_status lowest(const struct planned *planned, const struct packing *packing,
                             uint64_t *offsets)
{
    const struct plan *self = (const struct plan *)planned;
    struct packing_best best;
    struct packing_exact exact;
    const struct packing_exact_options options = {.steps_most = self->steps};
    enum ar_status status = packing_best_order(packing, offsets, &best);
    if (status != AR_OK || self->steps == 0)
        return status;
    exact.top_bytes = best.top_bytes;
    return packing_exact(packing, &options, offsets, &exact);
}

static enum ar_status plan_create(const struct ar_policy_context *context, const void *values,
                                  struct ar_policy **out, struct ar_error *error)
{
    const struct plan_values *given = values;
    uint64_t granule = given->granule_bytes;
    if (granule == 0)
        granule = context->backing->granule_bytes == 1 ? 1 : 256;
    if (!ar_size_is_power_of_two(granule))
        return ar_error_set(error, AR_INVALID,
                            "policy plan, option granule: %llu is not a power of two up to 1 GiB",
                            (unsigned long long)granule);
    enum ar_status status = planned_create(&plan_policy, sizeof(struct plan), granule, lowest,
                                           context, &given->common, out, error);
    if (status == AR_OK)
        ((struct plan *)*out)->steps = given->steps;
    return status;
}

const struct ar_policy_ops plan_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "plan",
    .summary = "every lifetime is known beforehand and each block has its place: a bound",
    .reference = "offline dynamic storage allocation; MiniMalloc (ASPLOS 2023)",
    .capabilities = PLANNED_CAPABILITIES,
    .options = plan_options,
    .values_bytes = sizeof(struct plan_values),
    .create = plan_create,
    PLANNED_HOOKS,
};
