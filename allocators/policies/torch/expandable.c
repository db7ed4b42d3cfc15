/* Expandable segments: one reserved range per stream and pool, 9/8 of the card's memory long,
 * mapped by pages (2 MiB small, 20 MiB large) as blocks need it. Unmapped address space is
 * kept in blocks too, linked with their neighbours, but in a set of its own ordered by
 * address. Each page has a physical handle of its own. */
#include "allocators/policies/torch/torch.h"

#include <string.h>

static uint32_t unmapped_place(const struct torch *self, const struct torch_arena *arena,
                               uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = arena->unmapped_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->spans.at[arena->unmapped[middle]].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes room for one more, so that torch_unmapped_insert cannot fail. */
static bool reserve_unmapped(struct torch *self, uint32_t arena_index)
{
    struct torch_arena *arena = self->arenas[arena_index];
    if (arena->unmapped_count < arena->unmapped_room)
        return true;
    uint32_t room = arena->unmapped_room ? arena->unmapped_room * 2 : 8;
    uint32_t *grown =
        ar_host_grow(self->host, arena->unmapped, arena->unmapped_room, room, sizeof *grown);
    if (!grown)
        return false;
    arena->unmapped = grown;
    arena->unmapped_room = room;
    return true;
}

static void unmapped_insert(struct torch *self, uint32_t block)
{
    struct torch_arena *arena = self->arenas[self->spans.at[block].owner];
    uint32_t place = unmapped_place(self, arena, self->spans.at[block].address);
    memmove(arena->unmapped + place + 1, arena->unmapped + place,
            (arena->unmapped_count - place) * sizeof *arena->unmapped);
    arena->unmapped[place] = block;
    arena->unmapped_count++;
}

/* Address space that was there at the start. */
bool torch_unmapped_add(struct torch *self, uint32_t block)
{
    if (!reserve_unmapped(self, self->spans.at[block].owner))
        return false;
    unmapped_insert(self, block);
    return true;
}

void torch_unmapped_remove(struct torch *self, uint32_t block)
{
    struct torch_arena *arena = self->arenas[self->spans.at[block].owner];
    uint32_t place = unmapped_place(self, arena, self->spans.at[block].address);
    arena->unmapped_count--;
    memmove(arena->unmapped + place, arena->unmapped + place + 1,
            (arena->unmapped_count - place) * sizeof *arena->unmapped);
}

static bool available(const struct torch *self, uint32_t block)
{
    return block && !self->spans.at[block].used;
}

/* Do free and unmapped blocks from `block` on make up that many bytes? */
static bool has_room(const struct torch *self, uint32_t block, uint64_t wanted_bytes)
{
    uint64_t bytes = 0;
    while (bytes < wanted_bytes && available(self, block)) {
        bytes += self->spans.at[block].bytes;
        block = self->spans.at[block].next;
    }
    return bytes >= wanted_bytes;
}

/* How long a range is: 9/8 of the card's memory, in whole pages. */
uint64_t torch_range_bytes(const struct torch *self, uint32_t arena)
{
    uint64_t page = torch_page_bytes(self, self->arenas[arena]);
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(self->backing, &free_bytes, &total_bytes);
    return (total_bytes / 8 * 9 + total_bytes % 8 * 9 / 8 + page - 1) / page * page;
}

/* A new range of address space, as one unmapped block. 0 where there is none. */
static uint32_t reserve_range(struct torch *self, uint32_t arena_index)
{
    uint64_t bytes = torch_range_bytes(self, arena_index);
    uint64_t address;
    enum ar_status status = ar_backing_reserve(self->backing, bytes, &address);
    if (status != AR_OK) {
        if (status != AR_REFUSED)
            self->fault = status;
        return 0;
    }
    uint32_t segment = torch_segment_new(self, address, bytes, arena_index, true);
    if (segment == UINT32_MAX) {
        (void)ar_backing_release(self->backing, address);
        return 0;
    }
    uint32_t block = torch_block_new(self, address, bytes, arena_index, segment, false);
    self->segments[segment].first = block;
    unmapped_insert(self, block);
    return block;
}

/* Where enough free and unmapped blocks follow each other, the lowest such place. */
static uint32_t find_expandable(struct torch *self, uint32_t arena_index, uint64_t bytes)
{
    const struct torch_arena *arena = self->arenas[arena_index];
    for (uint32_t i = 0; i < arena->unmapped_count; i++) {
        uint32_t block = arena->unmapped[i];
        uint32_t before = self->spans.at[block].previous;
        if (available(self, before))
            block = before;
        if (has_room(self, block, bytes))
            return block;
    }
    return reserve_range(self, arena_index);
}

static bool grow_pages(struct torch *self, struct torch_segment *segment, uint32_t count)
{
    if (count <= segment->page_count)
        return true;
    uint32_t room = segment->page_count * 2 > count ? segment->page_count * 2 : count;
    ar_backing_handle *grown =
        ar_host_grow(self->host, segment->pages, segment->page_count, room, sizeof *grown);
    if (!grown)
        return false;
    segment->pages = grown;
    segment->page_count = room;
    return true;
}

/* Unmaps the pages [first, last). */
static void unmap_pages(struct torch *self, struct torch_segment *segment, uint64_t page,
                        uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i < last; i++) {
        enum ar_status status = ar_backing_unmap(self->backing, segment->address + i * page, page);
        if (status == AR_OK)
            status = ar_backing_destroy(self->backing, segment->pages[i] - 1);
        if (status != AR_OK)
            self->fault = status;
        segment->pages[i] = 0;
    }
}

