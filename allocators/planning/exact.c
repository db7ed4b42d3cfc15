/* The lowest plan.
 *
 * 1. Two bounds approach each other: the proven lower bound, at first the peak of live bytes, and
 *    the best plan.
 * 2. Most attempts search for a plan at the lower bound, where no byte may be wasted and a failure
 *    is seen early. Every third attempt searches between the bounds. A plan lowers the upper bound;
 *    a proof that there is none raises the lower one.
 * 3. Attempts are short at first and grow as 1 1 2 1 1 2 4 .. (Luby et al., 1993). Each has another
 *    order of candidates, varied by random numbers of a fixed seed. An attempt that is not cut is a
 *    proof.
 *
 * The search: is there a plan with at most `capacity` units? A unit is the greatest common divisor
 * of all sizes and alignments.
 *
 * 4. Only slots after which a block dies are kept; the others are part of their next slot. A plan
 *    is canonical if no block can sink: each lies at 0 or on another. If there is a plan, there is
 *    a canonical one.
 * 5. The state: which blocks have a place, and for the others a floor, the lowest offset that they
 *    can have. The floor of a slot is the lowest of its blocks. The remaining blocks of a slot must
 *    fit between its floor and the capacity; otherwise the state is dead.
 * 6. The search branches on one slot: which block lies at its floor? It is one of the blocks with
 *    that floor, or none of them if the slot can waste bytes. A block that gets the place lifts the
 *    floors of those that it meets. If none does, each of them must rest on a block without a
 *    place: its floor rises to the lowest end that such a block can have.
 * 7. The slot may be any in which no candidate can still have another block below it: one that
 *    meets it and can end at or below its floor. The lowest slot always qualifies. The slot with
 *    the fewest branches is chosen. Every other attempt divides the branches by the number of times
 *    that the search failed in the slot; these weights are kept between attempts.
 * 8. If the blocks without a place are not connected in time, the parts are solved one by one, the
 *    smallest first: if one has no plan, the others are skipped.
 * 9. Dead states are kept by a hash over blocks and floors. They do not depend on the order of
 *    candidates, so later attempts use them too.
 * 10. Among candidates with the same life, size and alignment only one is tried.
 *
 * Source: canonical plans, floors, waste, parts and restarts with several orders are ideas of
 * MiniMalloc (Moffitt, ASPLOS 2023) and TelaMalloc (Maas et al., ASPLOS 2023). The choice of any
 * slot instead of the lowest, weights, and dead states are new in this project. */
#include <math.h>

#include "allocators/planning/packing.h"

#include "allocators/base/rng.h"
#include "allocators/base/size.h"

/* ---- the data of the search ------------------------------------------------------------------ */

/* What backtracking restores: the figures of a slot, the floor of a block, or a place. */
struct search_undo {
    uint64_t floor, rest;
    uint32_t index;
    uint32_t lowest; /* of a slot; SEARCH_FLOOR and SEARCH_PLACE: a record of a block */
};

/* A state that has no plan, as a hash of 128 bits. */
struct search_dead {
    uint64_t low, high;
};

struct search_block {
    uint64_t size, align, floor; /* floor: the lowest possible offset */
    uint64_t next_floor;         /* see waste() */
    uint32_t first, end;         /* slots */
    uint32_t previous, next;     /* the list of blocks without a place, by first slot */
    uint32_t rank;               /* the order in which candidates are tried */
    bool placed;
};

struct search_slot {
    uint64_t floor;  /* the lowest of its blocks without a place */
    uint64_t rest;   /* sizes of those */
    uint64_t stamp;  /* the step at which it was saved for undo */
    double weight;   /* how often the search failed here */
    uint32_t lowest; /* the number of blocks with that floor */
};

struct search {
    struct ar_host *host;
    uint32_t count, slots;
    uint64_t unit_bytes;
    struct search_block *blocks; /* by first slot; count + 1, the last is the anchor of the list */
    struct search_slot *slot;
    uint32_t *given;       /* of each block, its index in the packing */
    uint32_t *meets_begin; /* blocks that meet a block */
    uint32_t *meets;
    uint32_t *covers_begin; /* blocks that cover a slot */
    uint32_t *covers;
    uint64_t *offsets;
    struct search_undo *undo;
    uint32_t undo_count, undo_room;
    uint32_t *stack; /* candidates and parts on the way down */
    uint32_t stack_count, stack_room;
    uint32_t *stale; /* slots whose floor must be computed again */
    uint32_t stale_count;
    struct search_dead *dead;
    uint64_t dead_room; /* a power of two */
    /* For one attempt: */
    uint64_t capacity; /* in units */
    uint64_t steps, steps_most;
    uint64_t stamp;
    uint32_t depth;
    bool by_weight; /* prefer slots where the search failed before */
    bool cut;       /* ended without an answer */
    bool no_memory;
    bool (*stop)(void *argument); /* called from time to time; NULL: never */
    void *stop_argument;
};

