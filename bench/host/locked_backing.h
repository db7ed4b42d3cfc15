/* A device's memory for several policies in several threads: each policy gets a backing of its own
 * that takes one lock around every call to the device's. What policies do between their calls goes
 * on at once; the device is entered by one thread at a time. A wait for a stream holds the
 * lock too. */
#ifndef BENCH_HOST_LOCKED_BACKING_H
#define BENCH_HOST_LOCKED_BACKING_H

#include <pthread.h>

#include "allocators/backing.h"

struct locked_backing {
    struct ar_backing base; /* what the policy is given */
    struct ar_backing_ops ops;
    struct ar_backing *inner;
    pthread_mutex_t *lock;
    char problem[512]; /* of the last call of this policy that was INVALID */
};

/* Around `inner`; `lock` is the same for all policies on it. Both stay the caller's and outlive
 * it, and `self` does not move. There is nothing to close. */
void locked_backing_open(struct locked_backing *self, struct ar_backing *inner,
                         pthread_mutex_t *lock);

#endif
