/* The offline problem. Blocks are sorted by birth, and each distinct moment of birth is a slot. A
 * block covers the slots of the moments at which it is live. If two blocks meet, the later one is
 * born in the life of the other, so they share that slot. */
#include "allocators/planning/packing.h"

#include "allocators/base/array.h"

static enum ar_status check_blocks(const struct packing_block *blocks, size_t count,
                                   struct ar_error *error)
{
    if (count >= UINT32_MAX / 4)
        return ar_invalid(error, "%zu blocks are too many to plan", count);
    for (size_t i = 0; i < count; i++) {
        const struct packing_block *block = &blocks[i];
        if (block->bytes == 0 || block->bytes >= PACKING_LIMIT || block->born >= block->dies ||
            (block->alignment & (block->alignment - 1)) != 0 || block->alignment > PACKING_LIMIT)
            return ar_invalid(error,
                              "block %zu cannot be planned: it needs bytes, a life and an "
                              "alignment that is a power of two",
                              i);
    }
    return AR_OK;
}

/* The first slot that begins at `moment` or later. */
static uint32_t slot_at(const struct packing *self, uint64_t moment)
{
    return (uint32_t)ar_array_from(self->slot_born, self->slots, sizeof *self->slot_born, 0,
                                   moment);
}

static enum ar_status make_slots(struct packing *self)
{
    struct ar_host *host = self->host;
    size_t bytes = (size_t)self->count * sizeof(struct keyed);
    struct keyed *keys = ar_host_alloc(host, bytes + 1), *spare = ar_host_alloc(host, bytes + 1);
    if (keys && spare) {
        for (uint32_t i = 0; i < self->count; i++)
            keys[i] = (struct keyed){self->blocks[i].born, i};
        const struct keyed *sorted = keyed_sort(keys, spare, self->count);
        for (uint32_t i = 0; i < self->count; i++) {
            if (i == 0 || sorted[i].key != sorted[i - 1].key) {
                self->slot_begin[self->slots] = i;
                self->slot_born[self->slots++] = sorted[i].key;
            }
            self->by_birth[i] = (uint32_t)sorted[i].value;
        }
        self->slot_begin[self->slots] = self->count;
    }
    enum ar_status status = keys && spare ? AR_OK : AR_HOST_MEMORY;
    ar_host_free(host, keys, bytes + 1);
    ar_host_free(host, spare, bytes + 1);
    return status;
}

/* Live bytes of each slot: those born there are added, those that died since the last slot
 * subtracted. */
static enum ar_status sum_slots(struct packing *self, struct ar_error *error)
{
    uint64_t *dead_bytes =
        ar_host_alloc(self->host, ((size_t)self->slots + 1) * sizeof *dead_bytes);
    uint64_t live_bytes = 0;
    AR_TRY_MEMORY(dead_bytes, error, "a plan");
    bool fits = true;
    for (uint32_t i = 0; i < self->count; i++) {
        self->first[i] = slot_at(self, self->blocks[i].born);
        self->end[i] = slot_at(self, self->blocks[i].dies);
    }
    for (uint32_t slot = 0; slot < self->slots && fits; slot++) {
        live_bytes -= dead_bytes[slot];
        for (uint32_t at = self->slot_begin[slot]; at < self->slot_begin[slot + 1] && fits; at++) {
            uint32_t block = self->by_birth[at];
            live_bytes += self->blocks[block].bytes;
            dead_bytes[self->end[block]] += self->blocks[block].bytes;
            fits = live_bytes < PACKING_LIMIT;
        }
        self->slot_bytes[slot] = live_bytes;
        if (live_bytes > self->peak_bytes) {
            self->peak_bytes = live_bytes;
            self->peak_slot = slot;
        }
    }
    ar_host_free(self->host, dead_bytes, ((size_t)self->slots + 1) * sizeof *dead_bytes);
    return fits ? AR_OK : ar_invalid(error, "more than 2^62 bytes are live at once");
}

