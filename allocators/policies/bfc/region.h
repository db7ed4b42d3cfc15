/* Regions: the ranges that a BFC pool obtained from the backing, and rules 3 to 5 of core.h
 * for when and how. A region is one driver allocation, or several where the supply coalesces
 * and they touch. There are few of them, so they may be looked through one by one. */
#ifndef ALLOCATORS_POLICIES_BFC_REGION_H
#define ALLOCATORS_POLICIES_BFC_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "allocators/base/host.h"
#include "allocators/base/status.h"

struct bfc;

struct bfc_region {
    uint64_t address;
    uint64_t bytes;
    uint32_t first, last; /* chunks; the first one keeps its record as long as it lives */
    bool held;            /* false: the record is spare */
    uint32_t ranked;      /* of record i: the number of the i-th region by address */
};

/* One driver allocation of a region. */
struct bfc_segment {
    uint64_t address;
    uint64_t bytes;
};

struct bfc_regions {
    struct ar_backing *backing;
    uint64_t limit_bytes;
    uint64_t next_bytes; /* what the next region would be */
    bool coalesce;
    struct bfc_region *at; /* by number, which stays while the region lives */
    uint32_t capacity, count;
    struct bfc_segment *segments; /* by address */
    uint32_t segment_capacity, segment_count;
};

void bfc_regions_open(struct bfc *self, struct ar_backing *backing, uint64_t limit_bytes);
/* Gives every driver allocation back, and the arrays. */
void bfc_regions_close(struct bfc *self);

/* Obtains a region in which `bytes` (rounded) fit. NO_MEMORY where the limit or the device
 * does not allow it; HOST_MEMORY; CORRUPT where the backing calls it misuse. */
enum ar_status bfc_regions_extend(struct bfc *self, uint64_t bytes) AR_STATUS_CHECKED;

/* Gives all wholly free regions back, if collection is on and that leaves room for `bytes`
 * under the limit. Says in `released` whether it did. CORRUPT as above. */
enum ar_status bfc_regions_collect(struct bfc *self, uint64_t bytes,
                                   bool *released) AR_STATUS_CHECKED;

#endif
