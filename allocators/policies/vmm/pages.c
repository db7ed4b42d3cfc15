/* Where a request without a mapped hole goes, and where its pages come from: rules 4 to 6 of
 * vmm.h. */
#include "allocators/policies/vmm/vmm.h"

#define CANDIDATES 8 /* gaps looked at before the end of the range is taken */

/* A run of free pieces that follow each other, [first, last], and what it would cost. */
struct run {
    uint32_t first, last;
    uint64_t missing_pages;
};

/* Pages of [start, end) that have no memory. */
static uint64_t missing_in(const struct vmm *self, const struct span *gap, uint64_t end)
{
    uint64_t until = gap->address + gap->bytes < end ? gap->address + gap->bytes : end;
    return (until - gap->address + self->page_bytes - 1) / self->page_bytes;
}

/* The run around a gap for that many bytes. False: too short. */
static bool run_around(const struct vmm *self, uint32_t gap, uint64_t bytes, struct run *run)
{
    const struct span *at = self->spans.at;
    uint32_t before = at[gap].previous;
    run->first = before && !at[before].used ? before : gap;
    run->missing_pages = 0;
    uint64_t end = at[run->first].address + bytes;
    for (uint32_t p = run->first; p && !at[p].used; p = at[p].next) {
        run->last = p;
        if (at[p].mark == VMM_GAP)
            run->missing_pages += missing_in(self, &at[p], end);
        if (at[p].address + at[p].bytes >= end)
            return true;
    }
    return false;
}

/* The cheapest run of a few gaps that are about large enough and of the end of the range. */
static bool choose(const struct vmm *self, struct vmm_range *range, uint64_t bytes,
                   struct run *best)
{
    struct span *at = self->spans.at;
    bool found = at[range->last].mark == VMM_GAP && !at[range->last].used &&
                 run_around(self, range->last, bytes, best);
    /* Two pages may lie in the holes beside a gap. */
    uint64_t from = bytes > 2 * self->page_bytes ? bytes - 2 * self->page_bytes : 1;
    uint64_t after = 0;
    struct span_place place;
    for (int i = 0; i < CANDIDATES && span_index_find(&range->gaps, at, from, after, &place); i++) {
        struct run run;
        uint32_t gap = *place.link;
        from = at[gap].bytes;
        after = at[gap].address + 1;
        if (!run_around(self, gap, bytes, &run))
            continue;
        if (!found || run.missing_pages < best->missing_pages ||
            (run.missing_pages == best->missing_pages &&
             at[run.first].address < at[best->first].address)) {
            *best = run;
            found = true;
        }
    }
    return found;
}

static bool room_for_pages(struct vmm *self, struct vmm_range *range, uint64_t end)
{
    uint64_t count = (end - range->address + self->page_bytes - 1) / self->page_bytes;
    if (count <= range->page_room)
        return true;
    uint32_t room = range->page_room + range->page_room / 4 + 16;
    if (room < count)
        room = (uint32_t)count;
    struct vmm_page *grown =
        host_grow(self->host, range->pages, range->page_room, room, sizeof *grown);
    if (!grown)
        return false;
    range->pages = grown;
    range->page_room = room;
    return true;
}

/* Bytes of the handles that lie wholly in a hole, which follow each other, and where they
 * start. */
uint64_t vmm_releasable(const struct vmm *self, const struct span *hole, uint64_t *start)
{
    if (hole->bytes < self->page_bytes)
        return 0;
    const struct vmm_range *range = self->ranges[hole->owner];
    uint64_t from = hole->address - range->address;
    uint64_t end = from + hole->bytes;
    uint64_t first = from / self->page_bytes;
    uint64_t last = (end - 1) / self->page_bytes; /* both inclusive */
    const struct vmm_page *page = &range->pages[first];
    uint64_t first_byte = (first - page->index) * self->page_bytes;
    if (first_byte < from)
        first_byte += page->count * self->page_bytes;
    page = &range->pages[last];
    uint64_t end_byte = (last - page->index + page->count) * self->page_bytes;
    if (end_byte > end)
        end_byte -= page->count * self->page_bytes;
    if (start)
        *start = range->address + first_byte;
    return end_byte > first_byte ? end_byte - first_byte : 0;
}

