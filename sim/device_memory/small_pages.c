#include "sim/device_memory/device_memory.h"

static uint32_t page_slots(const struct small_pages *self)
{
    return (uint32_t)(self->page_bytes / self->granule_bytes);
}

static uint32_t slots_of(const struct small_pages *self, uint64_t bytes)
{
    return (uint32_t)((bytes + self->granule_bytes - 1) / self->granule_bytes);
}

/* The start of the first free run of at least `wanted` slots, or the number of slots. With `wanted`
 * 0 the whole page is searched for its longest run. */
static uint32_t page_scan(const struct small_page *page, uint32_t slots, uint32_t wanted,
                          uint32_t *longest)
{
    uint32_t run = 0; /* free slots up to here */
    *longest = 0;
    for (uint32_t word = 0; word * 64 < slots; word++) {
        uint64_t free_bits = ~page->taken[word];
        for (uint32_t at = 0; at < 64;) {
            uint64_t rest = free_bits >> at;
            uint32_t length = 64 - at;
            if (rest & 1) {
                uint32_t ones = ~rest ? (uint32_t)__builtin_ctzll(~rest) : 64;
                length = ones < length ? ones : length;
                run += length;
            } else {
                length = rest ? (uint32_t)__builtin_ctzll(rest) : length;
                run = 0;
            }
            at += length;
            AR_RAISE(*longest, run);
            if (wanted && run >= wanted)
                return word * 64 + at - run;
        }
    }
    return slots;
}

static void list_remove(struct small_pages *self, struct small_page *page)
{
    if (page->before)
        page->before->after = page->after;
    else
        self->by_longest[page->longest] = page->after;
    if (page->after)
        page->after->before = page->before;
    if (!self->by_longest[page->longest])
        self->some[page->longest / 64] &= ~(UINT64_C(1) << page->longest % 64);
}

static void list_insert(struct small_pages *self, struct small_page *page)
{
    (void)page_scan(page, page_slots(self), 0, &page->longest);
    page->before = NULL;
    page->after = self->by_longest[page->longest];
    if (page->after)
        page->after->before = page;
    self->by_longest[page->longest] = page;
    self->some[page->longest / 64] |= UINT64_C(1) << page->longest % 64;
}

struct small_page *small_pages_room(const struct small_pages *self, uint64_t bytes,
                                    uint64_t *address)
{
    uint32_t wanted = slots_of(self, bytes);
    uint32_t word = wanted / 64;
    uint64_t bits = self->some[word] & (UINT64_MAX << wanted % 64);
    while (!bits) {
        if (++word > SMALL_SLOTS / 64)
            return NULL;
        bits = self->some[word];
    }
    struct small_page *page = self->by_longest[word * 64 + (uint32_t)__builtin_ctzll(bits)];
    uint32_t longest;
    uint32_t slot = page_scan(page, page_slots(self), wanted, &longest);
    *address = page->range.start + slot * self->granule_bytes;
    return page;
}

struct small_page *small_pages_add(struct small_pages *self, uint64_t address)
{
    struct small_page *page = calloc(1, sizeof *page);
    if (!page)
        return NULL;
    page->range.start = address;
    page->range.end = address + self->page_bytes;
    if (page_slots(self) < 64) /* the only word has fewer slots */
        page->taken[0] = UINT64_MAX << page_slots(self);
    ranges_insert(&self->pages, &page->range);
    list_insert(self, page);
    return page;
}

static void page_mark(struct small_pages *self, struct small_page *page, uint64_t address,
                      uint64_t bytes, bool taken)
{
    uint32_t first = (uint32_t)((address - page->range.start) / self->granule_bytes);
    uint32_t count = slots_of(self, bytes);
    list_remove(self, page);
    for (uint32_t slot = first; slot < first + count;) {
        uint32_t length = 64 - slot % 64;
        AR_LOWER(length, first + count - slot);
        uint64_t bits = (UINT64_MAX >> (64 - length)) << slot % 64;
        if (taken)
            page->taken[slot / 64] |= bits;
        else
            page->taken[slot / 64] &= ~bits;
        slot += length;
    }
    page->used = taken ? page->used + count : page->used - count;
    list_insert(self, page);
}

void small_pages_take(struct small_pages *self, struct small_page *page, uint64_t address,
                      uint64_t bytes)
{
    page_mark(self, page, address, bytes, true);
}

void small_pages_leave(struct small_pages *self, struct small_page *page, uint64_t address,
                       uint64_t bytes)
{
    page_mark(self, page, address, bytes, false);
}

void small_pages_remove(struct small_pages *self, struct small_page *page)
{
    list_remove(self, page);
    ranges_remove(&self->pages, &page->range);
    free(page);
}
