/* One run: policy x workload x device x repetition, with what came of it. It is what tables,
 * JSON and CSV are made from. */
#ifndef BENCH_REPORT_RUN_RECORD_H
#define BENCH_REPORT_RUN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/replay.h"

/* How a run came to its end. The last three have no events to show for it: the policy or the
 * device could not begin (for want of memory, or of what the device does not offer), the process
 * died, or it took too long. */
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
    const char *drawn_device_spec; /* the same, with the seed of this draw */
    char policy_name[64];
    bool ranked; /* false for harness checks and bounds */
    struct trace_info workload;
    struct ar_device_props device;
    enum replay_frees frees;
    enum replay_host host;
    unsigned repetition; /* from 0 */
    uint64_t seed;       /* of the policy, and of drawn addresses */
    bool passed;
    enum run_end end;
    bool unsupported;            /* NOT_STARTED: the policy needs what the device does not offer */
    char detail[256];            /* unless PLAYED: "crashed: signal 11 (Segmentation fault)"; the
                                    driver's error where that ended it; else "" */
    uint64_t first_failed_event; /* these three where it was PLAYED and has not passed */
    uint64_t first_failed_bytes;
    enum replay_cause cause;
    struct metric_values metrics;
};

/* Why a run did not finish: the cause of its first failure, or how it ended; NULL where it has
 * passed. */
const char *run_record_cause(const struct run_record *record);

/* True where both belong under one heading: same workload, device, frees, host time. */
bool run_record_same_group(const struct run_record *a, const struct run_record *b);

/* The index after the last of those from `begin` on that follow it in its group; `begin` < `count`. */
size_t run_record_group_end(const struct run_record *records, size_t count, size_t begin);

/* How many draws of its workload a group of `count` records holds; 1 where all its records are of
 * the same workload. */
size_t run_record_draws(const struct run_record *group, size_t count);

/* Orders the runs of one group for a reader: passed and ranked ones by peak physical bytes,
 * then those that did not finish, then the unranked; equal ones as they were given. */
int run_record_rank_order(const struct run_record *a, const struct run_record *b);

#endif
