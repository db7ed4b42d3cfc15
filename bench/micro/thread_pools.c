#include "bench/micro/thread_pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/cuda_device.h"

/* The limit of a policy on a card: more than its threads need, and small enough for all
 * policies. */
#define CARD_LIMIT "2GiB"

static enum ar_status member_open(struct thread_pools *pools, struct thread_pool *member,
                                  const struct ar_policy_ops *policy, struct ar_error *error)
{
    char spec[64];
    enum ar_status status;
    if (pools->device) {
        bool limited = !(policy->capabilities & AR_POLICY_OVERLAPS);
        snprintf(spec, sizeof spec, "%s%s", policy->name, limited ? ":limit=" CARD_LIMIT : "");
        locked_backing_open(&member->backing, pools->device->backing, &pools->lock);
        status = rig_open_on(&member->rig, spec, &member->backing.relay.base, error);
    } else {
        status = rig_open(&member->rig, rig_spec(policy, spec, sizeof spec), error);
    }
    if (status != AR_OK)
        return status;
    pools->count++;
    member->pool = locked_pool_open(member->rig.policy, &member->rig.host);
    return member->pool ? AR_OK : ar_no_memory(error, "a pool");
}

enum ar_status thread_pools_open(struct thread_pools *pools, const struct ar_policy_ops *policy,
                                 unsigned threads, bool own, struct ar_device *device,
                                 struct ar_error *error)
{
    unsigned count = own ? threads : 1;
    enum ar_status status = AR_OK;
    *pools =
        (struct thread_pools){.members = calloc(count, sizeof *pools->members), .device = device};
    if (!pools->members)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %u pools", count);
    if (pthread_mutex_init(&pools->lock, NULL) != 0) {
        free(pools->members);
        return ar_no_memory(error, "a lock");
    }
    for (unsigned i = 0; status == AR_OK && i < count; i++)
        status = member_open(pools, &pools->members[i], policy, error);
    for (unsigned i = 0; status == AR_OK && i < threads; i++)
        pools->of_thread[i] = pools->members[own ? i : 0].pool;
    if (status != AR_OK)
        thread_pools_close(pools);
    return status;
}

void thread_pools_close(struct thread_pools *pools)
{
    for (unsigned i = 0; i < pools->count; i++) {
        locked_pool_close(pools->members[i].pool);
        rig_close(&pools->members[i].rig);
    }
    pthread_mutex_destroy(&pools->lock);
    free(pools->members);
}

/* A context of the driver is current in one thread. */
void thread_pools_enter(void *argument)
{
    struct thread_pools *pools = argument;
    if (!pools->device || strcmp(pools->device->props.kind, "cuda") != 0)
        return;
    pthread_mutex_lock(&pools->lock);
    cuda_kind_enter(pools->device);
    pthread_mutex_unlock(&pools->lock);
}

double thread_pools_waits(const struct thread_pools *pools)
{
    double calls = 0, waits = 0;
    for (unsigned i = 0; i < pools->count; i++) {
        struct locked_pool_counts counts;
        locked_pool_counts(pools->members[i].pool, &counts);
        calls += (double)counts.calls;
        waits += (double)counts.waits;
    }
    return calls > 0 ? waits / calls : 0;
}
