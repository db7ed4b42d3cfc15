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
#ifndef BENCH_HOST_THREADS_H
#define BENCH_HOST_THREADS_H

#include "allocators/base/hist.h"
#include "bench/host/locked_pool.h"

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
                           struct ar_error *error) AR_STATUS_CHECKED;

/* Does `rounds` of work in registers. Returns a value that depends on all of it. */
uint64_t threads_think(uint64_t rounds, uint64_t value);

#endif
