/* A treap (Seidel and Aragon, "Randomized search trees", Algorithmica 1996): a search tree by key
 * that is a heap by priority. The priority is a hash of the index of the node instead of a random
 * number, so the same calls give the same tree, and it needs no memory. Each node holds the largest
 * range of its subtree, so the search for the lowest range that is large enough is one descent.
 *
 * 1. Insert descends to the first node of lower priority, splits that subtree by the new key, and
 *    hangs the two halves below the new node.
 * 2. Remove replaces the node with its merged children.
 * 3. Cut and join split at the ends of a run of keys and merge the trees on both sides.
 * 4. All update the largest sizes on their way and stop when nothing changes. Nodes whose largest
 *    range is another one than that which goes or shrinks are only passed. */
#include "allocators/base/range_tree.h"

#include <assert.h>

void ar_range_pool_open(struct ar_range_pool *pool, struct ar_host *host)
{
    *pool = (struct ar_range_pool){.host = host, .made = 1};
}

void ar_range_pool_close(struct ar_range_pool *pool)
{
    ar_host_free(pool->host, pool->nodes, (size_t)pool->room * sizeof *pool->nodes);
    *pool = (struct ar_range_pool){.host = pool->host, .made = 1};
}

bool ar_range_pool_reserve(struct ar_range_pool *pool, uint32_t count)
{
    if (pool->nodes && pool->spare_count + (pool->room - pool->made) >= count)
        return true;
    uint64_t room = (uint64_t)pool->room + pool->room / 4 + count + 15;
    if (room > UINT32_MAX)
        return false;
    struct ar_range_node *nodes =
        ar_host_grow(pool->host, pool->nodes, pool->room, (size_t)room, sizeof *nodes);
    if (!nodes)
        return false;
    pool->nodes = nodes;
    pool->room = (uint32_t)room;
    return true;
}

uint32_t ar_range_pool_take(struct ar_range_pool *pool)
{
    uint32_t node = pool->spare;
    if (!node) {
        assert(pool->made < pool->room && "ar_range_pool_reserve was called for fewer nodes");
        return pool->made++;
    }
    pool->spare = pool->nodes[node].next;
    pool->spare_count--;
    pool->nodes[node] = (struct ar_range_node){0};
    return node;
}

void ar_range_pool_give(struct ar_range_pool *pool, uint32_t node)
{
    pool->nodes[node].next = pool->spare;
    pool->spare = node;
    pool->spare_count++;
}

/* The finisher of MurmurHash3: one to one, so no two nodes have the same priority. */
static uint32_t priority(uint32_t node)
{
    node ^= node >> 16;
    node *= UINT32_C(0x85ebca6b);
    node ^= node >> 13;
    node *= UINT32_C(0xc2b2ae35);
    return node ^ (node >> 16);
}

