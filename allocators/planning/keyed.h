/* Sorting by one number. */
#ifndef ALLOCATORS_PLANNING_KEYED_H
#define ALLOCATORS_PLANNING_KEYED_H

#include <stddef.h>
#include <stdint.h>

struct keyed {
    uint64_t key, value;
};

/* Sorts by key, lowest first; equals stay in their order. `spare` has room for as many; the
 * result is in one of the two. O(n log n) at most. */
struct keyed *keyed_sort(struct keyed *keys, struct keyed *spare, size_t count);

#endif
