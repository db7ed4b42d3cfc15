/* Deferred frees. When the free of a block that other streams used is requested, an event is
 * recorded on each of them. The free is completed when all events are seen done. Events are polled
 * for each stream in their order, up to the first that is not done, as in PyTorch. When memory is
 * short, a policy can wait for them.
 *
 * Blocks are named by small numbers that the policy chooses, such as indices of spans. */
#pragma once

#include "allocators/backing.h"
#include "allocators/base/host.h"

/* Called when the free of a block is completed. */
typedef void deferred_complete(void *argument, uint32_t block);

struct deferred_use { /* one stream in the list of a block */
    uint32_t stream, next;
};

struct deferred_event {
    struct ar_backing_ticket ticket;
    uint32_t block;
};

struct deferred_queue { /* of one stream, oldest first */
    struct deferred_event *events;
    uint32_t stream, head, count, room;
};

struct deferred_block {
    uint32_t uses;   /* the first of the list; 0: none */
    uint32_t events; /* recorded and not seen done */
};

struct deferred {
    struct ar_backing *backing;
    struct ar_host *host;
    deferred_complete *complete;
    void *argument;
    struct deferred_block *blocks;
    uint32_t block_room;
    struct deferred_use *uses; /* record 0 is not used */
    uint32_t use_count, use_room, spare_use;
    struct deferred_queue *queues; /* by stream, of those with an event so far */
    uint32_t queue_count;
    uint32_t pending_events;
};

void deferred_open(struct deferred *self, struct ar_backing *backing, struct ar_host *host,
                   deferred_complete *complete, void *argument);
void deferred_close(struct deferred *self);

/* The block, which belongs to stream `own`, is used on `stream` too. False: no host memory. */
bool deferred_use(struct deferred *self, uint32_t block, uint32_t own, uint32_t stream);

/* Whether the block is used on streams other than its own. */
static inline bool deferred_is_used(const struct deferred *self, uint32_t block)
{
    return block < self->block_room && self->blocks[block].uses != 0;
}

/* The free of the block is requested. True: it is pending, and `complete` will be called. False: no
 * other stream uses the block, so the free is completed now. */
bool deferred_free_used(struct deferred *self, uint32_t block); /* for deferred_free */
static inline bool deferred_free(struct deferred *self, uint32_t block)
{
    return deferred_is_used(self, block) && deferred_free_used(self, block);
}

/* Forgets the uses of a block, because the caller knows that its free is completed. */
void deferred_forget(struct deferred *self, uint32_t block);

/* Completes the frees whose events are done now; waits for all pending frees. */
void deferred_poll_all(struct deferred *self);
void deferred_wait_all(struct deferred *self);

/* Waits for the events of those pending frees for whose blocks `wanted` returns true, and completes
 * them. */
void deferred_wait_for(struct deferred *self, bool (*wanted)(void *argument, uint32_t block),
                       void *argument);

/* Waits for the oldest event of each stream and completes the frees that had no other event. */
void deferred_wait_oldest(struct deferred *self);

static inline void deferred_poll(struct deferred *self)
{
    if (self->pending_events)
        deferred_poll_all(self);
}
