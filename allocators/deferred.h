/* Frees that wait for other streams. A block that streams other than its own used is let go:
 * an event is recorded on each of them, and the block is complete when all have been seen
 * done. Events are polled per stream in their order, up to the first that is not done, as
 * PyTorch does; when memory is short they can be waited for.
 *
 * Blocks are named by small numbers of the policy's choice, such as indices of spans. */
#ifndef ALLOCATORS_DEFERRED_H
#define ALLOCATORS_DEFERRED_H

#include "allocators/backing.h"
#include "allocators/base/host.h"

/* Called when the last event of a block has been seen. */
typedef void deferred_complete(void *argument, uint32_t block);

struct deferred_use { /* one stream in a block's list */
    uint32_t stream, next;
};

struct deferred_event {
    struct ar_backing_ticket ticket;
    uint32_t block;
};

struct deferred_queue { /* of one stream, oldest first */
    struct deferred_event *events;
    uint32_t head, count, room;
};

struct deferred_block {
    uint32_t uses;   /* first of the list; 0: none */
    uint32_t events; /* recorded and not yet seen done */
};

struct deferred {
    struct ar_backing *backing;
    struct ar_host *host;
    deferred_complete *complete;
    void *argument;
    struct deferred_block *blocks;
    uint32_t block_room;
    struct deferred_use *uses; /* record 0 is none */
    uint32_t use_count, use_room, spare_use;
    struct deferred_queue *queues; /* by stream */
    uint32_t queue_count;
    uint32_t pending_events;
};

void deferred_open(struct deferred *self, struct ar_backing *backing, struct ar_host *host,
                   deferred_complete *complete, void *argument);
void deferred_close(struct deferred *self);

/* The block, which belongs to stream `own`, is used on `stream` too. False: the host has no
 * memory. */
bool deferred_use(struct deferred *self, uint32_t block, uint32_t own, uint32_t stream);

/* Is the block used on streams other than its own? */
static inline bool deferred_is_used(const struct deferred *self, uint32_t block)
{
    return block < self->block_room && self->blocks[block].uses != 0;
}

/* The block is let go. True: it waits, and `complete` will be called; false: nobody else uses
 * it, and it is the caller's at once. */
bool deferred_free(struct deferred *self, uint32_t block);

/* The block is complete by the word of somebody else: forget its uses. */
void deferred_forget(struct deferred *self, uint32_t block);

/* Completes what is seen done now; waits for all that is pending. */
void deferred_poll_all(struct deferred *self);
void deferred_wait_all(struct deferred *self);

/* Waits for the oldest event of each stream, and completes what only waited for these. */
void deferred_wait_oldest(struct deferred *self);

static inline void deferred_poll(struct deferred *self)
{
    if (self->pending_events)
        deferred_poll_all(self);
}

#endif
