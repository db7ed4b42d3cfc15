/* fault: makes calls to the backing fail, to test the policy. It is between the policy and its
 * memory. Calls that ask for memory or addresses (driver allocation, reserve, create, allocation
 * from the driver's pool) are counted from 1. The call with the number `n`, or every `every`-th
 * call, is refused as if the device were full. All other calls pass. */

#include "allocators/decorators/forward.h"
#include "allocators/registry.h"
#include "allocators/relay.h"

struct fault_values {
    uint64_t n, every;
};

struct faulty_backing {
    struct relay relay;
    struct ar_policy_context context; /* of the policy inside */
    uint64_t n, every, calls;
};

struct fault {
    struct forward forward;
    struct faulty_backing *backing; /* owned */
};

static const struct ar_option fault_options[] = {
    {"n", AR_OPTION_COUNT, offsetof(struct fault_values, n), "0", 0, 0, NULL,
     "the number of the call that fails, from 1; 0: none"},
    {"every", AR_OPTION_COUNT, offsetof(struct fault_values, every), "0", 0, 0, NULL,
     "every call whose number is a multiple of this fails; 0: none"},
    {0},
};

static enum ar_status refuse_chosen(struct relay *relay, enum relay_hook hook)
{
    struct faulty_backing *self = (struct faulty_backing *)&relay->base;
    if (hook != RELAY_SEGMENT_ALLOC && hook != RELAY_RESERVE && hook != RELAY_CREATE &&
        hook != RELAY_POOL_ALLOC)
        return AR_OK;
    self->calls++;
    bool fails = self->calls == self->n || (self->every && self->calls % self->every == 0);
    return fails ? AR_REFUSED : AR_OK;
}

static enum ar_status fault_open(const struct ar_policy_context *outer, const void *values,
                                 const struct ar_policy_context **inner, struct ar_error *error)
{
    const struct fault_values *given = values;
    if (given->n == 0 && given->every == 0)
        return ar_invalid(error, "decorator fault needs to know which call fails; write "
                                 "fault(n=3)+NAME or fault(every=10)+NAME");
    struct faulty_backing *self = ar_host_alloc(outer->host, sizeof *self);
    AR_TRY_MEMORY(self, error, "the decorator fault");
    *self = (struct faulty_backing){.relay.before = refuse_chosen};
    relay_open(&self->relay, outer->backing);
    self->n = given->n;
    self->every = given->every;
    self->context = *outer;
    self->context.backing = &self->relay.base;
    *inner = &self->context;
    return AR_OK;
}

static void fault_close(const struct ar_policy_context *inner)
{
    ar_host_free(inner->host, (struct faulty_backing *)inner->backing,
                 sizeof(struct faulty_backing));
}

static void fault_destroy(struct ar_policy *base)
{
    struct faulty_backing *backing = ((struct fault *)base)->backing;
    forward_destroy(base);
    fault_close(&backing->context);
}

static enum ar_status fault_wrap(const struct ar_policy_context *context,
                                 const void *values AR_UNUSED, struct ar_policy *inner,
                                 struct ar_policy **out, struct ar_error *error)
{
    struct fault *self = forward_create(context->host, sizeof *self, "fault", inner, error);
    AR_TRY_HOST(self);
    self->backing = (struct faulty_backing *)context->backing;
    self->forward.ops.destroy = fault_destroy;
    *out = &self->forward.base;
    return AR_OK;
}

const struct decorator_ops fault_decorator = {
    .name = "fault",
    .summary = "refuses chosen calls for device memory, to see what the policy does",
    .options = fault_options,
    .values_bytes = sizeof(struct fault_values),
    .wrap = fault_wrap,
    .open = fault_open,
    .close = fault_close,
};
