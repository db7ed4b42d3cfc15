#include "allocators/relay.h"

static enum ar_status begin(struct ar_backing *base, enum relay_hook hook)
{
    struct relay *self = (struct relay *)base;
    return self->before ? self->before(self, hook) : AR_OK;
}

static struct ar_backing *inside(struct ar_backing *base)
{
    return ((struct relay *)base)->inner;
}

static enum ar_status end(struct ar_backing *base, enum relay_hook hook, uint64_t address,
                          uint64_t bytes, enum ar_status status)
{
    struct relay *self = (struct relay *)base;
    const struct relay_call call = {hook, status, address, bytes};
    if (self->after)
        self->after(self, &call);
    return status;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    AR_TRY(begin(base, RELAY_SEGMENT_ALLOC));
    enum ar_status status = ar_backing_segment_alloc(inside(base), bytes, address);
    return end(base, RELAY_SEGMENT_ALLOC, status ? 0 : *address, bytes, status);
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    AR_TRY(begin(base, RELAY_SEGMENT_FREE));
    enum ar_status status = ar_backing_segment_free(inside(base), address);
    return end(base, RELAY_SEGMENT_FREE, address, 0, status);
}

static enum ar_status reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    AR_TRY(begin(base, RELAY_RESERVE));
    enum ar_status status = ar_backing_reserve(inside(base), bytes, address);
    return end(base, RELAY_RESERVE, status ? 0 : *address, bytes, status);
}

static enum ar_status release(struct ar_backing *base, uint64_t address)
{
    AR_TRY(begin(base, RELAY_RELEASE));
    return end(base, RELAY_RELEASE, address, 0, ar_backing_release(inside(base), address));
}

static enum ar_status create(struct ar_backing *base, uint64_t bytes, ar_backing_handle *handle)
{
    AR_TRY(begin(base, RELAY_CREATE));
    return end(base, RELAY_CREATE, 0, bytes, ar_backing_create(inside(base), bytes, handle));
}

static enum ar_status destroy(struct ar_backing *base, ar_backing_handle handle)
{
    AR_TRY(begin(base, RELAY_DESTROY));
    return end(base, RELAY_DESTROY, 0, 0, ar_backing_destroy(inside(base), handle));
}

static enum ar_status map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    AR_TRY(begin(base, RELAY_MAP));
    return end(base, RELAY_MAP, address, 0, ar_backing_map(inside(base), address, handle));
}

static enum ar_status access_run(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    AR_TRY(begin(base, RELAY_ACCESS));
    enum ar_status status = ar_backing_access(inside(base), address, bytes);
    return end(base, RELAY_ACCESS, address, bytes, status);
}

static enum ar_status unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    AR_TRY(begin(base, RELAY_UNMAP));
    return end(base, RELAY_UNMAP, address, bytes, ar_backing_unmap(inside(base), address, bytes));
}

static struct ar_backing_ticket fence(struct ar_backing *base, uint32_t stream)
{
    (void)begin(base, RELAY_FENCE);
    struct ar_backing_ticket ticket = ar_backing_fence(inside(base), stream);
    (void)end(base, RELAY_FENCE, 0, 0, AR_OK);
    return ticket;
}

static bool done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    (void)begin(base, RELAY_DONE);
    bool is_done = ar_backing_done(inside(base), ticket);
    (void)end(base, RELAY_DONE, 0, 0, AR_OK);
    return is_done;
}

static void wait_for(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    (void)begin(base, RELAY_WAIT);
    ar_backing_wait(inside(base), ticket);
    (void)end(base, RELAY_WAIT, 0, 0, AR_OK);
}

static void order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    (void)begin(base, RELAY_ORDER);
    ar_backing_order(inside(base), stream, ticket);
    (void)end(base, RELAY_ORDER, 0, 0, AR_OK);
}

static enum ar_status copy(struct ar_backing *base, uint64_t to, uint64_t from, uint64_t bytes)
{
    AR_TRY(begin(base, RELAY_COPY));
    return end(base, RELAY_COPY, to, bytes, ar_backing_copy(inside(base), to, from, bytes));
}

static enum ar_status copy_out(struct ar_backing *base, void *to, uint64_t from, uint64_t bytes)
{
    AR_TRY(begin(base, RELAY_COPY));
    return end(base, RELAY_COPY, from, bytes, ar_backing_copy_out(inside(base), to, from, bytes));
}

static enum ar_status copy_in(struct ar_backing *base, uint64_t to, const void *from,
                              uint64_t bytes)
{
    AR_TRY(begin(base, RELAY_COPY));
    return end(base, RELAY_COPY, to, bytes, ar_backing_copy_in(inside(base), to, from, bytes));
}

static void memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)begin(base, RELAY_MEMORY);
    ar_backing_memory(inside(base), free_bytes, total_bytes);
    (void)end(base, RELAY_MEMORY, 0, 0, AR_OK);
}

static enum ar_status pool_open(struct ar_backing *base, const struct ar_backing_pool *settings)
{
    AR_TRY(begin(base, RELAY_POOL_OPEN));
    enum ar_status status = inside(base)->ops->pool_open(inside(base), settings);
    return end(base, RELAY_POOL_OPEN, 0, 0, status);
}

static enum ar_status pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    AR_TRY(begin(base, RELAY_POOL_ALLOC));
    enum ar_status status = inside(base)->ops->pool_alloc(inside(base), bytes, stream, address);
    return end(base, RELAY_POOL_ALLOC, status ? 0 : *address, bytes, status);
}

static enum ar_status pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    AR_TRY(begin(base, RELAY_POOL_FREE));
    enum ar_status status = inside(base)->ops->pool_free(inside(base), address, stream);
    return end(base, RELAY_POOL_FREE, address, 0, status);
}

static enum ar_status pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    AR_TRY(begin(base, RELAY_POOL_TRIM));
    enum ar_status status = inside(base)->ops->pool_trim(inside(base), keep_bytes);
    return end(base, RELAY_POOL_TRIM, 0, keep_bytes, status);
}

static void pool_memory(struct ar_backing *base, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    (void)begin(base, RELAY_POOL_MEMORY);
    inside(base)->ops->pool_memory(inside(base), used_bytes, reserved_bytes);
    (void)end(base, RELAY_POOL_MEMORY, 0, 0, AR_OK);
}

static const char *problem(struct ar_backing *base)
{
    return ar_backing_problem(inside(base));
}

void relay_open(struct relay *self, struct ar_backing *inner)
{
    self->base = *inner;
    self->base.ops = &self->ops;
    self->inner = inner;
    self->ops = (struct ar_backing_ops){
        .segment_alloc = segment_alloc,
        .segment_free = segment_free,
        .reserve = reserve,
        .release = release,
        .create = create,
        .destroy = destroy,
        .map = map,
        .access = access_run,
        .unmap = unmap,
        .fence = fence,
        .done = done,
        .wait = wait_for,
        .order = order,
        .copy = copy,
        .copy_out = copy_out,
        .copy_in = copy_in,
        .memory = memory,
        .pool_open = pool_open,
        .pool_alloc = pool_alloc,
        .pool_free = pool_free,
        .pool_trim = pool_trim,
        .pool_memory = pool_memory,
        .problem = problem,
    };
    ar_backing_ops_offer(&self->ops, inner->ops);
}
