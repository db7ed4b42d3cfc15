#include "allocators/base/most_tree.h"

bool ar_most_tree_reserve(struct ar_most_tree *self, struct ar_host *host, uint32_t count)
{
    if (count <= self->room)
        return true;
    uint32_t room = self->room ? self->room : 1;
    while (room < count)
        room *= 2;
    struct ar_most_tree grown = {ar_host_alloc(host, 2 * (size_t)room * sizeof *grown.nodes), room};
    if (!grown.nodes)
        return false;
    for (uint32_t i = 0; i < self->room; i++)
        grown.nodes[room + i] = self->nodes[self->room + i];
    for (uint32_t i = room - 1; i; i--) {
        uint64_t left = grown.nodes[2 * i];
        uint64_t right = grown.nodes[2 * i + 1];
        grown.nodes[i] = left > right ? left : right;
    }
    ar_most_tree_close(self, host);
    *self = grown;
    return true;
}

void ar_most_tree_close(struct ar_most_tree *self, struct ar_host *host)
{
    ar_host_free(host, self->nodes, 2 * (size_t)self->room * sizeof *self->nodes);
    *self = (struct ar_most_tree){.nodes = NULL};
}

void ar_most_tree_set(struct ar_most_tree *self, uint32_t number, uint64_t amount)
{
    uint32_t node = self->room + number;
    while (self->nodes[node] != amount) {
        self->nodes[node] = amount;
        if (node == 1)
            return;
        uint64_t sibling = self->nodes[node ^ 1];
        amount = sibling > amount ? sibling : amount;
        node /= 2;
    }
}

uint32_t ar_most_tree_next(const struct ar_most_tree *self, uint32_t from, uint64_t least)
{
    if (from >= self->room || self->nodes[1] < least)
        return AR_MOST_TREE_NONE;
    uint32_t node = self->room + from;
    while (self->nodes[node] < least) {
        while (node & 1) /* the parent has no more children after it */
            node /= 2;
        if (!node) /* the root was reached along the right edge */
            return AR_MOST_TREE_NONE;
        node++;
    }
    while (node < self->room) {
        node *= 2;
        if (self->nodes[node] < least)
            node++;
    }
    return node - self->room;
}

/* ---- the longest run ---- */

bool ar_run_tree_open(struct ar_run_tree *self, struct ar_host *host, uint32_t count)
{
    uint32_t room = 2;
    while (room < count)
        room *= 2;
    *self = (struct ar_run_tree){ar_host_alloc(host, 2 * (size_t)room * sizeof *self->nodes), room};
    if (!self->nodes)
        self->room = 0;
    return self->nodes != NULL;
}

void ar_run_tree_close(struct ar_run_tree *self, struct ar_host *host)
{
    ar_host_free(host, self->nodes, 2 * (size_t)self->room * sizeof *self->nodes);
    *self = (struct ar_run_tree){.nodes = NULL};
}

static struct ar_run_node joined(const struct ar_run_node *a, const struct ar_run_node *b)
{
    uint64_t across = a->last + b->first;
    struct ar_run_node both = {
        .first = a->cut ? a->first : across,
        .last = b->cut ? b->last : across,
        .most = a->most > b->most ? a->most : b->most,
        .cut = a->cut || b->cut,
    };
    if (across > both.most)
        both.most = across;
    return both;
}

static void set(struct ar_run_tree *self, uint32_t number, struct ar_run_node leaf)
{
    uint32_t node = self->room + number;
    self->nodes[node] = leaf;
    while (node /= 2)
        self->nodes[node] = joined(&self->nodes[2 * node], &self->nodes[2 * node + 1]);
}

void ar_run_tree_free(struct ar_run_tree *self, uint32_t number, uint64_t bytes)
{
    set(self, number, (struct ar_run_node){.first = bytes, .last = bytes, .most = bytes});
}

void ar_run_tree_use(struct ar_run_tree *self, uint32_t number)
{
    set(self, number, (struct ar_run_node){.cut = true});
}
