/* The place of a request without a mapped free block, and its pages: rules 4 to 6 of vmm.h. */
#include "allocators/policies/vmm/vmm.h"

#define CANDIDATES   8   /* gaps, and free blocks, examined in addition to the end of the range */
#define SHARED_PAGES 16u /* maximum of a handle that blocks share */
#define LARGE_SHARE  128 /* such a handle has 1/LARGE_SHARE of the memory left */
#define SMALL_SHARE  1024
#define REACH_SHARE  256 /* for one that begins in a block and may reach beyond its end */
#define WHOLE_PAGES  8u  /* minimum of a handle that one block fills, */
#define GIANT_SHARE  64  /* or 1/GIANT_SHARE of the block */
#define TIGHT_SHARE  128 /* when memory may be short, no handle has more of the device */

/* Free pieces that follow each other, [first, last]. A block can start at `start` in the first of
 * them. */
struct run {
    uint32_t first, last;
    uint64_t start, missing_pages;
};

/* Pages of a gap that a block of [start, end) needs. */
static uint64_t missing_in(const struct vmm *self, const struct ar_span *gap, uint64_t start,
                           uint64_t end)
{
    uint64_t from = start > gap->address ? start : gap->address;
    uint64_t until = ar_span_end(gap) < end ? ar_span_end(gap) : end;
    return (until - from + self->page_bytes - 1) / self->page_bytes;
}

/* Examines the run that starts in piece `first`. It becomes `best` if it needs fewer pages, or as
 * many at a lower address. */
static void consider(const struct vmm *self, uint32_t first, uint64_t start, uint64_t bytes,
                     struct run *best)
{
    const struct ar_span *at = self->spans.at;
    struct run run = {.first = first, .start = start};
    uint64_t end = start + bytes;
    for (uint32_t p = first; p && !at[p].used; p = at[p].next) {
        if (at[p].mark == VMM_GAP)
            run.missing_pages += missing_in(self, &at[p], start, end);
        if (ar_span_end(&at[p]) < end)
            continue;
        run.last = p;
        if (!best->first || run.missing_pages < best->missing_pages ||
            (run.missing_pages == best->missing_pages && start < best->start))
            *best = run;
        return;
    }
}

/* From the start of a gap, or of the free block before it. */
static void consider_gap(const struct vmm *self, uint32_t gap, uint64_t bytes, struct run *best)
{
    const struct ar_span *at = self->spans.at;
    uint32_t before = at[gap].previous;
    uint32_t first = before && !at[before].used ? before : gap;
    consider(self, first, at[first].address, bytes, best);
}

/* From the start of a free block that is too short, and from the gap before it up to its end. */
static void consider_free_block(const struct vmm *self, uint32_t free_block, uint64_t bytes,
                                struct run *best)
{
    const struct ar_span *at = self->spans.at;
    uint32_t before = at[free_block].previous;
    consider(self, free_block, at[free_block].address, bytes, best);
    if (!before || at[before].used)
        return;
    uint64_t end = ar_span_end(&at[free_block]);
    uint64_t start = at[before].address;
    if (end - start > bytes)
        start += (end - bytes - start) / self->page_bytes * self->page_bytes;
    consider(self, before, start, bytes, best);
}

/* The run with the fewest missing pages in a range: around a few gaps that are about large enough,
 * around the largest free blocks, and at the end of the range. */
static void choose(const struct vmm *self, struct vmm_range *range, uint64_t bytes,
                   struct run *best)
{
    struct ar_span *at = self->spans.at;
    if (at[range->last].mark == VMM_GAP && !at[range->last].used)
        consider_gap(self, range->last, bytes, best);
    /* Two pages may lie in the free blocks next to a gap. */
    uint64_t from = bytes > 2 * self->page_bytes ? bytes - 2 * self->page_bytes : 1;
    uint64_t after = 0;
    struct ar_span_place place;
    for (int i = 0; i < CANDIDATES && ar_span_index_find(&range->gaps, at, from, after, &place);
         i++) {
        uint32_t gap = *place.link;
        from = at[gap].bytes;
        after = at[gap].address + 1;
        consider_gap(self, gap, bytes, best);
    }
    uint64_t below = UINT64_MAX;
    uint64_t address = UINT64_MAX;
    for (int i = 0; i < CANDIDATES; i++) {
        uint32_t free_block = ar_span_index_before(&range->free_blocks, at, below, address);
        if (!free_block || at[free_block].bytes < self->page_bytes)
            return;
        below = at[free_block].bytes;
        address = at[free_block].address;
        consider_free_block(self, free_block, bytes, best);
    }
}

