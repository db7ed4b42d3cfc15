#include "bench/host/locked_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/host/address_map.h"

#define BYTES_LIMIT (UINT64_C(1) << 60)

_Static_assert(LOCKED_POOL_NO_BLOCK == ADDRESS_MAP_NONE, "no block starts there");

struct locked_pool {
    pthread_mutex_t lock; /* for all below */
    struct ar_policy *policy;
    struct address_map map;
    struct locked_pool_counts counts; /* `blocks` is the map's own count */
};

struct locked_pool *locked_pool_open(struct ar_policy *policy, struct ar_host *host)
{
    struct locked_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    if (pthread_mutex_init(&pool->lock, NULL) != 0) {
        free(pool);
        return NULL;
    }
    pool->policy = policy;
    address_map_open(&pool->map, host);
    return pool;
}

void locked_pool_close(struct locked_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->map.room; i++)
        if (pool->map.entries[i].address != ADDRESS_MAP_NONE)
            ar_policy_free(pool->policy, &pool->map.entries[i], 0);
    address_map_close(&pool->map);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Whether the lock was taken is told by trying first, which costs no more than taking it. */
static void enter(struct locked_pool *pool)
{
    bool waited = pthread_mutex_trylock(&pool->lock) != 0;
    if (waited)
        pthread_mutex_lock(&pool->lock);
    pool->counts.calls++;
    pool->counts.waits += waited;
}

static void leave(struct locked_pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}

static enum ar_status serve(struct locked_pool *pool, const struct ar_policy_request *request,
                            uint64_t *address)
{
    struct ar_policy_block block;
    /* Room first: a block that the map cannot keep would be lost. */
    enum ar_status status = address_map_reserve(&pool->map);
    if (status == AR_OK)
        status = ar_policy_alloc(pool->policy, request, &block);
    if (status == AR_OK)
        status = address_map_insert(&pool->map, &block);
    if (status == AR_OK)
        *address = block.address;
    return status;
}

enum ar_status locked_pool_alloc(struct locked_pool *pool, const struct ar_policy_request *request,
                                 uint64_t *address)
{
    if (request->bytes >= BYTES_LIMIT)
        return AR_INVALID;
    if (!request->bytes) {
        *address = LOCKED_POOL_NO_BLOCK;
        return AR_OK;
    }
    enter(pool);
    enum ar_status status = serve(pool, request, address);
    leave(pool);
    return status;
}

enum ar_status locked_pool_free(struct locked_pool *pool, uint64_t address, uint32_t stream)
{
    struct ar_policy_block block;
    if (address == LOCKED_POOL_NO_BLOCK)
        return AR_OK;
    enter(pool);
    enum ar_status status = AR_INVALID;
    if (address_map_remove(&pool->map, address, &block))
        status = ar_policy_free(pool->policy, &block, stream);
    else
        pool->counts.unknown++;
    leave(pool);
    return status;
}

enum ar_status locked_pool_use(struct locked_pool *pool, uint64_t address, uint32_t stream)
{
    if (address == LOCKED_POOL_NO_BLOCK)
        return AR_OK;
    enter(pool);
    enum ar_status status = AR_INVALID;
    const struct ar_policy_block *block = address_map_find(&pool->map, address);
    if (block)
        status = ar_policy_use(pool->policy, block, stream);
    else
        pool->counts.unknown++;
    leave(pool);
    return status;
}

bool locked_pool_find(struct locked_pool *pool, uint64_t address, struct ar_policy_block *out)
{
    pthread_mutex_lock(&pool->lock);
    const struct ar_policy_block *block = address_map_find(&pool->map, address);
    if (block)
        *out = *block;
    pthread_mutex_unlock(&pool->lock);
    return block;
}

