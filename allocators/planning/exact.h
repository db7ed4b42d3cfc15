/* The lowest plan there is: a search that ends with a proof, or says how far it got. */
#ifndef ALLOCATORS_PLANNING_EXACT_H
#define ALLOCATORS_PLANNING_EXACT_H

#include "allocators/planning/packing.h"

struct packing_exact_options {
    uint64_t steps_most; /* of the search, in all; 0: no bound. Where nothing else ends it, the
                            result is the same everywhere */
    bool (*stop)(void *argument); /* asked now and then whether to end; NULL: never */
    void *argument;
};

enum packing_exact_end {
    PACKING_EXACT_MEETS_BOUND, /* the plan is as low as the peak of live bytes */
    PACKING_EXACT_EXHAUSTED,   /* every lower plan was ruled out */
    PACKING_EXACT_CUT,         /* it was ended before it was done */
    PACKING_EXACT_TOO_LARGE,   /* too many blocks: not searched */
};

struct packing_exact {
    enum packing_exact_end end;
    uint64_t top_bytes;   /* of the best plan */
    uint64_t least_bytes; /* proven: no plan has a lower top. Equal: the optimum */
    uint64_t steps, attempts;
};

/* `offsets` is a plan with the top `out->top_bytes`, and is replaced by lower ones. HOST_MEMORY
 * leaves the best plan so far. */
enum ar_status packing_exact(const struct packing *self,
                             const struct packing_exact_options *options, uint64_t *offsets,
                             struct packing_exact *out) AR_STATUS_CHECKED;

#endif
