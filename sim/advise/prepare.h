/* A recording made ready for other settings: what its program did by itself put into it as events. */
#ifndef SIM_ADVISE_PREPARE_H
#define SIM_ADVISE_PREPARE_H

#include <stdbool.h>

#include "workloads/trace/source.h"

struct prepared {
    struct trace_source *trace;          /* the caller closes it */
    bool has_failed_request;             /* the recording ends with a request that was not served */
    uint64_t failed_event, failed_bytes; /* by the number in `trace` */
    uint64_t survived;      /* requests that were not served, and the program went on */
    bool has_outside;       /* memory that is not its allocator's */
    bool has_pools;         /* of CUDA graphs, or made by the program */
    uint64_t last_step_end; /* events up to and with the mark of the last completed step; 0: none */
};

/* Copies the trace into memory, with a release of the cache before each of those events, which rise. */
enum ar_status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                             struct prepared *out, struct ar_error *error) AR_STATUS_CHECKED;

#endif
