/* Which pages of its row of addresses the simulated stream-ordered pool needs: rule 4 of
 * async_pool.c. A page is needed while a byte of it is used or pending. */
#ifndef SIM_SIM_DEVICE_POOL_PAGES_H
#define SIM_SIM_DEVICE_POOL_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/size.h"
#include "allocators/base/span.h"

#define POOL_PAGE_BYTES (32 * AR_MIB)

struct pool_pages {
    uint64_t row_address;
    uint32_t *needed_bytes; /* by page: used or pending; freed by the owner */
    uint64_t room;          /* pages that fit */
    uint64_t needed;        /* pages of which some bytes are */
};

/* Makes room for pages up to the address `end`. False: the host has no memory. */
bool pool_pages_reserve(struct pool_pages *self, uint64_t end);

/* How many pages the piece needs that nothing else needs now. */
uint64_t pool_pages_missing(const struct pool_pages *self, const struct ar_span *piece);

/* The piece needs its pages, and needs them no more. */
void pool_pages_need(struct pool_pages *self, const struct ar_span *piece);
void pool_pages_leave(struct pool_pages *self, const struct ar_span *piece);

#endif
