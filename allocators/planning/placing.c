/* Placing blocks in a given order, each at the lowest offset that is free in its life.
 *
 * 1. A tree stands over the slots. Each node knows two sets of addresses: `whole`, those of the blocks
 *    that are live in all of its slots and of which it is one of the O(log n) nodes that together make
 *    up their life; and `any`, those of all blocks that are live in one of its slots.
 * 2. What is in the way of a block is in `any` of the nodes that make up its life, and in `whole` of
 *    the nodes above those: a block that meets it in a slot has a node with that slot, and of two nodes
 *    with a slot in common one is above the other.
 * 3. A cursor runs through each of these sets. Where one says that the offset is taken, the offset
 *    goes to the end of that range; when none says so, it is free. Ranges that touch are one, so a set
 *    that is full up to somewhere costs a step, however many blocks are in it. */
#include "allocators/planning/packing.h"

#include "allocators/planning/taken.h"

struct node {
    struct taken whole, any;
};

struct placing {
    const struct packing *packing;
    struct node *nodes; /* 1 to 2 * leaves - 1; the sons of i are 2 * i and 2 * i + 1 */
    uint32_t leaves;
    uint64_t steps;
};

#define COVER_MOST 64 /* nodes that together make up a range of 2^32 slots, and as many above */

/* Nodes of the tree for one block: those that make up its life, and those above them. */
struct cover {
    uint32_t parts[COVER_MOST], above[COVER_MOST];
    unsigned part_count, above_count;
};

static void cover(const struct placing *placing, uint32_t block, struct cover *out)
{
    uint32_t first = placing->packing->first[block] + placing->leaves;
    uint32_t end = placing->packing->end[block] + placing->leaves;
    out->part_count = out->above_count = 0;
    for (uint32_t low = first, high = end; low < high; low /= 2, high /= 2) {
        if (low & 1)
            out->parts[out->part_count++] = low++;
        if (high & 1)
            out->parts[out->part_count++] = --high;
    }
    /* Upward from both ends, those that reach beyond an end. Their sons on the way either are such
     * too, or are among the parts. */
    uint32_t low = first, high = end - 1;
    for (unsigned height = 0; low; low /= 2, high /= 2, height++) {
        uint64_t low_begin = (uint64_t)low << height, high_end = ((uint64_t)high + 1) << height;
        if (low_begin < first || (low == high && high_end > end))
            out->above[out->above_count++] = low;
        if (high != low && high_end > end)
            out->above[out->above_count++] = high;
    }
}

struct cursor {
    struct taken_range range; /* that it stands at; past the last one none that can be met */
    const struct taken *set;
    uint32_t at;
};

static void stand_at(struct cursor *cursor, uint32_t at)
{
    cursor->at = at;
    cursor->range = at < cursor->set->count ? cursor->set->ranges[at]
                                            : (struct taken_range){UINT64_MAX, UINT64_MAX};
}

static unsigned gather(const struct placing *placing, const struct cover *cover,
                       struct cursor cursors[2 * COVER_MOST])
{
    unsigned count = 0;
    for (unsigned i = 0; i < cover->above_count; i++)
        if (placing->nodes[cover->above[i]].whole.count)
            cursors[count++].set = &placing->nodes[cover->above[i]].whole;
    for (unsigned i = 0; i < cover->part_count; i++)
        if (placing->nodes[cover->parts[i]].any.count)
            cursors[count++].set = &placing->nodes[cover->parts[i]].any;
    for (unsigned i = 0; i < count; i++)
        stand_at(&cursors[i], 0);
    return count;
}

static uint64_t lowest(struct placing *placing, const struct packing_block *block,
                       const struct cover *cover)
{
    const uint64_t mask = block->alignment ? block->alignment - 1 : 0;
    struct cursor cursors[2 * COVER_MOST];
    unsigned count = gather(placing, cover, cursors);
    uint64_t offset = 0;
    /* Until all have agreed to the same offset, one after the other. */
    for (unsigned agreed = 0, i = 0; agreed < count; i = i + 1 < count ? i + 1 : 0) {
        struct cursor *cursor = &cursors[i];
        placing->steps++;
        agreed++;
        if (cursor->range.end <= offset)
            stand_at(cursor, taken_above(cursor->set, cursor->at + 1, offset));
        while (cursor->range.begin < offset + block->bytes) {
            offset = (cursor->range.end + mask) & ~mask;
            stand_at(cursor, taken_above(cursor->set, cursor->at + 1, offset));
            placing->steps++;
            agreed = 1;
        }
    }
    return offset;
}

static bool remember(struct placing *placing, const struct cover *cover, uint64_t begin,
                     uint64_t end)
{
    struct ar_host *host = placing->packing->host;
    bool made = true;
    for (unsigned i = 0; i < cover->part_count && made; i++) {
        struct node *node = &placing->nodes[cover->parts[i]];
        made = taken_add(&node->whole, host, begin, end) && taken_add(&node->any, host, begin, end);
    }
    for (unsigned i = 0; i < cover->above_count && made; i++)
        made = taken_add(&placing->nodes[cover->above[i]].any, host, begin, end);
    return made;
}

static enum ar_status placing_open(struct placing *placing, const struct packing *packing)
{
    *placing = (struct placing){.packing = packing, .leaves = 1};
    while (placing->leaves < packing->slots)
        placing->leaves *= 2;
    placing->nodes =
        ar_host_alloc(packing->host, 2 * (size_t)placing->leaves * sizeof *placing->nodes);
    return placing->nodes ? AR_OK : AR_HOST_MEMORY;
}

static void placing_close(struct placing *placing)
{
    struct ar_host *host = placing->packing->host;
    for (size_t i = 0; i < 2 * (size_t)placing->leaves; i++) {
        taken_close(&placing->nodes[i].whole, host);
        taken_close(&placing->nodes[i].any, host);
    }
    ar_host_free(host, placing->nodes, 2 * (size_t)placing->leaves * sizeof *placing->nodes);
}

enum ar_status packing_place(const struct packing *self, const uint32_t *order, uint64_t most_bytes,
                             uint64_t *offsets, uint64_t *top_bytes, uint64_t *steps)
{
    struct placing placing;
    enum ar_status status = placing_open(&placing, self);
    if (status)
        return status;
    *top_bytes = 0;
    most_bytes = most_bytes < PACKING_LIMIT ? most_bytes : PACKING_LIMIT;
    for (uint32_t i = 0; i < self->count && !status; i++) {
        const struct packing_block *block = &self->blocks[order[i]];
        struct cover nodes;
        cover(&placing, order[i], &nodes);
        offsets[order[i]] = lowest(&placing, block, &nodes);
        uint64_t end = offsets[order[i]] + block->bytes;
        if (end > most_bytes) {
            *top_bytes = PACKING_NOWHERE;
            break;
        }
        *top_bytes = end > *top_bytes ? end : *top_bytes;
        if (!remember(&placing, &nodes, offsets[order[i]], end))
            status = AR_HOST_MEMORY;
    }
    if (steps)
        *steps += placing.steps;
    placing_close(&placing);
    return status;
}
