/* Which memory under free blocks can be unmapped, and the unmapping: rules 6 and 7 of vmm.h. */
#include "allocators/policies/vmm/vmm.h"

/* Notes a call of the backing that failed and must not. */
static void note(struct vmm *self, enum ar_status status)
{
    if (status != AR_OK)
        self->fault = status;
}

/* Records a fence on a stream. It separates the frees before it from those after it. */
static void record_fence(struct vmm *self, uint32_t stream)
{
    struct vmm_stream *record = &self->streams[stream];
    uint32_t number = ++record->fences;
    record->fence[number % VMM_FENCES] = (struct vmm_fence){
        .ticket = ar_backing_fence(self->backing, stream),
        .order = ++self->fence_order,
    };
    self->unfenced -= record->freed_bytes != 0;
    record->freed_bytes = 0;
    self->look = true;
    if (self->idle_index)
        vmm_index_waits(self->idle_index, stream, true);
}

/* The work of the stream is known to be done up to that fence. `news`: pages may depend on it. */
static void learn_done(struct vmm *self, uint32_t stream, uint32_t fence, bool news)
{
    struct vmm_stream *record = &self->streams[stream];
    record->done = fence;
    if (!self->idle_index)
        return;
    if (record->done == record->fences)
        vmm_index_waits(self->idle_index, stream, false);
    for (unsigned kind = 0; news && kind < VMM_KINDS; kind++)
        for (uint32_t number = record->first[kind]; number;) {
            struct vmm_range *range = self->ranges[number - 1];
            vmm_stale(self->idle_index, range, number - 1);
            number = range->more;
        }
}

static uint32_t oldest_known(const struct vmm_stream *record)
{
    uint32_t oldest = record->fences < VMM_FENCES ? 1 : record->fences - VMM_FENCES + 1;
    return record->done < oldest ? oldest : record->done + 1;
}

/* A block is freed. Its pages depend on the next fence of their stream, which is recorded when a
 * sixteenth of the reserved memory was freed since the last one. */
void vmm_pages_freed(struct vmm *self, const struct ar_span *span)
{
    struct vmm_range *range = self->ranges[span->owner];
    struct vmm_stream *record = &self->streams[range->stream];
    uint64_t from = span->address - range->address;
    uint64_t last = (from + span->bytes - 1) / self->page_bytes;
    for (uint64_t page = from / self->page_bytes; page <= last; page++)
        range->pages[page].fence = record->fences + 1;
    self->unfenced += record->freed_bytes == 0;
    record->freed_bytes += span->bytes;
    if (record->freed_bytes > self->base.totals.reserved_bytes / 16)
        record_fence(self, range->stream);
}

/* Memory may become short from now on. The pages freed until now depend on the first fence of their
 * stream. */
void vmm_watch_streams(struct vmm *self)
{
    self->tight = true;
    for (uint32_t i = 0; i < self->range_count; i++)
        if (!self->streams[self->ranges[i]->stream].fences)
            record_fence(self, self->ranges[i]->stream);
}

/* Bytes of the adjacent handles that lie wholly in a free block of a page or more, and their
 * start. */
uint64_t vmm_releasable(const struct vmm *self, const struct ar_span *free_block, uint64_t *start)
{
    const struct vmm_range *range = self->ranges[free_block->owner];
    uint64_t page_bytes = self->page_bytes;
    uint64_t from = free_block->address - range->address;
    uint64_t end = from + free_block->bytes;
    uint64_t first = from / page_bytes;
    uint64_t after =
        (end - 1) / page_bytes; /* the last page of the free block, later the page after it */
    const struct vmm_page *page = &range->pages[first];
    first -= page->index;
    if (first * page_bytes < from)
        first += page->count;
    page = &range->pages[after];
    after -= page->index;
    if ((after + page->count) * page_bytes <= end)
        after += page->count;
    if (start)
        *start = range->address + first * page_bytes;
    return after > first ? (after - first) * page_bytes : 0;
}