static bool room_for_pages(struct vmm *self, struct vmm_range *range, uint64_t end)
{
    uint64_t count = (end - range->address + self->page_bytes - 1) / self->page_bytes;
    count += SHARED_PAGES; /* the last handle may reach beyond the block */
    if (count <= range->page_room)
        return true;
    uint32_t room = range->page_room + range->page_room / 4 + 16;
    return ar_host_extend(self->host, &range->pages, &range->page_room,
                          room < count ? (uint32_t)count : room, sizeof *range->pages);
}

/* Rule 8: other users of the device are expected to take again what they take now. */
static void watch_outside(struct vmm *self, uint64_t outside_bytes)
{
    if (self->outside_seen && outside_bytes > self->outside_bytes)
        self->outside_growth = outside_bytes - self->outside_bytes;
    self->outside_seen = true;
    self->outside_bytes = outside_bytes;
}

/* The bytes that the device and the limit still allow. */
static uint64_t obtainable(struct vmm *self)
{
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint64_t room = self->limit_bytes - self->base.totals.reserved_bytes;
    ar_backing_memory(self->backing, &free_bytes, &total_bytes);
    free_bytes += self->kept_bytes;
    watch_outside(self, total_bytes - free_bytes - self->base.totals.reserved_bytes);
    return free_bytes < room ? free_bytes : room;
}

/* Takes the largest kept handle of at most `most` pages. If there is none, creates one of `count`
 * pages, and destroys kept ones if the device needs their memory. */
static enum ar_status take_handle(struct vmm *self, uint32_t most, uint32_t *count,
                                  ar_backing_handle *handle)
{
    uint32_t best = self->kept_count;
    for (uint32_t i = 0; i < self->kept_count; i++)
        if (self->kept[i].count <= most &&
            (best == self->kept_count || self->kept[i].count > self->kept[best].count))
            best = i;
    if (best < self->kept_count) {
        *handle = self->kept[best].handle;
        *count = self->kept[best].count;
        self->kept_bytes -= *count * self->page_bytes;
        self->kept[best] = self->kept[--self->kept_count];
        return AR_OK;
    }
    self->pages_made++;
    for (;;) {
        enum ar_status status = ar_backing_create(self->backing, *count * self->page_bytes, handle);
        if (status != AR_REFUSED || !self->kept_count)
            return status;
        vmm_destroy_kept(self, self->kept_count - 1); /* it notes a fault */
    }
}

/* Maps a handle of `count` pages, or a kept one of at most `most`, at a page of the range. Writes
 * its number of pages to `count`. */
static enum ar_status map_handle(struct vmm *self, struct vmm_range *range, uint32_t page,
                                 uint32_t most, uint32_t *count)
{
    ar_backing_handle handle;
    AR_TRY(take_handle(self, most, count, &handle));
    enum ar_status status =
        ar_backing_map(self->backing, range->address + page * self->page_bytes, handle);
    if (status != AR_OK) {
        (void)ar_backing_destroy(self->backing, handle);
        return status;
    }
    for (uint32_t i = 0; i < *count; i++)
        range->pages[page + i] = (struct vmm_page){
            .handle = handle + 1, .index = (uint16_t)i, .count = (uint16_t)*count};
    self->base.totals.reserved_bytes += *count * self->page_bytes;
    return AR_OK;
}

/* The pages of a gap that a block needs, [page, end), counted from the start of the range. The gap
 * ends at `gap_end`. The block fills [first_whole, end_whole). */
struct stretch {
    uint32_t page, end, gap_end;
    uint64_t first_whole, end_whole;
    uint64_t room;  /* bytes that the device still allows */
    uint64_t share; /* a shared handle has 1/share of them */
};

/* Pages of a handle with 1/share of the memory that the device still allows. */
static uint64_t part_of_room(const struct vmm *self, const struct stretch *stretch, uint64_t share)
{
    return ar_least(stretch->room / share / self->page_bytes, SHARED_PAGES);
}