/* Unmaps the handle that a page belongs to and gives it up. */
void vmm_drop_handle(struct vmm *self, struct vmm_range *range, uint32_t page)
{
    uint32_t first = page - range->pages[page].index;
    uint32_t count = range->pages[page].count;
    uint64_t bytes = count * self->page_bytes;
    enum status status =
        backing_unmap(self->backing, range->address + first * self->page_bytes, bytes);
    if (status == STATUS_OK)
        status = backing_destroy(self->backing, range->pages[page].handle - 1);
    if (status != STATUS_OK)
        self->fault = status;
    for (uint32_t i = 0; i < count; i++)
        range->pages[first + i] = (struct vmm_page){0};
    self->base.totals.reserved_bytes -= bytes;
    self->pages_dropped++;
}

/* Gives up handles at the end of those wholly in a hole, at least `wanted_bytes` if there are
 * as many. Four spare records are there; the work of its stream is done. */
static void release_from(struct vmm *self, uint32_t hole, uint64_t wanted_bytes)
{
    struct vmm_range *range = self->ranges[self->spans.at[hole].owner];
    uint64_t start;
    uint64_t whole = vmm_releasable(self, &self->spans.at[hole], &start);
    uint64_t end = start + whole;
    uint64_t from = end;
    vmm_remove(self, hole);
    while (from > start && end - from < wanted_bytes && !self->fault) {
        uint32_t page = (uint32_t)((from - range->address) / self->page_bytes) - 1;
        from -= range->pages[page].count * self->page_bytes;
        vmm_drop_handle(self, range, page);
    }
    if (self->spans.at[hole].address + self->spans.at[hole].bytes > end)
        vmm_insert(self, vmm_cut(self, hole, end - self->spans.at[hole].address));
    uint32_t gap = hole;
    if (self->spans.at[hole].address < from) {
        gap = vmm_cut(self, hole, from - self->spans.at[hole].address);
        vmm_insert(self, hole);
    }
    self->spans.at[gap].mark = VMM_GAP;
    vmm_merge(self, gap);
}

/* The largest hole of a range with a whole handle in it; 0: none. */
static uint32_t richest(const struct vmm *self, const struct vmm_range *range, uint64_t *bytes)
{
    uint64_t below = UINT64_MAX;
    uint64_t address = UINT64_MAX;
    for (;;) {
        uint32_t hole = span_index_before(&range->holes, self->spans.at, below, address);
        if (!hole || self->spans.at[hole].bytes < self->page_bytes)
            return 0;
        *bytes = vmm_releasable(self, &self->spans.at[hole], NULL);
        if (*bytes)
            return hole;
        below = self->spans.at[hole].bytes;
        address = self->spans.at[hole].address;
    }
}

/* Gives up handles under the largest hole that has any, at most about `most_bytes` of them,
 * after waiting for its stream. False: there is none, or a fault. */
bool vmm_release_largest(struct vmm *self, uint64_t most_bytes)
{
    uint32_t hole = 0;
    uint64_t most = 0;
    if (!self->base.totals.releasable_bytes || !spans_reserve(&self->spans, self->host, 4))
        return false;
    for (uint32_t i = 0; i < self->range_count; i++) {
        uint64_t bytes = 0;
        uint32_t found = richest(self, self->ranges[i], &bytes);
        if (found && bytes > most) {
            most = bytes;
            hole = found;
        }
    }
    if (!hole)
        return false;
    uint32_t stream = self->ranges[self->spans.at[hole].owner]->stream;
    backing_wait(self->backing, backing_fence(self->backing, stream));
    release_from(self, hole, most_bytes);
    return !self->fault;
}

/* What the device or the limit still allows. */
static uint64_t obtainable(struct vmm *self)
{
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint64_t room = self->limit_bytes - self->base.totals.reserved_bytes;
    backing_memory(self->backing, &free_bytes, &total_bytes);
    return free_bytes < room ? free_bytes : room;
}