enum search_answer { SEARCH_FOUND, SEARCH_NONE, SEARCH_CUT };

#define SEARCH_ORDERS 4

#define BLOCKS_MOST 8192     /* the search has a level for each block */
#define PAIRS_MOST  50000000 /* of blocks that meet */
#define DEAD_ROOM   (UINT64_C(1) << 19)
#define FIRST_ROOM  4096

static uint64_t find_unit(const struct packing *packing)
{
    uint64_t unit = 0;
    for (uint32_t i = 0; i < packing->count; i++) {
        unit = ar_size_common_divisor(unit, packing->blocks[i].bytes);
        if (packing->blocks[i].alignment > 1)
            unit = ar_size_common_divisor(unit, packing->blocks[i].alignment);
    }
    return unit ? unit : 1;
}

/* A slot is kept if a block dies before the next one; the others become part of their next slot.
 * Writes for each old slot the number of kept slots before it. */
static uint32_t keep_slots(const struct packing *packing, uint32_t *before)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < packing->count; i++)
        before[packing->end[i]] = 1; /* a block of the slot before ends there */
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

/* Both lists are counted first and then filled. */
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

static void search_close(struct search *self)
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

/* INVALID: the problem is too large to search. HOST_MEMORY. */
static enum ar_status search_open(struct search *self, const struct packing *packing)
{
    size_t bytes = ((size_t)packing->slots + 1) * sizeof(uint32_t);
    *self = (struct search){.host = packing->host, .count = packing->count};
    if (packing->count > BLOCKS_MOST)
        return AR_INVALID;
    uint32_t *before = ar_host_alloc(self->host, bytes);
    AR_TRY_HOST(before);
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

/* The rank of a block: larger keys come first. */
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

/* Sets the order in which candidates are tried. `rng` varies it; NULL does not. */
static void search_rank(struct search *self, unsigned order, struct ar_rng *rng, struct keyed *keys,
                        struct keyed *spare)
{
    for (uint32_t i = 0; i < self->count; i++) {
        double key = key_of(self, order, i) * (rng ? 0.5 + ar_rng_unit(rng) : 1);
        uint64_t bits;
        memcpy(&bits, &key, sizeof bits); /* the bits of positive numbers have the same order */
        keys[i] = (struct keyed){~bits, i};
    }
    const struct keyed *sorted = keyed_sort(keys, spare, self->count);
    for (uint32_t i = 0; i < self->count; i++)
        self->blocks[sorted[i].value].rank = i;
}

/* Begins an attempt. False: a slot alone exceeds the capacity. */
static bool search_begin(struct search *self)
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

/* ---- the search ------------------------------------------------------------------------------ */

#define SEARCH_FLOOR UINT32_MAX /* undo records of blocks */
#define SEARCH_PLACE (UINT32_MAX - 1)
#define STOP_STEPS   128   /* between two calls of `stop` */
#define DEPTH_MOST   10000 /* a level takes up to 600 bytes of the stack */

static uint64_t align_up(uint64_t offset, uint64_t align)
{
    return align > 1 ? (offset + align - 1) / align * align : offset;
}

static bool save(struct search *self, const struct search_undo *undo)
{
    if (self->undo_count == self->undo_room &&
        !ar_host_extend(self->host, &self->undo, &self->undo_room, self->undo_room * 2,
                        sizeof *self->undo)) {
        self->cut = self->no_memory = true;
        return false;
    }
    self->undo[self->undo_count++] = *undo;
    return true;
}

static void take_back(struct search *self, uint32_t index)
{
    struct search_block *block = &self->blocks[index];
    block->placed = false;
    self->blocks[block->previous].next = index;
    self->blocks[block->next].previous = index;
}

static void undo_to(struct search *self, uint32_t mark)
{
    while (self->undo_count > mark) {
        const struct search_undo *undo = &self->undo[--self->undo_count];
        if (undo->lowest == SEARCH_PLACE) {
            take_back(self, undo->index);
        } else if (undo->lowest == SEARCH_FLOOR) {
            self->blocks[undo->index].floor = undo->floor;
        } else {
            struct search_slot *slot = &self->slot[undo->index];
            slot->floor = undo->floor;
            slot->rest = undo->rest;
            slot->lowest = undo->lowest;
        }
    }
}

/* A block has left the floor of its slots, or it has a place now. */
static bool leave_floor(struct search *self, uint32_t index, uint64_t floor, uint64_t rest)
{
    const struct search_block *block = &self->blocks[index];
    for (uint32_t i = block->first; i < block->end; i++) {
        struct search_slot *slot = &self->slot[i];
        if (slot->floor != floor && !rest)
            continue;
        if (slot->stamp != self->stamp) {
            const struct search_undo undo = {slot->floor, slot->rest, i, slot->lowest};
            if (!save(self, &undo))
                return false;
            slot->stamp = self->stamp;
        }
        slot->rest -= rest;
        if (slot->floor == floor && slot->lowest > 0 && --slot->lowest == 0)
            self->stale[self->stale_count++] = i;
    }
    return true;
}

static bool lift(struct search *self, uint32_t index, uint64_t floor)
{
    struct search_block *block = &self->blocks[index];
    floor = align_up(floor, block->align);
    if (floor <= block->floor)
        return true;
    if (floor > self->capacity || block->size > self->capacity - floor)
        return false;
    const struct search_undo undo = {block->floor, 0, index, SEARCH_FLOOR};
    if (!save(self, &undo))
        return false;
    uint64_t old = block->floor;
    block->floor = floor;
    return leave_floor(self, index, old, 0);
}

/* Computes the floors of slots that lost their lowest block. False: the state is dead. */
static bool refresh(struct search *self)
{
    bool alive = true;
    for (uint32_t i = 0; i < self->stale_count && alive; i++) {
        struct search_slot *slot = &self->slot[self->stale[i]];
        uint32_t begin = self->covers_begin[self->stale[i]];
        uint32_t end = self->covers_begin[self->stale[i] + 1];
        slot->floor = UINT64_MAX;
        for (uint32_t at = begin; at < end; at++) {
            const struct search_block *block = &self->blocks[self->covers[at]];
            if (block->placed || block->floor > slot->floor)
                continue;
            slot->lowest = block->floor == slot->floor ? slot->lowest + 1 : 1;
            slot->floor = block->floor;
        }
        if (slot->rest && slot->floor + slot->rest > self->capacity) {
            slot->weight += 1;
            alive = false;
        }
    }
    self->stale_count = 0;
    return alive;
}

/* Places the block at its floor. False: the state is dead. undo_to undoes both. */
static bool place(struct search *self, uint32_t index)
{
    struct search_block *block = &self->blocks[index];
    const struct search_undo undo = {0, 0, index, SEARCH_PLACE};
    if (!save(self, &undo))
        return false;
    self->stamp++;
    self->offsets[index] = block->floor;
    block->placed = true;
    self->blocks[block->previous].next = block->next;
    self->blocks[block->next].previous = block->previous;
    bool alive = leave_floor(self, index, block->floor, block->size);
    for (uint32_t at = self->meets_begin[index]; at < self->meets_begin[index + 1] && alive; at++)
        if (!self->blocks[self->meets[at]].placed)
            alive = lift(self, self->meets[at], block->floor + block->size);
    if (!alive)
        self->stale_count = 0;
    return alive && refresh(self);
}

/* Whether a block that meets this one can still lie below its floor. */
static bool could_have_one_below(const struct search *self, uint32_t index)
{
    uint64_t floor = self->blocks[index].floor;
    for (uint32_t at = self->meets_begin[index]; at < self->meets_begin[index + 1]; at++) {
        const struct search_block *other = &self->blocks[self->meets[at]];
        if (!other->placed && other->floor + other->size <= floor)
            return true;
    }
    return false;
}

static bool qualifies(const struct search *self, uint32_t slot)
{
    for (uint32_t at = self->covers_begin[slot]; at < self->covers_begin[slot + 1]; at++) {
        const struct search_block *block = &self->blocks[self->covers[at]];
        if (!block->placed && block->floor == self->slot[slot].floor &&
            could_have_one_below(self, self->covers[at]))
            return false;
    }
    return true;
}

static uint64_t waste_of(const struct search *self, const struct search_slot *slot)
{
    return self->capacity - slot->floor - slot->rest;
}

/* At least `most` if it is not below that: a division for each slot takes much of the time. */
static double cost_of(const struct search *self, const struct search_slot *slot, double most)
{
    double branches = slot->lowest + (waste_of(self, slot) > 0 ? 1 : 0);
    if (branches > 1 && self->by_weight)
        branches /= slot->weight;
    if (branches >= most)
        return branches;
    return branches + 0.001 * (double)waste_of(self, slot) / (double)self->capacity;
}

/* The slot to branch on, among those from `first` to before `end`. */
static uint32_t choose_slot(const struct search *self, uint32_t first, uint32_t end)
{
    double tried_cost = -1;
    uint32_t tried =
        first; /* slots of lower cost, or of the same cost up to here, do not qualify */
    for (;;) {
        double best_cost = HUGE_VAL;
        uint32_t best = end;
        for (uint32_t i = first; i < end; i++) {
            if (!self->slot[i].rest)
                continue;
            double cost = cost_of(self, &self->slot[i], best_cost);
            if (cost >= best_cost || cost < tried_cost || (cost == tried_cost && i <= tried))
                continue;
            best = i;
            best_cost = cost;
        }
        if (best == end || qualifies(self, best))
            return best;
        tried = best;
        tried_cost = best_cost;
    }
}

static bool push(struct search *self, uint32_t value)
{
    if (self->stack_count == self->stack_room &&
        !ar_host_extend(self->host, &self->stack, &self->stack_room, self->stack_room * 2,
                        sizeof *self->stack)) {
        self->cut = self->no_memory = true;
        return false;
    }
    self->stack[self->stack_count++] = value;
    return true;
}

/* Pushes the candidates of a slot in the order of their rank. */
static bool push_candidates(struct search *self, uint32_t slot)
{
    uint32_t begin = self->stack_count;
    for (uint32_t at = self->covers_begin[slot]; at < self->covers_begin[slot + 1]; at++) {
        const struct search_block *block = &self->blocks[self->covers[at]];
        if (block->placed || block->floor != self->slot[slot].floor)
            continue;
        uint32_t to = self->stack_count;
        if (!push(self, self->covers[at]))
            return false;
        for (; to > begin && self->blocks[self->stack[to - 1]].rank > block->rank; to--)
            self->stack[to] = self->stack[to - 1];
        self->stack[to] = self->covers[at];
    }
    return true;
}

/* Whether an earlier candidate has the same life, size and alignment. */
static bool was_tried(const struct search *self, size_t begin, size_t at)
{
    const struct search_block *block = &self->blocks[self->stack[at]];
    for (size_t i = begin; i < at; i++) {
        const struct search_block *other = &self->blocks[self->stack[i]];
        if (other->first == block->first && other->end == block->end &&
            other->size == block->size && other->align == block->align)
            return true;
    }
    return false;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A part: connected blocks without a place, from `first` to `last` in the list. */
struct part {
    uint32_t first, last, count, slot_end;
};

#define PART_WORDS 4 /* of a part on the stack */

static struct search_dead name_of(const struct search *self, const struct part *part)
{
    struct search_dead name = {mix(self->capacity), self->capacity};
    for (uint32_t at = part->first;; at = self->blocks[at].next) {
        uint64_t one = mix(self->blocks[at].floor * UINT64_C(0x9e3779b97f4a7c15) + at);
        name.low += one;
        name.high += mix(one + UINT64_C(0xd1b54a32d192ed03));
        if (at == part->last)
            return name;
    }
}

static bool is_dead(const struct search *self, const struct search_dead *name)
{
    const struct search_dead *dead = &self->dead[name->low & (self->dead_room - 1)];
    return dead->low == name->low && dead->high == name->high;
}

static bool solve_parts(struct search *self, uint32_t first, uint32_t last);

/* No candidate lies at the floor of the slot: their floors rise. */
static bool waste(struct search *self, const struct part *part, size_t begin, size_t end)
{
    bool alive = true;
    for (size_t i = begin; i < end; i++) { /* for all in the present state */
        uint32_t index = self->stack[i];
        uint64_t least = UINT64_MAX;
        for (uint32_t at = self->meets_begin[index]; at < self->meets_begin[index + 1]; at++) {
            const struct search_block *other = &self->blocks[self->meets[at]];
            if (!other->placed && other->floor + other->size < least)
                least = other->floor + other->size;
        }
        self->blocks[index].next_floor = least;
        alive = alive && least <= self->capacity;
    }
    self->stamp++;
    for (size_t i = begin; i < end && alive; i++)
        alive = lift(self, self->stack[i], self->blocks[self->stack[i]].next_floor);
    if (!alive)
        self->stale_count = 0;
    return alive && refresh(self) && solve_parts(self, part->first, part->last);
}

/* Places the block at its floor, then the rest. */
static bool descend(struct search *self, const struct part *part, uint32_t index)
{
    uint32_t first = part->first == index ? self->blocks[index].next : part->first;
    uint32_t last = part->last == index ? self->blocks[index].previous : part->last;
    return place(self, index) && (part->count == 1 || solve_parts(self, first, last));
}

static bool may_go_on(struct search *self)
{
    self->steps++;
    if (self->steps >= self->steps_most || self->depth > DEPTH_MOST ||
        (self->steps % STOP_STEPS == 0 && self->stop && self->stop(self->stop_argument)))
        self->cut = true;
    return !self->cut;
}

static bool solve(struct search *self, const struct part *part)
{
    uint32_t mark = self->undo_count, begin = self->stack_count;
    struct search_dead name = name_of(self, part);
    if (!may_go_on(self) || is_dead(self, &name))
        return false;
    uint32_t slot = choose_slot(self, self->blocks[part->first].first, part->slot_end);
    bool wastes = waste_of(self, &self->slot[slot]) > 0;
    bool found = false, pushed = push_candidates(self, slot);
    uint32_t end = self->stack_count;
    for (size_t i = begin; i < end && pushed && !found && !self->cut; i++) {
        if (was_tried(self, begin, i))
            continue;
        found = descend(self, part, self->stack[i]);
        if (!found)
            undo_to(self, mark);
    }
    if (!found && wastes && !self->cut) {
        found = waste(self, part, begin, end);
        if (!found)
            undo_to(self, mark);
    }
    self->stack_count = begin;
    if (!found && !self->cut)
        self->dead[name.low & (self->dead_room - 1)] = name;
    return found;
}

/* Pushes the parts of the blocks from `first` to `last`, the smallest first. */
static bool push_parts(struct search *self, uint32_t first, uint32_t last)
{
    uint32_t begin = self->stack_count;
    for (uint32_t at = first;;) {
        struct part part = {at, at, 1, self->blocks[at].end};
        while (part.last != last &&
               self->blocks[self->blocks[part.last].next].first < part.slot_end) {
            part.last = self->blocks[part.last].next;
            part.count++;
            if (self->blocks[part.last].end > part.slot_end)
                part.slot_end = self->blocks[part.last].end;
        }
        const uint32_t words[PART_WORDS] = {part.first, part.last, part.count, part.slot_end};
        uint32_t to = self->stack_count;
        for (int i = 0; i < PART_WORDS; i++)
            if (!push(self, words[i]))
                return false;
        for (; to > begin && self->stack[to - 2] > part.count; to -= PART_WORDS)
            memcpy(&self->stack[to], &self->stack[to - PART_WORDS], sizeof words);
        memcpy(&self->stack[to], words, sizeof words);
        if (part.last == last)
            return true;
        at = self->blocks[part.last].next;
    }
}

static bool solve_parts(struct search *self, uint32_t first, uint32_t last)
{
    uint32_t begin = self->stack_count;
    bool found = push_parts(self, first, last);
    uint32_t end = self->stack_count;
    for (size_t at = begin; at < end && found; at += PART_WORDS) {
        const uint32_t *words = &self->stack[at];
        const struct part part = {words[0], words[1], words[2], words[3]};
        self->depth++;
        found = solve(self, &part);
        self->depth--;
    }
    self->stack_count = begin;
    return found;
}

/* FOUND: `offsets` is a plan. NONE: there is none, which is proven. CUT: no answer in so many
 * steps, the caller stopped it, or `no_memory`. */
static enum search_answer search_try(struct search *self, uint64_t steps_most)
{
    self->steps_most = steps_most;
    if (self->count == 0)
        return SEARCH_FOUND;
    if (solve_parts(self, self->blocks[self->count].next, self->blocks[self->count].previous))
        return SEARCH_FOUND;
    return self->cut ? SEARCH_CUT : SEARCH_NONE;
}

/* ---- attempts -------------------------------------------------------------------------------- */

#define STEPS_UNIT 1000

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..; `index` from 1. */
static uint64_t luby(uint64_t index)
{
    for (;;) {
        uint64_t whole = 1;
        while (whole < index)
            whole = 2 * whole + 1;
        if (whole == index)
            return (whole + 1) / 2;
        index -= whole / 2;
    }
}

struct exact {
    struct search search;
    const struct packing_exact_options *options;
    struct packing_exact *out;
    uint64_t *offsets;
    struct keyed *keys, *spare;
    struct ar_rng rng;
    uint64_t least, top; /* in units */
};

static void keep_plan(struct exact *self)
{
    const struct search *search = &self->search;
    self->top = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        uint64_t end = search->offsets[i] + search->blocks[i].size;
        self->offsets[search->given[i]] = search->offsets[i] * search->unit_bytes;
        self->top = end > self->top ? end : self->top;
    }
    self->out->top_bytes = self->top * search->unit_bytes;
}

/* The capacity of the next attempt: the lower bound, or a value between the bounds. */
static uint64_t next_capacity(const struct exact *self)
{
    uint64_t room = self->top - 1 - self->least;
    switch (self->out->attempts % 12) {
    case 5:
        return self->least + room / 2;
    case 8:
        return self->top - 1;
    case 11:
        return self->least + room / 8;
    default:
        return self->least;
    }
}

static enum search_answer attempt(struct exact *self, uint64_t steps_most)
{
    struct search *search = &self->search;
    uint64_t number = self->out->attempts++;
    search->by_weight = number % 2 == 0;
    if (!search_begin(search))
        return SEARCH_NONE;
    search_rank(search, (unsigned)(number / 2 % SEARCH_ORDERS),
                number < 2 * SEARCH_ORDERS ? NULL : &self->rng, self->keys, self->spare);
    enum search_answer answer = search_try(search, steps_most);
    self->out->steps += search->steps;
    return answer;
}

static void close_in(struct exact *self)
{
    const struct packing_exact_options *options = self->options;
    struct search *search = &self->search;
    while (self->least < self->top) {
        uint64_t most = STEPS_UNIT * luby(self->out->attempts / (2 * SEARCH_ORDERS) + 1);
        if (options->steps_most && most > options->steps_most - self->out->steps)
            most = options->steps_most - self->out->steps;
        search->capacity = next_capacity(self);
        enum search_answer answer = attempt(self, most);
        if (answer == SEARCH_FOUND)
            keep_plan(self);
        else if (answer == SEARCH_NONE)
            self->least = search->capacity + 1;
        else if (search->no_memory || (options->stop && options->stop(options->argument)) ||
                 (options->steps_most && self->out->steps >= options->steps_most))
            break;
    }
}

static enum ar_status prepare(struct exact *self, const struct packing *packing)
{
    size_t bytes = ((size_t)packing->count + 1) * sizeof(struct keyed);
    AR_TRY(search_open(&self->search, packing));
    ar_rng_seed(&self->rng, 1);
    self->keys = ar_host_alloc(packing->host, bytes);
    self->spare = ar_host_alloc(packing->host, bytes);
    self->search.stop = self->options->stop;
    self->search.stop_argument = self->options->argument;
    return self->keys && self->spare ? AR_OK : AR_HOST_MEMORY;
}

enum ar_status packing_exact(const struct packing *self,
                             const struct packing_exact_options *options, uint64_t *offsets,
                             struct packing_exact *out)
{
    struct exact exact = {.options = options, .out = out, .offsets = offsets};
    size_t bytes = ((size_t)self->count + 1) * sizeof(struct keyed);
    out->least_bytes = self->peak_bytes;
    out->steps = out->attempts = 0;
    out->end = PACKING_EXACT_MEETS_BOUND;
    if (out->top_bytes <= out->least_bytes)
        return AR_OK;
    enum ar_status status = prepare(&exact, self);
    out->end = PACKING_EXACT_TOO_LARGE;
    if (!status) {
        uint64_t unit_bytes = exact.search.unit_bytes;
        exact.least = (self->peak_bytes + unit_bytes - 1) / unit_bytes;
        exact.top = (out->top_bytes + unit_bytes - 1) / unit_bytes;
        close_in(&exact);
        out->least_bytes = exact.least * unit_bytes;
        out->end = exact.least < exact.top              ? PACKING_EXACT_CUT
                   : out->top_bytes == self->peak_bytes ? PACKING_EXACT_MEETS_BOUND
                                                        : PACKING_EXACT_EXHAUSTED;
        status = exact.search.no_memory ? AR_HOST_MEMORY : AR_OK;
    }
    ar_host_free(self->host, exact.keys, bytes);
    ar_host_free(self->host, exact.spare, bytes);
    search_close(&exact.search);
    return status == AR_INVALID ? AR_OK : status;
}
