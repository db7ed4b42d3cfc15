/* The longest run of neighbours that are free, of numbered ranges in a row: a complete binary tree
 * in which a node holds the free bytes at both of its ends and the longest run inside. A number
 * that was never set is no range, and its neighbours touch each other. */
#ifndef ALLOCATORS_BASE_RUN_TREE_H
#define ALLOCATORS_BASE_RUN_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/api.h"
#include "allocators/base/host.h"

AR_BEGIN_DECLS

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
