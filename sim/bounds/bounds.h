/* How little memory a trace could do with: bounds that no policy beats, and plans by those who
 * see the whole trace first. */
#ifndef SIM_BOUNDS_BOUNDS_H
#define SIM_BOUNDS_BOUNDS_H

#include "allocators/planning/exact.h"
#include "allocators/planning/orders.h"
#include "sim/bounds/blocks.h"

#define BOUND_PAGE_BYTES (UINT64_C(2) << 20)

struct bounds {
    uint64_t live_peak_bytes; /* what is asked for: no policy holds less */
    uint64_t live_peak_event;
    uint64_t pages_bytes;     /* the same in whole pages: no policy that holds pages holds less */
    uint64_t least_bytes;     /* live peak with sizes in granules: no plan has a lower top */
    uint64_t best_fit_bytes;  /* the extent of one arena without a bound under the textbook */
    uint64_t first_fit_bytes; /* fits, which do not see what comes */
    struct packing_best orders;
    uint64_t *offsets;  /* of the lowest plan so far; bounds_close */
    uint64_t top_bytes; /* of that plan */
    bool searched;      /* bounds_search was called: */
    struct packing_exact exact;
};

/* All but the exact search. INVALID, HOST_MEMORY. On success the caller closes the bounds. */
enum ar_status bounds_find(const struct bound_blocks *blocks, struct bounds *out,
                           struct ar_error *error) AR_STATUS_CHECKED;
/* Lowers the plan by exact search as far as it gets. HOST_MEMORY. */
enum ar_status bounds_search(const struct bound_blocks *blocks,
                             const struct packing_exact_options *options, struct bounds *self,
                             struct ar_error *error) AR_STATUS_CHECKED;
void bounds_close(struct bounds *self);

/* The extent that a policy's arena reaches when it serves the blocks as they come: `policy` is a
 * spec, on a device without gaps and without a bound. */
enum ar_status bound_online(const struct bound_blocks *blocks, const char *policy,
                            uint64_t *extent_bytes, struct ar_error *error) AR_STATUS_CHECKED;

#endif
