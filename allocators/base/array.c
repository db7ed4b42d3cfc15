#include "allocators/base/array.h"

#include <stdlib.h>

#define ITEMS_LEAST 16

void *ar_array_double(void *items, size_t *room, size_t item_bytes)
{
    size_t larger = *room ? 2 * *room : ITEMS_LEAST;
    if (larger > SIZE_MAX / 2 / item_bytes)
        return NULL;
    void *grown = realloc(items, larger * item_bytes);
    if (grown)
        *room = larger;
    return grown;
}

void *ar_array_reach(void *items, size_t *count, size_t index, size_t item_bytes)
{
    if (index < *count)
        return items;
    size_t larger = index + index / 2 + ITEMS_LEAST;
    char *grown = realloc(items, larger * item_bytes);
    if (!grown)
        return NULL;
    memset(grown + *count * item_bytes, 0, (larger - *count) * item_bytes);
    *count = larger;
    return grown;
}

static int by_key(const void *left, const void *right, void *key_at)
{
    uint64_t a = *(const uint64_t *)((const char *)left + *(const size_t *)key_at);
    uint64_t b = *(const uint64_t *)((const char *)right + *(const size_t *)key_at);
    return (a > b) - (a < b);
}

void ar_array_sort_by(void *items, size_t count, size_t item_bytes, size_t key_at)
{
    if (count)
        qsort_r(items, count, item_bytes, by_key, &key_at);
}

void ar_array_sort(uint64_t *values, size_t count)
{
    ar_array_sort_by(values, count, sizeof *values, 0);
}