/* Lets the handles [first, last) go, which are mapped nowhere. */
static void destroy_pages(struct torch *self, struct torch_segment *segment, uint64_t first,
                          uint64_t last)
{
    for (uint64_t i = first; i < last; i++) {
        enum ar_status status = ar_backing_destroy(self->backing, segment->pages[i] - 1);
        if (status != AR_OK)
            self->fault = status;
        segment->pages[i] = 0;
    }
}

/* One handle for each page of [first, last): all of them, or none where one is refused. */
static enum ar_status create_pages(struct torch *self, struct torch_segment *segment, uint64_t page,
                                   uint64_t first, uint64_t last)
{
    if (!grow_pages(self, segment, (uint32_t)last))
        return AR_REFUSED;
    for (uint64_t i = first; i < last; i++) {
        ar_backing_handle handle;
        enum ar_status status = ar_backing_create(self->backing, page, &handle);
        if (status != AR_OK) {
            destroy_pages(self, segment, first, i);
            return status;
        }
        segment->pages[i] = handle + 1;
    }
    return AR_OK;
}

/* All memory first, so that a refusal leaves nothing mapped; then the pages [first, last) one
 * by one, and access for the run. */
static enum ar_status map_pages(struct torch *self, struct torch_segment *segment, uint64_t page,
                                uint64_t first, uint64_t last)
{
    enum ar_status status = create_pages(self, segment, page, first, last);
    if (status != AR_OK)
        return status;
    for (uint64_t i = first; i < last; i++) {
        status = ar_backing_map(self->backing, segment->address + i * page, segment->pages[i] - 1);
        if (status != AR_OK) {
            unmap_pages(self, segment, page, first, i);
            destroy_pages(self, segment, i, last);
            return status;
        }
    }
    status =
        ar_backing_access(self->backing, segment->address + first * page, (last - first) * page);
    if (status != AR_OK)
        unmap_pages(self, segment, page, first, last);
    return status;
}

/* Maps pages for at least `bytes` from the start of an unmapped block, which begins at a page.
 * The block becomes a free one that holds them, merged with free neighbours. Two spare
 * records and room for an unmapped block are there. */
static bool map_block(struct torch *self, uint32_t block, uint64_t bytes)
{
    struct ar_span *at = self->spans.at;
    struct torch_segment *segment = &self->segments[self->blocks[block].segment];
    uint32_t arena = at[block].owner;
    enum torch_kind kind = torch_kind_of(self, arena);
    uint64_t page = torch_page_bytes(self, self->arenas[arena]);
    uint64_t first = (at[block].address - segment->address) / page;
    uint64_t last = first + (bytes + page - 1) / page;
    uint64_t mapped_bytes = (last - first) * page;
    enum ar_status status = map_pages(self, segment, page, first, last);
    if (status != AR_OK) {
        if (status != AR_REFUSED)
            self->fault = status;
        return false;
    }
    torch_unmapped_remove(self, block);
    self->blocks[block].mapped = true;
    if (mapped_bytes < at[block].bytes) {
        uint32_t rest =
            torch_block_new(self, at[block].address + mapped_bytes, at[block].bytes - mapped_bytes,
                            arena, self->blocks[block].segment, false);
        at[rest].previous = block;
        at[rest].next = at[block].next;
        if (at[rest].next)
            at[at[rest].next].previous = rest;
        at[block].next = rest;
        at[block].bytes = mapped_bytes;
        unmapped_insert(self, rest); /* takes the place that was just left */
    }
    torch_merge(self, block, at[block].previous);
    torch_merge(self, block, at[block].next);
    self->base.totals.reserved_bytes += mapped_bytes;
    torch_add(self, TORCH_RESERVED_BYTES, kind, mapped_bytes);
    self->num_device_alloc++;
    torch_free_insert(self, block);
    return true;
}