static bool before(const struct ar_range_node *a, const struct ar_range_node *b,
                   enum ar_range_order order)
{
    if (order == AR_RANGE_BY_SIZE && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->address < b->address;
}

/* The largest size of node 0, of an empty subtree, is 0. */
static inline void mend(struct ar_range_node *nodes, uint32_t node)
{
    struct ar_range_node *n = &nodes[node];
    n->most_bytes =
        ar_most(n->bytes, ar_most(nodes[n->left].most_bytes, nodes[n->right].most_bytes));
}

/* Divides the tree below `node` into the nodes before `key` and the rest. */
static void split(struct ar_range_node *nodes, uint32_t node, const struct ar_range_node *key,
                  enum ar_range_order order, uint32_t *low, uint32_t *high)
{
    if (!node) {
        *low = *high = 0;
    } else if (before(&nodes[node], key, order)) {
        split(nodes, nodes[node].right, key, order, &nodes[node].right, high);
        *low = node;
        mend(nodes, node);
    } else {
        split(nodes, nodes[node].left, key, order, low, &nodes[node].left);
        *high = node;
        mend(nodes, node);
    }
}

static uint32_t merge(struct ar_range_node *nodes, uint32_t low, uint32_t high)
{
    if (!low || !high)
        return low ? low : high;
    if (priority(low) > priority(high)) {
        nodes[low].right = merge(nodes, nodes[low].right, high);
        mend(nodes, low);
        return low;
    }
    nodes[high].left = merge(nodes, low, nodes[high].left);
    mend(nodes, high);
    return high;
}

void ar_range_tree_insert(struct ar_range_pool *pool, uint32_t *root, enum ar_range_order order,
                          uint32_t node)
{
    struct ar_range_node *nodes = pool->nodes;
    struct ar_range_node *added = &nodes[node];
    uint32_t rank = priority(node);
    uint32_t *at = root;
    while (*at && priority(*at) > rank) {
        struct ar_range_node *n = &nodes[*at];
        if (n->most_bytes < added->bytes)
            n->most_bytes = added->bytes;
        at = before(n, added, order) ? &n->right : &n->left;
    }
    if (*at) {
        split(nodes, *at, added, order, &added->left, &added->right);
        mend(nodes, node);
    } else {
        added->left = added->right = 0;
        added->most_bytes = added->bytes;
    }
    *at = node;
}

/* Removes `node` from the tree at `at`. True: the largest size there may have changed. If another
 * range is the largest, this size does not change. */
static bool without(struct ar_range_node *nodes, uint32_t *at, enum ar_range_order order,
                    uint32_t node)
{
    if (*at == node) {
        *at = merge(nodes, nodes[node].left, nodes[node].right);
        return true;
    }
    struct ar_range_node *n = &nodes[*at];
    bool right = before(n, &nodes[node], order);
    if (!without(nodes, right ? &n->right : &n->left, order, node))
        return false;
    mend(nodes, *at);
    return n->most_bytes != nodes[node].bytes;
}

/* The link to the first node on the way to `node`, or to itself, whose largest size is
 * `most_bytes`, the size of `node`. Those above it have a larger one, of another range. */
static inline uint32_t *first_with(struct ar_range_node *nodes, uint32_t *at,
                                   enum ar_range_order order, uint32_t node, uint64_t most_bytes)
{
    while (*at != node && nodes[*at].most_bytes != most_bytes) {
        struct ar_range_node *n = &nodes[*at];
        at = before(n, &nodes[node], order) ? &n->right : &n->left;
    }
    return at;
}

void ar_range_tree_remove(struct ar_range_pool *pool, uint32_t *root, enum ar_range_order order,
                          uint32_t node)
{
    struct ar_range_node *nodes = pool->nodes;
    uint32_t *at = first_with(nodes, root, order, node, nodes[node].bytes);
    without(nodes, at, order, node);
}

/* Updates the sizes from `node` up to `at`. True: the largest size at `at` has changed. */
static bool mend_up(struct ar_range_node *nodes, uint32_t at, uint32_t node)
{
    if (at != node) {
        bool right = nodes[at].address < nodes[node].address;
        if (!mend_up(nodes, right ? nodes[at].right : nodes[at].left, node))
            return false;
    }
    uint64_t was = nodes[at].most_bytes;
    mend(nodes, at);
    return was != nodes[at].most_bytes;
}

void ar_range_tree_change(struct ar_range_pool *pool, uint32_t root, uint32_t node,
                          uint64_t address, uint64_t bytes)
{
    struct ar_range_node *nodes = pool->nodes, *changed = &nodes[node];
    uint64_t was_bytes = changed->bytes;
    changed->address = address;
    changed->bytes = bytes;
    if (bytes < was_bytes) {
        mend_up(nodes, *first_with(nodes, &root, AR_RANGE_BY_ADDRESS, node, was_bytes), node);
        return;
    }
    for (uint32_t at = root; at != node;) {
        struct ar_range_node *n = &nodes[at];
        n->most_bytes = ar_most(n->most_bytes, bytes);
        at = n->address < address ? n->right : n->left;
    }
    mend(nodes, node);
}

uint32_t ar_range_tree_cut(struct ar_range_pool *pool, uint32_t *root, uint64_t low, uint64_t high)
{
    struct ar_range_node *nodes = pool->nodes;
    const struct ar_range_node from = {.address = low};
    const struct ar_range_node to = {.address = high};
    uint32_t below;
    uint32_t inside;
    uint32_t above;
    split(nodes, *root, &from, AR_RANGE_BY_ADDRESS, &below, &above);
    split(nodes, above, &to, AR_RANGE_BY_ADDRESS, &inside, &above);
    *root = merge(nodes, below, above);
    return inside;
}

void ar_range_tree_join(struct ar_range_pool *pool, uint32_t *root, uint32_t added)
{
    struct ar_range_node *nodes = pool->nodes;
    uint32_t below;
    uint32_t above;
    if (!added)
        return;
    split(nodes, *root, &nodes[added], AR_RANGE_BY_ADDRESS, &below, &above);
    *root = merge(nodes, merge(nodes, below, added), above);
}

uint32_t ar_range_tree_first(const struct ar_range_pool *pool, uint32_t root, uint64_t address,
                             uint64_t bytes)
{
    const struct ar_range_node *nodes = pool->nodes;
    uint32_t above = 0; /* this node or one on its right is the lowest so far */
    while (root && nodes[root].most_bytes >= bytes) {
        const struct ar_range_node *n = &nodes[root];
        if (n->address < address) {
            root = n->right;
            continue;
        }
        if (n->bytes >= bytes || nodes[n->right].most_bytes >= bytes)
            above = root;
        root = n->left;
    }
    /* All on the right of `above` are at `address` or above. */
    root = above;
    while (root && nodes[root].bytes < bytes) {
        root = nodes[root].right;
        while (nodes[nodes[root].left].most_bytes >= bytes)
            root = nodes[root].left;
    }
    return root;
}

uint32_t ar_range_tree_last(const struct ar_range_pool *pool, uint32_t root, uint64_t address)
{
    uint32_t found = 0;
    while (root) {
        if (pool->nodes[root].address > address) {
            root = pool->nodes[root].left;
        } else {
            found = root;
            root = pool->nodes[root].right;
        }
    }
    return found;
}

uint32_t ar_range_tree_best(const struct ar_range_pool *pool, uint32_t root, uint64_t bytes,
                            uint64_t address)
{
    const struct ar_range_node *nodes = pool->nodes;
    const struct ar_range_node key = {.address = address, .bytes = bytes};
    uint32_t found = 0;
    while (root) {
        if (before(&nodes[root], &key, AR_RANGE_BY_SIZE)) {
            root = nodes[root].right;
        } else {
            found = root;
            root = nodes[root].left;
        }
    }
    return found;
}

uint64_t ar_range_tree_most(const struct ar_range_pool *pool, uint32_t root)
{
    return root ? pool->nodes[root].most_bytes : 0;
}

uint64_t ar_range_tree_most_below(const struct ar_range_pool *pool, uint32_t root, uint64_t address)
{
    uint64_t most = 0;
    while (root) {
        const struct ar_range_node *n = &pool->nodes[root];
        if (n->address >= address) {
            root = n->left;
            continue;
        }
        uint64_t left = ar_range_tree_most(pool, n->left);
        most = left > most ? left : most;
        most = n->bytes > most ? n->bytes : most;
        root = n->right;
    }
    return most;
}

uint32_t ar_range_tree_next(const struct ar_range_pool *pool, uint32_t root, uint32_t node)
{
    const struct ar_range_node *nodes = pool->nodes;
    uint32_t found = 0;
    while (root) {
        bool later = !node || nodes[root].address > nodes[node].address;
        found = later ? root : found;
        root = later ? nodes[root].left : nodes[root].right;
    }
    return found;
}

bool ar_range_tree_walk(const struct ar_range_pool *pool, uint32_t root, ar_range_visit *visit,
                        void *argument)
{
    return !root || (ar_range_tree_walk(pool, pool->nodes[root].left, visit, argument) &&
                     visit(argument, &pool->nodes[root]) &&
                     ar_range_tree_walk(pool, pool->nodes[root].right, visit, argument));
}

bool ar_range_tree_check(const struct ar_range_pool *pool, uint32_t root, enum ar_range_order order,
                         uint64_t *count)
{
    *count = 0;
    if (!root)
        return true;
    const struct ar_range_node *nodes = pool->nodes;
    const struct ar_range_node *n = &nodes[root];
    uint64_t most = n->bytes;
    uint64_t below = 0;
    const uint32_t children[] = {n->left, n->right};
    for (int side = 0; side < 2; side++) {
        uint32_t child = children[side];
        if (!ar_range_tree_check(pool, child, order, &below))
            return false;
        *count += below;
        if (!child)
            continue;
        /* It suffices to compare a node with the nearest ends of its two subtrees. */
        uint32_t end = child;
        while (side == 0 ? nodes[end].right : nodes[end].left)
            end = side == 0 ? nodes[end].right : nodes[end].left;
        if (priority(child) > priority(root) || before(&nodes[end], n, order) != (side == 0) ||
            (side == 1 && !before(n, &nodes[end], order)))
            return false;
        if (nodes[child].most_bytes > most)
            most = nodes[child].most_bytes;
    }
    *count += 1;
    return most == n->most_bytes;
}
