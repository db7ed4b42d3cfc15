/* How little memory a trace could run in: lower bounds that hold for every policy, and offline
 * plans, which know the whole trace in advance. */
#ifndef SIM_BOUNDS_BOUNDS_H
#define SIM_BOUNDS_BOUNDS_H

#include "allocators/planning/exact.h"
#include "allocators/planning/orders.h"
#include "sim/bounds/blocks.h"

#define BOUND_PAGE_BYTES (UINT64_C(2) << 20)

struct bounds {
    uint64_t live_peak_bytes; /* requested bytes: no policy holds less */
    uint64_t live_peak_event;
    uint64_t pages_bytes; /* the same in whole pages, for policies that hold pages */
    uint64_t least_bytes; /* live peak with sizes in granules: no plan has a lower top */
    uint64_t
        best_fit_bytes; /* extent of one unbounded arena under the textbook fits, which do not */
    uint64_t first_fit_bytes; /* know later requests */
    struct packing_best orders;
    uint64_t *offsets;  /* of the lowest plan so far; bounds_close */
    uint64_t top_bytes; /* of that plan */
    bool searched;      /* bounds_search was called; then `exact` is valid */
    struct packing_exact exact;
};

/* Everything except the exact search. Returns INVALID or HOST_MEMORY on failure. On success the
 * caller closes the bounds. */
enum ar_status bounds_find(const struct bound_blocks *blocks, struct bounds *out,
                           struct ar_error *error) AR_STATUS_CHECKED;
/* Improves the plan by exact search within the limits of `options`. HOST_MEMORY. */
enum ar_status bounds_search(const struct bound_blocks *blocks,
                             const struct packing_exact_options *options, struct bounds *self,
                             struct ar_error *error) AR_STATUS_CHECKED;
void bounds_close(struct bounds *self);

/* The extent that the arena of a policy reaches when it serves the blocks in their order. `policy`
 * is a spec; the device is unbounded and has no gaps between segments. */
enum ar_status bound_online(const struct bound_blocks *blocks, const char *policy,
                            uint64_t *extent_bytes, struct ar_error *error) AR_STATUS_CHECKED;

#endif
