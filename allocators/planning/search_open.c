/* The search's data, and the beginning of an attempt. */
#include <string.h>

#include "allocators/planning/keyed.h"
#include "allocators/planning/search.h"

#define BLOCKS_MOST 8192     /* the search goes down a level for each block */
#define PAIRS_MOST  50000000 /* of blocks that meet */
#define DEAD_ROOM   (UINT64_C(1) << 19)
#define FIRST_ROOM  4096

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t find_unit(const struct packing *packing)
{
    uint64_t unit = 0;
    for (uint32_t i = 0; i < packing->count; i++) {
        unit = common_divisor(unit, packing->blocks[i].bytes);
        if (packing->blocks[i].alignment > 1)
            unit = common_divisor(unit, packing->blocks[i].alignment);
    }
    return unit ? unit : 1;
}

/* A slot counts if a block dies before the next one; the others are part of their next. Writes
 * for each old slot how many that count lie before it. */
static uint32_t keep_slots(const struct packing *packing, uint32_t *before)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < packing->count; i++)
        before[packing->end[i]] = 1; /* what is live in the slot before it ends there */
    for (uint32_t slot = 0; slot <= packing->slots; slot++) {
        kept += slot > 0 && before[slot];
        before[slot] = kept;
    }
    return kept;
}

static bool make_arrays(struct search *self)
{
    struct ar_host *host = self->host;
    self->blocks = ar_host_alloc(host, ((size_t)self->count + 1) * sizeof *self->blocks);
    self->slot = ar_host_alloc(host, ((size_t)self->slots + 1) * sizeof *self->slot);
    self->given = ar_host_alloc(host, ((size_t)self->count + 1) * sizeof *self->given);
    self->meets_begin = ar_host_alloc(host, ((size_t)self->count + 2) * sizeof *self->meets_begin);
    self->covers_begin =
        ar_host_alloc(host, ((size_t)self->slots + 2) * sizeof *self->covers_begin);
    self->offsets = ar_host_alloc(host, ((size_t)self->count + 1) * sizeof *self->offsets);
    self->stale = ar_host_alloc(host, ((size_t)self->slots + 1) * sizeof *self->stale);
    self->undo = ar_host_alloc(host, FIRST_ROOM * sizeof *self->undo);
    self->undo_room = self->undo ? FIRST_ROOM : 0;
    self->stack = ar_host_alloc(host, FIRST_ROOM * sizeof *self->stack);
    self->stack_room = self->stack ? FIRST_ROOM : 0;
    self->dead = ar_host_alloc(host, DEAD_ROOM * sizeof *self->dead);
    self->dead_room = self->dead ? DEAD_ROOM : 0;
    return self->blocks && self->slot && self->given && self->meets_begin && self->covers_begin &&
           self->offsets && self->stale && self->undo && self->stack && self->dead;
}

static void make_blocks(struct search *self, const struct packing *packing, const uint32_t *before)
{
    for (uint32_t i = 0; i < packing->count; i++) {
        uint32_t given = packing->by_birth[i];
        const struct packing_block *from = &packing->blocks[given];
        self->given[i] = given;
        self->blocks[i] = (struct search_block){
            .size = from->bytes / self->unit_bytes,
            .align = from->alignment > 1 ? from->alignment / self->unit_bytes : 1,
            .first = before[packing->first[given]],
            .end = before[packing->end[given]],
        };
    }
}

/* Both lists are made in two passes: count, then fill. */
static bool make_lists(struct search *self)
{
    size_t meets = 0, covers = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        covers += self->blocks[i].end - self->blocks[i].first;
        for (uint32_t j = i + 1; j < self->count && self->blocks[j].first < self->blocks[i].end;
             j++)
            meets += 2;
    }
    if (meets > PAIRS_MOST || covers > PAIRS_MOST)
        return false;
    self->meets_begin[self->count] = (uint32_t)meets;
    self->covers_begin[self->slots] = (uint32_t)covers;
    self->meets = ar_host_alloc(self->host, (meets + 1) * sizeof *self->meets);
    self->covers = ar_host_alloc(self->host, (covers + 1) * sizeof *self->covers);
    return self->meets && self->covers;
}

static void fill_meets(struct search *self)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        self->meets_begin[i] = at;
        for (uint32_t j = 0; j < self->count && self->blocks[j].first < self->blocks[i].end; j++)
            if (j != i && self->blocks[j].end > self->blocks[i].first)
                self->meets[at++] = j;
    }
}

static void fill_covers(struct search *self)
{
    uint32_t at = 0;
    for (uint32_t slot = 0; slot < self->slots; slot++) {
        self->covers_begin[slot] = at;
        for (uint32_t i = 0; i < self->count && self->blocks[i].first <= slot; i++)
            if (self->blocks[i].end > slot)
                self->covers[at++] = i;
        self->slot[slot].weight = 1;
    }
}

