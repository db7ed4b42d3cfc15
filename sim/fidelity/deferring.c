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
static void poll_pending(struct policy *base)
{
    static const struct policy_request any = {.bytes = 1};
    (void)policy_would_release(forward_enter(base), &any);
    forward_settle(base);
}

static void deferring_retire(struct policy *base, const struct policy_block *block)
{
    struct recorded_device *device = ((struct deferring *)base)->device;
    uint32_t stream;
    if (!recorded_pending_add(device, block->address, &stream) ||
        forward_use(base, block, stream) != STATUS_OK) {
        device->out_of_host_memory = true;
        forward_retire(base, block);
        return;
    }
    (void)forward_free(base, block, stream);
}

static enum status deferring_free(struct policy *base, const struct policy_block *block,
                                  uint32_t stream)
{
    struct recorded_device *device = ((struct deferring *)base)->device;
    if (!recorded_pending_end(device, block->address))
        return forward_free(base, block, stream);
    if (!device->holds)
        poll_pending(base);
    return STATUS_OK;
}

enum status deferring_wrap(struct host *host, struct policy *inner, struct recorded_device *device,
                           struct policy **out, struct error *error)
{
    const struct policy_ops *ops = inner->ops;
    *out = inner;
    if (!(ops->capabilities & POLICY_STREAM_ORDERED) || !ops->use || !ops->would_release)
        return STATUS_OK;
    struct deferring *self = forward_create(host, sizeof *self, "deferring", inner, error);
    if (!self)
        return STATUS_HOST_MEMORY;
    self->device = device;
    self->forward.ops.retire = deferring_retire;
    self->forward.ops.free = deferring_free;
    *out = &self->forward.base;
    return STATUS_OK;
}
