/* Few: merge sort from the bottom up, runs of doubling length, from one array into the other.
 * Many: digit by digit from the lowest, passing over digits that are the same in all keys. */
#include "allocators/planning/keyed.h"

#define MANY       256
#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

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

static void sort_digit(const struct keyed *keys, struct keyed *out, size_t count, unsigned shift)
{
    size_t begin[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        begin[keys[i].key >> shift & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t of_digit = begin[digit];
        begin[digit] = sum;
        sum += of_digit;
    }
    for (size_t i = 0; i < count; i++)
        out[begin[keys[i].key >> shift & (DIGITS - 1)]++] = keys[i];
}

static struct keyed *sort_many(struct keyed *keys, struct keyed *spare, size_t count)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < count; i++)
        differ |= keys[i].key ^ keys[0].key;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(differ >> shift & (DIGITS - 1)))
            continue;
        sort_digit(keys, spare, count, shift);
        struct keyed *sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

struct keyed *keyed_sort(struct keyed *keys, struct keyed *spare, size_t count)
{
    if (count >= MANY)
        return sort_many(keys, spare, count);
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
