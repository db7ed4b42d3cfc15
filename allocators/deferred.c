#include "allocators/deferred.h"

void deferred_open(struct deferred *self, struct ar_backing *backing, struct ar_host *host,
                   deferred_complete *complete, void *argument)
{
    *self = (struct deferred){
        .backing = backing, .host = host, .complete = complete, .argument = argument};
}

void deferred_close(struct deferred *self)
{
    for (uint32_t i = 0; i < self->queue_count; i++)
        ar_host_free(self->host, self->queues[i].events,
                     self->queues[i].room * sizeof *self->queues[i].events);
    ar_host_free(self->host, self->queues, self->queue_count * sizeof *self->queues);
    ar_host_free(self->host, self->uses, self->use_room * sizeof *self->uses);
    ar_host_free(self->host, self->blocks, self->block_room * sizeof *self->blocks);
}

static uint32_t new_use(struct deferred *self)
{
    uint32_t use = self->spare_use;
    if (use) {
        self->spare_use = self->uses[use].next;
        return use;
    }
    if (self->use_count >= self->use_room &&
        !ar_host_extend(self->host, &self->uses, &self->use_room,
                        self->use_room ? self->use_room * 2 : 64, sizeof *self->uses))
        return 0;
    self->use_count += self->use_count == 0; /* record 0 is not used */
    return self->use_count++;
}

bool deferred_use(struct deferred *self, uint32_t block, uint32_t own, uint32_t stream)
{
    if (stream == own)
        return true;
    if (block >= self->block_room && !ar_host_extend(self->host, &self->blocks, &self->block_room,
                                                     block + block / 4 + 16, sizeof *self->blocks))
        return false;
    for (uint32_t use = self->blocks[block].uses; use; use = self->uses[use].next)
        if (self->uses[use].stream == stream)
            return true;
    uint32_t use = new_use(self);
    if (!use)
        return false;
    self->uses[use] = (struct deferred_use){.stream = stream, .next = self->blocks[block].uses};
    self->blocks[block].uses = use;
    return true;
}

/* The queue of a stream, made if it has none; NULL: no host memory. */
static struct deferred_queue *find_queue(struct deferred *self, uint32_t stream)
{
    uint32_t first = 0, end = self->queue_count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (self->queues[middle].stream < stream)
            first = middle + 1;
        else
            end = middle;
    }
    if (first < self->queue_count && self->queues[first].stream == stream)
        return &self->queues[first];
    uint32_t later = self->queue_count - first;
    if (!ar_host_extend(self->host, &self->queues, &self->queue_count, self->queue_count + 1,
                        sizeof *self->queues))
        return NULL;
    memmove(&self->queues[first + 1], &self->queues[first], later * sizeof *self->queues);
    self->queues[first] = (struct deferred_queue){.stream = stream};
    return &self->queues[first];
}

/* The queue of a stream with room for one more event. NULL: no host memory. */
static struct deferred_queue *queue_of(struct deferred *self, uint32_t stream)
{
    struct deferred_queue *queue = find_queue(self, stream);
    if (!queue)
        return NULL;
    if (queue->head + queue->count < queue->room)
        return queue;
    if (queue->head > queue->room / 2) {
        for (uint32_t i = 0; i < queue->count; i++)
            queue->events[i] = queue->events[queue->head + i];
        queue->head = 0;
        return queue;
    }
    return ar_host_extend(self->host, &queue->events, &queue->room,
                          queue->room ? queue->room * 2 : 16, sizeof *queue->events)
               ? queue
               : NULL;
}

bool deferred_free_used(struct deferred *self, uint32_t block)
{
    for (uint32_t use = self->blocks[block].uses; use; use = self->uses[use].next) {
        uint32_t stream = self->uses[use].stream;
        struct ar_backing_ticket ticket = ar_backing_fence(self->backing, stream);
        struct deferred_queue *queue = queue_of(self, stream);
        if (!queue) { /* without host memory, wait */
            ar_backing_wait(self->backing, ticket);
            continue;
        }
        queue->events[queue->head + queue->count++] =
            (struct deferred_event){.ticket = ticket, .block = block};
        self->blocks[block].events++;
        self->pending_events++;
    }
    deferred_forget(self, block);
    return self->blocks[block].events != 0;
}

void deferred_forget(struct deferred *self, uint32_t block)
{
    if (block >= self->block_room)
        return;
    for (uint32_t use = self->blocks[block].uses; use;) {
        uint32_t next = self->uses[use].next;
        self->uses[use].next = self->spare_use;
        self->spare_use = use;
        use = next;
    }
    self->blocks[block].uses = 0;
}

/* The oldest event of the queue is done. */
static void seen(struct deferred *self, struct deferred_queue *queue)
{
    uint32_t block = queue->events[queue->head].block;
    queue->head++;
    queue->count--;
    self->pending_events--;
    if (queue->count == 0)
        queue->head = 0;
    if (--self->blocks[block].events == 0)
        self->complete(self->argument, block);
}

void deferred_poll_all(struct deferred *self)
{
    for (uint32_t i = 0; self->pending_events && i < self->queue_count; i++) {
        struct deferred_queue *queue = &self->queues[i];
        while (queue->count && ar_backing_done(self->backing, queue->events[queue->head].ticket))
            seen(self, queue);
    }
}

void deferred_wait_all(struct deferred *self)
{
    for (uint32_t i = 0; self->pending_events && i < self->queue_count; i++) {
        struct deferred_queue *queue = &self->queues[i];
        while (queue->count) {
            ar_backing_wait(self->backing, queue->events[queue->head].ticket);
            seen(self, queue);
        }
    }
}

void deferred_wait_for(struct deferred *self, bool (*wanted)(void *argument, uint32_t block),
                       void *argument)
{
    for (uint32_t i = 0; i < self->queue_count; i++) {
        struct deferred_queue *queue = &self->queues[i];
        uint32_t left = 0;
        for (uint32_t k = 0; k < queue->count; k++) {
            struct deferred_event event = queue->events[queue->head + k];
            if (!wanted(argument, event.block)) {
                queue->events[queue->head + left++] = event;
                continue;
            }
            ar_backing_wait(self->backing, event.ticket);
            self->pending_events--;
            if (--self->blocks[event.block].events == 0)
                self->complete(self->argument, event.block);
        }
        queue->count = left;
        queue->head = left ? queue->head : 0;
    }
}

void deferred_wait_oldest(struct deferred *self)
{
    for (uint32_t i = 0; i < self->queue_count; i++) {
        struct deferred_queue *queue = &self->queues[i];
        if (queue->count) {
            ar_backing_wait(self->backing, queue->events[queue->head].ticket);
            seen(self, queue);
        }
    }
}
