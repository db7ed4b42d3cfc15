#include "allocators/base/array.h"
#include "allocators/policies/gmlake/gmlake.h"

/* The place of the first run at or above `address`. */
static uint32_t run_place(const struct gmlake_memory *self, uint64_t address)
{
    return (uint32_t)ar_array_from(self->runs, self->run_count, sizeof *self->runs,
                                   offsetof(struct gmlake_run, address), address);
}

static bool reserve_run(struct gmlake_memory *self)
{
    return self->run_count < self->run_room ||
           ar_host_extend(self->host, &self->runs, &self->run_room,
                          self->run_room + self->run_room / 4 + 8, sizeof *self->runs);
}

static void undo_pages(struct gmlake_memory *self, const struct gmlake_run *run, uint32_t count)
{
    if (count)
        (void)ar_backing_unmap(self->below, run->address, count * GMLAKE_PAGE_BYTES);
    for (uint32_t i = 0; i < count; i++)
        (void)ar_backing_destroy(self->below, run->pages[i].handle);
}

/* Creates and maps the pages of a run in its reserved range. */
static enum ar_status map_pages(struct gmlake_memory *self, const struct gmlake_run *run)
{
    enum ar_status status = AR_OK;
    uint32_t mapped = 0;
    while (status == AR_OK && mapped < run->count) {
        status = ar_backing_create(self->below, GMLAKE_PAGE_BYTES, &run->pages[mapped].handle);
        if (status != AR_OK)
            break;
        status = ar_backing_map(self->below, run->address + mapped * GMLAKE_PAGE_BYTES,
                                run->pages[mapped].handle);
        if (status == AR_OK)
            mapped++;
        else
            (void)ar_backing_destroy(self->below, run->pages[mapped].handle);
    }
    AR_THEN(status, ar_backing_access(self->below, run->address, run->count * GMLAKE_PAGE_BYTES));
    if (status != AR_OK)
        undo_pages(self, run, mapped);
    return status;
}

static enum ar_status make_run(struct gmlake_memory *self, uint64_t bytes, uint64_t *address)
{
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(self->below, &free_bytes, &total_bytes);
    if (bytes > free_bytes)
        return AR_REFUSED;
    struct gmlake_run run = {.count = (uint32_t)(bytes / GMLAKE_PAGE_BYTES)};
    AR_TRY_HOST(reserve_run(self));
    run.pages = ar_host_alloc(self->host, run.count * sizeof *run.pages);
    AR_TRY_HOST(run.pages);
    enum ar_status status = ar_backing_reserve(self->below, bytes, &run.address);
    if (status == AR_OK) {
        status = map_pages(self, &run);
        if (status != AR_OK)
            (void)ar_backing_release(self->below, run.address);
    }
    if (status != AR_OK) {
        ar_host_free(self->host, run.pages, run.count * sizeof *run.pages);
        return status;
    }
    uint32_t place = run_place(self, run.address);
    AR_ARRAY_INSERT(self->runs, self->run_count, place, run);
    *address = run.address;
    return AR_OK;
}

static enum ar_status make_segment(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct gmlake_memory *self = (struct gmlake_memory *)base;
    return self->paged ? make_run(self, bytes, address)
                       : ar_backing_segment_alloc(self->below, bytes, address);
}

/* The work on the pages must be done: call gmlake_wait first. */
static enum ar_status end_segment(struct ar_backing *base, uint64_t address)
{
    struct gmlake_memory *self = (struct gmlake_memory *)base;
    uint32_t place = run_place(self, address);
    if (place == self->run_count || self->runs[place].address != address)
        return ar_backing_segment_free(self->below, address);
    struct gmlake_run run = self->runs[place];
    enum ar_status status = ar_backing_unmap(self->below, address, run.count * GMLAKE_PAGE_BYTES);
    for (uint32_t i = 0; i < run.count; i++)
        (void)ar_backing_destroy(self->below, run.pages[i].handle);
    enum ar_status released = ar_backing_release(self->below, address);
    ar_host_free(self->host, run.pages, run.count * sizeof *run.pages);
    AR_ARRAY_REMOVE(self->runs, self->run_count, place);
    return status != AR_OK ? status : released;
}

void gmlake_memory_open(struct gmlake_memory *self, const struct ar_policy_context *context)
{
    static const struct ar_backing_ops ops = {
        .segment_alloc = make_segment,
        .segment_free = end_segment,
    };
    self->base = (struct ar_backing){.ops = &ops};
    self->below = context->backing;
    self->host = context->host;
}

void gmlake_memory_close(struct gmlake_memory *self)
{
    ar_host_free(self->host, self->runs, self->run_room * sizeof *self->runs);
}

/* Waits for all work queued on the streams seen so far. */
void gmlake_wait(struct gmlake *self)
{
    ar_backing_wait_streams(self->memory.below, self->stream_room);
}

bool gmlake_reserve_more(struct gmlake *self, uint32_t count)
{
    if (self->heap.spans.spare_count < count &&
        !ar_spans_reserve(&self->heap.spans, self->heap.host, count))
        return false;
    return self->piece_room >= self->heap.spans.count ||
           ar_host_extend(self->heap.host, &self->pieces, &self->piece_room, self->heap.spans.count,
                          sizeof *self->pieces);
}

