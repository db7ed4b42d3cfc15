#include "sim/device_memory/ranges.h"

/* The finalizer of splitmix64: neighbouring starts get unrelated ranks. */
static uint64_t range_rank(uint64_t start)
{
    uint64_t mixed = start + UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* Splits a tree into the ranges that start below `start` and the rest. */
static void ranges_split(struct range *tree, uint64_t start, struct range **below,
                         struct range **rest)
{
    while (tree) {
        if (tree->start < start) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    }
    *below = NULL;
    *rest = NULL;
}

void ranges_insert(struct ranges *self, struct range *range)
{
    struct range **link = &self->root;
    range->rank = range_rank(range->start);
    while (*link && (*link)->rank >= range->rank)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    ranges_split(*link, range->start, &range->left, &range->right);
    *link = range;
    self->count++;
}

void ranges_remove(struct ranges *self, struct range *range)
{
    struct range **link = &self->root;
    while (*link != range)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    struct range *left = range->left;
    struct range *right = range->right;
    while (left && right) {
        if (left->rank >= right->rank) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left ? left : right;
    self->count--;
}

struct range *ranges_from(const struct ranges *self, uint64_t address)
{
    struct range *found = NULL;
    struct range *at = self->root;
    while (at) {
        if (at->end > address) {
            found = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    return found;
}

struct range *ranges_find(const struct ranges *self, uint64_t address)
{
    struct range *range = ranges_from(self, address);
    return range && range->start <= address ? range : NULL;
}

bool ranges_overlap(const struct ranges *self, uint64_t start, uint64_t end)
{
    const struct range *range = ranges_from(self, start);
    return range && range->start < end;
}
