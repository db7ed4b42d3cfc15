/* Blocks that streams other than their own used. When such a block is let go an event is
 * recorded on each of those streams; it is free when all of them have been seen complete.
 * Events are polled at each malloc, per stream in their order, up to the first that is not
 * done; when memory is short they are waited for. */
#include "allocators/policies/torch/torch.h"

bool torch_record_use(struct torch *self, uint32_t block, uint32_t stream)
{
    if (self->arenas[self->spans.at[block].owner]->stream == stream)
        return true;
    for (uint32_t use = self->blocks[block].uses; use; use = self->uses[use].next)
        if (self->uses[use].stream == stream)
            return true;
    uint32_t use = self->spare_use;
    if (use) {
        self->spare_use = self->uses[use].next;
    } else {
        if (self->use_count >= self->use_room) {
            uint32_t room = self->use_room ? self->use_room * 2 : 64;
            struct torch_use *grown =
                host_grow(self->host, self->uses, self->use_room, room, sizeof *grown);
            if (!grown)
                return false;
            self->uses = grown;
            self->use_room = room;
        }
        self->use_count += self->use_count == 0; /* record 0 is none */
        use = self->use_count++;
    }
    self->uses[use] = (struct torch_use){.stream = stream, .next = self->blocks[block].uses};
    self->blocks[block].uses = use;
    return true;
}

static struct torch_queue *queue_of(struct torch *self, uint32_t stream)
{
    if (stream >= self->queue_count) {
        struct torch_queue *grown =
            host_grow(self->host, self->queues, self->queue_count, stream + 1, sizeof *grown);
        if (!grown)
            return NULL;
        self->queues = grown;
        self->queue_count = stream + 1;
    }
    struct torch_queue *queue = &self->queues[stream];
    if (queue->head + queue->count == queue->room) {
        if (queue->head > queue->room / 2) {
            for (uint32_t i = 0; i < queue->count; i++)
                queue->events[i] = queue->events[queue->head + i];
            queue->head = 0;
            return queue;
        }
        uint32_t room = queue->room ? queue->room * 2 : 16;
        struct torch_event *events =
            host_grow(self->host, queue->events, queue->room, room, sizeof *events);
        if (!events)
            return NULL;
        queue->events = events;
        queue->room = room;
    }
    return queue;
}

/* Records an event on each stream that used the block. False: the host has no memory; what
 * was recorded until then is waited for like the rest. */
bool torch_defer(struct torch *self, uint32_t block)
{
    bool all = true;
    for (uint32_t use = self->blocks[block].uses; use;) {
        struct torch_use *record = &self->uses[use];
        struct torch_queue *queue = queue_of(self, record->stream);
        if (queue) {
            queue->events[queue->head + queue->count++] = (struct torch_event){
                .ticket = backing_fence(self->backing, record->stream), .block = block};
            self->blocks[block].events++;
            self->pending_events++;
        } else {
            backing_wait(self->backing, backing_fence(self->backing, record->stream));
            all = false;
        }
        uint32_t next = record->next;
        record->next = self->spare_use;
        self->spare_use = use;
        use = next;
    }
    self->blocks[block].uses = 0;
    return all && self->blocks[block].events != 0;
}

static void seen(struct torch *self, struct torch_queue *queue)
{
    uint32_t block = queue->events[queue->head].block;
    queue->head++;
    queue->count--;
    self->pending_events--;
    if (queue->count == 0)
        queue->head = 0;
    if (--self->blocks[block].events == 0)
        torch_complete(self, block);
}

void torch_poll(struct torch *self)
{
    for (uint32_t i = 0; self->pending_events && i < self->queue_count; i++) {
        struct torch_queue *queue = &self->queues[i];
        while (queue->count && backing_done(self->backing, queue->events[queue->head].ticket))
            seen(self, queue);
    }
}

void torch_wait_all(struct torch *self)
{
    self->num_sync_all_streams++;
    for (uint32_t i = 0; i < self->queue_count; i++) {
        struct torch_queue *queue = &self->queues[i];
        while (queue->count) {
            backing_wait(self->backing, queue->events[queue->head].ticket);
            seen(self, queue);
        }
    }
}

void torch_streams_close(struct torch *self)
{
    for (uint32_t i = 0; i < self->queue_count; i++)
        host_free(self->host, self->queues[i].events,
                  self->queues[i].room * sizeof *self->queues[i].events);
    host_free(self->host, self->queues, self->queue_count * sizeof *self->queues);
    host_free(self->host, self->uses, self->use_room * sizeof *self->uses);
}
