/* Which free of a Kineto trace belongs to which block. */
#ifndef WORKLOADS_FORMATS_KINETO_KINETO_PAIRS_H
#define WORKLOADS_FORMATS_KINETO_KINETO_PAIRS_H

#include "workloads/formats/kineto/kineto_rows.h"

/* What a row is beyond its kind. */
enum kineto_mark {
    KINETO_PLAIN,   /* a block; a free: of the block of row `pair` */
    KINETO_INITIAL, /* a free of a block that was there before the first row */
    KINETO_TWICE,   /* a free of a block that is free: left out */
    KINETO_AGAIN,   /* a block where another one, of row `pair`, was never freed */
};

struct kineto_pairs {
    uint64_t initial, twice, again;
    uint64_t by_size;     /* frees without an address that found a block */
    uint64_t other_sizes; /* frees that name another size than their block */
};

/* Sets `mark` and `pair` of all memory rows, which lie in the order of time. HOST_MEMORY. */
enum ar_status kineto_pair(struct kineto_rows *rows, struct kineto_pairs *out,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
