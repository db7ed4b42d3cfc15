/* limit: refuses requests that would take the granted bytes past a maximum, as the limiting adaptor
 * of RMM does. (Every policy also has an option `limit` for its reserved bytes.) A request is
 * refused before the policy gets it if its bytes exceed the maximum. If the policy rounds it up
 * past the maximum, the block is freed again. */

#include "allocators/decorators/forward.h"
#include "allocators/registry.h"

struct limit_values {
    uint64_t bytes;
};

struct limit {
    struct forward forward;
    uint64_t bytes;
    uint64_t refused;
};

static const struct ar_option limit_options[] = {
    {"bytes", AR_OPTION_BYTES, offsetof(struct limit_values, bytes), NULL, 1, 9e18, NULL,
     "maximum of granted bytes; required"},
    {0},
};

static enum ar_status limit_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct limit *self = (struct limit *)base;
    uint64_t granted = base->totals.granted_bytes;
    if (granted > self->bytes || request->bytes > self->bytes - granted) {
        self->refused++;
        return AR_NO_MEMORY;
    }
    AR_TRY(forward_alloc(base, request, out));
    if (base->totals.granted_bytes <= self->bytes)
        return AR_OK;
    self->refused++;
    AR_TRY(forward_free(base, out, request->stream));
    return AR_NO_MEMORY;
}

static void limit_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct limit *self = (const struct limit *)base;
    self->forward.inner->ops->stats(self->forward.inner, out);
    out->count.failures += self->refused;
}

static enum ar_status limit_wrap(const struct ar_policy_context *context, const void *values,
                                 struct ar_policy *inner, struct ar_policy **out,
                                 struct ar_error *error)
{
    const struct limit_values *given = values;
    if (given->bytes == 0)
        return ar_invalid(error, "decorator limit needs a maximum; write limit(bytes=2GiB)+NAME");
    struct limit *self = forward_create(context->host, sizeof *self, "limit", inner, error);
    AR_TRY_HOST(self);
    self->bytes = given->bytes;
    self->forward.ops.alloc = limit_alloc;
    self->forward.ops.stats = limit_stats;
    *out = &self->forward.base;
    return AR_OK;
}

const struct decorator_ops limit_decorator = {
    .name = "limit",
    .summary = "refuses requests past a number of bytes",
    .options = limit_options,
    .values_bytes = sizeof(struct limit_values),
    .wrap = limit_wrap,
};
