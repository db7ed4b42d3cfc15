/* Arrays that grow by doubling, in memory of the C library, and searches in sorted arrays. (The
 * arrays of policies come from base/host.h, where they are measured.) */
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

/* Makes room for one more item in an array of `count` items with room for `*room`. Returns the same
 * array, or a larger one in its place and writes its room. NULL: no host memory, and the old array
 * is unchanged. At first `items` is NULL and `*room` 0. The caller frees the last array. */
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
 * members. `item` must not use `count`. False: no host memory, and nothing changed. */
#define AR_ARRAY_ADD(items, count, room, item)                                                     \
    (ar_array_make_room(&(items), (count), &(room), sizeof *(items)) &&                            \
     ((items)[(count)++] = (item), true))

/* The same as a status, for AR_TRY or return. The rest says what had no memory (ar_no_memory). */
#define AR_APPEND(items, count, room, item, error, ...)                                            \
    (AR_ARRAY_ADD(items, count, room, item) ? AR_OK : ar_no_memory(error, __VA_ARGS__))

/* Inserts an item before item `at` of an array that has room for it; removes item `at`. */
#define AR_ARRAY_INSERT(items, count, at, ...)                                                     \
    (memmove((items) + (at) + 1, (items) + (at), ((count) - (at)) * sizeof *(items)),              \
     (void)((items)[at] = __VA_ARGS__), (void)(count)++)
#define AR_ARRAY_REMOVE(items, count, at)                                                          \
    ((count)--,                                                                                    \
     (void)memmove((items) + (at), (items) + (at) + 1, ((count) - (at)) * sizeof *(items)))

/* An array of `*count` items, enlarged with zeros so that it has item `index`. NULL: no host
 * memory, and the old one stays as it is. */
AR_API void *ar_array_reach(void *items, size_t *count, size_t index, size_t item_bytes);

/* The same for the array that the pointer at `array` points to. False: no host memory. */
static inline bool ar_array_has(void *array, size_t *count, size_t index, size_t item_bytes)
{
    if (index < *count)
        return true;
    void *items;
    memcpy(&items, array, sizeof items);
    items = ar_array_reach(items, count, index, item_bytes);
    if (items)
        memcpy(array, &items, sizeof items);
    return items != NULL;
}

/* The same, of which `items` and `count` are variables or members. */
#define AR_ARRAY_REACH(items, count, index)                                                        \
    ar_array_has(&(items), &(count), (index), sizeof *(items))

/* For items sorted by a uint64_t that lies `key_at` bytes after the start of each: the index of the
 * first item with a key of at least `value`; `count` if there is none. */
static inline size_t ar_array_from(const void *items, size_t count, size_t item_bytes,
                                   size_t key_at, uint64_t value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *item = (const char *)items + middle * item_bytes;
        if (*(const uint64_t *)(const void *)(item + key_at) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same for the first item with a key above `value`. */
static inline size_t ar_array_above(const void *items, size_t count, size_t item_bytes,
                                    size_t key_at, uint64_t value)
{
    return value == UINT64_MAX ? count : ar_array_from(items, count, item_bytes, key_at, value + 1);
}

/* For a comparison function of qsort: returns from it if `a` and `b` differ, the smaller first. */
#define AR_ORDER(a, b)                                                                             \
    do {                                                                                           \
        if ((a) != (b))                                                                            \
            return (a) < (b) ? -1 : 1;                                                             \
    } while (0)

/* Sorts in ascending order. */
AR_API void ar_array_sort(uint64_t *values, size_t count);

/* The same for items with a uint64_t `key_at` bytes after the start of each. */
void ar_array_sort_by(void *items, size_t count, size_t item_bytes, size_t key_at);
#define AR_ARRAY_SORT(items, count, member)                                                        \
    ar_array_sort_by((items), (count), sizeof *(items), offsetof(__typeof__(*(items)), member))

AR_END_DECLS

#endif
