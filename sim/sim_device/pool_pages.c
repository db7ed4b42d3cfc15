/* The pages of the pool: rule 4 of async_pool.c. */
#include "sim/sim_device/pool.h"

bool pool_pages_reserve(struct sim_pool *self, uint64_t address, uint64_t bytes)
{
    return AR_ARRAY_REACH(self->pages, self->page_room, page_of(self, address + bytes - 1));
}

void pool_pages_need(struct sim_pool *self, const struct ar_span *block, bool more)
{
    uint64_t end = block->address + block->bytes - self->row_address;
    for (uint64_t at = block->address - self->row_address; at < end;) {
        struct pool_page *page = &self->pages[at / POOL_PAGE_BYTES];
        uint64_t page_end = (at / POOL_PAGE_BYTES + 1) * POOL_PAGE_BYTES;
        uint32_t part = (uint32_t)((end < page_end ? end : page_end) - at);
        self->needed_pages += more && page->needed_bytes == 0;
        page->needed_bytes += more ? part : 0 - part;
        self->needed_pages -= !more && page->needed_bytes == 0;
        at += part;
    }
}

bool pool_is_backed(const struct sim_pool *self, const struct ar_span *span)
{
    uint64_t last = last_page(self, span);
    if (last >= self->page_room)
        return false;
    for (uint64_t page = page_of(self, span->address); page <= last; page++)
        if (!self->pages[page].held)
            return false;
    return true;
}

/* The highest page below `below` that lies in a free range, is there and is not needed. False:
 * none. */
static bool spare_page(const struct sim_pool *self, const struct ar_span *span, uint64_t below,
                       uint64_t *out)
{
    uint64_t end = page_of(self, span->address + span->bytes);
    AR_LOWER(end, self->page_room);
    AR_LOWER(end, below);
    for (uint64_t page = end; page-- > page_of(self, span->address);) {
        *out = page;
        if (self->pages[page].held && !self->pages[page].needed_bytes)
            return true;
    }
    return false;
}

/* Takes up to `count` spare pages out of a free range. Returns how many. */
static uint64_t pages_take(struct sim_pool *self, uint32_t piece, uint64_t count)
{
    uint64_t taken = 0;
    for (uint64_t page = UINT64_MAX;
         taken < count && spare_page(self, piece_at(self, piece), page, &page); taken++)
        self->pages[page].held = false;
    if (taken && piece_at(self, piece)->owner == LIST_BACKED)
        pool_list_move(self, piece, LIST_BARE);
    return taken;
}

void pool_pages_fill(struct sim_pool *self, const struct ar_span *block, uint64_t moved,
                     uint64_t count)
{
    for (uint32_t piece = self->last; piece && moved; piece = piece_at(self, piece)->previous)
        if (is_free(piece_at(self, piece)))
            moved -= pages_take(self, piece, moved);
    for (uint64_t page = page_of(self, block->address); count; page++) {
        count -= !self->pages[page].held;
        self->pages[page].held = true;
    }
}

void pool_pages_trim(struct sim_pool *self, uint64_t keep_bytes)
{
    struct sim_device *device = self->device;
    uint64_t keep = keep_bytes / POOL_PAGE_BYTES;
    AR_RAISE(keep, self->needed_pages);
    if (self->held_pages <= keep)
        return;
    uint64_t back = self->held_pages - keep;
    for (uint32_t piece = self->lists[LIST_BACKED].oldest; piece && back;
         piece = self->pieces[piece].newer)
        back -= pages_take(self, piece, back);
    sim_ledger_release(&device->ledger, (self->held_pages - keep) * POOL_PAGE_BYTES,
                       device->clock.now_ns);
    self->held_pages = keep;
    sim_show_memory(device);
}

uint64_t pool_pages_get(struct sim_pool *self, uint64_t count)
{
    struct sim_device *device = self->device;
    uint64_t most = self->settings.most_bytes / POOL_PAGE_BYTES;
    AR_LOWER(count, sim_ledger_free(&device->ledger) / POOL_PAGE_BYTES);
    if (self->settings.most_bytes)
        AR_LOWER(count, most > self->held_pages ? most - self->held_pages : 0);
    if (!count)
        return 0;
    sim_await_cleaning(device, count * POOL_PAGE_BYTES, SIM_COST_pool_grow);
    sim_ledger_charge(&device->ledger, count * POOL_PAGE_BYTES);
    self->held_pages += count;
    sim_show_memory(device);
    return count;
}

void pool_pages_release(struct sim_pool *self)
{
    if (self->settings.release_threshold_bytes != UINT64_MAX)
        pool_pages_trim(self, self->settings.release_threshold_bytes);
}
