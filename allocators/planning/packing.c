/* The offline problem and placing blocks in a given order.
 *
 * 1. Blocks are sorted by birth; each distinct moment of birth is a slot. A block covers the
 *    slots of the moments at which it is live. Of two blocks that meet, the later one is born in
 *    the life of the other, so they share that slot.
 * 2. The blocks that meet a new one are those placed before which are live in its first slot,
 *    and those which are born in its later slots. The first are kept in a tree over the slots: a
 *    block is listed in the O(log n) nodes that together cover its slots, and a walk from a
 *    slot's leaf to the root meets each block that is live there once. The second are a range of
 *    the blocks by birth, of which a bitmap says which are placed.
 * 3. What was found is sorted by offset, and the first gap that is large enough is taken. */
#include "allocators/planning/packing.h"

#include "allocators/planning/keyed.h"

static enum status check_blocks(const struct packing_block *blocks, size_t count,
                                struct error *error)
{
    if (count >= UINT32_MAX / 4)
        return error_set(error, STATUS_INVALID, "%zu blocks are too many to plan", count);
    for (size_t i = 0; i < count; i++) {
        const struct packing_block *block = &blocks[i];
        if (block->bytes == 0 || block->bytes >= PACKING_LIMIT || block->born >= block->dies ||
            (block->alignment & (block->alignment - 1)) != 0 || block->alignment > PACKING_LIMIT)
            return error_set(error, STATUS_INVALID,
                             "block %zu cannot be planned: it needs bytes, a life and an alignment "
                             "that is a power of two",
                             i);
    }
    return STATUS_OK;
}

/* The first slot that begins at `moment` or later. */
static uint32_t slot_at(const struct packing *self, uint64_t moment)
{
    uint32_t low = 0, high = self->slots;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->slot_born[middle] < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum status make_slots(struct packing *self)
{
    struct host *host = self->host;
    size_t bytes = (size_t)self->count * sizeof(struct keyed);
    struct keyed *keys = host_alloc(host, bytes + 1), *spare = host_alloc(host, bytes + 1);
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
    enum status status = keys && spare ? STATUS_OK : STATUS_HOST_MEMORY;
    host_free(host, keys, bytes + 1);
    host_free(host, spare, bytes + 1);
    return status;
}

/* Live bytes of each slot: what is born there, less what died since the one before. */
static enum status sum_slots(struct packing *self, struct error *error)
{
    uint64_t *dead_bytes = host_alloc(self->host, ((size_t)self->slots + 1) * sizeof *dead_bytes);
    uint64_t live_bytes = 0;
    if (!dead_bytes)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory to plan");
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
    host_free(self->host, dead_bytes, ((size_t)self->slots + 1) * sizeof *dead_bytes);
    return fits ? STATUS_OK
                : error_set(error, STATUS_INVALID, "more than 2^62 bytes are live at once");
}

static void count_pairs(struct packing *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        self->pairs += self->slot_begin[self->end[i]] - self->slot_begin[self->first[i]] - 1;
}

enum status packing_open(struct packing *self, struct host *host,
                         const struct packing_block *blocks, size_t count, struct error *error)
{
    *self = (struct packing){.host = host, .blocks = blocks};
    enum status status = check_blocks(blocks, count, error);
    if (status)
        return status;
    self->count = (uint32_t)count;
    size_t rooms = count + 1;
    self->first = host_alloc(host, rooms * sizeof *self->first);
    self->end = host_alloc(host, rooms * sizeof *self->end);
    self->by_birth = host_alloc(host, rooms * sizeof *self->by_birth);
    self->slot_begin = host_alloc(host, rooms * sizeof *self->slot_begin);
    self->slot_born = host_alloc(host, rooms * sizeof *self->slot_born);
    self->slot_bytes = host_alloc(host, rooms * sizeof *self->slot_bytes);
    if (!self->first || !self->end || !self->by_birth || !self->slot_begin || !self->slot_born ||
        !self->slot_bytes || make_slots(self))
        status = error_set(error, STATUS_HOST_MEMORY, "no host memory to plan %zu blocks", count);
    if (!status)
        status = sum_slots(self, error);
    if (status)
        packing_close(self);
    else
        count_pairs(self);
    return status;
}

void packing_close(struct packing *self)
{
    size_t rooms = (size_t)self->count + 1;
    host_free(self->host, self->first, rooms * sizeof *self->first);
    host_free(self->host, self->end, rooms * sizeof *self->end);
    host_free(self->host, self->by_birth, rooms * sizeof *self->by_birth);
    host_free(self->host, self->slot_begin, rooms * sizeof *self->slot_begin);
    host_free(self->host, self->slot_born, rooms * sizeof *self->slot_born);
    host_free(self->host, self->slot_bytes, rooms * sizeof *self->slot_bytes);
    *self = (struct packing){.host = self->host};
}

/* Placing, in progress. */
struct placing {
    const struct packing *packing;
    uint64_t *offsets;
    uint32_t leaves;      /* of the tree, whose nodes are 1 to 2 * leaves - 1 */
    uint32_t *node_begin; /* where a node's list begins in `listed` */
    uint32_t *node_end;   /* and where it ends so far */
    uint32_t *listed;
    size_t listed_room;
    uint64_t *placed;            /* a bit for each block by birth */
    uint32_t *place;             /* of each block, in by_birth */
    struct keyed *found, *spare; /* begin and end of each placed block that meets the next one */
    uint32_t found_count;
};

#define COVER_MOST 64 /* nodes that cover a range of 2^32 leaves */
#define WORD_BITS  64

/* The nodes that together cover the block's slots. */
static unsigned cover(const struct placing *placing, uint32_t block, uint32_t nodes[COVER_MOST])
{
    unsigned count = 0;
    uint32_t low = placing->packing->first[block] + placing->leaves;
    uint32_t high = placing->packing->end[block] + placing->leaves;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            nodes[count++] = low++;
        if (high & 1)
            nodes[count++] = --high;
    }
    return count;
}

