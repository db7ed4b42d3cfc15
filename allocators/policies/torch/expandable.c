/* Expandable segments: a reserved range for each stream and pool, 9/8 of the memory of the card
 * long or as expandable_segments_reserve says, mapped by pages (2 MiB small, 20 MiB large) as
 * blocks need them. Unmapped address space is kept in blocks too, which are linked with their
 * neighbours but are in a separate set in the order of addresses. Each page has a handle of its
 * own. */
#include "allocators/base/array.h"
#include "allocators/policies/torch/torch.h"

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

/* Makes room for so many more, so that unmapped_insert cannot fail. */
bool torch_reserve_unmapped(struct torch *self, uint32_t arena_index, uint32_t count)
{
    struct torch_arena *arena = self->arenas[arena_index];
    uint32_t room = arena->unmapped_room ? arena->unmapped_room : 4;
    return arena->unmapped_room - arena->unmapped_count >= count ||
           ar_host_extend(self->host, &arena->unmapped, &arena->unmapped_room,
                          (room > count ? room : count) + room, sizeof *arena->unmapped);
}

static void unmapped_insert(struct torch *self, uint32_t block)
{
    struct torch_arena *arena = self->arenas[self->spans.at[block].owner];
    uint32_t place = unmapped_place(self, arena, self->spans.at[block].address);
    AR_ARRAY_INSERT(arena->unmapped, arena->unmapped_count, place, block);
}

/* Adds unmapped address space that exists at the start. */
bool torch_unmapped_add(struct torch *self, uint32_t block)
{
    if (!torch_reserve_unmapped(self, self->spans.at[block].owner, 1))
        return false;
    unmapped_insert(self, block);
    return true;
}

void torch_unmapped_remove(struct torch *self, uint32_t block)
{
    struct torch_arena *arena = self->arenas[self->spans.at[block].owner];
    uint32_t place = unmapped_place(self, arena, self->spans.at[block].address);
    AR_ARRAY_REMOVE(arena->unmapped, arena->unmapped_count, place);
}

static bool available(const struct torch *self, uint32_t block)
{
    return block && !self->spans.at[block].used;
}

/* Whether free and unmapped blocks from `block` on have so many bytes. */
static bool has_room(const struct torch *self, uint32_t block, uint64_t wanted_bytes)
{
    uint64_t bytes = 0;
    while (bytes < wanted_bytes && available(self, block)) {
        bytes += self->spans.at[block].bytes;
        block = self->spans.at[block].next;
    }
    return bytes >= wanted_bytes;
}

/* The size of a range: 9/8 of the memory of the card, or less if the program says so, in whole
 * pages. */
uint64_t torch_range_bytes(const struct torch *self, uint32_t arena)
{
    double range = self->settings.range;
    uint64_t page = torch_page_bytes(self, self->arenas[arena]);
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(self->backing, &free_bytes, &total_bytes);
    uint64_t bytes = total_bytes / 8 * 9 + total_bytes % 8 * 9 / 8;
    double wanted_bytes = range < 0 ? -range * (double)AR_GIB : range * (double)total_bytes;
    if (range < 0 || range > 0)
        bytes = wanted_bytes < (double)bytes ? (uint64_t)wanted_bytes : bytes;
    return (bytes + page - 1) / page * page;
}

/* A new range of address space, as one unmapped block. 0: none. */
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
        return torch_no_host(self);
    }
    uint32_t block = torch_block_new(self, address, bytes, arena_index, segment, false);
    self->segments[segment].first = block;
    unmapped_insert(self, block);
    return block;
}

/* The lowest place with enough free and unmapped blocks that follow each other. */
static uint32_t find_expandable(struct torch *self, uint32_t arena_index, uint64_t bytes)
{
    const struct torch_arena *arena = self->arenas[arena_index];
    uint32_t place = self->tight ? torch_tight_place(self, arena, bytes) : 0;
    if (place)
        return place;
    for (uint32_t i = 0; !self->tight && i < arena->unmapped_count; i++) {
        uint32_t block = arena->unmapped[i];
        uint32_t before = self->spans.at[block].previous;
        if (available(self, before))
            block = before;
        if (has_room(self, block, bytes))
            return block;
    }
    return bytes <= torch_range_bytes(self, arena_index) ? reserve_range(self, arena_index) : 0;
}

static bool grow_pages(struct torch *self, struct torch_segment *segment, uint32_t count)
{
    uint32_t twice = segment->page_count * 2;
    return count <= segment->page_count ||
           ar_host_extend(self->host, &segment->pages, &segment->page_count,
                          twice > count ? twice : count, sizeof *segment->pages);
}

/* A status other than OK stops the run. */
static void must(struct torch *self, enum ar_status status)
{
    if (status != AR_OK)
        self->fault = status;
}

