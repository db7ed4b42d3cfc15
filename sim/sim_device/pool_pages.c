#include "sim/sim_device/pool_pages.h"

#include <stdlib.h>

bool pool_pages_reserve(struct pool_pages *self, uint64_t end)
{
    uint64_t count = (end - self->row_address + POOL_PAGE_BYTES - 1) / POOL_PAGE_BYTES;
    if (count <= self->room)
        return true;
    uint64_t more = count + count / 4 + 64;
    uint32_t *grown = realloc(self->needed_bytes, more * sizeof *grown);
    if (!grown)
        return false;
    for (uint64_t page = self->room; page < more; page++)
        grown[page] = 0;
    self->needed_bytes = grown;
    self->room = more;
    return true;
}

/* The part of a piece that lies in the page at its `offset` in the row. */
static uint32_t part_in_page(uint64_t offset, uint64_t end)
{
    uint64_t page_end = (offset / POOL_PAGE_BYTES + 1) * POOL_PAGE_BYTES;
    return (uint32_t)((end < page_end ? end : page_end) - offset);
}

uint64_t pool_pages_missing(const struct pool_pages *self, const struct ar_span *piece)
{
    uint64_t first = (piece->address - self->row_address) / POOL_PAGE_BYTES;
    uint64_t last = (piece->address + piece->bytes - 1 - self->row_address) / POOL_PAGE_BYTES;
    uint64_t missing = 0;
    for (uint64_t page = first; page <= last; page++)
        missing += self->needed_bytes[page] == 0;
    return missing;
}

void pool_pages_need(struct pool_pages *self, const struct ar_span *piece)
{
    uint64_t end = piece->address + piece->bytes - self->row_address;
    self->needed += pool_pages_missing(self, piece);
    for (uint64_t at = piece->address - self->row_address; at < end;) {
        uint32_t part = part_in_page(at, end);
        self->needed_bytes[at / POOL_PAGE_BYTES] += part;
        at += part;
    }
}

void pool_pages_leave(struct pool_pages *self, const struct ar_span *piece)
{
    uint64_t end = piece->address + piece->bytes - self->row_address;
    for (uint64_t at = piece->address - self->row_address; at < end;) {
        uint32_t part = part_in_page(at, end);
        uint32_t *bytes = &self->needed_bytes[at / POOL_PAGE_BYTES];
        *bytes -= part;
        self->needed -= *bytes == 0;
        at += part;
    }
}