enum ar_status packing_open(struct packing *self, struct ar_host *host,
                            const struct packing_block *blocks, size_t count,
                            struct ar_error *error)
{
    *self = (struct packing){.host = host, .blocks = blocks};
    enum ar_status status = check_blocks(blocks, count, error);
    if (status)
        return status;
    self->count = (uint32_t)count;
    size_t rooms = count + 1;
    self->first = ar_host_alloc(host, rooms * sizeof *self->first);
    self->end = ar_host_alloc(host, rooms * sizeof *self->end);
    self->by_birth = ar_host_alloc(host, rooms * sizeof *self->by_birth);
    self->slot_begin = ar_host_alloc(host, rooms * sizeof *self->slot_begin);
    self->slot_born = ar_host_alloc(host, rooms * sizeof *self->slot_born);
    self->slot_bytes = ar_host_alloc(host, rooms * sizeof *self->slot_bytes);
    if (!self->first || !self->end || !self->by_birth || !self->slot_begin || !self->slot_born ||
        !self->slot_bytes || make_slots(self))
        status = ar_no_memory(error, "a plan of %zu blocks", count);
    AR_THEN(status, sum_slots(self, error));
    if (status)
        packing_close(self);
    return status;
}

void packing_close(struct packing *self)
{
    size_t rooms = (size_t)self->count + 1;
    ar_host_free(self->host, self->first, rooms * sizeof *self->first);
    ar_host_free(self->host, self->end, rooms * sizeof *self->end);
    ar_host_free(self->host, self->by_birth, rooms * sizeof *self->by_birth);
    ar_host_free(self->host, self->slot_begin, rooms * sizeof *self->slot_begin);
    ar_host_free(self->host, self->slot_born, rooms * sizeof *self->slot_born);
    ar_host_free(self->host, self->slot_bytes, rooms * sizeof *self->slot_bytes);
    *self = (struct packing){.host = self->host};
}

/* ---- sorting by one number ------------------------------------------------------------------- */

/* Few keys: a merge sort from the bottom up, from one array into the other. Many keys: a radix sort
 * from the lowest digit, which skips digits that are the same in all keys. */
#define MANY       256
#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

#define RUN 8 /* sorted by insertion */

static void sort_run(struct keyed *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct keyed moved = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1].key > moved.key; at--)
            keys[at] = keys[at - 1];
        keys[at] = moved;
    }
}

static void merge(const struct keyed *keys, struct keyed *out, size_t middle, size_t count)
{
    size_t a = 0, b = middle;
    for (size_t to = 0; to < count; to++)
        out[to] = a < middle && (b >= count || keys[a].key <= keys[b].key) ? keys[a++] : keys[b++];
}

static void sort_digit(const struct keyed *keys, struct keyed *out, size_t count, unsigned shift)
{
    size_t begin[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        begin[keys[i].key >> shift & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t of_digit = begin[digit];
        begin[digit] = sum;
        sum += of_digit;
    }
    for (size_t i = 0; i < count; i++)
        out[begin[keys[i].key >> shift & (DIGITS - 1)]++] = keys[i];
}

static struct keyed *sort_many(struct keyed *keys, struct keyed *spare, size_t count)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < count; i++)
        differ |= keys[i].key ^ keys[0].key;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(differ >> shift & (DIGITS - 1)))
            continue;
        sort_digit(keys, spare, count, shift);
        struct keyed *sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