/* Destroys the handles of the grains [first, last), which are not mapped. */
void torch_destroy_pages(struct torch *self, ar_backing_handle *pages, uint32_t first,
                         uint32_t last)
{
    for (uint32_t i = first, end; i < last; i = end) {
        end = torch_handle_end(self, pages, i, last);
        must(self, ar_backing_destroy(self->backing, pages[i] - 1));
        memset(&pages[i], 0, (end - i) * sizeof pages[i]);
    }
}

/* Unmaps the grains [first, last), which are whole handles, and destroys these. */
static void unmap_pages(struct torch *self, struct torch_segment *segment, uint64_t grain,
                        uint32_t first, uint32_t last)
{
    for (uint32_t i = first, end; i < last; i = end) {
        end = torch_handle_end(self, segment->pages, i, last);
        must(self,
             ar_backing_unmap(self->backing, segment->address + i * grain, (end - i) * grain));
        torch_destroy_pages(self, segment->pages, i, end);
    }
}

/* Handles for the grains [first, last), each of a page, or more if memory is tight: all, or none if
 * one is refused. */
enum ar_status torch_create_pages(struct torch *self, const struct torch_segment *segment,
                                  ar_backing_handle *pages, uint32_t first, uint32_t last)
{
    const struct torch_arena *arena = self->arenas[segment->arena];
    uint64_t grain = torch_grain_bytes(self, arena);
    uint32_t most =
        self->tight ? TORCH_TIGHT_GRAINS : (uint32_t)(torch_page_bytes(self, arena) / grain);
    for (uint32_t i = first, end; i < last; i = end) {
        ar_backing_handle handle;
        end = last - i < most ? last : i + most;
        enum ar_status status = ar_backing_create(self->backing, (end - i) * grain, &handle);
        if (status != AR_OK) {
            torch_destroy_pages(self, pages, first, i);
            return status;
        }
        for (uint32_t k = i; k < end; k++)
            pages[k] = handle + 1;
    }
    return AR_OK;
}

/* Creates all handles first, so that a refusal leaves nothing mapped. Then maps the grains [first,
 * last) handle by handle and sets the access of the run. */
static enum ar_status map_pages(struct torch *self, struct torch_segment *segment, uint64_t grain,
                                uint32_t first, uint32_t last)
{
    AR_TRY_HOST(grow_pages(self, segment, last));
    enum ar_status status = torch_create_pages(self, segment, segment->pages, first, last);
    if (status != AR_OK)
        return status;
    for (uint32_t i = first; i < last; i = torch_handle_end(self, segment->pages, i, last)) {
        status = ar_backing_map(self->backing, segment->address + i * grain, segment->pages[i] - 1);
        if (status != AR_OK) {
            unmap_pages(self, segment, grain, first, i);
            torch_destroy_pages(self, segment->pages, i, last);
            return status;
        }
    }
    status =
        ar_backing_access(self->backing, segment->address + first * grain, (last - first) * grain);
    if (status != AR_OK)
        unmap_pages(self, segment, grain, first, last);
    return status;
}

/* Bytes to map for `bytes` at the start of an unmapped block: whole pages, as far as it goes. If
 * memory is tight, no more than needed. */
static uint64_t bytes_to_map(const struct torch *self, const struct torch_arena *arena,
                             uint64_t bytes, uint64_t block_bytes)
{
    uint64_t unit = self->tight ? torch_grain_bytes(self, arena) : torch_page_bytes(self, arena);
    uint64_t rounded_bytes = (bytes + unit - 1) / unit * unit;
    return rounded_bytes < block_bytes ? rounded_bytes : block_bytes;
}

/* Maps at least `bytes` from the start of an unmapped block, which begins at a grain. The block
 * becomes free with these pages and merges with free neighbours. Two records and room for an
 * unmapped block must be spare. */
static bool map_block(struct torch *self, uint32_t block, uint64_t bytes)
{
    struct ar_span *at = self->spans.at;
    struct torch_segment *segment = &self->segments[self->blocks[block].segment];
    uint32_t arena = at[block].owner;
    enum torch_kind kind = torch_kind_of(self, arena);
    uint64_t grain = torch_grain_bytes(self, self->arenas[arena]);
    uint64_t mapped_bytes = bytes_to_map(self, self->arenas[arena], bytes, at[block].bytes);
    uint32_t first = (uint32_t)((at[block].address - segment->address) / grain);
    /* PyTorch checks the limit for a request, not for its pages: it may pass it by part of one. */
    if (self->divides && self->limited &&
        self->base.totals.reserved_bytes + mapped_bytes > self->allowed_bytes)
        return false;
    enum ar_status status =
        map_pages(self, segment, grain, first, first + (uint32_t)(mapped_bytes / grain));
    if (status != AR_OK) {
        if (status != AR_REFUSED)
            self->fault = status;
        return false;
    }
    torch_unmapped_remove(self, block);
    self->blocks[block].mapped = true;
    if (mapped_bytes < at[block].bytes) {
        uint32_t rest = torch_cut(self, block, mapped_bytes, false);
        unmapped_insert(self, rest); /* in the place that has just become free */
    }
    torch_merge(self, block, at[block].previous);
    torch_merge(self, block, at[block].next);
    self->base.totals.reserved_bytes += mapped_bytes;
    torch_add(self, TORCH_RESERVED_BYTES, kind, mapped_bytes);
    self->num_device_alloc++;
    torch_free_insert(self, block);
    return true;
}

