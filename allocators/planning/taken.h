/* A set of addresses: ranges in order, of which no two touch. */
#ifndef ALLOCATORS_PLANNING_TAKEN_H
#define ALLOCATORS_PLANNING_TAKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/host.h"

struct taken_range {
    uint64_t begin, end;
};

/* Zeroed it is empty. */
struct taken {
    struct taken_range *ranges;
    uint32_t count, room;
};

/* Adds [begin, end), which may overlap what is there. False: no host memory. */
bool taken_add(struct taken *self, struct ar_host *host, uint64_t begin, uint64_t end);

/* The first range at `from` or later that ends above `address`, by steps of doubling length and then
 * halving; `count` where there is none. */
uint32_t taken_above(const struct taken *self, uint32_t from, uint64_t address);

void taken_close(struct taken *self, struct ar_host *host);

#endif
