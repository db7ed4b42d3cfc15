#include "sim/sim_device/address_space.h"

#include <string.h>

#include "allocators/base/size.h"

#define TAKE_NODES 2 /* that a take adds; a give adds one, which the take makes room for */

static struct ar_range_node *at(const struct address_space *self, uint32_t node)
{
    return &self->pool.nodes[node];
}

static void add(struct address_space *self, uint32_t *root, uint64_t address, uint64_t bytes)
{
    if (!bytes)
        return;
    uint32_t node = ar_range_pool_take(&self->pool);
    at(self, node)->address = address;
    at(self, node)->bytes = bytes;
    ar_range_tree_insert(&self->pool, root, AR_RANGE_BY_ADDRESS, node);
}

static void drop(struct address_space *self, uint32_t *root, uint32_t node)
{
    ar_range_tree_remove(&self->pool, root, AR_RANGE_BY_ADDRESS, node);
    ar_range_pool_give(&self->pool, node);
}

/* Adds a free range within [low, high) and merges it with its neighbours there. Returns the
 * result. */
static struct ar_range_node merge(struct address_space *self, uint32_t *root, uint64_t address,
                                  uint64_t bytes, uint64_t low, uint64_t high)
{
    uint32_t before = ar_range_tree_last(&self->pool, *root, address);
    if (before && at(self, before)->address >= low &&
        at(self, before)->address + at(self, before)->bytes == address) {
        address = at(self, before)->address;
        bytes += at(self, before)->bytes;
        drop(self, root, before);
    }
    uint32_t after = ar_range_tree_first(&self->pool, *root, address + bytes, 1);
    if (after && at(self, after)->address == address + bytes && address + bytes < high) {
        bytes += at(self, after)->bytes;
        drop(self, root, after);
    }
    return (struct ar_range_node){.address = address, .bytes = bytes};
}

bool address_space_open(struct address_space *self, uint64_t top, uint64_t unit_bytes)
{
    memset(self, 0, sizeof *self);
    self->top = top;
    self->unit_bytes = unit_bytes;
    ar_range_pool_open(&self->pool, &self->host);
    if (!ar_range_pool_reserve(&self->pool, 1))
        return false;
    add(self, &self->gaps, 0, top - unit_bytes);
    return true;
}

void address_space_close(struct address_space *self)
{
    if (self->unit_bytes)
        ar_range_pool_close(&self->pool);
}

/* Takes the low end of a free range. */
static uint64_t cut(struct address_space *self, uint32_t *root, uint32_t node, uint64_t bytes)
{
    uint64_t address = at(self, node)->address;
    uint64_t left = at(self, node)->bytes - bytes;
    if (left)
        ar_range_tree_change(&self->pool, *root, node, address + bytes, left);
    else
        drop(self, root, node);
    return address;
}

bool address_space_take(struct address_space *self, uint64_t bytes, uint64_t *address)
{
    if (bytes >= self->top || self->taken >= UINT32_MAX / 2 ||
        !ar_range_pool_reserve(&self->pool, self->taken + 1 + TAKE_NODES))
        return false;
    uint32_t rest = ar_range_tree_first(&self->pool, self->rests, 0, bytes);
    if (rest) {
        *address = cut(self, &self->rests, rest, bytes);
        self->taken++;
        return true;
    }
    uint64_t range_bytes = ar_size_round_up(bytes, self->unit_bytes);
    uint32_t gap = ar_range_tree_first(&self->pool, self->gaps, 0, range_bytes);
    if (!gap)
        return false;
    *address = self->top - cut(self, &self->gaps, gap, range_bytes) - range_bytes;
    add(self, &self->ranges, *address, range_bytes);
    add(self, &self->rests, *address + bytes, range_bytes - bytes);
    self->taken++;
    return true;
}

void address_space_give(struct address_space *self, uint64_t address, uint64_t bytes)
{
    self->taken--;
    uint32_t range = ar_range_tree_last(&self->pool, self->ranges, address);
    uint64_t low = at(self, range)->address, range_bytes = at(self, range)->bytes;
    struct ar_range_node rest = merge(self, &self->rests, address, bytes, low, low + range_bytes);
    if (rest.bytes < range_bytes) {
        add(self, &self->rests, rest.address, rest.bytes);
        return;
    }
    drop(self, &self->ranges, range);
    struct ar_range_node gap =
        merge(self, &self->gaps, self->top - low - range_bytes, range_bytes, 0, self->top);
    add(self, &self->gaps, gap.address, gap.bytes);
}
