/* A suite ready to run: every name is looked up, every file and device opened once, and every
 * combination is a run. Errors of the input are reported here, before any work is done. */
#pragma once

#include "allocators/registry.h"
#include "bench/report/results.h"
#include "bench/suite/suite.h"

struct plan_policy {
    const char *text; /* the suite's */
    struct ar_spec spec;
    const struct ar_policy_ops *ops;
    char *pinned_text; /* of the policy of pinned host memory beside it; NULL: none */
    struct ar_spec pinned;
};

struct plan_workload {
    char *text; /* the suite's, or one GPU of it */
    struct trace_info info;
    enum replay_frees frees[2]; /* the ways to free with which it is replayed */
    unsigned frees_count;
    /* One spec for each replicate if the generator has a seed; else empty. */
    struct text_list texts;
};

/* One run to do. The runs of a group (bench/report/results.h) are adjacent, in it those of a
 * policy, in these those of a replicate. */
struct plan_run {
    size_t policy, workload, device;
    const char *device_text;   /* its spec, with capacity and seed in place */
    const char *workload_text; /* the suite's, or that of the replicate */
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
    size_t workload_count, workload_room;
    struct text_list devices;      /* with the capacities; without the seeds of replicates */
    struct ar_device_props *props; /* of the devices, before the runs */
    bool *alone;                   /* of the devices: each run has a process of its own */
    struct text_list device_texts; /* device by device, seed by seed */
    struct plan_run *runs;
    size_t run_count;
    struct text_list left_out; /* policies of "all" that a device cannot serve, and why */
};

/* Errors are those of the input. The caller closes the plan, also after one. */
enum ar_status plan_make(struct plan *self, const struct suite *suite, struct ar_error *error);
void plan_close(struct plan *self);

/* The number of workers: the suite's, else one for each processor. */
unsigned plan_jobs(const struct plan *self);

/* The number of processes at a time for runs that have one each: the suite's, else one if a real
 * card is among the devices, because runs that share a card disturb each other. */
unsigned plan_jobs_alone(const struct plan *self);

/* Whether a run has a process of its own: on a card, with `isolate`, and if its policy is a shared
 * object, which may crash, hang or break the contract. */
bool plan_is_alone(const struct plan *self, size_t policy, size_t device);

/* Repetitions on the device of that index: the suite's, else one, or on a real card six: the fewest
 * that give an interval of the median at 95 %. */
#define PLAN_REPS_ON_A_CARD 6

/* Whether each run on the device that `text` names has a process of its own. On a card it does: the
 * state of a driver does not survive a fork, and one run would leave state for the next. */
bool plan_wants_process(const char *text);

/* The device that `run` uses by default: a real card if there is one, else `sim`, and then `why`
 * says in a sentence why no card is used. */
const char *plan_default_device(char *why, size_t why_bytes);
