/* Driver allocations: making them, giving them back when memory is short, and the collection
 * of old ones that the threshold governs. */
#include "allocators/policies/torch/torch.h"

#include <string.h>

static bool grow_u32(struct torch *self, uint32_t **array, uint32_t *room, uint32_t wanted)
{
    if (wanted <= *room)
        return true;
    uint32_t more = *room ? *room + *room / 2 + 1 : 16;
    uint32_t *grown = ar_host_grow(self->host, *array, *room, more, sizeof **array);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

/* The place in the order of addresses of the first living segment at or above `address`. */
static uint32_t order_place(const struct torch *self, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = self->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->segments[self->order[middle]].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* UINT32_MAX where the host has no memory. */
uint32_t torch_segment_new(struct torch *self, uint64_t address, uint64_t bytes, uint32_t arena,
                           bool expandable)
{
    if (!grow_u32(self, &self->order, &self->order_room, self->order_count + 1))
        return UINT32_MAX;
    uint32_t segment = self->spare_segment;
    if (segment == UINT32_MAX) {
        if (self->segment_count == self->segment_room) {
            uint32_t room = self->segment_room ? self->segment_room + self->segment_room / 2 : 16;
            struct torch_segment *grown =
                ar_host_grow(self->host, self->segments, self->segment_room, room, sizeof *grown);
            if (!grown)
                return UINT32_MAX;
            self->segments = grown;
            self->segment_room = room;
        }
        segment = self->segment_count++;
    } else {
        self->spare_segment = self->segments[segment].first;
    }
    self->segments[segment] = (struct torch_segment){
        .address = address, .bytes = bytes, .arena = arena, .expandable = expandable};
    uint32_t place = order_place(self, address);
    memmove(self->order + place + 1, self->order + place,
            (self->order_count - place) * sizeof *self->order);
    self->order[place] = segment;
    self->order_count++;
    return segment;
}

void torch_segment_drop(struct torch *self, uint32_t segment)
{
    struct torch_segment *dropped = &self->segments[segment];
    uint32_t place = order_place(self, dropped->address);
    self->order_count--;
    memmove(self->order + place, self->order + place + 1,
            (self->order_count - place) * sizeof *self->order);
    ar_host_free(self->host, dropped->pages, dropped->page_count * sizeof *dropped->pages);
    *dropped = (struct torch_segment){.first = self->spare_segment};
    self->spare_segment = segment;
}

/* Anything but OK and REFUSED is a fault of the backing that ends the run. */
static bool granted(struct torch *self, enum ar_status status)
{
    if (status != AR_OK && status != AR_REFUSED)
        self->fault = status;
    return status == AR_OK;
}

/* Memory from the device for a request; the block is in no set. 0: refused. */
uint32_t torch_alloc_block(struct torch *self, uint32_t arena, uint64_t rounded_bytes, bool retry)
{
    uint64_t bytes = torch_device_request(&self->settings, rounded_bytes);
    uint64_t reserved = self->base.totals.reserved_bytes;
    self->num_alloc_retries += retry;
    if (self->limited && reserved + bytes > self->allowed_bytes)
        return 0;
    if (self->settings.expandable)
        return torch_expand(self, arena, rounded_bytes);
    uint64_t address;
    if (!torch_reserve_blocks(self, 2) ||
        !granted(self, ar_backing_segment_alloc(self->backing, bytes, &address)))
        return 0;
    uint32_t segment = torch_segment_new(self, address, bytes, arena, false);
    if (segment == UINT32_MAX) {
        (void)!granted(self, ar_backing_segment_free(self->backing, address));
        return 0;
    }
    uint32_t block = torch_block_new(self, address, bytes, arena, segment, true);
    enum torch_kind kind = torch_kind_of(self, arena);
    self->segments[segment].first = block;
    self->base.totals.reserved_bytes += bytes;
    torch_add(self, TORCH_SEGMENT, kind, 1);
    torch_add(self, TORCH_RESERVED_BYTES, kind, bytes);
    self->num_device_alloc++;
    if (bytes >= self->settings.max_split_bytes)
        torch_count(&self->oversize_segments, 1);
    return block;
}

/* Gives the segment of a free, undivided block back. */
void torch_release_segment(struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    enum torch_kind kind = torch_kind_of(self, span->owner);
    uint64_t bytes = span->bytes;
    torch_free_remove(self, block);
    (void)granted(self, ar_backing_segment_free(self->backing, span->address));
    self->base.totals.reserved_bytes -= bytes;
    torch_subtract(self, TORCH_SEGMENT, kind, 1);
    torch_subtract(self, TORCH_RESERVED_BYTES, kind, bytes);
    self->num_device_free++;
    self->oversize_segments.current -= bytes >= self->settings.max_split_bytes;
    torch_segment_drop(self, self->blocks[block].segment);
    torch_block_drop(self, block);
}

static bool undivided(const struct torch *self, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    return !span->previous && !span->next;
}

/* Blocks too large to be split: one that is large enough, or the largest ones until their
 * sum is. Blocks given back on the way stay given back, also where that does not suffice. */
bool torch_release_available(struct torch *self, uint32_t arena_index, uint64_t rounded_bytes)
{
    uint64_t least = self->settings.max_split_bytes;
    if (least == UINT64_MAX)
        return false;
    struct torch_arena *arena = self->arenas[arena_index];
    uint64_t key = rounded_bytes > least ? rounded_bytes : least;
    struct ar_span_place place;
    uint64_t from = key;
    uint64_t after = 0;
    while (ar_span_index_find(&arena->index, self->spans.at, from, after, &place)) {
        uint32_t block = *place.link;
        from = self->spans.at[block].bytes;
        after = self->spans.at[block].address + 1;
        if (!torch_is_expandable(self, block)) {
            torch_release_segment(self, block);
            return true;
        }
    }
    uint64_t released = 0;
    uint64_t below_bytes = key;
    uint64_t below_address = 0;
    while (released < key) {
        uint32_t block =
            ar_span_index_before(&arena->index, self->spans.at, below_bytes, below_address);
        if (!block || self->spans.at[block].bytes < least)
            break;
        below_bytes = self->spans.at[block].bytes;
        below_address = self->spans.at[block].address;
        if (!torch_is_expandable(self, block)) {
            released += below_bytes;
            torch_release_segment(self, block);
        }
    }
    return released >= key;
}

/* All undivided blocks of the free sets of one size kind; whole pages of expandable ones. */
static void release_arena(struct torch *self, struct torch_arena *arena)
{
    uint64_t bytes = 0;
    uint64_t address = 0;
    struct ar_span_place place;
    /* Unmapping leaves slivers, smaller than a page, in the set: they come up again at most
     * once, and have no whole page then. */
    while (ar_span_index_find(&arena->index, self->spans.at, bytes, address, &place)) {
        uint32_t block = *place.link;
        bytes = self->spans.at[block].bytes;
        address = self->spans.at[block].address + 1;
        if (torch_is_expandable(self, block))
            torch_unmap_free(self, block);
        else if (undivided(self, block))
            torch_release_segment(self, block);
    }
}

/* Private pools keep what they have until the program has given them up. */
static bool is_released(const struct torch_pool *pool)
{
    return pool->id == 0 || pool->ended;
}

void torch_release_cached(struct torch *self)
{
    self->num_sync_all_streams++;
    deferred_wait_all(&self->deferred);
    /* With many streams there are many arenas, and a full card comes here at every request. */
    for (int small = 0; small <= 1; small++)
        for (uint32_t i = 0; self->base.totals.releasable_bytes && i < self->arena_count; i++)
            if (self->arenas[i]->small == (small != 0) &&
                is_released(&self->pools[self->arenas[i]->pool]))
                release_arena(self, self->arenas[i]);
}

/* The sum of ages and the number of the undivided blocks of the common large pool. */
static uint64_t ages(const struct torch *self, uint64_t *count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < self->arena_count; i++) {
        struct torch_arena *arena = self->arenas[i];
        if (arena->small || self->pools[arena->pool].id != 0)
            continue;
        struct ar_span_place place;
        uint64_t bytes = 0;
        uint64_t address = 0;
        while (ar_span_index_find(&arena->index, self->spans.at, bytes, address, &place)) {
            uint32_t block = *place.link;
            bytes = self->spans.at[block].bytes;
            address = self->spans.at[block].address + 1;
            if (undivided(self, block)) {
                total += self->pools[arena->pool].calls[0] - self->blocks[block].collected_at;
                (*count)++;
            }
        }
    }
    return total;
}

/* Has the free block to go, where the average age is total / count? */
static bool is_old(const struct torch *self, const struct torch_arena *arena, uint32_t block,
                   uint64_t total, uint64_t count)
{
    uint64_t age = self->pools[arena->pool].calls[0] - self->blocks[block].collected_at;
    return !torch_is_expandable(self, block) && undivided(self, block) &&
           (double)age >= (double)total / (double)count;
}

/* One pass: every undivided block at least as old as the average goes. */
static uint64_t collect_pass(struct torch *self, uint64_t total, uint64_t count, bool *freed)
{
    uint64_t reclaimed = 0;
    for (uint32_t i = 0; i < self->arena_count; i++) {
        struct torch_arena *arena = self->arenas[i];
        if (arena->small || self->pools[arena->pool].id != 0)
            continue;
        struct ar_span_place place;
        uint64_t bytes = 0;
        uint64_t address = 0;
        while (ar_span_index_find(&arena->index, self->spans.at, bytes, address, &place)) {
            uint32_t block = *place.link;
            bytes = self->spans.at[block].bytes;
            address = self->spans.at[block].address + 1;
            if (!is_old(self, arena, block, total, count))
                continue;
            reclaimed += bytes;
            torch_release_segment(self, block);
            *freed = true;
        }
    }
    return reclaimed;
}

static uint64_t collect_above(const struct torch *self)
{
    return (uint64_t)(self->settings.gc_threshold * (double)self->allowed_bytes);
}

/* Would the first pass give anything back? The oldest block is never younger than the average,
 * so only expandable ones, which count but stay, can be in the way. */
bool torch_would_collect(const struct torch *self)
{
    if (!self->limited || self->settings.gc_threshold <= 0 ||
        self->base.totals.reserved_bytes <= collect_above(self))
        return false;
    uint64_t count = 0;
    uint64_t total = ages(self, &count);
    for (uint32_t i = 0; count && i < self->arena_count; i++) {
        struct torch_arena *arena = self->arenas[i];
        if (arena->small || self->pools[arena->pool].id != 0)
            continue;
        struct ar_span_place place;
        uint64_t bytes = 0;
        uint64_t address = 0;
        while (ar_span_index_find(&arena->index, self->spans.at, bytes, address, &place)) {
            bytes = self->spans.at[*place.link].bytes;
            address = self->spans.at[*place.link].address + 1;
            if (is_old(self, arena, *place.link, total, count))
                return true;
        }
    }
    return false;
}

void torch_collect(struct torch *self)
{
    uint64_t threshold = collect_above(self);
    uint64_t reserved = self->base.totals.reserved_bytes;
    if (reserved <= threshold)
        return;
    uint64_t target = reserved - threshold;
    uint64_t reclaimed = 0;
    bool freed = true;
    while (reclaimed < target && freed) {
        uint64_t count = 0;
        uint64_t total = ages(self, &count);
        if (!count)
            return;
        freed = false;
        reclaimed += collect_pass(self, total, count, &freed);
    }
}