/* Pages of the next handle if the block fills the pages that follow. */
static uint64_t whole_pages(const struct vmm *self, const struct stretch *stretch)
{
    uint64_t whole = (stretch->end_whole - stretch->first_whole) / GIANT_SHARE;
    uint64_t shared = part_of_room(self, stretch, stretch->share);
    if (whole < shared)
        whole = shared;
    if (whole < WHOLE_PAGES)
        whole = WHOLE_PAGES;
    whole = ar_least(whole, stretch->end_whole - stretch->page);
    bool beyond = stretch->end > stretch->end_whole && !self->tight;
    uint64_t reach = beyond ? part_of_room(self, stretch, REACH_SHARE) : 0;
    return whole > reach ? whole : reach;
}

/* Pages of the next handle: rule 5 of vmm.h. */
static uint32_t handle_pages(const struct vmm *self, const struct stretch *stretch)
{
    bool whole = stretch->page >= stretch->first_whole && stretch->page < stretch->end_whole;
    uint64_t most =
        whole ? whole_pages(self, stretch) : part_of_room(self, stretch, stretch->share);
    most = ar_least(most, stretch->gap_end - stretch->page);
    most = ar_least(most, UINT16_MAX);
    if (self->tight)
        most = ar_least(most, self->device_bytes / TIGHT_SHARE / self->page_bytes);
    return most < 2 ? 1 : (uint32_t)most;
}

/* Maps the pages of a stretch, and perhaps some after them, and makes them usable. Writes their
 * end. On failure none is mapped. */
static enum ar_status map_pages(struct vmm *self, struct vmm_range *range, struct stretch stretch,
                                uint32_t *end)
{
    enum ar_status status = AR_OK;
    uint32_t start = stretch.page;
    while (status == AR_OK && stretch.page < stretch.end) {
        uint32_t count = handle_pages(self, &stretch);
        status = map_handle(self, range, stretch.page, stretch.end - stretch.page, &count);
        if (status == AR_OK) {
            uint64_t bytes = count * self->page_bytes;
            stretch.page += count;
            stretch.room -= bytes < stretch.room ? bytes : stretch.room;
        }
    }
    AR_THEN(status, ar_backing_access(self->backing, range->address + start * self->page_bytes,
                                      (stretch.page - start) * self->page_bytes));
    *end = stretch.page;
    if (status != AR_OK && stretch.page > start)
        vmm_drop_handles(self, range, range->address + start * self->page_bytes,
                         range->address + stretch.page * self->page_bytes);
    return status;
}

/* Marks the pieces of a run used, so that nothing is taken from them. The parts of the first gap
 * and of the last free block that the block does not need stay free. Records must be spare. */
static void hold_run(struct vmm *self, struct run *run, uint64_t bytes)
{
    const struct ar_span *at = self->spans.at;
    for (uint32_t p = run->first;; p = at[p].next) {
        vmm_remove(self, p);
        if (p == run->last)
            break;
    }
    uint64_t end = run->start + bytes;
    if (at[run->last].mark == VMM_MAPPED && ar_span_end(&at[run->last]) > end)
        vmm_insert(self, vmm_cut(self, run->last, end - at[run->last].address));
    if (run->start > at[run->first].address) {
        uint32_t front = run->first;
        run->first = vmm_cut(self, front, run->start - at[front].address);
        if (run->last == front)
            run->last = run->first;
        vmm_insert(self, front);
    }
}

/* Frees the pieces of a run again, mapped or not. */
static void release_run(struct vmm *self, uint32_t first, uint32_t last)
{
    for (uint32_t p = first, next; p; p = next) {
        next = p == last ? 0 : self->spans.at[p].next;
        vmm_merge(self, p);
    }
}

/* Maps the part of a gap that a block needs, at most so many pages. `last` is updated if the last
 * piece of the run is cut. */
