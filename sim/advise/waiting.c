/* Recorded completions, as a decorator of the session's policy.
 *
 * 1. If the free of a block completes later than requested, the policy is told that another stream
 *    uses the block. The stream is extra: the trace does not have it. So the block is pending
 *    inside of the policy.
 * 2. The fence of such a stream is done when the recording completes the block, or when the policy
 *    waits for it. The other hooks of the backing stay those of the device.
 * 3. A policy that does not defer frees gets the block back when the free is requested; streams
 *    then wait for each other. The same holds for the driver's pool, which is opaque.
 * 4. The policy polls when a block completes, as before a request, because recorded completions are
 *    those that the recorded allocator has seen.
 *
 * Outside of this wrapper a number takes the place of the policy's cookie of a block. */
#include "sim/advise/waiting.h"

#include "allocators/base/array.h"
#include "allocators/decorators/forward.h"

struct known_block {
    uint64_t cookie; /* the policy's */
    uint32_t stream; /* of its request */
    bool free_requested;
    uint32_t extra; /* 1 + the index of its extra stream; 0: it completed at once */
    uint32_t spare; /* the next free number, plus 1 */
};

/* The extra stream of a pending block. Streams are reused, because a policy polls each of them. */
enum extra {
    EXTRA_FREE,    /* of no block */
    EXTRA_RUNNING, /* the recording has not completed the block, nor has the policy waited for it */
    EXTRA_SEEN,    /* the policy has waited; the recording completes the block later */
    EXTRA_ENDED,   /* the recording has completed the block; the policy has not seen it yet */
};

struct waiting {
    struct forward forward;
    struct ar_backing *backing;
    const struct ar_backing_ops *below;
    struct ar_backing_ops ops; /* backing->ops points here */
    struct known_block *blocks;
    uint32_t count, spare;
    size_t room;
    bool defers;
    enum extra *extras;
    size_t extra_count;
    uint32_t first_stream; /* of the extra ones */
};

static struct waiting *of(struct ar_policy *base)
{
    return (struct waiting *)base;
}

static struct waiting *of_backing(const struct ar_backing *backing)
{
    return (struct waiting *)((char *)(uintptr_t)backing->ops - offsetof(struct waiting, ops));
}

/* An extra stream; NULL: a stream of the device. */
static enum extra *extra_of(struct waiting *self, uint32_t stream)
{
    return stream >= self->first_stream && stream - self->first_stream < self->extra_count
               ? &self->extras[stream - self->first_stream]
               : NULL;
}

static struct ar_backing_ticket waiting_fence(struct ar_backing *backing, uint32_t stream)
{
    struct waiting *self = of_backing(backing);
    if (extra_of(self, stream))
        return (struct ar_backing_ticket){.stream = stream};
    return self->below->fence(backing, stream);
}

/* The policy sees that the stream is done: it waited for it, or the recording has completed the
 * block. */
static void see(enum extra *extra)
{
    *extra = *extra == EXTRA_RUNNING || *extra == EXTRA_SEEN ? EXTRA_SEEN : EXTRA_FREE;
}

static bool waiting_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct waiting *self = of_backing(backing);
    enum extra *extra = extra_of(self, ticket.stream);
    if (!extra)
        return self->below->done(backing, ticket);
    if (*extra == EXTRA_RUNNING)
        return false;
    see(extra);
    return true;
}

static void waiting_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct waiting *self = of_backing(backing);
    enum extra *extra = extra_of(self, ticket.stream);
    if (extra)
        see(extra);
    else
        self->below->wait(backing, ticket);
}

static void waiting_order(struct ar_backing *backing, uint32_t stream,
                          struct ar_backing_ticket ticket)
{
    struct waiting *self = of_backing(backing);
    enum extra *extra = extra_of(self, ticket.stream);
    if (extra)
        see(extra);
    else if (!extra_of(self, stream))
        self->below->order(backing, stream, ticket);
}