/* Whether the work that used the handle at page `first` is done. */
static bool is_idle(const struct vmm *self, const struct vmm_range *range, uint32_t first)
{
    uint32_t fence = 1;
    for (uint32_t i = 0; i < range->pages[first].count; i++)
        if (range->pages[first + i].fence > fence)
            fence = range->pages[first + i].fence;
    return fence <= self->streams[range->stream].done;
}

/* The last idle handles under a free block, up to the wanted bytes. */
static uint64_t find_idle(const struct vmm *self, uint32_t free_block, uint64_t wanted_bytes,
                          struct vmm_idle *idle)
{
    const struct vmm_range *range = self->ranges[self->spans.at[free_block].owner];
    uint64_t start;
    if (self->spans.at[free_block].bytes < self->page_bytes)
        return 0;
    uint64_t at = vmm_releasable(self, &self->spans.at[free_block], &start);
    if (!at)
        return 0;
    at += start;
    *idle = (struct vmm_idle){.free_block = free_block};
    while (at > start && idle->end - idle->from < wanted_bytes) {
        uint32_t page = vmm_page_at(self, range, at) - 1;
        page -= range->pages[page].index;
        bool done = is_idle(self, range, page);
        if (!done && idle->end)
            break;
        uint64_t end = at;
        at = range->address + page * self->page_bytes;
        if (done) {
            idle->from = at;
            idle->end = idle->end ? idle->end : end;
        }
    }
    return idle->end - idle->from;
}

/* In the free block at the end of a range, or in the largest free block with idle handles. */
uint64_t vmm_find_idle(const struct vmm *self, const struct vmm_range *range, uint64_t wanted_bytes,
                       struct vmm_idle *idle)
{
    uint64_t below = UINT64_MAX;
    uint64_t address = UINT64_MAX;
    uint64_t most = range->tail ? find_idle(self, range->tail, wanted_bytes, idle) : 0;
    if (most)
        return most;
    for (;;) {
        uint32_t free_block =
            ar_span_index_before(&range->free_blocks, self->spans.at, below, address);
        if (!free_block || self->spans.at[free_block].bytes < self->page_bytes)
            return 0;
        uint64_t bytes = find_idle(self, free_block, wanted_bytes, idle);
        if (bytes)
            return bytes;
        below = self->spans.at[free_block].bytes;
        address = self->spans.at[free_block].address;
    }
}

/* Destroys the last kept handles until `count` are left. */
void vmm_destroy_kept(struct vmm *self, uint32_t count)
{
    while (self->kept_count > count) {
        const struct vmm_kept *kept = &self->kept[--self->kept_count];
        self->kept_bytes -= kept->count * self->page_bytes;
        self->pages_dropped++;
        note(self, ar_backing_destroy(self->backing, kept->handle));
    }
}

/* Unmaps the handles of [from, end). They are kept, up to VMM_KEPT. */
void vmm_drop_handles(struct vmm *self, struct vmm_range *range, uint64_t from, uint64_t end)
{
    enum ar_status status = ar_backing_unmap(self->backing, from, end - from);
    uint32_t last = vmm_page_at(self, range, end);
    for (uint32_t page = vmm_page_at(self, range, from); page < last; page++) {
        struct vmm_page *first = &range->pages[page];
        if (status == AR_OK && !first->index) {
            if (self->kept_count == VMM_KEPT)
                vmm_destroy_kept(self, VMM_KEPT - 1);
            self->kept[self->kept_count++] =
                (struct vmm_kept){.handle = first->handle - 1, .count = first->count};
            self->kept_bytes += first->count * self->page_bytes;
        }
        *first = (struct vmm_page){0};
    }
    note(self, status);
    self->base.totals.reserved_bytes -= end - from;
}

