/* The pools of a benchmark with threads, and what they stand on: one policy that all threads share,
 * or one for each; each policy on a simulated device of its own that costs nothing, or all of them
 * on one device, which a lock keeps to one thread at a time. */
#ifndef BENCH_MICRO_CROWD_H
#define BENCH_MICRO_CROWD_H

#include "bench/host/locked_pool.h"
#include "bench/host/threads.h"
#include "bench/micro/rig.h"

struct crowd {
    unsigned count; /* of members that are open */
    struct crowd_member {
        struct rig rig;
        struct locked_backing backing; /* where there is one device */
        struct locked_pool *pool;
    } * members;
    struct locked_pool *of_thread[THREADS_MOST];
    struct ar_device *device; /* NULL: none that is shared */
    pthread_mutex_t lock;     /* of the device */
};

/* `device` may be NULL, else it stays the caller's, and no other thread uses it meanwhile. The
 * group does not move while it is open. */
enum ar_status crowd_open(struct crowd *crowd, const struct ar_policy_ops *policy, unsigned threads,
                          bool own, struct ar_device *device,
                          struct ar_error *error) AR_STATUS_CHECKED;
void crowd_close(struct crowd *crowd);

/* What each thread says first (threads_config.enter), with the group: that it uses the device. */
void crowd_enter(void *crowd);

/* The share of calls that found the lock of their pool taken. */
double crowd_waits(const struct crowd *crowd);

#endif
