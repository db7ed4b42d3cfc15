/* How:
 *
 * 1. A block that is let go and completes later is given to the policy as one that a stream of its own
 *    uses, which the trace does not have. So it completes inside of the policy.
 * 2. The fence of such a stream is done when the recording says that the block is complete, or when
 *    somebody waits for it. The backing's other hooks stay the device's own.
 * 3. A policy that keeps no blocks from other streams has it back when it is let go: streams wait for
 *    each other then. So has the driver's pool, whose inside cannot be seen.
 * 4. The policy polls when a block completes, as if it had been about to serve a request: recorded
 *    completions are those that were seen.
 *
 * A block is known by a number, which stands for the policy's cookie outside of it. */
#include "sim/advise/waiting.h"

#include <stddef.h>
#include <stdlib.h>

#include "allocators/decorators/forward.h"

struct held {
    uint64_t cookie; /* the policy's */
    uint32_t stream; /* that asked for it */
    bool free_requested;
    uint32_t pending; /* which, plus 1, since then; 0: it completed at once */
    uint32_t spare;   /* the next number that is not in use, plus 1 */
};

/* A stream of its own for each block that is let go and not complete, as few as possible: a policy
 * looks at each when it polls. */
struct pending {
    bool used, ended; /* by the recording */
    bool done, seen;  /* by the policy */
};

struct waiting {
    struct forward forward;
    struct ar_backing *backing;
    const struct ar_backing_ops *below;
    struct ar_backing_ops ops; /* backing->ops points here */
    struct held *held;
    uint32_t count, room, spare;
    bool defers;
    struct pending *pending;
    uint32_t pending_count, first_stream;
};

static struct waiting *of(struct ar_policy *base)
{
    return (struct waiting *)base;
}

static struct waiting *of_backing(const struct ar_backing *backing)
{
    return (struct waiting *)((char *)(uintptr_t)backing->ops - offsetof(struct waiting, ops));
}

/* Whose stream it is; NULL: it is one of the device's. */
static struct pending *pending_of(struct waiting *self, uint32_t stream)
{
    return stream >= self->first_stream && stream - self->first_stream < self->pending_count
               ? &self->pending[stream - self->first_stream]
               : NULL;
}

static struct ar_backing_ticket waiting_fence(struct ar_backing *backing, uint32_t stream)
{
    struct waiting *self = of_backing(backing);
    if (pending_of(self, stream))
        return (struct ar_backing_ticket){.stream = stream};
    return self->below->fence(backing, stream);
}

/* The policy knows that it is done. */
static void see(struct pending *pending)
{
    pending->done = pending->seen = true;
    pending->used = !pending->ended;
}

static bool waiting_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct waiting *self = of_backing(backing);
    struct pending *pending = pending_of(self, ticket.stream);
    if (!pending)
        return self->below->done(backing, ticket);
    if (pending->done)
        see(pending);
    return pending->done;
}

static void waiting_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct waiting *self = of_backing(backing);
    struct pending *pending = pending_of(self, ticket.stream);
    if (pending)
        see(pending);
    else
        self->below->wait(backing, ticket);
}

static void waiting_order(struct ar_backing *backing, uint32_t stream,
                          struct ar_backing_ticket ticket)
{
    struct waiting *self = of_backing(backing);
    struct pending *pending = pending_of(self, ticket.stream);
    if (pending)
        see(pending);
    else if (!pending_of(self, stream))
        self->below->order(backing, stream, ticket);
}

/* A number for a block; UINT32_MAX: no host memory. */
static uint32_t take_number(struct waiting *self)
{
    uint32_t number = self->spare ? self->spare - 1 : self->count;
    if (self->spare) {
        self->spare = self->held[number].spare;
        return number;
    }
    if (self->count == self->room) {
        uint32_t room = self->room ? 2 * self->room : 256;
        struct held *held = realloc(self->held, room * sizeof *held);
        if (!held)
            return UINT32_MAX;
        self->held = held;
        self->room = room;
    }
    self->count++;
    return number;
}

static void give_number(struct waiting *self, uint32_t number)
{
    self->held[number] = (struct held){.spare = self->spare};
    self->spare = number + 1;
}

