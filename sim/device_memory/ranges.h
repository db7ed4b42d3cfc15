/* Ranges of numbers that do not overlap, in order of their start: segments, mappings, uses.
 *
 * A treap: a search tree by start, and a heap by a rank, which is a hash of the start. So its shape
 * depends on the contents only, and every step takes O(log n) on average (Seidel and Aragon,
 * "Randomized search trees", 1996). Nodes are the first members of the caller's structs, and the
 * caller owns them. */
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

/* Adds a range that overlaps no other. */
void ranges_insert(struct ranges *self, struct range *range);
/* Removes a range of the tree. */
void ranges_remove(struct ranges *self, struct range *range);

/* The lowest range that ends above `address`, or NULL. */
struct range *ranges_from(const struct ranges *self, uint64_t address);
/* The range that contains `address`, or NULL. */
struct range *ranges_find(const struct ranges *self, uint64_t address);
bool ranges_overlap(const struct ranges *self, uint64_t start, uint64_t end);

#endif