/* The pages of a range that was there at the start have the handle 0, see the hook adopt. */
enum ar_status torch_adopt_pages(struct torch *self, uint32_t index)
{
    struct torch_segment *segment = &self->segments[index];
    uint64_t page = torch_page_bytes(self, self->arenas[segment->arena]);
    for (uint32_t block = segment->first; block; block = self->spans.at[block].next) {
        const struct ar_span *span = &self->spans.at[block];
        uint64_t start = span->address - segment->address, end = start + span->bytes;
        if (!self->blocks[block].mapped) {
            if (start % page || (span->next && end % page))
                return AR_INVALID;
            continue;
        }
        if (!grow_pages(self, segment, (uint32_t)((end + page - 1) / page)))
            return AR_HOST_MEMORY;
        for (uint64_t i = start / page; i < (end + page - 1) / page; i++)
            segment->pages[i] = 1;
    }
    return AR_OK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A free block of at least that size in an expandable segment, grown by mapping; it is in no
 * set. 0 where memory or address space is lacking; pages mapped on the way stay. */
uint32_t torch_expand(struct torch *self, uint32_t arena, uint64_t rounded_bytes)
{
    if (!torch_reserve_blocks(self, 4) || !reserve_unmapped(self, arena))
        return 0;
    uint32_t block = find_expandable(self, arena, rounded_bytes);
    if (!block)
        return 0;
    if (!self->blocks[block].mapped &&
        !map_block(self, block, least(self->spans.at[block].bytes, rounded_bytes)))
        return 0;
    while (self->spans.at[block].bytes < rounded_bytes) {
        uint64_t missing = rounded_bytes - self->spans.at[block].bytes;
        uint32_t next = self->spans.at[block].next;
        if (!torch_reserve_blocks(self, 2) ||
            !map_block(self, next, least(missing, self->spans.at[next].bytes)))
            return 0;
        block = next;
    }
    torch_free_remove(self, block);
    return block;
}

/* Cuts the piece [address, address + bytes) off a block as a free block of its own. */
static void cut_sliver(struct torch *self, uint32_t block, uint64_t address, uint64_t bytes,
                       bool before)
{
    struct ar_span *at = self->spans.at;
    uint32_t sliver =
        torch_block_new(self, address, bytes, at[block].owner, self->blocks[block].segment, true);
    if (before) {
        at[sliver].previous = at[block].previous;
        at[sliver].next = block;
        if (at[sliver].previous)
            at[at[sliver].previous].next = sliver;
        else
            self->segments[self->blocks[block].segment].first = sliver;
        at[block].previous = sliver;
    } else {
        at[sliver].previous = block;
        at[sliver].next = at[block].next;
        if (at[sliver].next)
            at[at[sliver].next].previous = sliver;
        at[block].next = sliver;
    }
    torch_free_insert(self, sliver);
}

static void release_range(struct torch *self, uint32_t block)
{
    uint32_t index = self->blocks[block].segment;
    torch_unmapped_remove(self, block);
    enum ar_status status = ar_backing_release(self->backing, self->segments[index].address);
    if (status != AR_OK)
        self->fault = status;
    torch_segment_drop(self, index);
    torch_block_drop(self, block);
}

/* Unmaps the whole pages inside a free block; what is left before and after stays free. */
void torch_unmap_free(struct torch *self, uint32_t block)
{
    uint64_t bytes = torch_releasable(self, block);
    if (!bytes || !torch_reserve_blocks(self, 2) ||
        !reserve_unmapped(self, self->spans.at[block].owner))
        return;
    struct ar_span *at = self->spans.at;
    struct torch_segment *segment = &self->segments[self->blocks[block].segment];
    enum torch_kind kind = torch_kind_of(self, at[block].owner);
    uint64_t page = torch_page_bytes(self, self->arenas[at[block].owner]);
    uint64_t first = (at[block].address - segment->address + page - 1) / page;
    uint64_t start = segment->address + first * page;
    uint64_t end = at[block].address + at[block].bytes;
    torch_free_remove(self, block);
    /* The work of the stream may still use the pages; others were waited for by their events. */
    uint32_t stream = self->arenas[at[block].owner]->stream;
    ar_backing_wait(self->backing, ar_backing_fence(self->backing, stream));
    unmap_pages(self, segment, page, first, first + bytes / page);
    if (start > at[block].address)
        cut_sliver(self, block, at[block].address, start - at[block].address, true);
    if (end > start + bytes)
        cut_sliver(self, block, start + bytes, end - start - bytes, false);
    at[block].address = start;
    at[block].bytes = bytes;
    self->blocks[block].mapped = false;
    torch_merge(self, block, at[block].previous);
    torch_merge(self, block, at[block].next);
    unmapped_insert(self, block);
    self->base.totals.reserved_bytes -= bytes;
    torch_subtract(self, TORCH_RESERVED_BYTES, kind, bytes);
    self->num_device_free++;
    if (!at[block].previous && !at[block].next)
        release_range(self, block);
}