struct keyed *keyed_sort(struct keyed *keys, struct keyed *spare, size_t count)
{
    if (count >= MANY)
        return sort_many(keys, spare, count);
    for (size_t low = 0; low < count; low += RUN)
        sort_run(keys + low, count - low < RUN ? count - low : RUN);
    for (size_t width = RUN; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t left = count - low < 2 * width ? count - low : 2 * width;
            merge(keys + low, spare + low, left < width ? left : width, left);
        }
        struct keyed *sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

/* ---- a set of addresses ---------------------------------------------------------------------- */

struct taken_range {
    uint64_t begin, end;
};

/* Ranges in ascending order that do not touch. A zeroed struct is empty. */
struct taken {
    struct taken_range *ranges;
    uint32_t count, room;
};

/* The first range from `from` on that ends above `address`, by steps of doubling length and then
 * halving; `count`: none. */
static uint32_t taken_above(const struct taken *self, uint32_t from, uint64_t address)
{
    uint32_t step = 1, low = from;
    while (from < self->count && self->ranges[from].end <= address) {
        low = from + 1;
        from = self->count - from > step ? from + step : self->count;
        step *= 2;
    }
    while (low < from) {
        uint32_t middle = low + (from - low) / 2;
        if (self->ranges[middle].end <= address)
            low = middle + 1;
        else
            from = middle;
    }
    return low;
}

static bool make_room(struct taken *self, struct ar_host *host)
{
    if (self->count < self->room)
        return true;
    uint32_t room = self->room ? 2 * self->room : 2;
    struct taken_range *ranges = ar_host_alloc(host, room * sizeof *ranges);
    if (!ranges)
        return false;
    if (self->count)
        memcpy(ranges, self->ranges, self->count * sizeof *ranges);
    ar_host_free(host, self->ranges, self->room * sizeof *ranges);
    self->ranges = ranges;
    self->room = room;
    return true;
}

/* Adds [begin, end), which may overlap ranges of the set. They become one range, and the ranges
 * after it move. Mostly a range comes at the end or joins another, and nothing moves. False: no
 * host memory. */
static bool taken_add(struct taken *self, struct ar_host *host, uint64_t begin, uint64_t end)
{
    /* The first range that ends at `begin` or later. No range ends at 0. */
    bool last = !self->count || self->ranges[self->count - 1].end < begin;
    uint32_t at = last ? self->count : taken_above(self, 0, begin ? begin - 1 : 0);
    uint32_t past = at;
    while (past < self->count && self->ranges[past].begin <= end)
        past++;
    if (past == at) {
        if (!make_room(self, host))
            return false;
        AR_ARRAY_INSERT(self->ranges, self->count, at, (struct taken_range){begin, end});
        return true;
    }
    struct taken_range *range = &self->ranges[at];
    uint64_t reached = self->ranges[past - 1].end;
    range->begin = begin < range->begin ? begin : range->begin;
    range->end = end > reached ? end : reached;
    memmove(range + 1, self->ranges + past, (self->count - past) * sizeof *range);
    self->count -= past - at - 1;
    return true;
}

static void taken_close(struct taken *self, struct ar_host *host)
{
    ar_host_free(host, self->ranges, self->room * sizeof *self->ranges);
    *self = (struct taken){0};
}

/* ---- placing in an order ------------------------------------------------------------------------
 *
 * 1. A tree covers the slots. Each node holds two sets of addresses: `whole`, those of the blocks
 *    that are live in all of its slots and for which it is one of the O(log n) nodes that make up
 *    their life; and `any`, those of all blocks that are live in one of its slots.
 * 2. A block must avoid the addresses in `any` of the nodes that make up its life, and in `whole`
 *    of the nodes above those: a block that meets it in a slot has a node with that slot, and of
 *    two nodes with a common slot one is above the other.
 * 3. A cursor runs through each of these sets. If the offset is taken in one of them, the offset
 *    moves to the end of that range. If it is taken in none, it is free. Ranges that touch are one
 *    range, so a full stretch costs one step for any number of blocks. */

struct node {
    struct taken whole, any;
};

struct placing {
    const struct packing *packing;
    struct node *nodes; /* 1 to 2 * leaves - 1; the children of i are 2 * i and 2 * i + 1 */
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
    /* Upwards from both ends, the nodes that reach beyond an end. */
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
    struct taken_range range; /* the current one; past the last, an unreachable one */
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
    /* Until all cursors agree on the same offset. */
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