static enum ar_status map_gap(struct vmm *self, uint32_t gap, uint32_t *last, uint64_t block_start,
                              uint64_t block_end, uint64_t most_pages)
{
    const struct ar_span *span = &self->spans.at[gap];
    struct vmm_range *range = self->ranges[span->owner];
    uint64_t page = self->page_bytes;
    uint32_t first = vmm_page_at(self, range, span->address);
    uint64_t missing = missing_in(self, span, block_start, block_end);
    uint64_t whole = ar_least(span->bytes / page, UINT32_MAX / 2);
    struct stretch stretch = {
        .page = first,
        .end = first + (uint32_t)ar_least(missing, most_pages),
        .gap_end = first + (uint32_t)ar_least(whole, most_pages),
        .first_whole = (block_start - range->address + page - 1) / page,
        .end_whole = (block_end - range->address) / page,
        .room = obtainable(self),
        .share = range->kind == VMM_SMALL ? SMALL_SHARE : LARGE_SHARE,
    };
    if (stretch.gap_end > range->page_room)
        stretch.gap_end = range->page_room;
    uint32_t end;
    AR_TRY(map_pages(self, range, stretch, &end));
    if ((end - first) * page < self->spans.at[gap].bytes) {
        uint32_t rest = vmm_cut(self, gap, (end - first) * page);
        if (gap == *last)
            *last = rest;
    }
    self->spans.at[gap].mark = VMM_MAPPED;
    return AR_OK;
}

/* Joins the mapped pieces of a run from `first` to a block of `bytes` and frees the rest. */
static void shape_block(struct vmm *self, uint32_t first, uint32_t last, uint64_t bytes)
{
    struct ar_span *at = self->spans.at;
    while (at[first].bytes < bytes) {
        uint32_t next = at[first].next;
        vmm_join(self, first, next);
        if (next == last)
            last = first;
    }
    if (at[first].bytes > bytes) {
        uint32_t rest = vmm_cut(self, first, bytes);
        if (last == first)
            last = rest;
    }
    if (last != first)
        release_run(self, self->spans.at[first].next, last);
}

/* The best run of a stream and kind. Opens a range if none is long enough. Records must be
 * spare. */
static enum ar_status find_run(struct vmm *self, uint32_t stream, enum vmm_kind kind,
                               uint64_t bytes, struct run *run)
{
    uint64_t range_bytes = kind == VMM_SMALL ? self->device_bytes / 8 : 2 * self->device_bytes;
    run->first = 0;
    for (uint32_t number = self->streams[stream].first[kind]; number;) {
        struct vmm_range *range = self->ranges[number - 1];
        choose(self, range, bytes, run);
        range_bytes = 2 * range->bytes;
        number = range->more;
    }
    if (run->first)
        return AR_OK;
    if (range_bytes < bytes)
        range_bytes = bytes;
    range_bytes = ar_size_round_up(range_bytes, self->page_bytes);
    AR_TRY(vmm_open_range(self, stream, kind, range_bytes));
    choose(self, self->ranges[self->range_count - 1], bytes, run);
    return AR_OK;
}

/* Maps the missing pages of a held run, or, if `part`, as many as the device allows. `last` is
 * updated if the last piece of the run is cut. */
static enum ar_status map_run(struct vmm *self, const struct run *run, uint64_t bytes, bool part,
                              uint32_t *last)
{
    uint64_t end = run->start + bytes;
    struct vmm_range *range = self->ranges[self->spans.at[run->first].owner];
    enum ar_status status = room_for_pages(self, range, end) ? AR_OK : AR_HOST_MEMORY;
    for (uint32_t p = run->first; status == AR_OK && p; p = self->spans.at[p].next) {
        uint64_t pages = part ? obtainable(self) / self->page_bytes : UINT32_MAX;
        bool done = p == *last || ar_span_end(&self->spans.at[p]) >= end || !pages ||
                    (part && self->spans.spare_count < VMM_SPARES / 2);
        if (self->spans.at[p].mark == VMM_GAP && pages)
            status = map_gap(self, p, last, run->start, end, pages);
        if (done)
            break;
    }
    return status;
}

/* Maps the missing pages of a held run and makes a block of it. */
static enum ar_status fill_run(struct vmm *self, const struct run *run, uint64_t bytes)
{
    uint32_t last = run->last;
    enum ar_status status = map_run(self, run, bytes, false, &last);
    if (status == AR_OK && !self->fault)
        shape_block(self, run->first, last, bytes);
    else
        release_run(self, run->first, last);
    return self->fault ? self->fault : status;
}

