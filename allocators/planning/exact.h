/* The search for the lowest plan. It ends with a proof, or with the bounds that it reached. */
#ifndef ALLOCATORS_PLANNING_EXACT_H
#define ALLOCATORS_PLANNING_EXACT_H

#include "allocators/planning/packing.h"

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
                             struct packing_exact *out) AR_STATUS_CHECKED;

#endif
