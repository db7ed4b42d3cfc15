/* Merge sort from the bottom up: runs of doubling length, from one array into the other. */
#include "allocators/planning/keyed.h"

#define RUN 8 /* sorted by insertion */

static void sort_run(struct keyed *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct keyed moved = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1].key > moved.key; at--)
            keys[at] = keys[at - 1];
        keys[at] = moved;
    }
}

static void merge(const struct keyed *keys, struct keyed *out, size_t middle, size_t count)
{
    size_t a = 0, b = middle;
    for (size_t to = 0; to < count; to++)
        out[to] = a < middle && (b >= count || keys[a].key <= keys[b].key) ? keys[a++] : keys[b++];
}

struct keyed *keyed_sort(struct keyed *keys, struct keyed *spare, size_t count)
{
    for (size_t low = 0; low < count; low += RUN)
        sort_run(keys + low, count - low < RUN ? count - low : RUN);
    for (size_t width = RUN; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t left = count - low < 2 * width ? count - low : 2 * width;
            merge(keys + low, spare + low, left < width ? left : width, left);
        }
        struct keyed *sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}
