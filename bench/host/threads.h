/* Host threads that allocate and free at once: on one locked pool, or each on a pool of its own.
 *
 * 1. Every thread has a sequence of its own, made before the clock starts from seed and number of
 *    the thread: at each turn one of `live` places is drawn; an empty one gets a block of a size
 *    drawn log-uniformly, a taken one is freed. At the end all places are emptied. So each thread
 *    makes the same calls on every run; in which order those of several threads meet is up to the
 *    machine.
 * 2. Between two calls a thread may do `think` rounds of work that touches no memory: contention
 *    falls with it. Without it threads do nothing but call.
 * 3. All threads wait at a gate until the last one is there. Throughput counts from the first that
 *    went through to the last that was done.
 * 4. Latency is a mode of its own, since reading the clock takes as long as many a call and keeps
 *    threads apart. What two readings cost is measured and subtracted. Each thread has histograms
 *    of its own (base/hist.h: a quantile is off by at most 1/128 of the true one), added up at the
 *    end. */
#ifndef BENCH_HOST_THREADS_H
#define BENCH_HOST_THREADS_H

#include "allocators/base/hist.h"
#include "bench/host/locked_pool.h"

#define THREADS_MOST 64u

struct threads_config {
    unsigned threads; /* 1 to THREADS_MOST */
    struct locked_pool *const
        *pools;     /* one for each thread; the same one may stand in all places */
    uint64_t turns; /* of each thread, before it empties its places */
    uint32_t live;  /* places of each thread, at least 1 */
    uint64_t least_bytes, most_bytes;
    uint64_t think; /* rounds between two calls, each a few processor cycles; 0: none */
    uint64_t seed;
    bool latency; /* time each call */
    /* Optional: each thread calls it before it begins. */
    void (*enter)(void *argument);
    void *argument;
};

struct threads_result {
    uint64_t allocs, frees; /* of all threads; failed ones are not among them */
    uint64_t failed;        /* requests that a policy could not serve; the thread went on */
    uint64_t wall_ns;
    uint64_t clock_ns;                /* of two readings; subtracted from each latency */
    struct ar_hist alloc_ns, free_ns; /* empty without `latency` */
};

/* Runs the threads to their end; the pools are as full afterwards as before. INVALID: the
 * configuration; HOST_MEMORY; CORRUPT or what else a pool returned that is no outcome. */
enum ar_status threads_run(const struct threads_config *config, struct threads_result *result,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* `rounds` of work that only the processor sees; returns something that depends on all of it. */
uint64_t threads_think(uint64_t rounds, uint64_t value);

#endif
