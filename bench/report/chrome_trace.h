/* Runs as a trace that Chrome's about:tracing and Perfetto's viewer open: bytes over time as
 * counters, calls to the driver as slices, marks of the program and failed requests as instants. */
#ifndef BENCH_REPORT_CHROME_TRACE_H
#define BENCH_REPORT_CHROME_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "sim/observer.h"
#include "workloads/trace/texts.h"

#define CHROME_COUNTERS 4 /* live, granted, reserved, physical */

struct chrome_point {
    uint64_t at_ns;
    uint64_t bytes[CHROME_COUNTERS];
};

struct chrome_slice {
    uint64_t at_ns, length_ns, address, bytes;
    const char *call; /* a literal */
    bool refused;
};

struct chrome_instant {
    uint64_t at_ns, bytes; /* bytes of a request that failed; 0: a mark */
    uint32_t label;
};

struct chrome_trace {
    char name[320]; /* of the run: policy, workload */
    uint64_t most;  /* points, and slices; 0: all */
    struct chrome_point *points;
    struct chrome_slice *slices;
    struct chrome_instant *instants;
    size_t point_count, point_room, slice_count, slice_room, instant_count, instant_room;
    struct texts labels;
    uint64_t at_ns, event, steps;
};

/* `most`: the number of counter values and of driver calls to write; 0: all. */
void chrome_trace_open(struct chrome_trace *self, const char *name, uint64_t most);
void chrome_trace_close(struct chrome_trace *self);

/* The `memory` callback of an observer; its argument is the trace. */
enum ar_status chrome_trace_observe(void *self, const struct observer_event *event,
                                    struct ar_error *error);

/* Writes the traces, each as a process of its own. Errors of the stream show in the stream.
 * HOST_MEMORY. */
enum ar_status chrome_trace_write(const struct chrome_trace *traces, size_t count, FILE *stream,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