/* Sees to it that `bytes` can be had, by giving up handles under holes where they cannot. */
static bool obtain(struct vmm *self, uint64_t bytes)
{
    uint64_t room = obtainable(self);
    if (room >= bytes)
        return true;
    self->retries++;
    deferred_wait_all(&self->deferred);
    while ((room = obtainable(self)) < bytes) {
        /* Handles under holes can be larger than what is wanted, never smaller in sum. */
        uint64_t before = self->base.totals.reserved_bytes;
        if (self->base.totals.releasable_bytes < bytes - room ||
            !vmm_release_largest(self, bytes - room))
            return false;
        self->remapped_bytes += before - self->base.totals.reserved_bytes;
    }
    return true;
}

/* Makes a handle of `count` pages and maps it at a page of the range. */
static enum status map_handle(struct vmm *self, struct vmm_range *range, uint32_t page,
                              uint32_t count)
{
    backing_handle handle;
    uint64_t bytes = count * self->page_bytes;
    enum status status = backing_create(self->backing, bytes, &handle);
    if (status != STATUS_OK)
        return status;
    status = backing_map(self->backing, range->address + page * self->page_bytes, handle);
    if (status != STATUS_OK) {
        (void)backing_destroy(self->backing, handle);
        return status;
    }
    for (uint32_t i = 0; i < count; i++)
        range->pages[page + i] =
            (struct vmm_page){.handle = handle + 1, .index = i, .count = count};
    self->base.totals.reserved_bytes += bytes;
    self->pages_made++;
    return STATUS_OK;
}

/* What pages of a gap a block needs, [page, end), in pages from the start of the range; the gap
 * goes on to `gap_end`. The block fills [first_whole, end_whole). */
struct stretch {
    uint32_t page, end, gap_end;
    uint64_t first_whole, end_whole;
    uint64_t room; /* bytes that the device still has */
};

/* Pages of the next handle. Where the block fills it: what is to be mapped of the block. Where
 * it will be shared with what comes after: 1/512 of what the device has left, so that small
 * blocks do not call for every page while there is plenty. */
static uint32_t handle_pages(const struct vmm *self, const struct stretch *stretch)
{
    bool whole = stretch->page >= stretch->first_whole && stretch->page < stretch->end_whole;
    uint64_t end = !whole                              ? stretch->gap_end
                   : stretch->end < stretch->end_whole ? stretch->end
                                                       : stretch->end_whole;
    uint64_t most = end - stretch->page;
    uint64_t share = stretch->room / VMM_SHARED_SHARE / self->page_bytes;
    if (!whole && most > share)
        most = share;
    uint64_t cap = whole ? (stretch->end_whole - stretch->first_whole) / VMM_GIANT_SHARE : 0;
    if (cap < VMM_MOST_PAGES)
        cap = VMM_MOST_PAGES;
    if (most > cap)
        most = cap;
    return most < 2 ? 1 : (uint32_t)most;
}

/* Gives the pages of a stretch memory, and maybe some after them, and makes them usable; says
 * where they end. On failure none has. */
static enum status map_pages(struct vmm *self, struct vmm_range *range, struct stretch stretch,
                             uint32_t *end)
{
    enum status status = STATUS_OK;
    uint32_t start = stretch.page;
    while (status == STATUS_OK && stretch.page < stretch.end) {
        uint32_t count = handle_pages(self, &stretch);
        status = map_handle(self, range, stretch.page, count);
        if (status == STATUS_OK) {
            uint64_t bytes = count * self->page_bytes;
            stretch.page += count;
            stretch.room -= bytes < stretch.room ? bytes : stretch.room;
        }
    }
    if (status == STATUS_OK)
        status = backing_access(self->backing, range->address + start * self->page_bytes,
                                (stretch.page - start) * self->page_bytes);
    *end = stretch.page;
    while (status != STATUS_OK && stretch.page > start) {
        stretch.page -= range->pages[stretch.page - 1].count;
        vmm_drop_handle(self, range, stretch.page);
    }
    return status;
}

/* Makes the pieces of a run used, so that nothing is taken from them meanwhile. */
static void hold_run(struct vmm *self, const struct run *run)
{
    for (uint32_t p = run->first;; p = self->spans.at[p].next) {
        vmm_remove(self, p);
        if (p == run->last)
            return;
    }
}

