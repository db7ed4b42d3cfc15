/* What one run writes: rows for its events and driver calls, and, when it has ended, the histogram
 * of its latencies and the statistics of its policy. */
#pragma once

#include "allocators/base/hist.h"
#include "allocators/base/map.h"
#include "allocators/policy.h"
#include "sim/device.h"
#include "sim/observer.h"
#include "sim/replay.h"
#include "workloads/formats/torch/snapshot_image.h"
#include "workloads/trace/tables.h"

/* ---- events --------------------------------------------------------------------------------- */

/* `--placements`: what was requested, granted and freed, event by event. */
void placements_csv_header(FILE *stream);
void placements_csv_row(FILE *stream, const struct replay_row *row);

/* `--series`: the state after every event. */
void series_csv_header(FILE *stream);
void series_csv_row(FILE *stream, const struct replay_sample *sample);

/* A series reduced for a figure without losing its peaks. Adjacent samples share a bucket, which
 * keeps those with the fewest and the most live bytes and with the most physical bytes. When all
 * buckets are full, pairs are merged and buckets become twice as wide: at most 3 * 660 samples
 * remain, for a series of any length. It ends with the first request that failed: after that the
 * bytes are not those of the program. */
#define THIN_BUCKETS 660u

struct thin_bucket {
    struct replay_sample least_live, most_live, most_physical;
};

struct thin_series {
    uint64_t width; /* samples in a full bucket; 0 before the first sample */
    uint64_t in_last;
    size_t count;
    struct replay_sample last;
    struct thin_bucket buckets[THIN_BUCKETS];
};

/* The engine's sample function; `argument` is a zeroed struct thin_series. */
enum ar_status thin_series_add(void *argument, const struct replay_sample *sample,
                               struct ar_error *error);

/* Calls `take` once for each sample that was kept, in the order of events. */
typedef void thin_series_take(void *argument, const struct replay_sample *sample);
void thin_series_each(const struct thin_series *self, thin_series_take *take, void *argument);

/* ---- driver calls --------------------------------------------------------------------------- */

/* `--calls`, which `allocrig model` reads: event,call,bytes,ns,waited_ns,refused */
struct driver_call {
    uint64_t event; /* of the trace, during which it was made; 0 also before the first event */
    enum ar_device_call call;
    uint64_t bytes;
    uint64_t ns;        /* of its own */
    uint64_t waited_ns; /* for the device, in addition */
    bool refused;
};

struct call_list {
    struct driver_call *items;
    size_t count, room;
};

void calls_csv_header(FILE *stream);
void calls_csv_row(FILE *stream, const struct driver_call *call);

/* Reads a whole file. IO; FORMAT with file and line. The caller closes the list, also after a
 * failure. */
enum ar_status calls_csv_read(const char *path, struct call_list *out, struct ar_error *error);

/* False: no host memory, and the list is unchanged. */
bool call_list_add(struct call_list *self, const struct driver_call *call);

/* Reserves and touches memory for `room` calls in an empty list, so that adding a call does not
 * fault in pages. False: no host memory, and the list is unchanged. */
bool call_list_ready(struct call_list *self, size_t room);
void call_list_close(struct call_list *self);

/* ---- at the end ----------------------------------------------------------------------------- */

/* `--hdr`: a histogram in the percentile text of HdrHistogram, which its plotter and gnuplot read.
 * Values are unscaled. */
void hdr_percentiles_write(FILE *stream, const struct ar_hist *hist);

/* `--stats`: the policy's statistics as one JSON object, by the names of the allocator that it
 * imitates (torch: the keys of torch.cuda.memory_stats), else the totals and counters of
 * allocators/policy.h. */
void policy_figures_write(FILE *stream, const struct ar_policy *policy);

/* Runs as a trace that Chrome's about:tracing and Perfetto's viewer open: bytes over time as
 * counters, calls to the driver as slices, marks of the program and failed requests as instants. */

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
                                  struct ar_error *error);

/* A PyTorch memory snapshot of one simulated run: its entries come from an observer of
 * the run, its segments and blocks from the policy in its final state. */

struct run_snapshot {
    struct snapshot_image image;
    struct ar_map live;   /* from the address of a block to the entry of its request */
    bool *free_requested; /* by entry: asked to be freed, and not complete */
    size_t free_requested_room;
};

/* `name`: of the workload. */
void run_snapshot_open(struct run_snapshot *self, const char *name);
void run_snapshot_close(struct run_snapshot *self);

/* The `memory` callback of an observer; its argument is the snapshot. */
enum ar_status run_snapshot_observe(void *self, const struct observer_event *event,
                                    struct ar_error *error);

/* Writes it, with the blocks of `policy` as they are. Errors of the stream show in the stream. */
enum ar_status run_snapshot_write(struct run_snapshot *self, const struct ar_policy *policy,
                                  FILE *stream, struct ar_error *error);
