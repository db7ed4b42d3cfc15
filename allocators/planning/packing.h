/* Offline placement (dynamic storage allocation): all lifetimes are known, and each block gets an
 * offset in one arena. Blocks that live at the same time must not overlap, and the top of the arena
 * should be low. */
#pragma once

#include "allocators/base/host.h"
#include "allocators/base/status.h"

/* Live in [born, dies), in any unit. `bytes` > 0, born < dies. */
struct packing_block {
    uint64_t bytes, born, dies;
    uint64_t alignment; /* of the offset: a power of two; 0 and 1: none */
};

/* Sums of live bytes and offsets are below this. */
#define PACKING_LIMIT (UINT64_C(1) << 62)

#define PACKING_NOWHERE UINT64_MAX /* the offset of a block without a place */

/* The prepared problem. Time is divided into slots, one for each moment at which a block is born.
 * Two blocks meet exactly if they share a slot. */
struct packing {
    struct ar_host *host;
    const struct packing_block *blocks; /* owned by the caller */
    uint32_t count, slots;
    uint32_t *first, *end; /* of each block, its slots [first, end) */
    uint32_t *by_birth;    /* blocks by first slot, then as given */
    uint32_t *slot_begin;  /* of each slot, the start of its blocks in by_birth; slots + 1 */
    uint64_t *slot_born;   /* of each slot, its moment */
    uint64_t *slot_bytes;  /* of each slot, the live bytes */
    uint64_t peak_bytes;   /* the maximum of them: no plan has a lower top */
    uint32_t peak_slot;    /* the first slot with the peak */
};

/* INVALID: a block is not valid, or live bytes exceed PACKING_LIMIT. HOST_MEMORY. On failure all
 * memory is freed. Takes its memory from `host`; O(n log n). */
enum ar_status packing_open(struct packing *self, struct ar_host *host,
                            const struct packing_block *blocks, size_t count,
                            struct ar_error *error);
void packing_close(struct packing *self);

/* Places all blocks in that order, each at the lowest offset at which it overlaps no block placed
 * before it. `offsets` has an entry for each block. `*top_bytes` is the greatest end. If a block
 * would end above `most_bytes`, the plan stops and `*top_bytes` is PACKING_NOWHERE. `*steps`, which
 * may be NULL, grows by the number of steps, which is the same on every machine: n log n with few
 * gaps between the blocks, at worst the number of pairs of blocks that meet. HOST_MEMORY. */
enum ar_status packing_place(const struct packing *self, const uint32_t *order, uint64_t most_bytes,
                             uint64_t *offsets, uint64_t *top_bytes, uint64_t *steps);

struct keyed {
    uint64_t key, value;
};

/* A stable sort by key in ascending order. `spare` has room for as many. The result is in one of
 * the two arrays. O(n log n) at most. */
struct keyed *keyed_sort(struct keyed *keys, struct keyed *spare, size_t count);

/* ---- the lowest plan (exact.c) ---- */

/* The search ends with a proof, or with the bounds that it reached. */
struct packing_exact_options {
    uint64_t steps_most; /* of the search; 0: no limit. If nothing else ends it, the result is
                            the same on every machine */
    bool (*stop)(void *argument); /* called from time to time: true ends the search; NULL: never */
    void *argument;
};

enum packing_exact_end {
    PACKING_EXACT_MEETS_BOUND, /* the plan is as low as the peak of live bytes */
    PACKING_EXACT_EXHAUSTED,   /* there is no lower plan */
    PACKING_EXACT_CUT,         /* the search was ended early */
    PACKING_EXACT_TOO_LARGE,   /* too many blocks, not searched */
};

struct packing_exact {
    enum packing_exact_end end;
    uint64_t top_bytes;   /* of the best plan */
    uint64_t least_bytes; /* proven lower bound; if equal, the plan is optimal */
    uint64_t steps, attempts;
};

/* `offsets` is a plan with the top `out->top_bytes` and is replaced by lower ones. HOST_MEMORY: it
 * is the best plan so far. */
enum ar_status packing_exact(const struct packing *self,
                             const struct packing_exact_options *options, uint64_t *offsets,
                             struct packing_exact *out);

/* ---- orders (orders.c) ---- */

/* The orders. Ties: by birth, then as given. */
#define PACKING_ORDERS(X)                                                                          \
    X(size, "largest first")                                                                       \
    X(area, "bytes times lifetime, largest first")                                                 \
    X(lifetime, "longest first, larger first among equals")                                        \
    X(birth, "first born first, larger first among equals")                                        \
    X(death, "last to die first, larger first among equals")                                       \
    X(class, "by powers of two of the size, largest first; longest first within a power")          \
    X(crowd, "most live bytes during the life first, larger first among equals")                   \
    X(weight, "size times the square root of the lifetime, largest first")

enum packing_order {
#define X(name, help) PACKING_ORDER_##name,
    PACKING_ORDERS(X)
#undef X
        PACKING_ORDER_COUNT
};

const char *packing_order_name(enum packing_order order);
const char *packing_order_help(enum packing_order order);

/* packing_place in that order, without a bound. */
enum ar_status packing_place_by(const struct packing *self, enum packing_order order,
                                uint64_t *offsets, uint64_t *top_bytes, uint64_t *steps);

/* The lowest plan of all orders, the first order among equals. `tops_bytes` has an entry for each
 * order: PACKING_NOWHERE if it was not tried, because the orders before it took too many steps. */
struct packing_best {
    enum packing_order order;
    uint64_t top_bytes;
    uint64_t tops_bytes[PACKING_ORDER_COUNT];
};

/* `offsets` gets the best plan. */
enum ar_status packing_best_order(const struct packing *self, uint64_t *offsets,
                                  struct packing_best *best);