/* Frees the pieces of a run again, each as it is mapped now. */
static void let_go_run(struct vmm *self, uint32_t first, uint32_t last)
{
    uint32_t p = first;
    for (;;) {
        uint32_t next = self->spans.at[p].next;
        bool end = p == last;
        vmm_merge(self, p);
        if (end)
            return;
        p = next;
    }
}

/* Maps what a block needs of a gap of its run; the part before the cut becomes mapped. Says
 * in `last` which piece is the last one now. */
static enum status map_gap(struct vmm *self, uint32_t gap, uint32_t *last, uint64_t block_start,
                           uint64_t block_end)
{
    const struct span *span = &self->spans.at[gap];
    struct vmm_range *range = self->ranges[span->owner];
    uint64_t page = self->page_bytes;
    uint32_t first = (uint32_t)((span->address - range->address) / page);
    uint64_t most = span->bytes / page < UINT32_MAX / 2 ? span->bytes / page : UINT32_MAX / 2;
    struct stretch stretch = {
        .page = first,
        .end = first + (uint32_t)missing_in(self, span, block_end),
        .gap_end = first + (uint32_t)most,
        .first_whole = (block_start - range->address + page - 1) / page,
        .end_whole = (block_end - range->address) / page,
        .room = obtainable(self),
    };
    if (stretch.gap_end > range->page_room)
        stretch.gap_end = range->page_room;
    uint32_t end;
    enum status status = map_pages(self, range, stretch, &end);
    if (status != STATUS_OK)
        return status;
    if ((end - first) * page < self->spans.at[gap].bytes) {
        uint32_t rest = vmm_cut(self, gap, (end - first) * page);
        if (gap == *last)
            *last = rest;
    }
    self->spans.at[gap].mark = VMM_MAPPED;
    return STATUS_OK;
}

/* Joins the mapped pieces of a run from `first` until `bytes` are there, and frees the rest. */
static void shape_block(struct vmm *self, uint32_t first, uint32_t last, uint64_t bytes)
{
    struct span *at = self->spans.at;
    while (at[first].bytes < bytes) {
        uint32_t next = at[first].next;
        at[first].bytes += at[next].bytes;
        at[first].next = at[next].next;
        if (at[first].next)
            at[at[first].next].previous = first;
        else
            self->ranges[at[first].owner]->last = first;
        if (next == last)
            last = first;
        spans_drop(&self->spans, next);
    }
    if (at[first].bytes > bytes) {
        uint32_t rest = vmm_cut(self, first, bytes);
        if (last == first)
            last = rest;
    }
    if (last != first)
        let_go_run(self, self->spans.at[first].next, last);
}

/* A used piece of exactly that size with memory behind it, made by mapping pages. 0: there is
 * no memory, or no address space. */
uint32_t vmm_make_room(struct vmm *self, struct vmm_range *range, uint64_t bytes)
{
    struct run run;
    if (!choose(self, range, bytes, &run))
        return 0;
    uint64_t start = self->spans.at[run.first].address;
    if (!room_for_pages(self, range, start + bytes + VMM_MOST_PAGES * self->page_bytes))
        return 0;
    hold_run(self, &run);
    uint32_t last = run.last;
    enum status status = obtain(self, run.missing_pages * self->page_bytes) &&
                                 spans_reserve(&self->spans, self->host, 4)
                             ? STATUS_OK
                             : STATUS_REFUSED;
    for (uint32_t p = run.first; status == STATUS_OK && p; p = self->spans.at[p].next) {
        bool done =
            p == last || self->spans.at[p].address + self->spans.at[p].bytes >= start + bytes;
        if (self->spans.at[p].mark == VMM_GAP)
            status = map_gap(self, p, &last, start, start + bytes);
        if (done)
            break;
    }
    if (status != STATUS_OK || self->fault) {
        if (status != STATUS_OK && status != STATUS_REFUSED)
            self->fault = status;
        let_go_run(self, run.first, last);
        return 0;
    }
    shape_block(self, run.first, last, bytes);
    return run.first;
}
