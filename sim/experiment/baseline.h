/* The baseline of a slowdown: the timeline of a workload with an allocator that costs nothing, on a
 * device of the same kind, with its kernels, events, waits and host times. Kernels of a given
 * length need no memory. Kernels with an operation, on a device that has memory, find their blocks
 * at fixed addresses in one allocation (the arena below): no policy, and no driver call within the
 * run. */
#ifndef SIM_EXPERIMENT_BASELINE_H
#define SIM_EXPERIMENT_BASELINE_H

#include "sim/replay.h"
#include "workloads/trace/source.h"

struct baseline {
    uint64_t time_ns;   /* until the end of all work */
    uint64_t steady_ns; /* of the second half of the steps */
    uint64_t steps;
    char problem[512]; /* the driver's error, if it failed during the baseline; else "" */
};

/* Opens a device of its own, rewinds the source and reads it to its end. If the device has not
 * enough memory for the arena, or the driver fails, there is no baseline: all is 0. */
enum ar_status baseline_run(const struct ar_spec *device, struct trace_source *source,
                            enum replay_host host, struct baseline *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Sets slowdown and steady_slowdown of a run that finished the same trace. If the driver failed,
 * there is nothing to compare with, and the run counts as failed too. */
void baseline_report(const struct baseline *baseline, struct replay_result *result);

/* All blocks of a trace in one arena, placed by first fit before the run: the fixed addresses of a
 * program whose allocator costs nothing. The policy first-fit places them on a device without gaps,
 * so the arena is as large as its peak. Eight bytes for each request. */

struct arena {
    uint64_t *offsets; /* by id; ARENA_NOWHERE: the request needs no device memory */
    size_t count;
    uint64_t bytes;
    bool needed; /* a kernel works on blocks */
};

#define ARENA_NOWHERE UINT64_MAX

/* Whether a request needs memory of the device. */
bool arena_wants(struct trace_source *source, const struct trace_event *event);

/* Rewinds the source and reads it to its end. */
enum ar_status arena_plan(struct arena *arena, struct trace_source *source,
                          struct ar_error *error) AR_STATUS_CHECKED;
void arena_close(struct arena *arena);

#endif
