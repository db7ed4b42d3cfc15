/* Driver allocations below the page size share pages, as the driver's do: a page is charged
 * once, and given back when the last of them leaves.
 *
 * 1. A page is a row of granules, one bit each.
 * 2. A new allocation goes to the page whose longest free run is the shortest that fits, and
 *    there to the lowest run that fits. No page fits: a new one.
 * How the driver itself chooses is not known; that small ones share pages, and what each
 * costs, is measured. Pages stand in lists by longest free run, so all steps take the same
 * time however many pages there are. */
#ifndef SIM_DEVICE_MEMORY_SMALL_PAGES_H
#define SIM_DEVICE_MEMORY_SMALL_PAGES_H

#include <stdint.h>

#include "sim/device_memory/ranges.h"

#define SMALL_SLOTS 4096

struct small_page {
    struct range range;                /* its addresses */
    struct small_page *before, *after; /* in the list of its longest run */
    uint32_t longest;                  /* free slots in a row */
    uint32_t used;                     /* slots */
    uint64_t taken[SMALL_SLOTS / 64];
};

struct small_pages {
    uint64_t granule_bytes, page_bytes;
    struct ranges pages;
    struct small_page *by_longest[SMALL_SLOTS + 1];
    uint64_t some[SMALL_SLOTS / 64 + 1]; /* which lists hold a page */
};

/* A page with room for `bytes`, and where, or NULL. Changes nothing. */
struct small_page *small_pages_room(const struct small_pages *self, uint64_t bytes,
                                    uint64_t *address);
/* A new, empty page at that address; NULL: no memory. */
struct small_page *small_pages_add(struct small_pages *self, uint64_t address);
/* Marks a range of a page as taken, or as free again; then the page is empty or not. */
void small_pages_take(struct small_pages *self, struct small_page *page, uint64_t address,
                      uint64_t bytes);
void small_pages_leave(struct small_pages *self, struct small_page *page, uint64_t address,
                       uint64_t bytes);
void small_pages_remove(struct small_pages *self, struct small_page *page);

#endif
