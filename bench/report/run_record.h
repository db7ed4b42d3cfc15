/* One run: policy x workload x device x repetition, with what came of it. It is what tables,
 * JSON and CSV are made from. */
#ifndef BENCH_REPORT_RUN_RECORD_H
#define BENCH_REPORT_RUN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/replay.h"

struct run_record {
    const char *policy_spec; /* borrowed from the plan, as the user wrote them */
    const char *workload_spec;
    const char *device_spec;
    const char *drawn_device_spec; /* the same, with the seed of this draw */
    char policy_name[64];
    bool ranked; /* false for harness checks and bounds */
    struct trace_info workload;
    struct device_props device;
    enum replay_frees frees;
    enum replay_host host;
    unsigned repetition; /* from 0 */
    uint64_t seed;       /* of the policy, and of drawn addresses */
    bool passed;
    uint64_t first_failed_event; /* these three where it has not passed */
    uint64_t first_failed_bytes;
    enum replay_cause cause;
    struct metric_values metrics;
};

/* True where both belong under one heading: same workload, device, frees, host time. */
bool run_record_same_group(const struct run_record *a, const struct run_record *b);

/* Orders the runs of one group for a reader: passed and ranked ones by peak physical bytes,
 * then those that did not finish, then the unranked; equal ones as they were given. */
int run_record_rank_order(const struct run_record *a, const struct run_record *b);

#endif
