/* Every block of a trace in one arena, placed by first fit before the run: the fixed addresses that
 * a program has whose allocator costs nothing. The textbook policy does it on a device without
 * gaps, so the arena is as large as its own peak. Eight bytes a request. */
#ifndef SIM_EXPERIMENT_ARENA_H
#define SIM_EXPERIMENT_ARENA_H

#include "workloads/trace/source.h"

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
