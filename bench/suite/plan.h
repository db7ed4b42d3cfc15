/* A suite made ready to run: every name looked up, every file opened once, every combination
 * written down as a cell. What is wrong with the input shows here, before any work is done. */
#ifndef BENCH_SUITE_PLAN_H
#define BENCH_SUITE_PLAN_H

#include "allocators/registry.h"
#include "bench/report/run_record.h"
#include "bench/suite/suite.h"

struct plan_policy {
    const char *text; /* the suite's */
    struct ar_spec spec;
    const struct ar_policy_ops *ops;
};

struct plan_workload {
    const char *text; /* the suite's */
    struct trace_info info;
    enum replay_frees frees[2]; /* the modes in which it is to be replayed */
    unsigned frees_count;
    /* One text for each draw, where the generator has a seed; else empty. */
    struct text_list drawn;
};

/* One run to do. Cells of one group (see run_record_same_group) stand next to each other. */
struct plan_cell {
    size_t policy, workload, device;
    const char *device_text;   /* its spec, with capacity and seed in place */
    const char *workload_text; /* the suite's, or that of the draw */
    bool alone;                /* in a process of its own */
    enum replay_frees frees;
    enum replay_measure measure;
    bool measure_time;
    unsigned repetition;
    uint64_t seed;
    const struct observer *observer; /* a list; NULL: none */
    struct thin_series *thin; /* filled by one of the observers, and sent along with the result */
};

struct plan {
    const struct suite *suite; /* must outlive the plan */
    struct plan_policy *policies;
    size_t policy_count;
    struct plan_workload *workloads;
    size_t workload_count;
    struct text_list devices;      /* with the capacities; without the draws */
    struct ar_device_props *props; /* of the devices, as found before the runs */
    bool *alone;                   /* of the devices: their runs have a process each */
    struct text_list drawn;        /* device by device, seed by seed */
    struct plan_cell *cells;
    size_t cell_count;
    struct text_list left_out; /* of all policies those that a device cannot serve, and why */
};

/* On success the caller closes the plan. Errors are those of the input. */
enum ar_status plan_make(struct plan *self, const struct suite *suite,
                         struct ar_error *error) AR_STATUS_CHECKED;
void plan_close(struct plan *self);

/* Workers for the plan: what the suite says, else one for each processor. */
unsigned plan_jobs(const struct plan *self);

/* Processes at a time for the cells that have one each: what the suite says; else one where a
 * real card is among the devices, since runs that share a card disturb each other. */
unsigned plan_jobs_alone(const struct plan *self);

/* Repetitions on the device of that index: what the suite says. Else one, or on a real card six:
 * the fewest from which an interval of the median at 95 % can be told. */
#define PLAN_REPS_ON_A_CARD 6
uint64_t plan_reps(const struct plan *self, size_t device);

#endif
