/* Arrays that grow by doubling, in the program's own memory, and arrays in order. Policies take theirs
 * from their host (allocators/base/host.h), which is measured. */
#ifndef ALLOCATORS_BASE_ARRAY_H
#define ALLOCATORS_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

/* See ar_array_grow. */
AR_API void *ar_array_double(void *items, size_t *room, size_t item_bytes);

/* An array of `count` items with room for `*room`, so that one more fits: the same where it does
 * already, else a larger one in its place, and `*room` is what that holds. NULL: no host memory, and
 * the old one stays as it is. `items` is NULL and `*room` 0 at first; the caller frees the last one. */
static inline void *ar_array_grow(void *items, size_t count, size_t *room, size_t item_bytes)
{
    return count < *room ? items : ar_array_double(items, room, item_bytes);
}

/* The same for the array that the pointer at `array` points to. False: no host memory. */
static inline bool ar_array_make_room(void *array, size_t count, size_t *room, size_t item_bytes)
{
    void *items;
    memcpy(&items, array, sizeof items);
    items = ar_array_grow(items, count, room, item_bytes);
    if (items)
        memcpy(array, &items, sizeof items);
    return items != NULL;
}

/* Adds an item at the end of such an array, of which `items`, `count` and `room` are variables or
 * members. False: no host memory, and nothing changed. */
#define AR_ARRAY_ADD(items, count, room, item)                                                     \
    (ar_array_make_room(&(items), (count), &(room), sizeof *(items)) &&                            \
     ((items)[(count)++] = (item), true))

/* An array of `*count` items, enlarged with zeros so that it has item `index`. NULL: no host
 * memory, and the old one stays as it is. */
AR_API void *ar_array_reach(void *items, size_t *count, size_t index, size_t item_bytes);

/* Of items in the order of a uint64_t that lies `key_at` bytes from each one's start: the index of the
 * first above `value`; `count` where there is none. */
static inline size_t ar_array_above(const void *items, size_t count, size_t item_bytes,
                                    size_t key_at, uint64_t value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *item = (const char *)items + middle * item_bytes;
        if (*(const uint64_t *)(const void *)(item + key_at) <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts them in rising order. */
AR_API void ar_array_sort(uint64_t *values, size_t count);

AR_END_DECLS

#endif
