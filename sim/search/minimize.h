/* The smallest trace that still shows something: delta debugging over a trace. */
#ifndef SIM_SEARCH_MINIMIZE_H
#define SIM_SEARCH_MINIMIZE_H

#include "sim/search/condition.h"

struct minimize_result {
    bool shown;           /* the whole trace shows it; else there is nothing to minimize */
    uint64_t runs;        /* replays */
    uint64_t candidates;  /* traces that were tried */
    uint64_t events[2];   /* before (without notes) and after */
    uint64_t requests[2]; /* a and p of them */
};

/* Finds it. The experiment says policy, device, trace and how it is replayed; an adaptive trace is
 * written down first. `*out` is a trace that shows the condition, the caller's to close (NULL where
 * nothing was shown). It is 1-minimal in its blocks and in its events: without any one of them the
 * condition is not shown. The same arguments always give the same trace. */
enum ar_status minimize(const struct experiment *experiment, const struct condition *condition,
                        struct trace_source **out, struct minimize_result *result,
                        struct ar_error *error) AR_STATUS_CHECKED;

#endif
