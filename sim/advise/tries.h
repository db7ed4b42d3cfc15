/* Requests that a library tries out: before the first product or convolution of a kind it takes the
 * work space of one algorithm after another, measures it, and lets it go. Where such a request
 * fails, it goes on without that algorithm. A recording in which all of them were served does not
 * tell them from requests that the program needs, but for their order. */
#ifndef SIM_ADVISE_TRIES_H
#define SIM_ADVISE_TRIES_H

#include "workloads/trace/source.h"

struct tries {
    struct trace_source *trace; /* the same, in which these may fail; NULL: there are none */
    uint64_t count, most_bytes; /* of them; the largest */
};

/* Finds runs of at least three requests of as many sizes, each let go before the next event of a
 * block, while other blocks are live. The caller closes it. */
enum ar_status tries_find(struct trace_source *trace, struct tries *out,
                          struct ar_error *error) AR_STATUS_CHECKED;
void tries_close(struct tries *self);

#endif