/* Room for every block in the lists of the nodes that cover it. */
static bool make_lists(struct placing *placing)
{
    const struct packing *packing = placing->packing;
    uint32_t nodes[COVER_MOST];
    for (uint32_t i = 0; i < packing->count; i++)
        for (unsigned count = cover(placing, i, nodes), j = 0; j < count; j++)
            placing->node_end[nodes[j]]++;
    for (uint32_t node = 0; node < 2 * placing->leaves; node++) {
        placing->node_begin[node] = (uint32_t)placing->listed_room;
        placing->listed_room += placing->node_end[node];
        placing->node_end[node] = placing->node_begin[node];
    }
    placing->listed = host_alloc(packing->host, (placing->listed_room + 1) * sizeof(uint32_t));
    return placing->listed && placing->listed_room < UINT32_MAX;
}

static void placing_close(struct placing *placing)
{
    struct host *host = placing->packing->host;
    size_t nodes = 2 * (size_t)placing->leaves, rooms = (size_t)placing->packing->count + 1;
    host_free(host, placing->node_begin, nodes * sizeof *placing->node_begin);
    host_free(host, placing->node_end, nodes * sizeof *placing->node_end);
    host_free(host, placing->listed, (placing->listed_room + 1) * sizeof *placing->listed);
    host_free(host, placing->placed, (rooms / WORD_BITS + 1) * sizeof *placing->placed);
    host_free(host, placing->place, rooms * sizeof *placing->place);
    host_free(host, placing->found, rooms * sizeof *placing->found);
    host_free(host, placing->spare, rooms * sizeof *placing->spare);
}

