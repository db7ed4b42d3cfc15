/* Ranges of addresses in a pool of nodes, and balanced trees over them: by address, to find the
 * lowest that is large enough, or by size and then address, to find the smallest. Nodes are
 * named by index, 48 bytes each; index 0 is no node. A tree is its root's index, 0 when empty. */
#ifndef ALLOCATORS_BASE_RANGE_TREE_H
#define ALLOCATORS_BASE_RANGE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/api.h"
#include "allocators/base/host.h"

AR_BEGIN_DECLS

struct ar_range_node {
    uint64_t address, bytes;
    uint64_t most_bytes; /* the tree's: the largest range at or below this node */
    uint64_t extra;      /* the owner's */
    uint32_t left, right;
    uint32_t previous, next; /* the owner's, for a list */
};

struct ar_range_pool {
    struct ar_host *host;
    struct ar_range_node *nodes;
    uint32_t made, room; /* nodes that were ever taken, 0 among them; that fit */
    uint32_t spare;      /* the first of those given back, linked by `next` */
    uint32_t spare_count;
};

enum ar_range_order {
    AR_RANGE_BY_ADDRESS,
    AR_RANGE_BY_SIZE, /* and by address among equals */
};

/* The pool takes its memory from `host` and keeps it until it is closed. */
AR_API void ar_range_pool_open(struct ar_range_pool *pool, struct ar_host *host);
AR_API void ar_range_pool_close(struct ar_range_pool *pool);

/* Makes sure that `count` nodes can be taken. False: no host memory; nothing changed. */
AR_API bool ar_range_pool_reserve(struct ar_range_pool *pool, uint32_t count);

/* A zeroed node; only after a reserve that covers it. Pointers into the pool stay valid until
 * the next reserve. */
AR_API uint32_t ar_range_pool_take(struct ar_range_pool *pool);
AR_API void ar_range_pool_give(struct ar_range_pool *pool, uint32_t node);

/* Address and size of a node in a tree change through ar_range_tree_change only. O(log n) expected,
 * all of them. */
AR_API void ar_range_tree_insert(struct ar_range_pool *pool, uint32_t *root,
                                 enum ar_range_order order, uint32_t node);
AR_API void ar_range_tree_remove(struct ar_range_pool *pool, uint32_t *root,
                                 enum ar_range_order order, uint32_t node);

/* Gives a node in a tree by address another place, between the same neighbours, and size. */
AR_API void ar_range_tree_change(struct ar_range_pool *pool, uint32_t root, uint32_t node,
                                 uint64_t address, uint64_t bytes);

/* By address: takes all ranges that start in [low, high) out of the tree; what they are now is a
 * tree of its own, of which the root is returned. And the way back: `added` is a tree, or 0, whose
 * ranges all lie between two neighbours of the other one. */
AR_API uint32_t ar_range_tree_cut(struct ar_range_pool *pool, uint32_t *root, uint64_t low,
                                  uint64_t high);
AR_API void ar_range_tree_join(struct ar_range_pool *pool, uint32_t *root, uint32_t added);

/* By address: the lowest range at `address` or above with at least `bytes`; 0: none. */
AR_API uint32_t ar_range_tree_first(const struct ar_range_pool *pool, uint32_t root,
                                    uint64_t address, uint64_t bytes);

/* By address: the highest range that starts at `address` or below; 0: none. */
AR_API uint32_t ar_range_tree_last(const struct ar_range_pool *pool, uint32_t root,
                                   uint64_t address);

/* By size: the least range that is not below (bytes, address); 0: none. */
AR_API uint32_t ar_range_tree_best(const struct ar_range_pool *pool, uint32_t root, uint64_t bytes,
                                   uint64_t address);

/* Bytes of the largest range in the tree. O(1). */
AR_API uint64_t ar_range_tree_most(const struct ar_range_pool *pool, uint32_t root);

/* By address: bytes of the largest range that starts below `address`; 0: none. */
AR_API uint64_t ar_range_tree_most_below(const struct ar_range_pool *pool, uint32_t root,
                                         uint64_t address);

/* Visits in the tree's order; false from `visit` stops. */
typedef bool ar_range_visit(void *argument, const struct ar_range_node *node);
AR_API bool ar_range_tree_walk(const struct ar_range_pool *pool, uint32_t root,
                               ar_range_visit *visit, void *argument);

/* Checks order, balance and sizes below `root` and counts the nodes. False: broken. */
AR_API bool ar_range_tree_check(const struct ar_range_pool *pool, uint32_t root,
                                enum ar_range_order order, uint64_t *count);

AR_END_DECLS

#endif
