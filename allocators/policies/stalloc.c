/* stalloc: one run is profiled, its requests get places in one arena, and the next run's requests
 * are served from there as long as they match.
 *
 * 1. Sizes are rounded to 512 bytes. Several heuristics make a plan each; the one that reserves
 *    least is taken.
 * 2. Requests are matched by their number and size; the rest falls back to a caching pool with
 *    best fit (planned/planned.c). `--stats` counts both.
 * 3. The profile is a trace or a generator, named by the option `profile`, which the engine
 *    reads. Without it the run itself is the profile: the best case.
 *
 * Source: STAlloc (infinigence/STAlloc; STWeaver, arXiv 2507.16274). Its planner splits requests
 * by kinds of lifetime and fuses groups; here the plan comes from the orders of
 * allocators/planning, which reach the same goal. Its option to use idle static space for
 * unplanned requests (off there too) is left out. */
#include "allocators/planning/orders.h"
#include "allocators/policies/planned/planned.h"

#define UNIT_BYTES UINT64_C(512)

extern const struct ar_policy_ops stalloc_policy;

struct stalloc_values {
    struct ar_policy_common common;
    const char *profile; /* the engine's */
};

static const struct ar_option stalloc_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"profile", AR_OPTION_TEXT, offsetof(struct stalloc_values, profile), "", 0, 0, NULL,
     "the workload to plan by, a trace file or a generator's spec in quotes; empty: the run "
     "itself"},
    {0},
};

static enum ar_status least(const struct planned *self, const struct packing *packing,
                            uint64_t *offsets)
{
    struct packing_best best;
    (void)self;
    return packing_best_order(packing, offsets, &best);
}

static enum ar_status stalloc_create(const struct ar_policy_context *context, const void *values,
                                     struct ar_policy **out, struct ar_error *error)
{
    const struct stalloc_values *given = values;
    return planned_create(&stalloc_policy, sizeof(struct planned), UNIT_BYTES, least, context,
                          &given->common, out, error);
}

const struct ar_policy_ops stalloc_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "stalloc",
    .summary = "places planned from a profile of another run, a caching pool for what differs",
    .reference = "STAlloc (infinigence/STAlloc, arXiv 2507.16274); needs a profile",
    .capabilities = PLANNED_CAPABILITIES,
    .options = stalloc_options,
    .values_bytes = sizeof(struct stalloc_values),
    .create = stalloc_create,
    PLANNED_HOOKS,
};