static enum status placing_open(struct placing *placing, const struct packing *packing,
                                uint64_t *offsets)
{
    *placing = (struct placing){.packing = packing, .offsets = offsets, .leaves = 1};
    while (placing->leaves < packing->slots)
        placing->leaves *= 2;
    struct host *host = packing->host;
    size_t nodes = 2 * (size_t)placing->leaves, rooms = (size_t)packing->count + 1;
    placing->node_begin = host_alloc(host, nodes * sizeof *placing->node_begin);
    placing->node_end = host_alloc(host, nodes * sizeof *placing->node_end);
    placing->placed = host_alloc(host, (rooms / WORD_BITS + 1) * sizeof *placing->placed);
    placing->place = host_alloc(host, rooms * sizeof *placing->place);
    placing->found = host_alloc(host, rooms * sizeof *placing->found);
    placing->spare = host_alloc(host, rooms * sizeof *placing->spare);
    if (!placing->node_begin || !placing->node_end || !placing->placed || !placing->place ||
        !placing->found || !placing->spare || !make_lists(placing)) {
        placing_close(placing);
        return STATUS_HOST_MEMORY;
    }
    for (uint32_t at = 0; at < packing->count; at++)
        placing->place[packing->by_birth[at]] = at;
    return STATUS_OK;
}

static void find(struct placing *placing, uint32_t block)
{
    uint64_t begin = placing->offsets[block];
    placing->found[placing->found_count++] =
        (struct keyed){begin, begin + placing->packing->blocks[block].bytes};
}

/* Collects the placed blocks that meet this one. */
static void find_all(struct placing *placing, uint32_t block)
{
    const struct packing *packing = placing->packing;
    uint32_t at = packing->slot_begin[packing->first[block] + 1];
    uint32_t end = packing->slot_begin[packing->end[block]];
    placing->found_count = 0;
    for (uint32_t node = packing->first[block] + placing->leaves; node; node /= 2)
        for (uint32_t i = placing->node_begin[node]; i < placing->node_end[node]; i++)
            find(placing, placing->listed[i]);
    while (at < end) {
        uint64_t word = placing->placed[at / WORD_BITS] >> at % WORD_BITS;
        if (!word) {
            at += WORD_BITS - at % WORD_BITS;
            continue;
        }
        at += (uint32_t)__builtin_ctzll(word);
        if (at < end)
            find(placing, packing->by_birth[at++]);
    }
}

static uint64_t lowest_gap(struct placing *placing, const struct packing_block *block)
{
    uint64_t offset = 0, mask = block->alignment ? block->alignment - 1 : 0;
    const struct keyed *found = keyed_sort(placing->found, placing->spare, placing->found_count);
    for (uint32_t i = 0; i < placing->found_count; i++) {
        if (found[i].key >= offset && found[i].key - offset >= block->bytes)
            break;
        if (found[i].value > offset)
            offset = (found[i].value + mask) & ~mask;
    }
    return offset;
}

static void remember(struct placing *placing, uint32_t block)
{
    uint32_t nodes[COVER_MOST];
    for (unsigned count = cover(placing, block, nodes), j = 0; j < count; j++)
        placing->listed[placing->node_end[nodes[j]]++] = block;
    placing->placed[placing->place[block] / WORD_BITS] |= UINT64_C(1)
                                                          << placing->place[block] % WORD_BITS;
}

enum status packing_place(const struct packing *self, const uint32_t *order, uint64_t most_bytes,
                          uint64_t *offsets, uint64_t *top_bytes)
{
    struct placing placing;
    enum status status = placing_open(&placing, self, offsets);
    if (status)
        return status;
    *top_bytes = 0;
    most_bytes = most_bytes < PACKING_LIMIT ? most_bytes : PACKING_LIMIT;
    for (uint32_t i = 0; i < self->count; i++) {
        const struct packing_block *block = &self->blocks[order[i]];
        find_all(&placing, order[i]);
        offsets[order[i]] = lowest_gap(&placing, block);
        uint64_t end = offsets[order[i]] + block->bytes;
        if (end > most_bytes) {
            *top_bytes = PACKING_NOWHERE;
            break;
        }
        *top_bytes = end > *top_bytes ? end : *top_bytes;
        remember(&placing, order[i]);
    }
    placing_close(&placing);
    return STATUS_OK;
}