/* Cuts a used piece. The rest is free. Two records must be spare. */
void gmlake_split(struct gmlake *self, uint32_t piece, uint64_t bytes)
{
    const struct ar_span *at = self->heap.spans.at;
    heap_split(&self->heap, piece, bytes, at[piece].owner);
    gmlake_list_changed(self, at[piece].owner);
    uint32_t rest = at[piece].next;
    struct gmlake_page *pages = self->pieces[piece].pages;
    self->pieces[rest].pages = pages ? pages + bytes / GMLAKE_PAGE_BYTES : NULL;
    if (pages)
        self->pieces[rest].pages->piece = rest;
}

/* Frees a used piece whose pages are free. */
void gmlake_give(struct gmlake *self, uint32_t piece)
{
    const struct ar_span *at = self->heap.spans.at;
    uint32_t list = at[piece].owner;
    uint32_t next = at[piece].next;
    bool joins_next = next && !at[next].used && at[next].owner == list;
    struct gmlake_page *pages = self->pieces[piece].pages;
    uint32_t whole = heap_give(&self->heap, piece, list);
    gmlake_list_changed(self, list);
    if (!pages)
        return;
    if (joins_next)
        self->pieces[next].pages->piece = 0;
    if (whole != piece)
        pages->piece = 0;
}

void gmlake_use_pages(struct gmlake *self, uint32_t piece)
{
    struct gmlake_page *pages = self->pieces[piece].pages;
    uint64_t count = pages ? self->heap.spans.at[piece].bytes / GMLAKE_PAGE_BYTES : 0;
    for (uint64_t i = 0; i < count; i++)
        gmlake_page_used(self, &pages[i]);
}

void gmlake_free_pages(struct gmlake *self, uint32_t piece)
{
    struct gmlake_page *pages = self->pieces[piece].pages;
    uint64_t count = pages ? self->heap.spans.at[piece].bytes / GMLAKE_PAGE_BYTES : 0;
    for (uint64_t i = 0; i < count; i++)
        gmlake_page_freed(self, &pages[i]);
}

static uint64_t inactive_view_bytes(const struct gmlake *self, uint32_t stream)
{
    uint64_t bytes = 0;
    for (uint32_t v = self->streams[stream].first; v; v = self->slots[v].view->next)
        bytes += self->slots[v].view->count * GMLAKE_PAGE_BYTES;
    return bytes;
}

/* A new segment as a used piece of `list`, within the limit. If the device has the memory and still
 * refuses, there may be too little address space: views are collected. */
enum ar_status gmlake_grow(struct gmlake *self, uint32_t list, uint64_t bytes, uint32_t *piece)
{
    uint64_t reserved = self->base.totals.reserved_bytes;
    if (bytes > self->limit_bytes || reserved > self->limit_bytes - bytes)
        return AR_REFUSED;
    self->memory.paged = list % 2 == 0;
    enum ar_status status = AR_REFUSED;
    for (unsigned round = 0; round < 3 && status == AR_REFUSED; round++) {
        AR_TRY_HOST(gmlake_reserve_pieces(self, 2));
        status = heap_grow(&self->heap, bytes, piece);
        if (status != AR_REFUSED || !self->memory.paged)
            break;
        uint64_t free_bytes;
        uint64_t total_bytes;
        ar_backing_memory(self->memory.below, &free_bytes, &total_bytes);
        if (free_bytes <= bytes || inactive_view_bytes(self, list / 2) < bytes)
            break;
        gmlake_collect(self, round, bytes);
    }
    if (status != AR_OK)
        return status;
    struct ar_span *span = &self->heap.spans.at[*piece];
    span->owner = list;
    struct gmlake_page *pages = NULL;
    if (self->memory.paged) {
        pages = self->memory.runs[run_place(&self->memory, span->address)].pages;
        pages->piece = *piece;
    }
    self->pieces[*piece].pages = pages;
    return AR_OK;
}

static enum ar_status release_list(struct gmlake *self, uint32_t list)
{
    uint64_t bytes = 0;
    uint64_t address = 0;
    for (uint32_t piece; (piece = heap_next_whole(&self->heap, list, &bytes, &address)) != 0;) {
        struct gmlake_page *pages = self->pieces[piece].pages;
        for (uint64_t i = 0; pages && i < bytes / GMLAKE_PAGE_BYTES; i++)
            gmlake_forget_page(self, &pages[i]);
        enum ar_status status = heap_release(&self->heap, piece);
        gmlake_list_changed(self, list);
        if (status != AR_OK)
            return status;
    }
    return AR_OK;
}

/* Waits for pending frees and releases every wholly free segment, with the views that map it. */
enum ar_status gmlake_release_cached(struct gmlake *self)
{
    deferred_wait_all(&self->deferred);
    gmlake_wait(self);
    enum ar_status status = self->fault;
    const uint64_t *left_bytes = &self->base.totals.releasable_bytes;
    for (int small = 0; small <= 1; small++)
        for (uint32_t s = 0; status == AR_OK && *left_bytes && s < self->stream_room; s++)
            status = release_list(self, gmlake_list(s, small));
    return status;
}
