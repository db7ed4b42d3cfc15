/* Does a plan with at most `capacity` units exist?
 *
 * 1. Time is cut into slots; only those count after which a block dies: the others' blocks are a
 *    part of their next slot's. A plan is canonical if no block can sink: each lies at 0 or on
 *    another. If there is a plan there is a canonical one.
 * 2. State: which blocks have a place, and for the others a floor, an offset below which they
 *    cannot lie. A slot's floor is the lowest of its blocks'. What is left of a slot's blocks must
 *    fit between its floor and the capacity; else the state is dead.
 * 3. Branch on one slot: what lies at its floor? One of the blocks whose floor that is, or none
 *    of them, where the slot has bytes to waste. A block that gets that place lifts the floors of
 *    those it meets. If none does, each of them must rest on a block without a place: its floor
 *    rises to the lowest end that such a block can have.
 * 4. The slot may be any at which no candidate could still have another block below it: one
 *    that meets it and could end at or below its floor. The lowest slot always qualifies. The
 *    fewest branches win; every other attempt divides them by how often the slot was where the
 *    search failed (weights are kept from attempt to attempt).
 * 5. Where the blocks without a place fall apart in time, the parts are solved one by one,
 *    the smallest first: if one has no plan, the others need not be looked at.
 * 6. Dead states are remembered by a hash over blocks and floors. They do not depend on the order
 *    in which candidates are tried, so that later attempts profit too.
 * 7. Of candidates with the same life, size and alignment only one is tried.
 *
 * Source: canonical plans, floors, waste, parts and restarts with several orders are ideas of
 * MiniMalloc (Moffitt, ASPLOS 2023) and TelaMalloc (Maas et al., ASPLOS 2023); choosing any slot
 * instead of the lowest, weights, and dead states are this project's. */
#include "allocators/planning/search.h"

#include <string.h>

#define SEARCH_FLOOR UINT32_MAX /* undo records of blocks */
#define SEARCH_PLACE (UINT32_MAX - 1)
#define STOP_STEPS   128   /* so often the caller is asked */
#define DEPTH_MOST   10000 /* a level takes up to 600 bytes of the stack */

static uint64_t align_up(uint64_t offset, uint64_t align)
{
    return align > 1 ? (offset + align - 1) / align * align : offset;
}

static bool save(struct search *self, const struct search_undo *undo)
{
    if (self->undo_count == self->undo_room) {
        size_t room = self->undo_room * 2;
        struct search_undo *grown =
            ar_host_grow(self->host, self->undo, self->undo_room, room, sizeof *grown);
        if (!grown) {
            self->cut = self->no_memory = true;
            return false;
        }
        self->undo = grown;
        self->undo_room = room;
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

static void undo_to(struct search *self, size_t mark)
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

/* A block no longer has its slots' floor, or no longer is without a place. */
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

/* Finds the floors of slots that lost their lowest block. False: the state is dead. */
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

/* The block lies at its floor. False: the state is dead. Undone by undo_to in both cases. */
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

/* Whether a block that meets this one could still lie wholly below its floor. */
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

static double cost_of(const struct search *self, const struct search_slot *slot)
{
    double branches = slot->lowest + (waste_of(self, slot) > 0 ? 1 : 0);
    if (branches > 1 && self->by_weight)
        branches /= slot->weight;
    return branches + 0.001 * (double)waste_of(self, slot) / (double)self->capacity;
}

/* The slot to branch on, among those from `first` to before `end`. */
static uint32_t choose_slot(const struct search *self, uint32_t first, uint32_t end)
{
    double tried_cost = -1;
    uint32_t tried = first; /* those of a lower cost, or the same and before this, do not qualify */
    for (;;) {
        double best_cost = 0;
        uint32_t best = end;
        for (uint32_t i = first; i < end; i++) {
            if (!self->slot[i].rest)
                continue;
            double cost = cost_of(self, &self->slot[i]);
            if (cost < tried_cost || (cost == tried_cost && i <= tried))
                continue;
            if (best == end || cost < best_cost) {
                best = i;
                best_cost = cost;
            }
        }
        if (best == end || qualifies(self, best))
            return best;
        tried = best;
        tried_cost = best_cost;
    }
}

static bool push(struct search *self, uint32_t value)
{
    if (self->stack_count == self->stack_room) {
        size_t room = self->stack_room * 2;
        uint32_t *grown =
            ar_host_grow(self->host, self->stack, self->stack_room, room, sizeof *grown);
        if (!grown) {
            self->cut = self->no_memory = true;
            return false;
        }
        self->stack = grown;
        self->stack_room = room;
    }
    self->stack[self->stack_count++] = value;
    return true;
}

/* Pushes the candidates of a slot in the order in which to try them. */
static bool push_candidates(struct search *self, uint32_t slot)
{
    size_t begin = self->stack_count;
    for (uint32_t at = self->covers_begin[slot]; at < self->covers_begin[slot + 1]; at++) {
        const struct search_block *block = &self->blocks[self->covers[at]];
        if (block->placed || block->floor != self->slot[slot].floor)
            continue;
        size_t to = self->stack_count;
        if (!push(self, self->covers[at]))
            return false;
        for (; to > begin && self->blocks[self->stack[to - 1]].rank > block->rank; to--)
            self->stack[to] = self->stack[to - 1];
        self->stack[to] = self->covers[at];
    }
    return true;
}

/* Whether one of the candidates before it is the same in all that counts. */
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

/* A part: blocks without a place, from one to another in the ring, that hang together. */
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

/* None of the candidates lies at the slot's floor: theirs rise. */
static bool waste(struct search *self, const struct part *part, size_t begin, size_t end)
{
    bool alive = true;
    for (size_t i = begin; i < end; i++) { /* all from the state as it is */
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

/* The block at its floor, then the rest. */
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
    size_t mark = self->undo_count, begin = self->stack_count;
    struct search_dead name = name_of(self, part);
    if (!may_go_on(self) || is_dead(self, &name))
        return false;
    uint32_t slot = choose_slot(self, self->blocks[part->first].first, part->slot_end);
    bool wastes = waste_of(self, &self->slot[slot]) > 0;
    bool found = false, pushed = push_candidates(self, slot);
    size_t end = self->stack_count;
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

/* Pushes the parts into which the blocks from `first` to `last` fall, the smallest first. */
static bool push_parts(struct search *self, uint32_t first, uint32_t last)
{
    size_t begin = self->stack_count;
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
        size_t to = self->stack_count;
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
    size_t begin = self->stack_count;
    bool found = push_parts(self, first, last);
    size_t end = self->stack_count;
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

enum search_answer search_try(struct search *self, uint64_t steps_most)
{
    self->steps_most = steps_most;
    if (self->count == 0)
        return SEARCH_FOUND;
    if (solve_parts(self, self->blocks[self->count].next, self->blocks[self->count].previous))
        return SEARCH_FOUND;
    return self->cut ? SEARCH_CUT : SEARCH_NONE;
}
