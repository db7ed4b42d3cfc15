/* Offline placement by rule: several orders in which blocks are placed. */
#ifndef ALLOCATORS_PLANNING_ORDERS_H
#define ALLOCATORS_PLANNING_ORDERS_H

#include "allocators/planning/packing.h"

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
                                uint64_t *offsets, uint64_t *top_bytes,
                                uint64_t *steps) AR_STATUS_CHECKED;

/* The lowest plan of all orders, the first order among equals. `tops_bytes` has an entry for each
 * order: PACKING_NOWHERE if it was not tried, because the orders before it took too many steps. */
struct packing_best {
    enum packing_order order;
    uint64_t top_bytes;
    uint64_t tops_bytes[PACKING_ORDER_COUNT];
};

/* `offsets` gets the best plan. */
enum ar_status packing_best_order(const struct packing *self, uint64_t *offsets,
                                  struct packing_best *best) AR_STATUS_CHECKED;

#endif
