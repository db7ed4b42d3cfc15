/* Ranges of numbers that do not overlap, in order of their start: segments, mappings, uses.
 *
 * A treap: a search tree by start, and a heap by a rank that is a hash of the start, so the
 * shape depends on the contents only and every step takes O(log n) on average (Seidel and
 * Aragon, "Randomized search trees", 1996). Nodes are part of the caller's own structs, as
 * their first member, and stay the caller's. */
#ifndef SIM_DEVICE_MEMORY_RANGES_H
#define SIM_DEVICE_MEMORY_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t start, end; /* half-open, start < end */
    uint64_t rank;
    struct range *left, *right;
};

struct ranges {
    struct range *root;
    size_t count;
};

/* Puts a range in that overlaps none of those there. */
void ranges_insert(struct ranges *self, struct range *range);
/* Takes a range out that is in. */
void ranges_remove(struct ranges *self, struct range *range);

/* The lowest range that ends above `address`, or NULL. */
struct range *ranges_from(const struct ranges *self, uint64_t address);
/* The range that holds `address`, or NULL. */
struct range *ranges_find(const struct ranges *self, uint64_t address);
bool ranges_overlap(const struct ranges *self, uint64_t start, uint64_t end);

#endif
