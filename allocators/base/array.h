/* Arrays that grow by doubling, in the program's own memory. Policies take theirs from their host
 * (allocators/base/host.h), which is measured. */
#ifndef ALLOCATORS_BASE_ARRAY_H
#define ALLOCATORS_BASE_ARRAY_H

#include <stddef.h>

/* See array_grow. */
void *array_double(void *items, size_t *room, size_t item_bytes);

/* An array of `count` items with room for `*room`, so that one more fits: the same where it does
 * already, else a larger one in its place, and `*room` is what that holds. NULL: no host memory, and
 * the old one stays as it is. `items` is NULL and `*room` 0 at first; the caller frees the last one. */
static inline void *array_grow(void *items, size_t count, size_t *room, size_t item_bytes)
{
    return count < *room ? items : array_double(items, room, item_bytes);
}

#endif
