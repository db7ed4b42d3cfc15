/* The smallest capacities at which a workload passes under a policy. Passing is not monotone
 * in capacity, so a grid is walked: from the live peak rounded up to 2 MiB in steps of
 * max(2 MiB, 0.5 % of it) to twice the live peak, then 5 % to four times; edges are refined
 * to 2 MiB. */
#ifndef SIM_SEARCH_CAPACITY_H
#define SIM_SEARCH_CAPACITY_H

#include "sim/replay.h"

struct capacity_gap { /* capacities above first_pass that fail, both inclusive, on the grid */
    uint64_t from_bytes, to_bytes;
};

struct capacity_result {
    uint64_t live_peak_bytes;
    uint64_t first_pass_bytes; /* 0: none passed */
    uint64_t safe_bytes;       /* the lowest above which all on the grid pass; 0: none */
    /* The same of passing without a flush of cached memory, and without a request that was tried
     * again: a cache near its limit passes and is slow. */
    uint64_t no_flush_bytes, no_retry_bytes;
    uint64_t runs;
    struct capacity_gap *gaps; /* capacity_result_close */
    size_t gap_count;
};

/* `experiment` names policy, workload and device; its capacity is replaced. `jobs` workers. */
enum ar_status capacity_find(const struct experiment *experiment, unsigned jobs,
                             struct capacity_result *result,
                             struct ar_error *error) AR_STATUS_CHECKED;
void capacity_result_close(struct capacity_result *result);

#endif
