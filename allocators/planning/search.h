/* Is there a plan with at most so many bytes? A complete search, in bounded steps. Inner part of
 * exact.h. Sizes and offsets are in units: the greatest common divisor of all sizes and
 * alignments. */
#ifndef ALLOCATORS_PLANNING_SEARCH_H
#define ALLOCATORS_PLANNING_SEARCH_H

#include "allocators/base/rng.h"
#include "allocators/planning/keyed.h"
#include "allocators/planning/packing.h"

/* What the search undoes when it turns back: a slot's figures, a block's floor, a place. */
struct search_undo {
    uint64_t floor, rest;
    uint32_t index;
    uint32_t lowest; /* of a slot; SEARCH_FLOOR and SEARCH_PLACE: it is of a block */
};

/* A state that was shown to have no plan: a hash of 128 bits. */
struct search_dead {
    uint64_t low, high;
};

struct search_block {
    uint64_t size, align, floor; /* floor: it lies there or higher */
    uint64_t next_floor;         /* see waste() */
    uint32_t first, end;         /* slots */
    uint32_t previous, next;     /* those without a place, by first slot */
    uint32_t rank;               /* in which order candidates are tried */
    bool placed;
};

struct search_slot {
    uint64_t floor;  /* the lowest of its blocks without a place */
    uint64_t rest;   /* sizes of those */
    uint64_t stamp;  /* the step at which it was saved for the undo */
    double weight;   /* how often it was where the search failed */
    uint32_t lowest; /* how many have that floor */
};

struct search {
    struct ar_host *host;
    uint32_t count, slots;
    uint64_t unit_bytes;
    struct search_block *blocks; /* by first slot; count + 1, the last is the ring's anchor */
    struct search_slot *slot;
    uint32_t *given;       /* of each block, its index in the packing */
    uint32_t *meets_begin; /* blocks that meet a block */
    uint32_t *meets;
    uint32_t *covers_begin; /* blocks that cover a slot */
    uint32_t *covers;
    uint64_t *offsets;
    struct search_undo *undo;
    size_t undo_count, undo_room;
    uint32_t *stack; /* candidates and parts on the way down */
    size_t stack_count, stack_room;
    uint32_t *stale; /* slots to look at again */
    uint32_t stale_count;
    struct search_dead *dead;
    uint64_t dead_room; /* a power of two */
    /* Of one attempt: */
    uint64_t capacity; /* in units */
    uint64_t steps, steps_most;
    uint64_t stamp;
    uint32_t depth;
    bool by_weight; /* choose slots where the search failed before */
    bool cut;       /* it ended without an answer */
    bool no_memory;
    bool (*stop)(void *argument); /* asked now and then; NULL: never */
    void *stop_argument;
};

enum search_answer { SEARCH_FOUND, SEARCH_NONE, SEARCH_CUT };

/* INVALID: too large a problem to search. HOST_MEMORY. */
enum ar_status search_open(struct search *self, const struct packing *packing) AR_STATUS_CHECKED;
void search_close(struct search *self);

/* FOUND: `offsets` are a plan. NONE: there is none; it is proven. CUT: neither in so many
 * steps, or the caller's stop, or `no_memory`. An attempt begins with search_begin (false: a slot
 * alone has more than the capacity) and search_rank, which says in which order candidates are
 * tried; `rng` blurs it, NULL does not; `keys` and `spare` have room for all blocks. */
#define SEARCH_ORDERS 4
bool search_begin(struct search *self);
void search_rank(struct search *self, unsigned order, struct ar_rng *rng, struct keyed *keys,
                 struct keyed *spare);
enum search_answer search_try(struct search *self, uint64_t steps_most);

#endif
