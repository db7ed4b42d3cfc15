/* observe: tells somebody of each call to a policy, after it. */
#ifndef ALLOCATORS_DECORATORS_OBSERVE_H
#define ALLOCATORS_DECORATORS_OBSERVE_H

#include "allocators/policy.h"

enum observe_kind {
    OBSERVE_ALLOC,
    OBSERVE_FREE,
    OBSERVE_USE,
    OBSERVE_RETIRE,
    OBSERVE_TRIM,
    OBSERVE_KINDS
};

/* Valid during the callback only. */
struct observe_event {
    enum observe_kind kind;
    enum ar_status status;                   /* what the call returned; OK for a retire */
    uint32_t stream;                         /* of an alloc, a free and a use */
    const struct ar_policy_request *request; /* of an alloc; NULL else */
    const struct ar_policy_block *block;     /* NULL for a trim and for an alloc that failed */
    const struct ar_policy_totals *totals;   /* after the call */
};

typedef void observe_callback(void *argument, const struct observe_event *event);

/* What one made from a spec keeps: calls of each kind, and how many did not return OK. */
struct observe_counts {
    uint64_t calls[OBSERVE_KINDS];
    uint64_t failed[OBSERVE_KINDS];
    uint64_t alloc_bytes; /* requested, of the allocs that succeeded */
};

/* Puts an observer around `inner`, which it owns from then on, with metadata from `host`.
 * `callback` may be NULL: it then only counts. HOST_MEMORY leaves `inner` to the caller. */
enum ar_status observe_wrap(struct ar_host *host, struct ar_policy *inner,
                            observe_callback *callback, void *argument, struct ar_policy **out,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* The counts, where the outermost decorator of `policy` is an observer; else NULL. */
const struct observe_counts *observe_counts(const struct ar_policy *policy);

#endif
