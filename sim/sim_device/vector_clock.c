#include "sim/sim_device/vector_clock.h"

#include <stdlib.h>

#define FAN_OUT_BITS 4u
#define FAN_OUT      (1u << FAN_OUT_BITS)

union entries {
    uint64_t sequences[FAN_OUT];        /* on level 1 */
    struct vector_node *below[FAN_OUT]; /* on higher ones; NULL: none is set there */
};

struct vector_node {
    uint32_t holders;
    bool learned; /* all at and below it */
    union entries is;
};

static struct vector_node *node_new(void)
{
    struct vector_node *made = calloc(1, sizeof *made);
    if (made)
        made->holders = 1;
    return made;
}

static struct vector_node *node_hold(struct vector_node *node)
{
    if (node)
        node->holders++;
    return node;
}

static void node_drop(struct vector_node *node, uint32_t height)
{
    if (!node || --node->holders)
        return;
    for (uint32_t i = 0; height > 1 && i < FAN_OUT; i++)
        node_drop(node->is.below[i], height - 1);
    free(node);
}

struct vector_clock vector_clock_copy(const struct vector_clock *self)
{
    (void)node_hold(self->root);
    return *self;
}

void vector_clock_drop(struct vector_clock *self)
{
    node_drop(self->root, self->height);
    *self = (struct vector_clock){.root = NULL};
}

/* Which child of a node on that level the stream is below. */
static uint32_t place_of(uint32_t stream, uint32_t height)
{
    return stream >> FAN_OUT_BITS * (height - 1) & (FAN_OUT - 1);
}

/* How high a tree must be to hold the stream. */
static uint32_t height_for(uint32_t stream)
{
    uint32_t height = 1;
    while (stream >>= FAN_OUT_BITS)
        height++;
    return height;
}

uint64_t vector_clock_at(const struct vector_clock *self, uint32_t stream)
{
    const struct vector_node *node = self->root;
    if (!node || (uint64_t)stream >> FAN_OUT_BITS * self->height)
        return 0;
    for (uint32_t height = self->height; node && height > 1; height--)
        node = node->is.below[place_of(stream, height)];
    return node ? node->is.sequences[place_of(stream, 1)] : 0;
}

/* Puts levels on top until there are `height`. */
static bool grow_to(struct vector_clock *self, uint32_t height)
{
    for (; self->height < height; self->height++) {
        if (!self->root)
            continue;
        struct vector_node *top = node_new();
        if (!top)
            return false;
        top->learned = self->root->learned;
        top->is.below[0] = self->root;
        self->root = top;
    }
    return true;
}

/* Makes the node that `link` names one that only this clock holds, provided that its parent is.
 * NULL: no memory. */
static struct vector_node *node_own(struct vector_node **link, uint32_t height)
{
    struct vector_node *node = *link;
    if (node && node->holders == 1)
        return node;
    struct vector_node *own = node_new();
    if (own && node) {
        own->is = node->is;
        for (uint32_t i = 0; height > 1 && i < FAN_OUT; i++)
            (void)node_hold(own->is.below[i]);
        own->learned = node->learned;
        node->holders--;
    }
    if (own)
        *link = own;
    return own;
}

bool vector_clock_raise(struct vector_clock *self, uint32_t stream, uint64_t sequence)
{
    if (vector_clock_at(self, stream) >= sequence)
        return true;
    if (!grow_to(self, height_for(stream)))
        return false;
    struct vector_node **link = &self->root;
    for (uint32_t height = self->height; height; height--) {
        struct vector_node *node = node_own(link, height);
        if (!node)
            return false; /* what was made says the same as before */
        node->learned = false;
        if (height > 1)
            link = &node->is.below[place_of(stream, height)];
        else
            node->is.sequences[place_of(stream, 1)] = sequence;
    }
    return true;
}

/* The higher of two nodes on one level, each of which may be NULL, for a new holder. Without
 * memory it clears `enough`, and what it returns is to be dropped. */
static struct vector_node *node_higher(struct vector_node *a, struct vector_node *b,
                                       uint32_t height, bool *enough)
{
    if (a == b || !b)
        return node_hold(a);
    if (!a)
        return node_hold(b);
    union entries higher;
    bool is_a = true;
    bool is_b = true;
    for (uint32_t i = 0; i < FAN_OUT; i++) {
        if (height > 1) {
            higher.below[i] = node_higher(a->is.below[i], b->is.below[i], height - 1, enough);
            is_a &= higher.below[i] == a->is.below[i];
            is_b &= higher.below[i] == b->is.below[i];
        } else {
            uint64_t of_a = a->is.sequences[i];
            uint64_t of_b = b->is.sequences[i];
            higher.sequences[i] = of_a > of_b ? of_a : of_b;
            is_a &= of_a >= of_b;
            is_b &= of_b >= of_a;
        }
    }
    struct vector_node *made = is_a || is_b ? NULL : node_new();
    if (made) {
        made->is = higher;
        made->learned = a->learned && b->learned;
        return made;
    }
    for (uint32_t i = 0; height > 1 && i < FAN_OUT; i++)
        node_drop(higher.below[i], height - 1);
    *enough &= is_a || is_b;
    return is_a || is_b ? node_hold(is_a ? a : b) : NULL;
}

bool vector_clock_raise_all(struct vector_clock *self, const struct vector_clock *other)
{
    if (!other->root || other->root == self->root)
        return true;
    struct vector_clock with = vector_clock_copy(other);
    bool enough = grow_to(&with, self->height) && grow_to(self, with.height);
    struct vector_node *higher =
        enough ? node_higher(self->root, with.root, self->height, &enough) : NULL;
    if (enough) {
        node_drop(self->root, self->height);
        self->root = higher;
    } else {
        node_drop(higher, self->height);
    }
    vector_clock_drop(&with);
    return enough;
}

static void node_learn(struct vector_node *node, uint32_t height, uint32_t first,
                       vector_clock_visit *visit, void *argument)
{
    if (!node || node->learned)
        return;
    node->learned = true;
    for (uint32_t i = 0; i < FAN_OUT; i++) {
        uint32_t stream = first + (i << FAN_OUT_BITS * (height - 1));
        if (height > 1)
            node_learn(node->is.below[i], height - 1, stream, visit, argument);
        else if (node->is.sequences[i])
            visit(argument, stream, node->is.sequences[i]);
    }
}

void vector_clock_learn(struct vector_clock *self, vector_clock_visit *visit, void *argument)
{
    node_learn(self->root, self->height, 0, visit, argument);
}