/* The block as the policy knows it. */
static struct ar_policy_block inside(const struct waiting *self,
                                     const struct ar_policy_block *block)
{
    struct ar_policy_block known = *block;
    known.cookie = self->held[block->cookie].cookie;
    return known;
}

static enum ar_status waiting_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    struct waiting *self = of(base);
    enum ar_status status = forward_alloc(base, request, out);
    if (status)
        return status;
    uint32_t number = take_number(self);
    if (number == UINT32_MAX) {
        (void)forward_free(base, out, request->stream);
        return AR_HOST_MEMORY;
    }
    self->held[number] = (struct held){.cookie = out->cookie, .stream = request->stream};
    out->cookie = number;
    return AR_OK;
}

static enum ar_status waiting_use(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream)
{
    struct ar_policy_block known = inside(of(base), block);
    return forward_use(base, &known, stream);
}

/* The lowest one that is not in use, plus 1; 0: no host memory. */
static uint32_t take_pending(struct waiting *self)
{
    uint32_t at = 0;
    while (at < self->pending_count && self->pending[at].used)
        at++;
    if (at == self->pending_count) {
        struct pending *grown = realloc(self->pending, (at + 1) * sizeof *grown);
        if (!grown)
            return 0;
        self->pending = grown;
        self->pending_count++;
    }
    self->pending[at] = (struct pending){.used = true};
    return at + 1;
}

static void waiting_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct waiting *self = of(base);
    struct ar_policy_block known = inside(self, block);
    struct held *held = &self->held[block->cookie];
    held->free_requested = true;
    held->pending = self->defers ? take_pending(self) : 0;
    if (held->pending)
        (void)forward_use(base, &known, self->first_stream + held->pending - 1);
    (void)forward_free(base, &known, held->stream);
}

static enum ar_status waiting_free(struct ar_policy *base, const struct ar_policy_block *block,
                                   uint32_t stream)
{
    static const struct ar_policy_request any = {.bytes = 1};
    struct waiting *self = of(base);
    uint32_t number = (uint32_t)block->cookie;
    const struct held held = self->held[number];
    enum ar_status status = AR_OK;
    if (held.pending) {
        struct pending *pending = &self->pending[held.pending - 1];
        pending->done = pending->ended = true;
        pending->used = !pending->seen;
        (void)ar_policy_would_release(forward_enter(base), &any);
        forward_settle(base);
    } else if (!held.free_requested) {
        struct ar_policy_block known = inside(self, block);
        status = forward_free(base, &known, stream);
    }
    give_number(self, number);
    return status;
}

static void waiting_destroy(struct ar_policy *base)
{
    struct waiting *self = of(base);
    struct ar_backing *backing = self->backing;
    const struct ar_backing_ops *below = self->below;
    struct held *held = self->held;
    struct pending *pending = self->pending;
    for (uint32_t i = 0; i < self->pending_count; i++)
        pending[i].done = true;
    forward_destroy(base);
    backing->ops = below;
    free(held);
    free(pending);
}

/* Does the policy keep a block from other streams by itself, where this file can see it? */
static bool defers(const struct ar_policy_ops *ops)
{
    return (ops->capabilities & AR_POLICY_STREAM_ORDERED) &&
           !(ops->capabilities & AR_POLICY_OPAQUE) && ops->use;
}

enum ar_status waiting_wrap(struct session *session, uint32_t streams, struct ar_error *error)
{
    struct ar_backing *backing = session->device->backing;
    struct waiting *self =
        forward_create(&session->host, sizeof *self, "waiting", session->policy, error);
    if (!self)
        return AR_HOST_MEMORY;
    self->defers = defers(session->policy->ops);
    self->backing = backing;
    self->below = backing->ops;
    self->first_stream = streams;
    self->ops = *backing->ops;
    self->ops.fence = waiting_fence;
    self->ops.done = waiting_done;
    self->ops.wait = waiting_wait;
    self->ops.order = backing->ops->order ? waiting_order : NULL;
    backing->ops = &self->ops;
    struct ar_policy_ops *ops = &self->forward.ops;
    ops->alloc = waiting_alloc;
    ops->use = waiting_use;
    ops->retire = waiting_retire;
    ops->free = waiting_free;
    ops->destroy = waiting_destroy;
    ops->adopt = NULL; /* its blocks would have no number */
    session->policy = &self->forward.base;
    return AR_OK;
}
