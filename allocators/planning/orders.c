/* Orders of placement.
 *
 * Each order has at most two keys. Sorts are stable, so the keys are applied from the last to the
 * first: as given, by birth, second key, first key. Lower keys come first; "largest first" is the
 * complement. Products are computed in floating point: the bits of positive numbers have the same
 * order as the numbers.
 *
 * Source: TensorFlow Lite, TVM and XLA place the largest first. Area, lifetime and crowd follow the
 * static orders of MiniMalloc (Moffitt, 2023). */
#include "allocators/planning/packing.h"

/* After this number of steps no further order is tried. */
#define STEPS_MOST UINT64_C(400000000)

const char *packing_order_name(enum packing_order order)
{
    static const char *const names[] = {
#define X(name, help) #name,
        PACKING_ORDERS(X)
#undef X
    };
    return names[order];
}

const char *packing_order_help(enum packing_order order)
{
    static const char *const helps[] = {
#define X(name, help) help,
        PACKING_ORDERS(X)
#undef X
    };
    return helps[order];
}

/* A key for the largest product first. */
static uint64_t by_product(double a, double b)
{
    double product = a * b;
    uint64_t bits;
    memcpy(&bits, &product, sizeof bits);
    return ~bits;
}

static uint64_t first_key(const struct packing *self, enum packing_order order, uint32_t block,
                          const uint64_t *crowd_bytes)
{
    uint64_t bytes = self->blocks[block].bytes;
    uint32_t slots = self->end[block] - self->first[block];
    switch (order) {
    case PACKING_ORDER_size:
        return ~bytes;
    case PACKING_ORDER_area:
        return by_product((double)bytes, slots);
    case PACKING_ORDER_lifetime:
        return ~(uint64_t)slots;
    case PACKING_ORDER_birth:
        return self->blocks[block].born;
    case PACKING_ORDER_death:
        return ~self->blocks[block].dies;
    case PACKING_ORDER_class:
        return (uint64_t)__builtin_clzll(bytes);
    case PACKING_ORDER_crowd:
        return ~crowd_bytes[block];
    default: /* weight */
        return by_product((double)bytes * (double)bytes, slots);
    }
}

static uint64_t second_key(const struct packing *self, enum packing_order order, uint32_t block)
{
    return order == PACKING_ORDER_class ? ~(uint64_t)(self->end[block] - self->first[block])
                                        : ~self->blocks[block].bytes;
}

/* For each block the peak of live bytes during its life, by a tree of maxima. */
static uint64_t *crowds(const struct packing *self, size_t rooms)
{
    size_t leaves = (size_t)self->slots + 1;
    uint64_t *tree = ar_host_alloc(self->host, 2 * leaves * sizeof *tree);
    uint64_t *out = ar_host_alloc(self->host, rooms * sizeof *out);
    if (tree && out) {
        memcpy(tree + leaves, self->slot_bytes, self->slots * sizeof *tree);
        for (size_t i = leaves - 1; i > 0; i--)
            tree[i] = ar_most(tree[2 * i], tree[2 * i + 1]);
        for (uint32_t block = 0; block < self->count; block++) {
            size_t low = self->first[block] + leaves, high = self->end[block] + leaves;
            for (; low < high; low /= 2, high /= 2) {
                if (low & 1)
                    out[block] = ar_most(out[block], tree[low++]);
                if (high & 1)
                    out[block] = ar_most(out[block], tree[--high]);
            }
        }
    }
    bool made = tree && out;
    ar_host_free(self->host, tree, 2 * leaves * sizeof *tree);
    if (made)
        return out;
    ar_host_free(self->host, out, rooms * sizeof *out);
    return NULL;
}

/* Writes the blocks to `out` in that order. */
static enum ar_status make_order(const struct packing *self, enum packing_order order,
                                 uint32_t *out)
{
    size_t rooms = (size_t)self->count + 1, bytes = rooms * sizeof(struct keyed);
    struct keyed *keys = ar_host_alloc(self->host, bytes),
                 *spare = ar_host_alloc(self->host, bytes);
    uint64_t *crowd_bytes = crowds(self, rooms);
    bool made = keys && spare && crowd_bytes;
    if (made) {
        struct keyed *sorted = keys;
        for (uint32_t i = 0; i < self->count; i++)
            keys[i] = (struct keyed){second_key(self, order, self->by_birth[i]), self->by_birth[i]};
        sorted = keyed_sort(keys, spare, self->count);
        for (uint32_t i = 0; i < self->count; i++)
            sorted[i].key = first_key(self, order, (uint32_t)sorted[i].value, crowd_bytes);
        sorted = keyed_sort(sorted, sorted == keys ? spare : keys, self->count);
        for (uint32_t i = 0; i < self->count; i++)
            out[i] = (uint32_t)sorted[i].value;
    }
    ar_host_free(self->host, keys, bytes);
    ar_host_free(self->host, spare, bytes);
    ar_host_free(self->host, crowd_bytes, rooms * sizeof *crowd_bytes);
    return made ? AR_OK : AR_HOST_MEMORY;
}

enum ar_status packing_place_by(const struct packing *self, enum packing_order order,
                                uint64_t *offsets, uint64_t *top_bytes, uint64_t *steps)
{
    size_t bytes = ((size_t)self->count + 1) * sizeof(uint32_t);
    uint32_t *sorted = ar_host_alloc(self->host, bytes);
    AR_TRY_HOST(sorted);
    enum ar_status status = make_order(self, order, sorted);
    AR_THEN(status, packing_place(self, sorted, PACKING_NOWHERE, offsets, top_bytes, steps));
    ar_host_free(self->host, sorted, bytes);
    return status;
}

enum ar_status packing_best_order(const struct packing *self, uint64_t *offsets,
                                  struct packing_best *best)
{
    size_t bytes = ((size_t)self->count + 1) * sizeof *offsets;
    uint64_t *tried = ar_host_alloc(self->host, bytes);
    enum ar_status status = tried ? AR_OK : AR_HOST_MEMORY;
    uint64_t steps = 0;
    *best = (struct packing_best){.top_bytes = PACKING_NOWHERE};
    for (enum packing_order order = 0; order < PACKING_ORDER_COUNT; order++)
        best->tops_bytes[order] = PACKING_NOWHERE;
    for (enum packing_order order = 0; order < PACKING_ORDER_COUNT && !status; order++) {
        if (order > 0 && steps > STEPS_MOST)
            break;
        status = packing_place_by(self, order, tried, &best->tops_bytes[order], &steps);
        if (status || best->tops_bytes[order] >= best->top_bytes)
            continue;
        best->order = order;
        best->top_bytes = best->tops_bytes[order];
        memcpy(offsets, tried, (size_t)self->count * sizeof *offsets);
    }
    ar_host_free(self->host, tried, bytes);
    if (!status && best->top_bytes == PACKING_NOWHERE)
        return AR_INVALID; /* above PACKING_LIMIT in every order */
    return status;
}
