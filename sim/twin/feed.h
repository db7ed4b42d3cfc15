/* The feed of a process: a trace source whose events are written by parts while the replay waits,
 * and the blocks of the process.
 *
 * 1. Events are collected. feed_add says when there is no room for more: then the replay reads all
 *    of them, and feed_emptied makes room again.
 * 2. A slot is used again only after the replay has read the free of its block, so that what is
 *    known of a slot is about the block that the replay is at.
 * 3. The replay calls the policy once for each request and each free that the feed has noted in
 *    `calls`, in this order. feed_called returns the block of the present call. */
#ifndef SIM_TWIN_FEED_H
#define SIM_TWIN_FEED_H

#include "workloads/trace/source.h"
#include "workloads/trace/tables.h"

#define FEED_EVENTS 2048

enum feed_state { FEED_UNUSED, FEED_ASKED, FEED_LIVE, FEED_FAILED };

struct feed_block {
    uint64_t bytes;                  /* requested */
    uint64_t address, granted_bytes; /* if it is live and not pinned */
    const char *tag;                 /* NULL: none */
    uint32_t account;                /* in the process's accounts */
    uint32_t born_phase;
    uint8_t state; /* enum feed_state */
    bool pinned, asleep;
};

struct feed_keys {
    uint32_t pool, index;
    uint64_t alignment;
    bool pinned;
    uint8_t bits; /* AR_MEMPOOL_x */
};

struct feed {
    struct trace_source base;
    struct trace_tables tables;
    struct trace_event *events; /* room for FEED_EVENTS */
    size_t count;
    bool given;        /* the replay has the events */
    uint64_t replayed; /* events before these */
    uint32_t *calls;   /* slots; room for FEED_EVENTS */
    size_t call_count, call;
    struct feed_block *blocks; /* by slot */
    size_t slot_count, slot_room;
    uint32_t *unused; /* slots */
    size_t unused_count, unused_room;
    uint32_t *resting; /* slots that become unused when the feed is empty */
    size_t resting_count, resting_room;
    struct feed_keys *keys;
    size_t key_count, key_room;
    uint64_t next_id;
};

/* `streams`: 1 + the highest stream of any event; `one_block_stream`: all blocks are on stream 0.
 * HOST_MEMORY. */
enum ar_status feed_open(struct feed *self, const char *name, uint32_t streams,
                         bool one_block_stream, struct ar_error *error) AR_STATUS_CHECKED;
void feed_close(struct feed *self); /* a zeroed struct is fine */

static inline bool feed_full(const struct feed *self)
{
    return self->count == FEED_EVENTS;
}

/* Adds an event; the feed must not be full. */
static inline struct trace_event *feed_add(struct feed *self, unsigned kind)
{
    struct trace_event *event = &self->events[self->count++];
    *event = (struct trace_event){.kind = (uint8_t)kind};
    return event;
}

/* Adds a request with its block, which the caller has filled in. HOST_MEMORY. */
enum ar_status feed_request(struct feed *self, const struct feed_block *block,
                            const struct feed_keys *keys, uint32_t stream, bool may_fail,
                            uint32_t *slot, struct ar_error *error) AR_STATUS_CHECKED;
/* Adds the free of a block on `stream`; `own`: it is the block's own stream. HOST_MEMORY. */
enum ar_status feed_free(struct feed *self, uint32_t slot, uint32_t stream, bool own,
                         struct ar_error *error) AR_STATUS_CHECKED;
/* The index of a set of keys for an event; 0: none are set. */
enum ar_status feed_keys_index(struct feed *self, const struct feed_keys *keys, uint32_t *index,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* The replay has read all events. */
void feed_emptied(struct feed *self);

/* The block of the call to the policy that is made now: a request, or a free of a block that is
 * live. */
static inline struct feed_block *feed_called(struct feed *self)
{
    struct feed_block *block;
    do
        block = &self->blocks[self->calls[self->call++]];
    while (block->state == FEED_FAILED);
    return block;
}

#endif
