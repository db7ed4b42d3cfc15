/* Where a driver places allocations: a model of what H100s and H200s do with cuMemAlloc.
 *
 * The driver reserves address ranges in multiples of 32 MiB, from the top of its address space
 * downwards, in the highest gap that is large enough. An allocation is at the start of its range.
 * The rest of the range serves later allocations that fit, the lowest rest first. A range whose
 * last allocation is freed becomes a gap.
 *
 * Found in the addresses of 34 recordings (results/published/h200/addresses.md), which do not show
 * the ranges that the driver takes for itself. Allocators break ties by address, so the order of
 * the addresses decides how a pool fragments. */
#ifndef SIM_SIM_DEVICE_ADDRESS_SPACE_H
#define SIM_SIM_DEVICE_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/host.h"
#include "allocators/base/range_tree.h"

/* Trees by address. `gaps` is mirrored: a gap that ends at `top` starts at 0 there, so that the
 * lowest is the highest. Must not move. */
struct address_space {
    struct ar_host host;
    struct ar_range_pool pool;
    uint64_t top, unit_bytes;
    uint32_t taken;  /* allocations */
    uint32_t ranges; /* reserved */
    uint32_t rests;  /* free parts of reserved ranges */
    uint32_t gaps;
};

/* The space has the addresses from `unit_bytes` to `top`, which are multiples of it. False: no host
 * memory. */
bool address_space_open(struct address_space *self, uint64_t top, uint64_t unit_bytes);
void address_space_close(struct address_space *self);

/* Places an allocation. False: there is no room, or no host memory; nothing has changed. */
bool address_space_take(struct address_space *self, uint64_t bytes, uint64_t *address);
/* Gives one back. */
void address_space_give(struct address_space *self, uint64_t address, uint64_t bytes);

#endif
