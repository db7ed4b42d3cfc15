/* Why: an allocator that is short of memory waits for all pending frees after it has looked for a free
 * block, and does not look again. A recording has these completions before the request, like
 * those that came before it looked. So completions must happen inside of the policy, and the
 * device decides which it sees when it polls (done) and which only when it waits. */
#include "sim/fidelity/deferring.h"

#include <stdlib.h>

#include "allocators/decorators/forward.h"

struct deferring {
    struct forward forward;
    struct recorded_device *device;
};

/* Any request polls what is pending before it does anything else. */
static void poll_pending(struct ar_policy *base)
{
    static const struct ar_policy_request any = {.bytes = 1};
    (void)ar_policy_would_release(forward_enter(base), &any);
    forward_settle(base);
}

static void deferring_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct recorded_device *device = ((struct deferring *)base)->device;
    uint32_t stream;
    if (!recorded_pending_add(device, block->address, &stream) ||
        forward_use(base, block, stream) != AR_OK) {
        device->out_of_host_memory = true;
        forward_retire(base, block);
        return;
    }
    (void)forward_free(base, block, stream);
}

static enum ar_status deferring_free(struct ar_policy *base, const struct ar_policy_block *block,
                                     uint32_t stream)
{
    struct recorded_device *device = ((struct deferring *)base)->device;
    if (!recorded_pending_end(device, block->address))
        return forward_free(base, block, stream);
    if (!device->holds)
        poll_pending(base);
    return AR_OK;
}

enum ar_status deferring_wrap(struct ar_host *host, struct ar_policy *inner,
                              struct recorded_device *device, struct ar_policy **out,
                              struct ar_error *error)
{
    const struct ar_policy_ops *ops = inner->ops;
    *out = inner;
    if (!(ops->capabilities & AR_POLICY_STREAM_ORDERED) || !ops->use || !ops->would_release)
        return AR_OK;
    struct deferring *self = forward_create(host, sizeof *self, "deferring", inner, error);
    if (!self)
        return AR_HOST_MEMORY;
    self->device = device;
    self->forward.ops.retire = deferring_retire;
    self->forward.ops.free = deferring_free;
    *out = &self->forward.base;
    return AR_OK;
}