enum ar_status search_open(struct search *self, const struct packing *packing)
{
    size_t bytes = ((size_t)packing->slots + 1) * sizeof(uint32_t);
    *self = (struct search){.host = packing->host, .count = packing->count};
    if (packing->count > BLOCKS_MOST)
        return AR_INVALID;
    uint32_t *before = ar_host_alloc(self->host, bytes);
    if (!before)
        return AR_HOST_MEMORY;
    self->unit_bytes = find_unit(packing);
    self->slots = keep_slots(packing, before);
    bool made = make_arrays(self);
    if (made)
        make_blocks(self, packing, before);
    ar_host_free(self->host, before, bytes);
    if (!made || !make_lists(self)) {
        bool large = made && !self->meets && !self->covers;
        search_close(self);
        return large ? AR_INVALID : AR_HOST_MEMORY;
    }
    fill_meets(self);
    fill_covers(self);
    return AR_OK;
}

void search_close(struct search *self)
{
    struct ar_host *host = self->host;
    size_t count = self->count, slots = self->slots;
    size_t meets = self->meets ? self->meets_begin[count] + (size_t)1 : 0;
    size_t covers = self->covers ? self->covers_begin[slots] + (size_t)1 : 0;
    ar_host_free(host, self->meets, meets * sizeof *self->meets);
    ar_host_free(host, self->covers, covers * sizeof *self->covers);
    ar_host_free(host, self->blocks, (count + 1) * sizeof *self->blocks);
    ar_host_free(host, self->slot, (slots + 1) * sizeof *self->slot);
    ar_host_free(host, self->given, (count + 1) * sizeof *self->given);
    ar_host_free(host, self->meets_begin, (count + 2) * sizeof *self->meets_begin);
    ar_host_free(host, self->covers_begin, (slots + 2) * sizeof *self->covers_begin);
    ar_host_free(host, self->offsets, (count + 1) * sizeof *self->offsets);
    ar_host_free(host, self->stale, (slots + 1) * sizeof *self->stale);
    ar_host_free(host, self->undo, self->undo_room * sizeof *self->undo);
    ar_host_free(host, self->stack, self->stack_room * sizeof *self->stack);
    ar_host_free(host, self->dead, self->dead_room * sizeof *self->dead);
    *self = (struct search){.host = host};
}

/* What puts a block before others: larger first. */
static double key_of(const struct search *self, unsigned order, uint32_t index)
{
    const struct search_block *block = &self->blocks[index];
    double size = (double)block->size, slots = block->end - block->first;
    uint64_t crowd = 0;
    switch (order) {
    case 0:
        return size * slots;
    case 1:
        return slots + size / (double)(self->capacity + 1);
    case 2:
        return size + slots / ((double)self->slots + 1);
    default:
        for (uint32_t slot = block->first; slot < block->end; slot++)
            if (self->slot[slot].rest > crowd)
                crowd = self->slot[slot].rest;
        return (double)crowd * (1 + size * slots / ((double)self->slots * (double)self->capacity));
    }
}

void search_rank(struct search *self, unsigned order, struct ar_rng *rng, struct keyed *keys,
                 struct keyed *spare)
{
    for (uint32_t i = 0; i < self->count; i++) {
        double key = key_of(self, order, i) * (rng ? 0.5 + ar_rng_unit(rng) : 1);
        uint64_t bits;
        memcpy(&bits, &key, sizeof bits); /* the bits of positive numbers order as they do */
        keys[i] = (struct keyed){~bits, i};
    }
    const struct keyed *sorted = keyed_sort(keys, spare, self->count);
    for (uint32_t i = 0; i < self->count; i++)
        self->blocks[sorted[i].value].rank = i;
}

bool search_begin(struct search *self)
{
    uint32_t anchor = self->count;
    bool alive = true;
    self->undo_count = self->stack_count = self->stale_count = 0;
    self->steps = 0;
    self->depth = 0;
    self->cut = self->no_memory = false;
    for (uint32_t slot = 0; slot < self->slots; slot++) {
        self->slot[slot].floor = self->slot[slot].rest = 0;
        self->slot[slot].lowest = 0;
    }
    for (uint32_t i = 0; i < self->count; i++) {
        struct search_block *block = &self->blocks[i];
        block->floor = 0;
        block->placed = false;
        block->previous = i ? i - 1 : anchor;
        block->next = i + 1;
        for (uint32_t slot = block->first; slot < block->end; slot++) {
            self->slot[slot].rest += block->size;
            self->slot[slot].lowest++;
        }
    }
    self->blocks[anchor].next = 0;
    self->blocks[anchor].previous = self->count ? self->count - 1 : anchor;
    for (uint32_t slot = 0; slot < self->slots; slot++)
        alive = alive && self->slot[slot].rest <= self->capacity;
    return alive;
}
