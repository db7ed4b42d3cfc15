/* A policy as a program with threads uses an allocator: any thread may call, and a free names
 * nothing but the address. One lock around the policy and a map from addresses to blocks
 * (address_map.h), as the caching allocators of the frameworks have.
 *
 * The policy, and through it the device, is entered by one thread at a time; no other code may call
 * either while the pool is open. */
#ifndef BENCH_HOST_LOCKED_POOL_H
#define BENCH_HOST_LOCKED_POOL_H

#include <pthread.h>

#include "allocators/policy.h"
#include "allocators/relay.h"

/* The address of an empty request, which has no block. */
#define LOCKED_POOL_NO_BLOCK UINT64_MAX

struct locked_pool;

struct locked_pool_counts {
    uint64_t blocks;  /* live now */
    uint64_t calls;   /* allocs, frees and uses so far */
    uint64_t waits;   /* of them: the lock was held by another thread */
    uint64_t unknown; /* frees and uses of an address where no block starts */
};

/* Around `policy`, which stays the caller's and outlives the pool, as does `host`, from which the
 * map takes its memory; no one else may use `host` meanwhile but the policy. NULL: no host
 * memory. */
struct locked_pool *locked_pool_open(struct ar_policy *policy, struct ar_host *host);
/* Frees every block that is still live, on stream 0. No other thread may be inside. */
void locked_pool_close(struct locked_pool *pool);

/* Sets `*address` on OK. Zero bytes are OK with LOCKED_POOL_NO_BLOCK. NO_MEMORY: cannot be served;
 * INVALID: 2^60 bytes or more; HOST_MEMORY, CORRUPT: see locked_pool_problem. */
enum ar_status locked_pool_alloc(struct locked_pool *pool, const struct ar_policy_request *request,
                                 uint64_t *address);

/* The program lets the block at `address` go on `stream`. INVALID where none starts there. */
enum ar_status locked_pool_free(struct locked_pool *pool, uint64_t address, uint32_t stream);

/* The block is used on another stream too. INVALID as above. */
enum ar_status locked_pool_use(struct locked_pool *pool, uint64_t address, uint32_t stream);

/* The block that starts at `address`. False: none. */
bool locked_pool_find(struct locked_pool *pool, uint64_t address, struct ar_policy_block *out);

/* As the policy's hooks. */
enum ar_status locked_pool_trim(struct locked_pool *pool, uint64_t keep_bytes);
void locked_pool_stats(struct locked_pool *pool, struct ar_policy_stats *out);

void locked_pool_counts(struct locked_pool *pool, struct locked_pool_counts *out);

/* Writes the sentence behind the policy's last CORRUPT, "" where there was none. Returns `text`. */
const char *locked_pool_problem(struct locked_pool *pool, char *text, size_t text_bytes);

/* A device's memory for several policies in several threads: each policy gets a backing of its own
 * that takes one lock around every call to the device's. What policies do between their calls goes
 * on at once; the device is entered by one thread at a time. A wait for a stream holds the
 * lock too. */
struct locked_backing {
    struct relay relay; /* its base is the backing of the policy */
    pthread_mutex_t *lock;
    char problem[512]; /* of the last call of this policy that was INVALID */
};

/* Around `inner`; `lock` is the same for all policies on it. Both stay the caller's and outlive
 * it, and `self` does not move. There is nothing to close. */
void locked_backing_open(struct locked_backing *self, struct ar_backing *inner,
                         pthread_mutex_t *lock);

#endif
