/* Driver allocations smaller than a page share pages, as the driver's do: a page is charged once
 * and released with its last allocation.
 *
 * 1. A page is a row of granules, one bit each.
 * 2. A new allocation goes to the page whose longest free run is the shortest that is long enough,
 *    and there to the lowest such run. If there is no such page, a new one is made. It is measured
 *    that small allocations share pages and what each costs; how the driver chooses the page is not
 *    known. Pages are in lists by their longest free run, so every step takes the same time for any
 *    number of pages. */
#ifndef SIM_DEVICE_MEMORY_SMALL_PAGES_H
#define SIM_DEVICE_MEMORY_SMALL_PAGES_H

#include <stdint.h>

#include "sim/device_memory/ranges.h"

#define SMALL_SLOTS 4096

struct small_page {
    struct range range;                /* its addresses */
    struct small_page *before, *after; /* in the list for its longest run */
    uint32_t longest;                  /* free slots next to each other */
    uint32_t used;                     /* slots */
    uint64_t taken[SMALL_SLOTS / 64];
};

struct small_pages {
    uint64_t granule_bytes, page_bytes;
    struct ranges pages;
    struct small_page *by_longest[SMALL_SLOTS + 1];
    uint64_t some[SMALL_SLOTS / 64 + 1]; /* which lists hold a page */
};

/* A page with space for `bytes`, and the address there; or NULL. No change. */
struct small_page *small_pages_room(const struct small_pages *self, uint64_t bytes,
                                    uint64_t *address);
/* A new, empty page at that address. NULL: no host memory. */
struct small_page *small_pages_add(struct small_pages *self, uint64_t address);
/* Marks a range of a page as used, or as free. */
void small_pages_take(struct small_pages *self, struct small_page *page, uint64_t address,
                      uint64_t bytes);
void small_pages_leave(struct small_pages *self, struct small_page *page, uint64_t address,
                       uint64_t bytes);
void small_pages_remove(struct small_pages *self, struct small_page *page);

#endif
