/* The timeline of a workload with an allocator that costs nothing: its kernels, events, waits
 * and host times on a device of the same kind. What `slowdown` is held against. Kernels of a length
 * need no memory. Kernels that work on blocks, on a device that has memory, find them at fixed
 * addresses in one allocation (arena.h): no policy, no driver call within the run. */
#ifndef SIM_EXPERIMENT_BASELINE_H
#define SIM_EXPERIMENT_BASELINE_H

#include "sim/replay.h"
#include "workloads/trace/source.h"

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

/* Every block of a trace in one arena, placed by first fit before the run: the fixed addresses that
 * a program has whose allocator costs nothing. The textbook policy does it on a device without
 * gaps, so the arena is as large as its own peak. Eight bytes a request. */

struct arena {
    uint64_t *offsets; /* by id; ARENA_NOWHERE: no memory is asked for */
    size_t count;
    uint64_t bytes;
    bool needed; /* a kernel works on blocks */
};

#define ARENA_NOWHERE UINT64_MAX

/* Whether a request asks for memory of the device at all. */
bool arena_wants(struct trace_source *source, const struct trace_event *event);

/* Rewinds the source and reads it to its end. */
enum ar_status arena_plan(struct arena *arena, struct trace_source *source,
                          struct ar_error *error) AR_STATUS_CHECKED;
void arena_close(struct arena *arena);

#endif
