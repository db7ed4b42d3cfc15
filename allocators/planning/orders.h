/* Offline placement by rule: several orders in which blocks are placed one after the other. */
#ifndef ALLOCATORS_PLANNING_ORDERS_H
#define ALLOCATORS_PLANNING_ORDERS_H

#include "allocators/planning/packing.h"

/* The orders; ties in all of them: by first birth, then as given. */
#define PACKING_ORDERS(X)                                                                          \
    X(size, "largest first")                                                                       \
    X(area, "bytes times lifetime, largest first")                                                 \
    X(lifetime, "longest first, larger first among equals")                                        \
    X(birth, "born first, larger first among equals")                                              \
    X(death, "last to die first, larger first among equals")                                       \
    X(class, "by powers of two of the size, largest first; longest first within one")              \
    X(crowd, "those that meet the most live bytes first, larger first among equals")               \
    X(weight, "size times the square root of the lifetime, largest first")

enum packing_order {
#define X(name, help) PACKING_ORDER_##name,
    PACKING_ORDERS(X)
#undef X
        PACKING_ORDER_COUNT
};

const char *packing_order_name(enum packing_order order);
const char *packing_order_help(enum packing_order order);

/* Places all blocks in that order, as high as it takes; as packing_place. */
enum ar_status packing_place_by(const struct packing *self, enum packing_order order,
                                uint64_t *offsets, uint64_t *top_bytes,
                                uint64_t *steps) AR_STATUS_CHECKED;

/* The lowest plan that the orders find, the earlier order among equals. `tops_bytes` has an entry
 * for each order: PACKING_NOWHERE where it was not tried, since the problem is so large that the
 * orders before it were work enough. */
struct packing_best {
    enum packing_order order;
    uint64_t top_bytes;
    uint64_t tops_bytes[PACKING_ORDER_COUNT];
};

/* `offsets` gets the best plan. */
enum ar_status packing_best_order(const struct packing *self, uint64_t *offsets,
                                  struct packing_best *best) AR_STATUS_CHECKED;

#endif
