/* A policy of the plug-in kind, into which test_compare.sh plants a regression: PLANT_WASTE more
 * per cent of every request, PLANT_WORK turns of an idle loop at each, or nothing any more after
 * PLANT_END requests. */
#include "tests/cli/on_skeleton.h"

#ifndef PLANT_WASTE
#define PLANT_WASTE 0
#endif
#ifndef PLANT_WORK
#define PLANT_WORK 0
#endif
#ifndef PLANT_END
#define PLANT_END UINT64_MAX
#endif

extern const struct ar_policy_ops planted_policy;

static enum ar_status planted_create(const struct ar_policy_context *context, const void *values,
                                     struct ar_policy **out, struct ar_error *error)
{
    enum ar_status status = skeleton_create(context, values, out, error);
    if (!status)
        (*out)->ops = &planted_policy;
    return status;
}

/* The counter of flushes counts requests here. */
static enum ar_status planted_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    struct skeleton *self = (struct skeleton *)base;
    struct ar_policy_request more = *request;
    if (PLANT_END != UINT64_MAX && self->counted.count.flushes++ >= PLANT_END) {
        self->counted.count.failures++;
        return AR_NO_MEMORY;
    }
    more.bytes += more.bytes * PLANT_WASTE / 100;
    for (volatile int i = 0; i < PLANT_WORK;)
        i = i + 1;
    enum ar_status status = skeleton_alloc(base, &more, out);
    if (!status)
        self->segments.nodes[out->cookie].extra = request->bytes; /* live bytes are requested */
    return status;
}

const struct ar_policy_ops planted_policy = {
    ON_SKELETON,
    .name = "planted",
    .summary = "carries a regression",
    .options = skeleton_options,
    .values_bytes = sizeof(struct skeleton_values),
    .create = planted_create,
    .alloc = planted_alloc,
};

const struct ar_policy_ops *allocrig_policy(void)
{
    return &planted_policy;
}