/* The pages of a range that exists at the start have the handle 0: see the hook adopt. */
enum ar_status torch_adopt_pages(struct torch *self, uint32_t index)
{
    struct torch_segment *segment = &self->segments[index];
    uint64_t page = torch_grain_bytes(self, self->arenas[segment->arena]);
    for (uint32_t block = segment->first; block; block = self->spans.at[block].next) {
        const struct ar_span *span = &self->spans.at[block];
        uint64_t start = span->address - segment->address, end = start + span->bytes;
        if (!self->blocks[block].mapped) {
            if (start % page || (span->next && end % page))
                return AR_INVALID;
            continue;
        }
        AR_TRY_HOST(grow_pages(self, segment, (uint32_t)((end + page - 1) / page)));
        for (uint64_t i = start / page; i < (end + page - 1) / page; i++)
            segment->pages[i] = 1;
    }
    return AR_OK;
}

/* A free block of at least that size in an expandable segment, grown by mapping, in no set. 0: no
 * memory or address space; pages that were mapped stay mapped. */
uint32_t torch_expand(struct torch *self, uint32_t arena, uint64_t rounded_bytes)
{
    if (!torch_reserve_blocks(self, 4) || !torch_reserve_unmapped(self, arena, 1))
        return torch_no_host(self);
    uint32_t block = find_expandable(self, arena, rounded_bytes);
    if (!block)
        return 0;
    if (!self->blocks[block].mapped &&
        !map_block(self, block, ar_least(self->spans.at[block].bytes, rounded_bytes)))
        return 0;
    while (self->spans.at[block].bytes < rounded_bytes) {
        uint64_t missing = rounded_bytes - self->spans.at[block].bytes;
        uint32_t next = self->spans.at[block].next;
        if (!torch_reserve_blocks(self, 2))
            return torch_no_host(self);
        if (!map_block(self, next, ar_least(missing, self->spans.at[next].bytes)))
            return 0;
        block = next;
    }
    torch_free_remove(self, block);
    return block;
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

/* The part of a free block from `start`, whose pages were unmapped, becomes address space. What is
 * before and after it is free. The block is in no set; two records must be spare, and room for an
 * unmapped block. Returns the block of the part. */
uint32_t torch_make_unmapped(struct torch *self, uint32_t block, uint64_t start, uint64_t bytes)
{
    struct ar_span *at = self->spans.at;
    if (start > at[block].address) {
        uint32_t rest = torch_cut(self, block, start - at[block].address, true);
        torch_free_insert(self, block);
        block = rest;
    }
    if (at[block].bytes > bytes)
        torch_free_insert(self, torch_cut(self, block, bytes, true));
    self->blocks[block].mapped = false;
    torch_merge(self, block, at[block].previous);
    torch_merge(self, block, at[block].next);
    unmapped_insert(self, block);
    self->base.totals.reserved_bytes -= bytes;
    torch_subtract(self, TORCH_RESERVED_BYTES, torch_kind_of(self, at[block].owner), bytes);
    self->num_device_free++;
    return block;
}

/* Unmaps the whole pages in a free block. The rests before and after them stay free. */
void torch_unmap_free(struct torch *self, uint32_t block)
{
    uint64_t from;
    uint64_t bytes = torch_releasable_from(self, block, &from);
    uint32_t first = (uint32_t)from;
    uint32_t arena = self->spans.at[block].owner;
    if (!bytes || !torch_reserve_blocks(self, 2) || !torch_reserve_unmapped(self, arena, 1))
        return;
    struct torch_segment *segment = &self->segments[self->blocks[block].segment];
    uint64_t grain = torch_grain_bytes(self, self->arenas[arena]);
    torch_free_remove(self, block);
    /* Pending work of the stream may use the pages. The events of other streams are done. */
    ar_backing_wait(self->backing, ar_backing_fence(self->backing, self->arenas[arena]->stream));
    unmap_pages(self, segment, grain, first, first + (uint32_t)(bytes / grain));
    block = torch_make_unmapped(self, block, segment->address + first * grain, bytes);
    if (!self->spans.at[block].previous && !self->spans.at[block].next)
        release_range(self, block);
}