/* Unmaps idle handles under free blocks until the device allows `bytes`. */
static bool reclaim(struct vmm *self, uint64_t bytes)
{
    uint64_t before = self->base.totals.reserved_bytes;
    uint64_t room;
    while ((room = obtainable(self)) < bytes && vmm_release_idle(self, bytes - room))
        continue;
    self->remapped_bytes += before - self->base.totals.reserved_bytes;
    return room >= bytes;
}

/* Rule 8: while memory is short, releases idle handles so that other users can take memory
 * again. */
void vmm_keep_headroom(struct vmm *self)
{
    self->look = false;
    (void)obtainable(self); /* measures the memory of other users */
    while (!reclaim(self, self->outside_growth) && !self->fault && vmm_wait_some(self))
        continue;
    vmm_destroy_kept(self, 0);
}

/* The bytes that a run needs: its missing pages, and what a request that may fail leaves to other
 * users. Notes when memory becomes short. */
static uint64_t lacking(struct vmm *self, const struct ar_policy_request *request,
                        const struct run *run, uint64_t room)
{
    uint64_t missing = run->missing_pages * self->page_bytes;
    if (!self->tight && room < self->base.totals.reserved_bytes + 2 * missing)
        vmm_watch_streams(self);
    if (request->may_fail)
        missing += self->outside_growth;
    else if (room < missing)
        self->outside_growth = 0;
    return missing;
}

/* Takes memory for a held run from under free blocks and fills it. `wait`: it failed, but may
 * succeed after a wait. Before the wait it maps what the device allows, so that the driver works
 * during the wait. */
static enum ar_status serve(struct vmm *self, const struct run *run, uint64_t bytes,
                            uint64_t missing, bool *wait)
{
    bool enough = obtainable(self) + self->base.totals.releasable_bytes >= missing;
    if (enough && reclaim(self, missing))
        return fill_run(self, run, bytes);
    uint32_t last = run->last;
    if (enough)
        (void)map_run(self, run, bytes, true, &last);
    release_run(self, run->first, last);
    *wait = enough && !self->fault && vmm_wait_some(self);
    return AR_REFUSED;
}

/* A used piece of exactly that size, made by mapping pages or found after a wait. 0: no memory or
 * no address space. */
static uint32_t make_room(struct vmm *self, const struct ar_policy_request *request,
                          enum vmm_kind kind, uint64_t bytes)
{
    struct run run;
    enum ar_status status;
    bool wait = false;
    do {
        uint32_t piece = wait ? vmm_find_free_block(self, request->stream, kind, bytes) : 0;
        if (piece)
            return piece;
        status = ar_spans_reserve(&self->spans, self->host, VMM_SPARES)
                     ? find_run(self, request->stream, kind, bytes, &run)
                     : AR_HOST_MEMORY;
        if (status != AR_OK)
            break;
        uint64_t room = obtainable(self);
        uint64_t missing = lacking(self, request, &run, room);
        self->retries += room < missing && !wait;
        wait = room < missing && self->deferred.pending_events;
        if (wait) {
            deferred_wait_oldest(&self->deferred);
            continue;
        }
        hold_run(self, &run, bytes);
        status = serve(self, &run, bytes, missing, &wait);
        if (status == AR_OK)
            return run.first;
    } while (wait);
    if (status != AR_REFUSED)
        self->fault = status;
    return 0;
}

/* A run may begin or end inside a handle, whose other pages are then of no use to it. If a request
 * failed and the memory under all free blocks would do, unmaps all of it. */
static bool unmapped_all(struct vmm *self, const struct ar_policy_request *request, uint64_t bytes)
{
    uint64_t needed = ar_size_round_up(bytes, self->page_bytes);
    if (request->may_fail)
        needed += self->outside_growth;
    uint64_t releasable = self->base.totals.releasable_bytes;
    if (self->fault || !releasable || obtainable(self) + releasable < needed)
        return false;
    vmm_drain(self);
    (void)reclaim(self, UINT64_MAX);
    return !self->fault;
}

uint32_t vmm_make_room(struct vmm *self, const struct ar_policy_request *request,
                       enum vmm_kind kind, uint64_t bytes)
{
    uint32_t piece = make_room(self, request, kind, bytes);
    if (!piece && unmapped_all(self, request, bytes))
        piece = make_room(self, request, kind, bytes);
    vmm_destroy_kept(self, 0);
    return piece;
}