enum ar_status locked_pool_trim(struct locked_pool *pool, uint64_t keep_bytes)
{
    pthread_mutex_lock(&pool->lock);
    enum ar_status status = ar_policy_trim(pool->policy, keep_bytes);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void locked_pool_stats(struct locked_pool *pool, struct ar_policy_stats *out)
{
    pthread_mutex_lock(&pool->lock);
    ar_policy_stats(pool->policy, out);
    pthread_mutex_unlock(&pool->lock);
}

void locked_pool_counts(struct locked_pool *pool, struct locked_pool_counts *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->counts;
    out->blocks = pool->map.count;
    pthread_mutex_unlock(&pool->lock);
}

const char *locked_pool_problem(struct locked_pool *pool, char *text, size_t text_bytes)
{
    pthread_mutex_lock(&pool->lock);
    snprintf(text, text_bytes, "%s", ar_policy_problem(pool->policy));
    pthread_mutex_unlock(&pool->lock);
    return text;
}

/* ---- locked_backing ---- */

static struct locked_backing *enter_device(struct ar_backing *base)
{
    struct locked_backing *self = (struct locked_backing *)base;
    pthread_mutex_lock(self->lock);
    return self;
}

static void leave_device(struct locked_backing *self)
{
    pthread_mutex_unlock(self->lock);
}

/* The sentence is the device's, which other threads may change: it is kept while it is ours. */
static enum ar_status answer(struct locked_backing *self, enum ar_status status)
{
    if (status == AR_INVALID)
        snprintf(self->problem, sizeof self->problem, "%s", ar_backing_problem(self->inner));
    leave_device(self);
    return status;
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->segment_alloc(self->inner, bytes, address));
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->segment_free(self->inner, address));
}

static enum ar_status reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->reserve(self->inner, bytes, address));
}

static enum ar_status release(struct ar_backing *base, uint64_t address)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->release(self->inner, address));
}

static enum ar_status create(struct ar_backing *base, uint64_t bytes, ar_backing_handle *handle)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->create(self->inner, bytes, handle));
}

static enum ar_status destroy(struct ar_backing *base, ar_backing_handle handle)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->destroy(self->inner, handle));
}

static enum ar_status map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->map(self->inner, address, handle));
}

static enum ar_status access_run(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->access(self->inner, address, bytes));
}

static enum ar_status unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->unmap(self->inner, address, bytes));
}

static struct ar_backing_ticket fence(struct ar_backing *base, uint32_t stream)
{
    struct locked_backing *self = enter_device(base);
    struct ar_backing_ticket ticket = self->inner->ops->fence(self->inner, stream);
    leave_device(self);
    return ticket;
}

static bool done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    struct locked_backing *self = enter_device(base);
    bool is_done = self->inner->ops->done(self->inner, ticket);
    leave_device(self);
    return is_done;
}

static void wait_for(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    struct locked_backing *self = enter_device(base);
    self->inner->ops->wait(self->inner, ticket);
    leave_device(self);
}

static void order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct locked_backing *self = enter_device(base);
    self->inner->ops->order(self->inner, stream, ticket);
    leave_device(self);
}

static void memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct locked_backing *self = enter_device(base);
    self->inner->ops->memory(self->inner, free_bytes, total_bytes);
    leave_device(self);
}

static enum ar_status pool_open(struct ar_backing *base, const struct ar_backing_pool *settings)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->pool_open(self->inner, settings));
}

static enum ar_status pool_alloc(struct ar_backing *base, uint64_t bytes, uint32_t stream,
                                 uint64_t *address)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->pool_alloc(self->inner, bytes, stream, address));
}

static enum ar_status pool_free(struct ar_backing *base, uint64_t address, uint32_t stream)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->pool_free(self->inner, address, stream));
}

static enum ar_status pool_trim(struct ar_backing *base, uint64_t keep_bytes)
{
    struct locked_backing *self = enter_device(base);
    return answer(self, self->inner->ops->pool_trim(self->inner, keep_bytes));
}

static void pool_memory(struct ar_backing *base, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    struct locked_backing *self = enter_device(base);
    self->inner->ops->pool_memory(self->inner, used_bytes, reserved_bytes);
    leave_device(self);
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
