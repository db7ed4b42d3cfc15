#ifndef SIM_ADVISE_RECORDING_H
#define SIM_ADVISE_RECORDING_H

#include <stdbool.h>

#include "sim/fidelity/fidelity.h"
#include "workloads/trace/source.h"

/* A recording made ready for other settings: what its program did by itself put into it as
 * events. */
struct prepared {
    struct trace_source *trace;          /* the caller closes it */
    bool has_failed_request;             /* the recording ends with a request that was not served */
    uint64_t failed_event, failed_bytes; /* by the number in `trace` */
    uint64_t survived;      /* requests that were not served, and the program went on */
    bool has_outside;       /* memory that is not its allocator's */
    bool has_pools;         /* of CUDA graphs, or made by the program */
    uint64_t last_step_end; /* events up to and with the mark of the last completed step; 0: none */
};

/* Copies the trace into memory, with a release of the cache before each of those events, which
 * rise. */
enum ar_status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                             struct prepared *out, struct ar_error *error) AR_STATUS_CHECKED;

/* Memory that a recording gave back: under a limit or a full card that it does not tell of, or by
 * the program's own release of its cache. */
struct pressure {
    uint64_t least_bytes, most_bytes; /* the limit lies between them; 0, 0: there is none */
};

/* Looks for a limit under which the policy of `text`, which agrees with the recording by `held`,
 * does the same with fewer releases by the program; `held` becomes what it finds then. */
enum ar_status pressure_find(struct trace_source *source, const char *text, uint64_t seed,
                             struct fidelity_result *held, struct pressure *out,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* Requests that a library tries out: before the first product or convolution of a kind it takes the
 * work space of one algorithm after another, measures it, and lets it go. Where such a request
 * fails, it goes on without that algorithm. A recording in which all of them were served does not
 * tell them from requests that the program needs, but for their order. */
struct tries {
    struct trace_source *trace; /* the same, in which these may fail; NULL: there are none */
    uint64_t count, most_bytes; /* of them; the largest */
};

/* Finds runs of at least three requests of as many sizes, each freed before the next event of a
 * block, while other blocks are live. The caller closes it. */
enum ar_status tries_find(struct trace_source *trace, struct tries *out,
                          struct ar_error *error) AR_STATUS_CHECKED;
void tries_close(struct tries *self);

#endif
