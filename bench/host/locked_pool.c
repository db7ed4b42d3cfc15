#include "bench/host/locked_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Trying first shows whether the lock is taken, and costs no more than taking it. */
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
    /* A block that the map cannot store would be lost, so reserve first. */
    AR_TRY(address_map_reserve(&pool->map));
    AR_TRY(ar_policy_alloc(pool->policy, request, &block));
    AR_TRY(address_map_insert(&pool->map, &block));
    *address = block.address;
    return AR_OK;
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

/* ---- locked_backing -------------------------------------------------------------------------- */

static enum ar_status lock_before(struct relay *relay, enum relay_hook hook)
{
    (void)hook;
    pthread_mutex_lock(((struct locked_backing *)relay)->lock);
    return AR_OK;
}

/* Other threads may change the sentence of the device, so it is copied under the lock. */
static void unlock_after(struct relay *relay, const struct relay_call *call)
{
    struct locked_backing *self = (struct locked_backing *)relay;
    if (call->status == AR_INVALID)
        snprintf(self->problem, sizeof self->problem, "%s", ar_backing_problem(relay->inner));
    pthread_mutex_unlock(self->lock);
}

static const char *problem(struct ar_backing *base)
{
    return ((struct locked_backing *)base)->problem;
}

void locked_backing_open(struct locked_backing *self, struct ar_backing *inner,
                         pthread_mutex_t *lock)
{
    *self = (struct locked_backing){
        .relay = {.before = lock_before, .after = unlock_after},
        .lock = lock,
    };
    relay_open(&self->relay, inner);
    self->relay.ops.problem = problem;
}

/* ---- the map ------------------------------------------------------------------------------- */

#define FIRST_BITS 6u

void address_map_open(struct address_map *map, struct ar_host *host)
{
    *map = (struct address_map){.host = host};
}

void address_map_close(struct address_map *map)
{
    ar_host_free(map->host, map->entries, map->room * sizeof *map->entries);
    *map = (struct address_map){.host = map->host};
}

static size_t home(const struct address_map *map, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> map->shift);
}

static size_t next(const struct address_map *map, size_t place)
{
    return (place + 1) & (map->room - 1);
}

/* Where the address is, or the free place where its run ends. */
static size_t probe(const struct address_map *map, uint64_t address)
{
    size_t place = home(map, address);
    while (map->entries[place].address != address &&
           map->entries[place].address != ADDRESS_MAP_NONE)
        place = next(map, place);
    return place;
}

enum ar_status address_map_reserve(struct address_map *map)
{
    if (map->room && 2 * (map->count + 1) <= map->room)
        return AR_OK;
    struct address_map grown = {
        .host = map->host,
        .room = map->room ? 2 * map->room : (size_t)1 << FIRST_BITS,
        .count = map->count,
        .shift = map->room ? map->shift - 1 : 64 - FIRST_BITS,
    };
    grown.entries = ar_host_alloc(map->host, grown.room * sizeof *grown.entries);
    if (!grown.entries)
        return AR_HOST_MEMORY;
    for (size_t i = 0; i < grown.room; i++)
        grown.entries[i].address = ADDRESS_MAP_NONE;
    for (size_t i = 0; i < map->room; i++)
        if (map->entries[i].address != ADDRESS_MAP_NONE)
            grown.entries[probe(&grown, map->entries[i].address)] = map->entries[i];
    ar_host_free(map->host, map->entries, map->room * sizeof *map->entries);
    *map = grown;
    return AR_OK;
}

enum ar_status address_map_insert(struct address_map *map, const struct ar_policy_block *block)
{
    if (block->address == ADDRESS_MAP_NONE)
        return AR_CORRUPT;
    size_t place = probe(map, block->address);
    if (map->entries[place].address != ADDRESS_MAP_NONE)
        return AR_CORRUPT;
    map->entries[place] = *block;
    map->count++;
    return AR_OK;
}

const struct ar_policy_block *address_map_find(const struct address_map *map, uint64_t address)
{
    if (!map->count || address == ADDRESS_MAP_NONE)
        return NULL;
    size_t place = probe(map, address);
    return map->entries[place].address == address ? &map->entries[place] : NULL;
}

/* Rule 3. An entry may move back to `empty` unless its home lies after it. */
static void close_gap(struct address_map *map, size_t empty)
{
    for (size_t i = next(map, empty); map->entries[i].address != ADDRESS_MAP_NONE;
         i = next(map, i)) {
        size_t from_home = (i - home(map, map->entries[i].address)) & (map->room - 1);
        size_t from_empty = (i - empty) & (map->room - 1);
        if (from_home < from_empty)
            continue;
        map->entries[empty] = map->entries[i];
        empty = i;
    }
    map->entries[empty].address = ADDRESS_MAP_NONE;
}

bool address_map_remove(struct address_map *map, uint64_t address, struct ar_policy_block *out)
{
    if (!map->count || address == ADDRESS_MAP_NONE)
        return false;
    size_t place = probe(map, address);
    if (map->entries[place].address != address)
        return false;
    *out = map->entries[place];
    close_gap(map, place);
    map->count--;
    return true;
}
