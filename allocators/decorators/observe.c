/* observe: counts the calls to a policy and, where a callback was given in code, calls it after
 * each of them. From a spec there is nobody to call, so it only counts. */
#include "allocators/decorators/observe.h"

#include "allocators/decorators/forward.h"
#include "allocators/registry.h"

struct observe {
    struct forward forward;
    struct observe_counts counts;
    observe_callback *callback;
    void *argument;
};

static const struct ar_option observe_options[] = {{0}};

static void tell(struct ar_policy *base, struct observe_event event)
{
    struct observe *self = (struct observe *)base;
    self->counts.calls[event.kind]++;
    self->counts.failed[event.kind] += event.status != AR_OK;
    event.totals = &base->totals;
    if (self->callback)
        self->callback(self->argument, &event);
}

static enum ar_status observe_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    enum ar_status status = forward_alloc(base, request, out);
    if (!status)
        ((struct observe *)base)->counts.alloc_bytes += request->bytes;
    tell(base, (struct observe_event){.kind = OBSERVE_ALLOC,
                                      .status = status,
                                      .stream = request->stream,
                                      .request = request,
                                      .block = status ? NULL : out});
    return status;
}

static enum ar_status observe_free(struct ar_policy *base, const struct ar_policy_block *block,
                                   uint32_t stream)
{
    enum ar_status status = forward_free(base, block, stream);
    tell(base, (struct observe_event){
                   .kind = OBSERVE_FREE, .status = status, .stream = stream, .block = block});
    return status;
}

static enum ar_status observe_use(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream)
{
    enum ar_status status = forward_use(base, block, stream);
    tell(base, (struct observe_event){
                   .kind = OBSERVE_USE, .status = status, .stream = stream, .block = block});
    return status;
}

static void observe_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    forward_retire(base, block);
    tell(base, (struct observe_event){.kind = OBSERVE_RETIRE, .block = block});
}

static enum ar_status observe_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    enum ar_status status = forward_trim(base, keep_bytes);
    tell(base, (struct observe_event){.kind = OBSERVE_TRIM, .status = status});
    return status;
}

enum ar_status observe_wrap(struct ar_host *host, struct ar_policy *inner,
                            observe_callback *callback, void *argument, struct ar_policy **out,
                            struct ar_error *error)
{
    struct observe *self = forward_create(host, sizeof *self, "observe", inner, error);
    if (!self)
        return AR_HOST_MEMORY;
    self->callback = callback;
    self->argument = argument;
    self->forward.ops.alloc = observe_alloc;
    self->forward.ops.free = observe_free;
    if (inner->ops->use)
        self->forward.ops.use = observe_use;
    if (inner->ops->retire)
        self->forward.ops.retire = observe_retire;
    if (inner->ops->trim)
        self->forward.ops.trim = observe_trim;
    *out = &self->forward.base;
    return AR_OK;
}

static enum ar_status observe_wrap_spec(const struct ar_policy_context *context, const void *values,
                                        struct ar_policy *inner, struct ar_policy **out,
                                        struct ar_error *error)
{
    (void)values;
    return observe_wrap(context->host, inner, NULL, NULL, out, error);
}

const struct observe_counts *observe_counts(const struct ar_policy *policy)
{
    return policy->ops->alloc == observe_alloc ? &((const struct observe *)policy)->counts : NULL;
}

const struct decorator_ops observe_decorator = {
    .name = "observe",
    .summary = "counts the calls to the policy; in code it calls back after each",
    .options = observe_options,
    .values_bytes = sizeof(int), /* it has none */
    .wrap = observe_wrap_spec,
};