/* Returns a free number; UINT32_MAX: no host memory. */
static uint32_t take_number(struct waiting *self)
{
    uint32_t number = self->spare ? self->spare - 1 : self->count;
    if (self->spare) {
        self->spare = self->blocks[number].spare;
        return number;
    }
    if (!ar_array_make_room(&self->blocks, self->count, &self->room, sizeof *self->blocks))
        return UINT32_MAX;
    self->count++;
    return number;
}

static void give_number(struct waiting *self, uint32_t number)
{
    self->blocks[number] = (struct known_block){.spare = self->spare};
    self->spare = number + 1;
}

/* The block with the policy's cookie. */
static struct ar_policy_block inside(const struct waiting *self,
                                     const struct ar_policy_block *block)
{
    struct ar_policy_block known = *block;
    known.cookie = self->blocks[block->cookie].cookie;
    return known;
}

static enum ar_status waiting_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    struct waiting *self = of(base);
    AR_TRY(forward_alloc(base, request, out));
    uint32_t number = take_number(self);
    if (number == UINT32_MAX) {
        (void)forward_free(base, out, request->stream);
        return AR_HOST_MEMORY;
    }
    self->blocks[number] = (struct known_block){.cookie = out->cookie, .stream = request->stream};
    out->cookie = number;
    return AR_OK;
}

static enum ar_status waiting_use(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream)
{
    struct ar_policy_block known = inside(of(base), block);
    return forward_use(base, &known, stream);
}

/* Takes the lowest free extra stream; returns its index plus 1; 0: no host memory. */
static uint32_t take_extra(struct waiting *self)
{
    uint32_t at = 0;
    while (at < self->extra_count && self->extras[at] != EXTRA_FREE)
        at++;
    if (!AR_ARRAY_REACH(self->extras, self->extra_count, at))
        return 0;
    self->extras[at] = EXTRA_RUNNING;
    return at + 1;
}

static void waiting_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct waiting *self = of(base);
    struct ar_policy_block known = inside(self, block);
    struct known_block *own = &self->blocks[block->cookie];
    own->free_requested = true;
    own->extra = self->defers ? take_extra(self) : 0;
    if (own->extra)
        (void)forward_use(base, &known, self->first_stream + own->extra - 1);
    (void)forward_free(base, &known, own->stream);
}

static enum ar_status waiting_free(struct ar_policy *base, const struct ar_policy_block *block,
                                   uint32_t stream)
{
    static const struct ar_policy_request any = {.bytes = 1};
    struct waiting *self = of(base);
    uint32_t number = (uint32_t)block->cookie;
    const struct known_block own = self->blocks[number];
    enum ar_status status = AR_OK;
    if (own.extra) {
        enum extra *extra = &self->extras[own.extra - 1];
        *extra = *extra == EXTRA_SEEN ? EXTRA_FREE : EXTRA_ENDED;
        (void)ar_policy_would_release(forward_enter(base), &any);
        forward_settle(base);
    } else if (!own.free_requested) {
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
    struct known_block *blocks = self->blocks;
    enum extra *extras = self->extras;
    for (size_t i = 0; i < self->extra_count; i++)
        extras[i] = EXTRA_ENDED;
    forward_destroy(base);
    backing->ops = below;
    free(blocks);
    free(extras);
}

/* Whether the policy defers the reuse of blocks that other streams use, and is not opaque. */
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
    AR_TRY_HOST(self);
    self->defers = defers(session->policy->ops);
    self->backing = backing;
    self->below = backing->ops;
    self->first_stream = streams;
    self->ops = *backing->ops;
    self->ops.fence = waiting_fence;
    self->ops.done = waiting_done;
    self->ops.wait = waiting_wait;
    self->ops.wait_streams = NULL;
    self->ops.order = backing->ops->order ? waiting_order : NULL;
    backing->ops = &self->ops;
    struct ar_policy_ops *ops = &self->forward.ops;
    ops->alloc = waiting_alloc;
    ops->use = waiting_use;
    ops->retire = waiting_retire;
    ops->free = waiting_free;
    ops->destroy = waiting_destroy;
    ops->adopt = NULL; /* adopted blocks would have no number */
    session->policy = &self->forward.base;
    return AR_OK;
}
