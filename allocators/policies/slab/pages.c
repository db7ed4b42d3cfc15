/* A backing over virtual memory. A segment is a reserved range of pages, each a handle of its
 * own. Pages of a segment that is given back wait in a pool, and the next segment is made of
 * them before the device is asked: physical memory moves without a driver allocation. What the
 * pool still holds when that is done goes back to the device.
 *
 * The pages of a block that was freed may still be in use by work that is queued; an unmap
 * waits for all streams first. */
#include "allocators/policies/slab/slab.h"

#include <string.h>

struct page_run { /* one segment; its pages, last first */
    uint64_t address;
    uint32_t first, count;
};

struct page {
    ar_backing_handle handle;
    uint32_t next; /* of its segment, or of those in the pool */
};

struct slab_pages {
    struct ar_backing base;
    struct ar_backing *below;
    struct ar_host *host;
    struct page_run *runs;
    uint32_t run_count, run_room;
    struct page *pages; /* record 0 is none */
    uint32_t page_count, page_room, spare;
    uint32_t pooled, pooled_count;
    const uint32_t *last_stream; /* the policy's */
    uint64_t moved_bytes;
};

static struct slab_pages *pages_of(struct ar_backing *base)
{
    return (struct slab_pages *)base;
}

/* The place of the first run at or above `address`. */
static uint32_t place_of(const struct slab_pages *self, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = self->run_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->runs[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes sure of room for one more run and `count` more pages. */
static bool reserve(struct slab_pages *self, uint32_t count)
{
    if (self->run_count == self->run_room) {
        uint32_t room = self->run_room + self->run_room / 4 + 8;
        struct page_run *grown =
            ar_host_grow(self->host, self->runs, self->run_room, room, sizeof *grown);
        if (!grown)
            return false;
        self->runs = grown;
        self->run_room = room;
    }
    if (self->page_room - self->page_count <= count) { /* one more for record 0 */
        uint32_t room = self->page_count + self->page_count / 4 + count + 8;
        struct page *grown =
            ar_host_grow(self->host, self->pages, self->page_room, room, sizeof *grown);
        if (!grown)
            return false;
        self->pages = grown;
        self->page_room = room;
    }
    self->page_count += self->page_count == 0;
    return true;
}

static void push(struct slab_pages *self, uint32_t *list, uint32_t page)
{
    self->pages[page].next = *list;
    *list = page;
}

static uint32_t pop(struct slab_pages *self, uint32_t *list)
{
    uint32_t page = *list;
    *list = self->pages[page].next;
    return page;
}

/* A page from the pool, or a new one from the device. */
static enum ar_status take_page(struct slab_pages *self, uint32_t *out)
{
    if (self->pooled) {
        *out = pop(self, &self->pooled);
        self->pooled_count--;
        self->moved_bytes += self->below->page_bytes;
        return AR_OK;
    }
    ar_backing_handle handle;
    enum ar_status status = ar_backing_create(self->below, self->below->page_bytes, &handle);
    if (status != AR_OK)
        return status;
    *out = self->spare ? pop(self, &self->spare) : self->page_count++;
    self->pages[*out].handle = handle;
    return AR_OK;
}

static void to_pool(struct slab_pages *self, uint32_t list)
{
    while (list) {
        uint32_t page = pop(self, &list);
        push(self, &self->pooled, page);
        self->pooled_count++;
    }
}

/* Maps `count` pages from `address` on; their list, last first. What was mapped when it fails is
 * unmapped again: nothing has used it. */
static enum ar_status map_run(struct slab_pages *self, uint64_t address, uint64_t count,
                              uint32_t *list)
{
    uint64_t page_bytes = self->below->page_bytes;
    enum ar_status status = AR_OK;
    uint64_t mapped = 0;
    *list = 0;
    while (status == AR_OK && mapped < count) {
        uint32_t page;
        status = take_page(self, &page);
        if (status != AR_OK)
            break;
        push(self, list, page);
        status =
            ar_backing_map(self->below, address + mapped * page_bytes, self->pages[page].handle);
        mapped += status == AR_OK;
    }
    if (status == AR_OK)
        status = ar_backing_access(self->below, address, count * page_bytes);
    if (status == AR_OK)
        return status;
    if (mapped)
        (void)ar_backing_unmap(self->below, address, mapped * page_bytes);
    to_pool(self, *list);
    return status;
}

static enum ar_status make_segment(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct slab_pages *self = pages_of(base);
    uint64_t page_bytes = self->below->page_bytes;
    uint64_t count = (bytes + page_bytes - 1) / page_bytes;
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(self->below, &free_bytes, &total_bytes);
    if (count > free_bytes / page_bytes + self->pooled_count || count > UINT32_MAX / 2)
        return AR_REFUSED;
    if (!reserve(self, (uint32_t)count))
        return AR_HOST_MEMORY;
    enum ar_status status = ar_backing_reserve(self->below, count * page_bytes, address);
    if (status != AR_OK)
        return status;
    uint32_t list;
    status = map_run(self, *address, count, &list);
    if (status != AR_OK) {
        (void)ar_backing_release(self->below, *address);
        slab_pages_drain(self);
        return status;
    }
    uint32_t place = place_of(self, *address);
    memmove(self->runs + place + 1, self->runs + place,
            (self->run_count - place) * sizeof *self->runs);
    self->runs[place] = (struct page_run){*address, list, (uint32_t)count};
    self->run_count++;
    return AR_OK;
}

static enum ar_status end_segment(struct ar_backing *base, uint64_t address)
{
    struct slab_pages *self = pages_of(base);
    uint32_t place = place_of(self, address);
    struct page_run run = self->runs[place];
    for (uint32_t stream = 0; stream <= *self->last_stream; stream++)
        ar_backing_wait(self->below, ar_backing_fence(self->below, stream));
    enum ar_status status =
        ar_backing_unmap(self->below, address, run.count * self->below->page_bytes);
    enum ar_status released = ar_backing_release(self->below, address);
    self->run_count--;
    memmove(self->runs + place, self->runs + place + 1,
            (self->run_count - place) * sizeof *self->runs);
    to_pool(self, run.first);
    return status != AR_OK ? status : released;
}

static struct ar_backing_ticket pass_fence(struct ar_backing *base, uint32_t stream)
{
    return ar_backing_fence(pages_of(base)->below, stream);
}

static bool pass_done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return ar_backing_done(pages_of(base)->below, ticket);
}

static void pass_wait(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    ar_backing_wait(pages_of(base)->below, ticket);
}

static void pass_memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ar_backing_memory(pages_of(base)->below, free_bytes, total_bytes);
}

