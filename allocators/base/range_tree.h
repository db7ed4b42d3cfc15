/* Ranges of addresses in a pool of nodes, and balanced trees over them. A tree by address finds the
 * lowest range that is large enough; a tree by size and then address finds the smallest. Nodes have
 * 48 bytes and are referred to by index. Index 0 is not a node. A tree is the index of its root, 0
 * if it is empty. */
#ifndef ALLOCATORS_BASE_RANGE_TREE_H
#define ALLOCATORS_BASE_RANGE_TREE_H

#include "allocators/base/host.h"

AR_BEGIN_DECLS

struct ar_range_node {
    uint64_t address, bytes;
    uint64_t most_bytes;     /* for the tree: the largest range of this subtree */
    uint64_t extra;          /* for the owner */
    uint32_t left, right;    /* for the tree; for the owner while the node is in none */
    uint32_t previous, next; /* for a list of the owner */
};

struct ar_range_pool {
    struct ar_host *host;
    struct ar_range_node *nodes;
    uint32_t made, room; /* nodes that were ever taken, with 0; that fit */
    uint32_t spare;      /* the first node that was returned, linked by `next` */
    uint32_t spare_count;
};

enum ar_range_order {
    AR_RANGE_BY_ADDRESS,
    AR_RANGE_BY_SIZE, /* and by address among equals */
};

/* The pool takes its memory from `host` and frees it when it is closed. */
AR_API void ar_range_pool_open(struct ar_range_pool *pool, struct ar_host *host);
AR_API void ar_range_pool_close(struct ar_range_pool *pool);

/* Makes sure that `count` nodes can be taken. False: no host memory, nothing has changed. */
AR_API bool ar_range_pool_reserve(struct ar_range_pool *pool, uint32_t count);

/* A zeroed node, after a reserve that covers it; without one the process ends with a sentence.
 * Pointers into the pool are valid until the next reserve. */
AR_API uint32_t ar_range_pool_take(struct ar_range_pool *pool);
AR_API void ar_range_pool_give(struct ar_range_pool *pool, uint32_t node);

/* Only ar_range_tree_change may change the address or size of a node in a tree. `left`, `right` and
 * `most_bytes` belong to the tree while a node is in one, and to the owner while it is in none: for
 * example as a mark (policies/fit.c). Insert sets all three. `extra`, `previous` and `next` always
 * belong to the owner. All functions take O(log n) expected time. */
AR_API void ar_range_tree_insert(struct ar_range_pool *pool, uint32_t *root,
                                 enum ar_range_order order, uint32_t node);
AR_API void ar_range_tree_remove(struct ar_range_pool *pool, uint32_t *root,
                                 enum ar_range_order order, uint32_t node);

/* Changes address and size of a node in a tree by address. It stays between the same neighbours. */
AR_API void ar_range_tree_change(struct ar_range_pool *pool, uint32_t root, uint32_t node,
                                 uint64_t address, uint64_t bytes);

/* By address: removes all ranges that start in [low, high) and returns the root of a tree of them.
 * Join is the opposite: all ranges of the tree `added`, which may be empty, lie between two
 * neighbours of the other tree. */
AR_API uint32_t ar_range_tree_cut(struct ar_range_pool *pool, uint32_t *root, uint64_t low,
                                  uint64_t high);
AR_API void ar_range_tree_join(struct ar_range_pool *pool, uint32_t *root, uint32_t added);

/* By address: the lowest range at `address` or above with at least `bytes`; 0: none. */
AR_API uint32_t ar_range_tree_first(const struct ar_range_pool *pool, uint32_t root,
                                    uint64_t address, uint64_t bytes);

/* By address: the highest range that starts at `address` or below; 0: none. */
AR_API uint32_t ar_range_tree_last(const struct ar_range_pool *pool, uint32_t root,
                                   uint64_t address);

/* By size: the first range at or after (bytes, address); 0: none. */
AR_API uint32_t ar_range_tree_best(const struct ar_range_pool *pool, uint32_t root, uint64_t bytes,
                                   uint64_t address);

/* Bytes of the largest range; 0: the tree is empty. O(1). */
AR_API uint64_t ar_range_tree_most(const struct ar_range_pool *pool, uint32_t root);

/* By address: bytes of the largest range that starts below `address`; 0: none. */
AR_API uint64_t ar_range_tree_most_below(const struct ar_range_pool *pool, uint32_t root,
                                         uint64_t address);

/* By address: the range after `node`, or the first range if `node` is 0; 0: no more. */
AR_API uint32_t ar_range_tree_next(const struct ar_range_pool *pool, uint32_t root, uint32_t node);

/* Visits all nodes in the order of the tree. `visit` returns false to stop. */
typedef bool ar_range_visit(void *argument, const struct ar_range_node *node);
AR_API bool ar_range_tree_walk(const struct ar_range_pool *pool, uint32_t root,
                               ar_range_visit *visit, void *argument);

/* Checks order, balance and sizes, and counts the nodes. False: the tree is broken. */
AR_API bool ar_range_tree_check(const struct ar_range_pool *pool, uint32_t root,
                                enum ar_range_order order, uint64_t *count);

AR_END_DECLS

#endif
