/* fault: makes calls to the backing fail, to test the policy. It is between the policy and its
 * memory. Calls that ask for memory or addresses (driver allocation, reserve, create, allocation
 * from the driver's pool) are counted from 1. The call with the number `n`, or every `every`-th
 * call, is refused as if the device were full. All other calls pass. */
#include <stddef.h>

#include "allocators/decorators/forward.h"
#include "allocators/registry.h"

struct fault_values {
    uint64_t n, every;
};

struct faulty_backing {
    struct ar_backing base;
    struct ar_backing_ops ops; /* base.ops points here */
    struct ar_backing *inner;
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

static struct faulty_backing *faulty(struct ar_backing *base)
{
    return (struct faulty_backing *)base;
}

static struct ar_backing *inside(struct ar_backing *base)
{
    return faulty(base)->inner;
}

static bool fails(struct ar_backing *base)
{
    struct faulty_backing *self = faulty(base);
    self->calls++;
    return self->calls == self->n || (self->every && self->calls % self->every == 0);
}

static enum ar_status fault_segment_alloc(struct ar_backing *base, uint64_t bytes,
                                          uint64_t *address)
{
    return fails(base) ? AR_REFUSED : ar_backing_segment_alloc(inside(base), bytes, address);
}

static enum ar_status fault_segment_free(struct ar_backing *base, uint64_t address)
{
    return ar_backing_segment_free(inside(base), address);
}

static enum ar_status fault_reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    return fails(base) ? AR_REFUSED : ar_backing_reserve(inside(base), bytes, address);
}

static enum ar_status fault_release(struct ar_backing *base, uint64_t address)
{
    return ar_backing_release(inside(base), address);
}

static enum ar_status fault_create_memory(struct ar_backing *base, uint64_t bytes,
                                          ar_backing_handle *handle)
{
    return fails(base) ? AR_REFUSED : ar_backing_create(inside(base), bytes, handle);
}

static enum ar_status fault_destroy_memory(struct ar_backing *base, ar_backing_handle handle)
{
    return ar_backing_destroy(inside(base), handle);
}

static enum ar_status fault_map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    return ar_backing_map(inside(base), address, handle);
}

static enum ar_status fault_access(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    return ar_backing_access(inside(base), address, bytes);
}

static enum ar_status fault_unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    return ar_backing_unmap(inside(base), address, bytes);
}

static struct ar_backing_ticket fault_fence(struct ar_backing *base, uint32_t stream)
{
    return ar_backing_fence(inside(base), stream);
}

static bool fault_done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return ar_backing_done(inside(base), ticket);
}

static void fault_wait(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    ar_backing_wait(inside(base), ticket);
}

static void fault_order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    ar_backing_order(inside(base), stream, ticket);
}

static void fault_memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ar_backing_memory(inside(base), free_bytes, total_bytes);
}

static enum ar_status fault_pool_open(struct ar_backing *base,
                                      const struct ar_backing_pool *settings)
{
    return inside(base)->ops->pool_open(inside(base), settings);
}

static enum ar_status fault_pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                       uint64_t *address)
{
    if (fails(base))
        return AR_REFUSED;
    return inside(base)->ops->pool_alloc(inside(base), bytes, stream, address);
}

static enum ar_status fault_pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    return inside(base)->ops->pool_free(inside(base), address, stream);
}

static enum ar_status fault_pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    return inside(base)->ops->pool_trim(inside(base), keep_bytes);
}

static void fault_pool_memory(struct ar_backing *base, uint64_t *used_bytes,
                              uint64_t *reserved_bytes)
{
    inside(base)->ops->pool_memory(inside(base), used_bytes, reserved_bytes);
}

static const char *fault_problem(struct ar_backing *base)
{
    return ar_backing_problem(inside(base));
}

static void take_shape(struct faulty_backing *self, struct ar_backing *inner)
{
    self->base = *inner;
    self->base.ops = &self->ops;
    self->inner = inner;
    self->ops = (struct ar_backing_ops){
        .segment_alloc = fault_segment_alloc,
        .segment_free = fault_segment_free,
        .reserve = fault_reserve,
        .release = fault_release,
        .create = fault_create_memory,
        .destroy = fault_destroy_memory,
        .map = fault_map,
        .access = fault_access,
        .unmap = fault_unmap,
        .fence = fault_fence,
        .done = fault_done,
        .wait = fault_wait,
        .order = fault_order,
        .memory = fault_memory,
        .pool_open = fault_pool_open,
        .pool_alloc = fault_pool_alloc,
        .pool_free = fault_pool_free,
        .pool_trim = fault_pool_trim,
        .pool_memory = fault_pool_memory,
        .problem = fault_problem,
    };
    ar_backing_ops_offer(&self->ops, inner->ops);
}

static enum ar_status fault_open(const struct ar_policy_context *outer, const void *values,
                                 const struct ar_policy_context **inner, struct ar_error *error)
{
    const struct fault_values *given = values;
    if (given->n == 0 && given->every == 0)
        return ar_error_set(
            error, AR_INVALID,
            "decorator fault needs to know which call fails; write fault(n=3)+NAME or "
            "fault(every=10)+NAME");
    struct faulty_backing *self = ar_host_alloc(outer->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the decorator fault");
    take_shape(self, outer->backing);
    self->n = given->n;
    self->every = given->every;
    self->context = *outer;
    self->context.backing = &self->base;
    *inner = &self->context;
    return AR_OK;
}

static void fault_close(const struct ar_policy_context *inner)
{
    ar_host_free(inner->host, faulty(inner->backing), sizeof(struct faulty_backing));
}

static void fault_destroy(struct ar_policy *base)
{
    struct faulty_backing *backing = ((struct fault *)base)->backing;
    forward_destroy(base);
    fault_close(&backing->context);
}

static enum ar_status fault_wrap(const struct ar_policy_context *context, const void *values,
                                 struct ar_policy *inner, struct ar_policy **out,
                                 struct ar_error *error)
{
    (void)values;
    struct fault *self = forward_create(context->host, sizeof *self, "fault", inner, error);
    if (!self)
        return AR_HOST_MEMORY;
    self->backing = faulty(context->backing);
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
