/* A policy behind the interface of a program with threads: any thread may call, and a free names
 * only the address. Like the caching allocators of the frameworks, it has one lock around the
 * policy and a map from addresses to blocks.
 *
 * One thread at a time calls the policy and, through it, the device. No other code may call either
 * while the pool is open. */
#pragma once

#include <pthread.h>

#include "allocators/base/hist.h"
#include "allocators/base/map.h"
#include "allocators/policy.h"
#include "allocators/relay.h"

/* The address of an empty request, which has no block. */
#define LOCKED_POOL_NO_BLOCK AR_MAP_NO_KEY

struct locked_pool;

struct locked_pool_counts {
    uint64_t blocks;  /* live now */
    uint64_t calls;   /* allocs and frees so far */
    uint64_t waits;   /* calls that found the lock taken by another thread */
    uint64_t unknown; /* frees of an address where no block starts */
};

/* Wraps `policy`. The map takes its memory from `host`, which only the policy may use in addition.
 * Both stay the caller's and outlive the pool. NULL: no host memory. */
struct locked_pool *locked_pool_open(struct ar_policy *policy, struct ar_host *host);
/* Frees every live block on stream 0. No other thread may call the pool. */
void locked_pool_close(struct locked_pool *pool);

/* Sets `*address` on OK. Zero bytes are OK with LOCKED_POOL_NO_BLOCK. NO_MEMORY: the request
 * failed. INVALID: 2^60 bytes or more. HOST_MEMORY, CORRUPT: see locked_pool_problem. */
enum ar_status locked_pool_alloc(struct locked_pool *pool, const struct ar_policy_request *request,
                                 uint64_t *address);

/* The program frees the block at `address` on `stream`. INVALID if no block starts there. */
enum ar_status locked_pool_free(struct locked_pool *pool, uint64_t address, uint32_t stream);

void locked_pool_counts(struct locked_pool *pool, struct locked_pool_counts *out);

/* A device's memory for several policies in several threads. Each policy gets its own backing,
 * which takes one lock around every call of the device's backing. Policies run concurrently between
 * these calls. A wait for a stream holds the lock too. */
struct locked_backing {
    struct relay relay; /* its base is the backing of the policy */
    pthread_mutex_t *lock;
    char problem[512]; /* of the last call of this policy that was INVALID */
};

/* Wraps `inner`. All policies on it share `lock`. Both stay the caller's and outlive `self`, which
 * must not move. There is nothing to close. */
void locked_backing_open(struct locked_backing *self, struct ar_backing *inner,
                         pthread_mutex_t *lock);

/* Host threads that allocate and free concurrently, on one shared pool or on one pool each.
 *
 * 1. Each thread has its own sequence, made before the clock starts from the seed and the number of
 *    the thread. Each turn draws one of `live` places: an empty place gets a block of a size drawn
 *    log-uniformly, a full one is freed. At the end all places are emptied. Each thread makes the
 *    same calls on every run; the interleaving of the threads varies.
 * 2. Between two calls a thread may do `think` rounds of work without memory accesses, which lowers
 *    contention. With 0 rounds threads only call.
 * 3. All threads wait at a gate until the last one arrives. Throughput counts from the first start
 *    to the last end.
 * 4. Latency is a separate mode, because reading the clock takes as long as many calls and lowers
 *    contention. The cost of two readings is measured and subtracted. Each thread has its own
 *    histograms (base/hist.h: a quantile is off by at most 1/128), which are merged at the end. */

#define THREADS_MOST 64u

struct threads_config {
    unsigned threads;                 /* 1 to THREADS_MOST */
    struct locked_pool *const *pools; /* one for each thread; they may be the same */
    uint64_t turns;                   /* of each thread, before it empties its places */
    uint32_t live;                    /* places of each thread, at least 1 */
    uint64_t least_bytes, most_bytes;
    uint64_t think; /* rounds between two calls, each a few processor cycles; 0: none */
    uint64_t seed;
    bool latency; /* time each call */
    /* Optional: each thread calls it before it begins. */
    void (*enter)(void *argument);
    void *argument;
};

struct threads_result {
    uint64_t allocs, frees; /* of all threads, without failed ones */
    uint64_t failed;        /* requests that failed; the thread continued */
    uint64_t wall_ns;
    uint64_t clock_ns;                /* of two readings; subtracted from each latency */
    struct ar_hist alloc_ns, free_ns; /* empty without `latency` */
};

/* Runs the threads to their end and leaves the pools as they were. INVALID: bad configuration.
 * HOST_MEMORY, CORRUPT and other errors come from the pools. */
enum ar_status threads_run(const struct threads_config *config, struct threads_result *result,
                           struct ar_error *error);