/* Unmaps idle handles. Records must be spare. */
static void release(struct vmm *self, const struct vmm_idle *idle)
{
    uint32_t free_block = idle->free_block;
    vmm_remove(self, free_block);
    vmm_drop_handles(self, self->ranges[self->spans.at[free_block].owner], idle->from, idle->end);
    if (self->spans.at[free_block].address + self->spans.at[free_block].bytes > idle->end)
        vmm_insert(self, vmm_cut(self, free_block, idle->end - self->spans.at[free_block].address));
    uint32_t gap = free_block;
    if (self->spans.at[free_block].address < idle->from) {
        gap = vmm_cut(self, free_block, idle->from - self->spans.at[free_block].address);
        vmm_insert(self, free_block);
    }
    self->spans.at[gap].mark = VMM_GAP;
    vmm_merge(self, gap);
}

/* Polls the fences of all streams. */
static void poll_fences(struct vmm *self)
{
    for (uint32_t i = 0; (i = vmm_next_waiting(self, i)) < self->stream_room; i++) {
        struct vmm_stream *record = &self->streams[i];
        while (record->done < record->fences) {
            uint32_t next = oldest_known(record);
            if (!ar_backing_done(self->backing, record->fence[next % VMM_FENCES].ticket))
                break;
            learn_done(self, i, next, true);
        }
    }
}

/* The range with the most idle bytes, the first among equals. */
static uint64_t most_idle(const struct vmm *self, uint64_t wanted_bytes, struct vmm_idle *best)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < self->range_count; i++) {
        struct vmm_idle idle;
        uint64_t bytes = vmm_find_idle(self, self->ranges[i], wanted_bytes, &idle);
        if (bytes > most) {
            most = bytes;
            *best = idle;
        }
    }
    return most;
}

/* Unmaps about `wanted_bytes` of handles under the largest free block that has idle ones. False:
 * there is none, or a fault. */
bool vmm_release_idle(struct vmm *self, uint64_t wanted_bytes)
{
    struct vmm_idle best;
    if (!self->base.totals.releasable_bytes ||
        !ar_spans_reserve(&self->spans, self->host, VMM_SPARES))
        return false;
    if (!self->tight)
        vmm_watch_streams(self);
    poll_fences(self);
    uint32_t number = self->idle_index ? vmm_index_most_idle(self, wanted_bytes) : 0;
    uint64_t found = 0;
    if (number)
        found = vmm_find_idle(self, self->ranges[number - 1], wanted_bytes, &best);
    else if (!self->idle_index) /* not made, or closed without host memory */
        found = most_idle(self, wanted_bytes, &best);
    if (!found)
        return false;
    release(self, &best);
    return !self->fault;
}

/* Waits for the work of all frees until now. */
void vmm_drain(struct vmm *self)
{
    for (uint32_t i = 0; i < self->stream_room; i++) {
        struct vmm_stream *record = &self->streams[i];
        if (!record->first[VMM_SMALL] && !record->first[VMM_LARGE])
            continue;
        bool all_known = record->fences && record->done == record->fences && !record->freed_bytes;
        record_fence(self, i);
        ar_backing_wait(self->backing, record->fence[record->fences % VMM_FENCES].ticket);
        learn_done(self, i, record->fences, !all_known);
    }
}

/* Before memory is short, frees record no fences: those of a drain must not stand for later frees.
 * All of them are done. */
void vmm_forget_fences(struct vmm *self)
{
    for (uint32_t i = 0; i < self->stream_room; i++)
        self->streams[i].fences = self->streams[i].done = 0;
}

/* Waits for the oldest fence that is not known to be done; if there is none, for the work of all
 * frees. False: all is done already. */
bool vmm_wait_some(struct vmm *self)
{
    uint32_t first = self->stream_room;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; (i = vmm_next_waiting(self, i)) < self->stream_room; i++) {
        const struct vmm_stream *record = &self->streams[i];
        uint64_t order = record->fence[oldest_known(record) % VMM_FENCES].order;
        if (order < least) {
            least = order;
            first = i;
        }
    }
    if (first < self->stream_room) {
        const struct vmm_stream *record = &self->streams[first];
        uint32_t next = oldest_known(record);
        ar_backing_wait(self->backing, record->fence[next % VMM_FENCES].ticket);
        learn_done(self, first, next, true);
        return true;
    }
    if (!self->unfenced)
        return false;
    vmm_drain(self);
    return true;
}