static const char *pass_problem(struct ar_backing *base)
{
    return ar_backing_problem(pages_of(base)->below);
}

enum ar_status slab_pages_open(const struct ar_policy_context *context, const uint32_t *last_stream,
                               struct slab_pages **out)
{
    static const struct ar_backing_ops ops = {
        .segment_alloc = make_segment,
        .segment_free = end_segment,
        .fence = pass_fence,
        .done = pass_done,
        .wait = pass_wait,
        .memory = pass_memory,
        .problem = pass_problem,
    };
    struct ar_backing *below = context->backing;
    if (!below->page_bytes)
        return AR_UNSUPPORTED;
    struct slab_pages *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return AR_HOST_MEMORY;
    self->base = (struct ar_backing){.ops = &ops, .granule_bytes = below->page_bytes};
    self->below = below;
    self->last_stream = last_stream;
    self->host = context->host;
    *out = self;
    return AR_OK;
}

void slab_pages_drain(struct slab_pages *self)
{
    while (self->pooled) {
        uint32_t page = pop(self, &self->pooled);
        self->pooled_count--;
        (void)ar_backing_destroy(self->below, self->pages[page].handle);
        push(self, &self->spare, page);
    }
}

void slab_pages_close(struct slab_pages *self)
{
    if (!self)
        return;
    slab_pages_drain(self);
    ar_host_free(self->host, self->runs, self->run_room * sizeof *self->runs);
    ar_host_free(self->host, self->pages, self->page_room * sizeof *self->pages);
    ar_host_free(self->host, self, sizeof *self);
}

uint64_t slab_pages_pooled(const struct slab_pages *self)
{
    return self->pooled_count * self->below->page_bytes;
}

uint64_t slab_pages_moved(const struct slab_pages *self)
{
    return self->moved_bytes;
}

struct ar_backing *slab_pages_backing(struct slab_pages *self)
{
    return &self->base;
}
