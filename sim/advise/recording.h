#ifndef SIM_ADVISE_RECORDING_H
#define SIM_ADVISE_RECORDING_H

#include <stdbool.h>

#include "sim/fidelity/fidelity.h"
#include "workloads/trace/source.h"

/* Prepares a recording for a replay under other settings. */

/* The trace with the program's own releases of the cache as events. */
struct prepared {
    struct trace_source *trace;          /* the caller closes it */
    bool has_failed_request;             /* the recording ends with a failed request */
    uint64_t failed_event, failed_bytes; /* the event number is that in `trace` */
    uint64_t survived;                   /* failed requests after which the program continued */
    bool has_outside;                    /* the trace has memory outside of its allocator */
    bool has_pools;                      /* private pools, of CUDA graphs or made by the program */
    uint64_t last_step_end; /* events up to and including the last completed step; 0: none */
};

/* Copies the trace into memory and inserts a release of the cache before each event in `releases`
 * (ascending). */
enum ar_status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                             struct prepared *out, struct ar_error *error) AR_STATUS_CHECKED;

/* A limit, or a full card, that the recording does not mention. It explains memory that was
 * released without a release of the cache by the program. */
struct pressure {
    uint64_t least_bytes, most_bytes; /* bounds of the limit; 0, 0: there is none */
};

/* Searches for a limit under which the policy spec `text` agrees with the recording with fewer
 * releases by the program. `compared` is the comparison without a limit and becomes the one with
 * it. */
enum ar_status pressure_find(struct trace_source *source, const char *text, uint64_t seed,
                             struct fidelity_result *held, struct pressure *out,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* Tries (autotuning): before the first product or convolution of a kind, a library requests the
 * workspace of one algorithm after another, measures the algorithm, and frees the workspace. If
 * such a request fails, the library continues without that algorithm. If all of them were served,
 * only their order distinguishes them from requests that the program needs. */
struct tries {
    struct trace_source
        *trace; /* the trace with these requests as probes, which may fail; NULL: there are none */
    uint64_t count, most_bytes; /* the number of tries; the largest */
};

/* Finds sequences of at least three requests of different sizes, each freed before the next event
 * of a block, while other blocks are live. The caller closes `out`. */
enum ar_status tries_find(struct trace_source *trace, struct tries *out,
                          struct ar_error *error) AR_STATUS_CHECKED;
void tries_close(struct tries *self);

#endif
