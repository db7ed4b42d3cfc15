/* The timeline of a workload with an allocator that costs nothing: its kernels, events, waits
 * and host times on a device of the same kind. What `slowdown` is held against. Kernels of a length
 * need no memory. Kernels that work on blocks, on a device that has memory, find them at fixed
 * addresses in one allocation (arena.h): no policy, no driver call within the run. */
#ifndef SIM_EXPERIMENT_BASELINE_H
#define SIM_EXPERIMENT_BASELINE_H

#include "sim/replay.h"

struct baseline {
    uint64_t time_ns;   /* until all work is done */
    uint64_t steady_ns; /* of the second half of the steps */
    uint64_t steps;
    char problem[512]; /* the driver failed in the midst of it: its sentence; else "" */
};

/* Opens a device of its own; rewinds the source and reads it to its end. Where the arena does not
 * fit on the device, or the driver fails, there is no baseline: all zero. */
enum ar_status baseline_run(const struct ar_spec *device, struct trace_source *source,
                            enum replay_host host, struct baseline *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Writes slowdown and steady_slowdown of a run that went to the end of the same trace. Where the
 * driver failed there is nothing to hold it against, and the run has not finished either. */
void baseline_report(const struct baseline *baseline, struct replay_result *result);

#endif
