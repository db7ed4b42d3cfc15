/* Which of many numbered things has the most, and which comes next that has enough, without looking
 * at each: a complete binary tree over them in which a node has the higher of its two children
 * (the winner tree of tournament sorts; Knuth, The Art of Computer Programming, vol. 3, 5.4.1).
 * Things that were never set have 0. */
#ifndef ALLOCATORS_BASE_MOST_TREE_H
#define ALLOCATORS_BASE_MOST_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/api.h"
#include "allocators/base/host.h"

AR_BEGIN_DECLS

#define AR_MOST_TREE_NONE UINT32_MAX

/* Zeroed: empty, and without memory. */
struct ar_most_tree {
    uint64_t *nodes; /* 1 is the root, 2 i and 2 i + 1 are the children of i */
    uint32_t room;   /* leaves, a power of two; 0: none */
};

/* Makes room for numbers below `count`, at most 2^30. False: no host memory; nothing changed. */
AR_API bool ar_most_tree_reserve(struct ar_most_tree *self, struct ar_host *host, uint32_t count);
/* Gives the memory back; it is empty then. */
AR_API void ar_most_tree_close(struct ar_most_tree *self, struct ar_host *host);

/* `number` is below the room. O(log n), and less where the most of many stays. */
AR_API void ar_most_tree_set(struct ar_most_tree *self, uint32_t number, uint64_t amount);

/* The most that any has. O(1). */
static inline uint64_t ar_most_tree_top(const struct ar_most_tree *self)
{
    return self->room ? self->nodes[1] : 0;
}

/* The first number at `from` or after that has at least `least`, which is above 0; NONE. O(log n). */
AR_API uint32_t ar_most_tree_next(const struct ar_most_tree *self, uint32_t from, uint64_t least);

AR_END_DECLS

#endif
