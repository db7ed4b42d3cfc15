/* The maximum of many numbered amounts, and the next number that has enough, without a look at
 * each: a complete binary tree in which a node holds the maximum of its two children (the winner
 * tree of tournament sorts; Knuth, "The Art of Computer Programming" 3, 5.4.1). An amount that was
 * never set is 0. */
#ifndef ALLOCATORS_BASE_MOST_TREE_H
#define ALLOCATORS_BASE_MOST_TREE_H

#include "allocators/base/host.h"

AR_BEGIN_DECLS

#define AR_MOST_TREE_NONE UINT32_MAX

/* A zeroed struct is an empty tree without memory. */
struct ar_most_tree {
    uint64_t *nodes; /* 1 is the root, 2 i and 2 i + 1 are the children of i */
    uint32_t room;   /* leaves, a power of two; 0: none */
};

/* Makes room for numbers below `count`, at most 2^30. False: no host memory, nothing has
 * changed. */
AR_API bool ar_most_tree_reserve(struct ar_most_tree *self, struct ar_host *host, uint32_t count);
/* Frees the memory. The tree is empty. */
AR_API void ar_most_tree_close(struct ar_most_tree *self, struct ar_host *host);

/* `number` is below the room. O(log n); less if the maxima on the way stay the same. */
AR_API void ar_most_tree_set(struct ar_most_tree *self, uint32_t number, uint64_t amount);

/* The maximum of all. O(1). */
static inline uint64_t ar_most_tree_top(const struct ar_most_tree *self)
{
    return self->room ? self->nodes[1] : 0;
}

/* The first number from `from` on with an amount of at least `least`, which is above 0; NONE. O(log
 * n). */
AR_API uint32_t ar_most_tree_next(const struct ar_most_tree *self, uint32_t from, uint64_t least);

/* The longest run of neighbours that are free, of numbered ranges in a row: a complete binary tree
 * in which a node holds the free bytes at both of its ends and the longest run inside. A number
 * that was never set is no range, and its neighbours touch each other. */

struct ar_run_node {
    uint64_t first, last, most; /* bytes of the runs at both ends, and of the longest */
    bool cut; /* some range in it is used; else `first` and `last` are all of it */
};

/* A zeroed struct is an empty tree without memory. */
struct ar_run_tree {
    struct ar_run_node *nodes; /* 1 is the root, 2 i and 2 i + 1 are the children of i */
    uint32_t room;             /* leaves, a power of two; 0: none */
};

/* Makes an empty tree for numbers below `count`, at most 2^30. False: no host memory. */
AR_API bool ar_run_tree_open(struct ar_run_tree *self, struct ar_host *host, uint32_t count);
/* Frees the memory. */
AR_API void ar_run_tree_close(struct ar_run_tree *self, struct ar_host *host);

/* The range of that number is free and has so many bytes; 0: there is no such range. `number` is
 * below the room. O(log n). */
AR_API void ar_run_tree_free(struct ar_run_tree *self, uint32_t number, uint64_t bytes);
/* It is used. */
AR_API void ar_run_tree_use(struct ar_run_tree *self, uint32_t number);

/* The bytes of the longest run. O(1). */
static inline uint64_t ar_run_tree_most(const struct ar_run_tree *self)
{
    return self->nodes[1].most;
}

AR_END_DECLS

#endif
