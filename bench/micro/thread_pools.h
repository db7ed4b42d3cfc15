/* The pools of a benchmark with threads: one policy that all threads share, or one policy for each.
 * Each policy has its own simulated device whose calls cost nothing, or all share one device behind
 * a lock. */
#ifndef BENCH_MICRO_THREAD_POOLS_H
#define BENCH_MICRO_THREAD_POOLS_H

#include "bench/host/locked_pool.h"
#include "bench/host/threads.h"
#include "bench/micro/rig.h"

struct thread_pools {
    unsigned count; /* of open members */
    struct thread_pool {
        struct rig rig;
        struct locked_backing backing; /* if they share a device */
        struct locked_pool *pool;
    } * members;
    struct locked_pool *of_thread[THREADS_MOST];
    struct ar_device *device; /* the shared device or NULL */
    pthread_mutex_t lock;     /* of the device */
};

/* `device` may be NULL. Otherwise it stays the caller's, and no other code may call it while the
 * pools are open. `pools` must not move while open. */
enum ar_status thread_pools_open(struct thread_pools *pools, const struct ar_policy_ops *policy,
                                 unsigned threads, bool own, struct ar_device *device,
                                 struct ar_error *error) AR_STATUS_CHECKED;
void thread_pools_close(struct thread_pools *pools);

/* For threads_config.enter: tells the device that this thread uses it. */
void thread_pools_enter(void *pools);

/* The share of calls that found the lock of their pool taken. */
double thread_pools_waits(const struct thread_pools *pools);

#endif
