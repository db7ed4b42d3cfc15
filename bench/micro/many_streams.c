#include "bench/micro/many_streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/cuda_device.h"

/* What a policy may hold of a card: more than its threads ask for, and all of them fit. */
#define CARD_LIMIT "2GiB"

static enum ar_status member_open(struct crowd *crowd, struct crowd_member *member,
                                  const struct ar_policy_ops *policy, struct ar_error *error)
{
    char spec[64];
    enum ar_status status;
    if (crowd->device) {
        bool limited = !(policy->capabilities & AR_POLICY_OVERLAPS);
        snprintf(spec, sizeof spec, "%s%s", policy->name, limited ? ":limit=" CARD_LIMIT : "");
        locked_backing_open(&member->backing, crowd->device->backing, &crowd->lock);
        status = rig_open_on(&member->rig, spec, &member->backing.relay.base, error);
    } else {
        status = rig_open(&member->rig, rig_spec(policy, spec, sizeof spec), error);
    }
    if (status != AR_OK)
        return status;
    crowd->count++;
    member->pool = locked_pool_open(member->rig.policy, &member->rig.host);
    return member->pool ? AR_OK : ar_error_set(error, AR_HOST_MEMORY, "no host memory for a pool");
}

enum ar_status crowd_open(struct crowd *crowd, const struct ar_policy_ops *policy, unsigned threads,
                          bool own, struct ar_device *device, struct ar_error *error)
{
    unsigned pools = own ? threads : 1;
    enum ar_status status = AR_OK;
    *crowd = (struct crowd){.members = calloc(pools, sizeof *crowd->members), .device = device};
    if (!crowd->members)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %u pools", pools);
    if (pthread_mutex_init(&crowd->lock, NULL) != 0) {
        free(crowd->members);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a lock");
    }
    for (unsigned i = 0; status == AR_OK && i < pools; i++)
        status = member_open(crowd, &crowd->members[i], policy, error);
    for (unsigned i = 0; status == AR_OK && i < threads; i++)
        crowd->of_thread[i] = crowd->members[own ? i : 0].pool;
    if (status != AR_OK)
        crowd_close(crowd);
    return status;
}

void crowd_close(struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++) {
        locked_pool_close(crowd->members[i].pool);
        rig_close(&crowd->members[i].rig);
    }
    pthread_mutex_destroy(&crowd->lock);
    free(crowd->members);
}

/* A context of the driver belongs to a thread. */
void crowd_enter(void *argument)
{
    struct crowd *crowd = argument;
    if (!crowd->device || strcmp(crowd->device->props.kind, "cuda") != 0)
        return;
    pthread_mutex_lock(&crowd->lock);
    cuda_kind_enter(crowd->device);
    pthread_mutex_unlock(&crowd->lock);
}

double crowd_waits(const struct crowd *crowd)
{
    double calls = 0, waits = 0;
    for (unsigned i = 0; i < crowd->count; i++) {
        struct locked_pool_counts counts;
        locked_pool_counts(crowd->members[i].pool, &counts);
        calls += (double)counts.calls;
        waits += (double)counts.waits;
    }
    return calls > 0 ? waits / calls : 0;
}
