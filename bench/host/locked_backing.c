#include "bench/host/locked_backing.h"

#include <stdio.h>

static struct locked_backing *enter(struct ar_backing *base)
{
    struct locked_backing *self = (struct locked_backing *)base;
    pthread_mutex_lock(self->lock);
    return self;
}

static void leave(struct locked_backing *self)
{
    pthread_mutex_unlock(self->lock);
}

/* The sentence is the device's, which other threads may change: it is kept while it is ours. */
static enum ar_status answer(struct locked_backing *self, enum ar_status status)
{
    if (status == AR_INVALID)
        snprintf(self->problem, sizeof self->problem, "%s", ar_backing_problem(self->inner));
    leave(self);
    return status;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->segment_alloc(self->inner, bytes, address));
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->segment_free(self->inner, address));
}

static enum ar_status reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->reserve(self->inner, bytes, address));
}

static enum ar_status release(struct ar_backing *base, uint64_t address)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->release(self->inner, address));
}

static enum ar_status create(struct ar_backing *base, uint64_t bytes, ar_backing_handle *handle)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->create(self->inner, bytes, handle));
}

static enum ar_status destroy(struct ar_backing *base, ar_backing_handle handle)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->destroy(self->inner, handle));
}

static enum ar_status map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->map(self->inner, address, handle));
}

static enum ar_status access_run(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->access(self->inner, address, bytes));
}

static enum ar_status unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->unmap(self->inner, address, bytes));
}

static struct ar_backing_ticket fence(struct ar_backing *base, uint32_t stream)
{
    struct locked_backing *self = enter(base);
    struct ar_backing_ticket ticket = self->inner->ops->fence(self->inner, stream);
    leave(self);
    return ticket;
}

static bool done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    struct locked_backing *self = enter(base);
    bool is_done = self->inner->ops->done(self->inner, ticket);
    leave(self);
    return is_done;
}

static void wait_for(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    struct locked_backing *self = enter(base);
    self->inner->ops->wait(self->inner, ticket);
    leave(self);
}

static void order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct locked_backing *self = enter(base);
    self->inner->ops->order(self->inner, stream, ticket);
    leave(self);
}

static void memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct locked_backing *self = enter(base);
    self->inner->ops->memory(self->inner, free_bytes, total_bytes);
    leave(self);
}

static enum ar_status pool_open(struct ar_backing *base, const struct ar_backing_pool *settings)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->pool_open(self->inner, settings));
}

static enum ar_status pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->pool_alloc(self->inner, bytes, stream, address));
}

static enum ar_status pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->pool_free(self->inner, address, stream));
}

static enum ar_status pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    struct locked_backing *self = enter(base);
    return answer(self, self->inner->ops->pool_trim(self->inner, keep_bytes));
}

static void pool_memory(struct ar_backing *base, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    struct locked_backing *self = enter(base);
    self->inner->ops->pool_memory(self->inner, used_bytes, reserved_bytes);
    leave(self);
}

static const char *problem(struct ar_backing *base)
{
    return ((struct locked_backing *)base)->problem;
}

void locked_backing_open(struct locked_backing *self, struct ar_backing *inner,
                         pthread_mutex_t *lock)
{
    *self = (struct locked_backing){.base = *inner, .inner = inner, .lock = lock};
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
        .memory = memory,
        .pool_alloc = pool_alloc,
        .pool_free = pool_free,
        .pool_trim = pool_trim,
        .pool_memory = pool_memory,
        .problem = problem,
        .pool_open = pool_open,
    };
    ar_backing_ops_offer(&self->ops, inner->ops);
    self->base.ops = &self->ops;
}
