#include "allocators/base/run_tree.h"

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
