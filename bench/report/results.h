/* The results of a suite: one record for each run, grouped once. A writer (table, CSV, JSON, JUnit,
 * OpenMetrics, data of the figures: result_writers.h) walks the groups, or for results.csv the
 * runs, and prints; it filters and condenses nothing itself.
 *
 *     group        same workload, device, way to free, host time     a heading of a table
 *       policy     the runs of one policy                            a row of a table
 *         replicate  the runs with one seed                          one of a pair
 *           run        one repetition                                a row of results.csv
 *
 * A replicate and a policy also have a `median`: one record that stands for all of theirs. */
#pragma once

#include "bench/machine/environment.h"
#include "bench/statistics/statistics.h"
#include "sim/replay.h"

/* How a run ended. The last three have no events to report: the policy or the device could not
 * start (no memory, or the device lacks a feature), the process died, or it exceeded its time. */
#define RUN_ENDS(X)                                                                                \
    X(PLAYED, "played")                                                                            \
    X(NOT_STARTED, "not started") X(CRASHED, "crashed") X(TIMED_OUT, "timed out")

enum run_end {
#define X(name, text) RUN_##name,
    RUN_ENDS(X)
#undef X
        RUN_END_COUNT
};

struct run_record {
    const char *policy_spec; /* borrowed from the plan, as the user wrote them */
    const char *workload_spec;
    const char *device_spec;
    const char *drawn_device_spec; /* the same with the seed of this replicate */
    char policy_name[64];
    bool ranked; /* false for policies that only check the harness, and for bounds */
    struct trace_info workload;
    struct ar_device_props device;
    enum replay_frees frees;
    enum replay_host host;
    unsigned repetition; /* from 0 */
    uint64_t seed;       /* of the policy, and of random addresses */
    bool passed;
    enum run_end end;
    bool unsupported;            /* NOT_STARTED: the device lacks a feature that the policy needs */
    bool bad_input;              /* NOT_STARTED: the policy refuses what the workload says */
    char detail[256];            /* unless PLAYED: "crashed: signal 11 (Segmentation fault)"; the
                                    driver's error if it ended the run; else "" */
    uint64_t first_failed_event; /* these three are set if PLAYED and not passed */
    uint64_t first_failed_bytes;
    enum replay_cause cause;
    struct metric_values metrics;
};

/* The beginning of `detail` if a policy of a shared object broke the contract; its end is
 * CRASHED. */
#define RUN_BROKEN "broke the contract: "

/* Why a run did not finish: the cause of its first failure, or how it ended. NULL if it passed. */
const char *run_record_cause(const struct run_record *record);

/* What a report calls the workload of a run: its name, or its spec if another of `runs` has another
 * workload of that name, as files of different folders may. */
const char *run_record_workload(const struct run_record *record, const struct run_record *runs,
                                size_t count);

/* Orders the runs of one group: ranked runs that passed by peak physical bytes, then ranked runs
 * that did not finish, then the unranked. */
int run_record_rank_order(const struct run_record *a, const struct run_record *b);

/* The statistic of a metric over the runs that passed and have it. `values` has room for
 * `count`. */
struct statistic runs_statistic(const struct run_record *const *runs, size_t count,
                                enum metric metric, double *values);

/* The slowdown by which runs are compared: METRIC_steady_slowdown if all runs that passed have two
 * or more steps, else METRIC_slowdown (also if none passed). On a card the first step of a program
 * includes the loading of its libraries, which takes longer than most policies do. */
enum metric slowdown_metric_of(const struct run_record *runs, size_t count);

struct result_replicate {
    const struct run_record *const *runs; /* the repetitions */
    size_t run_count, passed_count;
    const struct run_record
        *median; /* the medians of its metrics; the first run that failed, if any */
};

struct result_policy {
    const struct run_record *const *runs; /* of all replicates */
    size_t run_count;
    const struct result_replicate *replicates;
    const struct run_record *const *medians; /* of the replicates */
    size_t replicate_count, passed_count;    /* a replicate passes if all its runs pass */
    const struct run_record *median;         /* of `medians`, by the same rule */
};

struct result_group {
    const struct run_record *runs;
    size_t run_count;
    const struct result_policy *policies;
    size_t policy_count;
    const char *name; /* of the workload; its spec if each replicate has a workload of its own, or
                         another workload has this name */
    size_t workload_replicates; /* how many workloads; 1: all runs have the same */
    bool replicated;            /* runs have several seeds */
    enum metric slowdown;       /* slowdown_metric_of() */
};

/* One point of the curve "slowdown by capacity". */
struct slowdown_point {
    const char *workload; /* names for people, borrowed */
    const char *policy_spec;
    const struct run_record *record; /* a run of the workload: frees, host, device; borrowed */
    double capacity_ratio;           /* capacity / peak live */
    uint64_t capacity_bytes;         /* of the first replicate */
    bool passed;                     /* in all replicates */
    struct metric_value slowdown;    /* the median of the replicates */
    struct metric_value flushes, remapped_bytes;
    struct statistic over_replicates; /* of the slowdown; count 0: one replicate, or not passed */
    size_t replicates, passed_replicates;
};

struct results {
    const struct environment *environment;
    const char *suite; /* its name, or NULL */
    const struct run_record *runs;
    size_t run_count;
    const struct slowdown_point *points;
    size_t point_count;
    /* Set by results_open(). */
    struct result_group *groups;
    size_t group_count, policies_most; /* most policies in a group */
    bool repeated, replicated;         /* some run has several repetitions, seeds */
    double *values;                    /* scratch for statistics: room for `run_count` values */
    struct result_policy *policies;
    struct result_replicate *replicates;
    const struct run_record **order, **medians;
    struct run_record **made; /* medians that are no run */
    size_t made_count, made_room;
};

/* Groups `runs`, which must outlive the results. The runs of a group are adjacent, so are those of
 * a policy in its group, and those of a replicate in its policy. Fills in all but `environment`,
 * `suite` and the points. HOST_MEMORY. The caller closes the results in any case. */
enum ar_status results_open(struct results *self, const struct run_record *runs, size_t count,
                            struct ar_error *error);
void results_close(struct results *self);

/* Compares a policy with another one of its group in pairs of replicates with the same seed: both
 * have the same requests and addresses, so what the seed alone does to both is no difference. */
struct result_pairs {
    struct statistic difference; /* the policy's value minus the base's; count: the pairs */
    struct statistic ratio;      /* one divided by the other, of pairs whose base is not 0 */
    size_t less, equal, more;    /* pairs in which the policy has less than the base, ... */
};

/* A replicate that only one of both finished makes no pair. `values` as above. */
struct result_pairs result_pairs_of(const struct result_policy *policy,
                                    const struct result_policy *base, enum metric metric,
                                    double *values);

/* The median of the replicate with that seed; NULL if there is none. */
const struct run_record *result_policy_seed(const struct result_policy *policy, uint64_t seed);

/* True if policies of the group can be compared in pairs with the first one. */
static inline bool result_group_has_pairs(const struct result_group *group)
{
    return group->replicated && group->policy_count > 1;
}

/* True if any run has that metric; an optional one (METRIC_FIRST_OPTIONAL). */
bool results_have(const struct results *self, enum metric metric);
bool results_have_optional(const struct results *self);

/* True if any group has pairs. */
bool results_have_pairs(const struct results *self);
