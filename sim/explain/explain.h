/* Explains the first failure of a run: the request, the memory that was free and the effort to use
 * it, the blocks between the free ranges, the cause, and the settings that would have helped.
 *
 * 1. The trace is replayed up to its first failure. The policy and the device keep their state; an
 *    observer has recorded the request of each block.
 * 2. The ranges of the policy are walked. In the segments, the stretch is found that is as large as
 *    the request and has the fewest live bytes: without its blocks, the request would succeed. The
 *    blocks next to the most free bytes are listed too.
 * 3. The cause comes from the ladder in sim/replay.h.
 * 4. The trace is replayed with other settings, other policies and more capacity. */
#pragma once

#include "sim/advise/candidates.h"
#include "sim/advise/trial.h"
#include "sim/replay.h"

#define EXPLAIN_PINNING_BLOCKS_MOST 10

/* A pinning block: a live block next to free ranges. */
struct explain_pinning_block {
    uint64_t address, bytes;    /* requested bytes */
    uint64_t event, age_events; /* event of its request; events from then to the failure */
    uint64_t age_bytes;         /* requested since then, by all requests that were served */
    uint64_t step;              /* of its request, from 1; 0: the trace has no steps */
    uint64_t free_bytes;        /* of the free ranges right before and after it */
    uint32_t stream;
    char tag[64]; /* "" */
    bool in_stretch;
};

/* Indices of f free bytes in n pieces, for a request of s bytes. The pieces are the free blocks,
 * and what the device has free if the ladder counts it. A request can use pieces of its own pool
 * and stream, and the device's. If it failed, and would fail again, it could not use those that are
 * large enough. The last two indices are from the Linux kernel (mm/vmstat.c). */
struct explain_indices {
    double external; /* external fragmentation: 1 - largest usable piece / f; 0 if f is 0 */
    double unusable; /* unusable free index: the part of f not in usable units of s; 1 if f is 0 */
    double
        fragmentation; /* fragmentation index: 1 - (1 + f / s) / n, at least 0. Near 0 the request
                             fails because there is too little memory, near 1 because of
                             fragmentation; -1 if a usable piece is large enough */
};

struct explain_rerun {
    struct candidate candidate;
    struct trial trial;
};

/* What the failed event asks for. */
enum explain_kind {
    EXPLAIN_REQUEST, /* a block of the policy */
    EXPLAIN_BESIDE,  /* more memory beside the pool; its bytes are those added */
};

struct explain_result {
    char profile[64], costs_of[64]; /* of the device, see ar_device_props */
    bool passed;
    enum explain_kind kind;
    uint64_t event, id, bytes, step, steps;
    uint32_t stream, pool;
    char tag[64];
    enum replay_cause cause; /* that of the ladder, or DRIVER */
    char problem[512];       /* cause DRIVER */
    struct cause_ladder ladder;
    struct ar_policy_totals totals;
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT];
    bool opaque; /* the blocks of the policy are not visible */
    uint64_t device_free_bytes, capacity_bytes, others_bytes, outside_bytes, limit_bytes;
    uint64_t physical_bytes;
    uint64_t free_blocks, free_block_bytes, largest_free_block_bytes;
    /* The largest free range of the request's pool and stream, and of the others. */
    uint64_t largest_same_bytes, largest_other_bytes;
    struct explain_indices indices;
    uint64_t stretch_bytes, stretch_live_bytes; /* see rule 2; 0: no segment is that large */
    size_t stretch_blocks;
    struct explain_pinning_block pinning_blocks[EXPLAIN_PINNING_BLOCKS_MOST];
    size_t pinning_block_count;
    uint64_t live_peak_bytes, live_peak_event; /* of the whole trace, without probes */
    uint64_t most_bytes;                       /* the largest capacity of such a device */
    struct explain_rerun *reruns;              /* that passed, best first */
    size_t rerun_count, rerun_tried;
    /* Cause CACHE: the policy with the limit that leaves room for all memory beside the pool. */
    uint64_t pool_limit_bytes; /* 0: not tried */
    bool pool_limit_passes;
    bool can_trim;                /* the policy can release its cache */
    struct torch_release release; /* of the trace's recorder; {0, 0}: not known, or not PyTorch */
    const char *framework;        /* that the policy imitates: "torch", "cupy", ...; or "" */
    uint64_t outside_peak_bytes;  /* the most memory beside the pool, of the whole trace */
    /* The lowest capacity above which all of the grid of `capacity` pass (sim/search/search.h),
     * and above the one that failed. Without the policy's limit. 0: none. */
    uint64_t more_capacity_bytes;
};

/* Explains the failure alone, without re-runs. */
enum ar_status explain_failure(const struct experiment *experiment, struct explain_result *result,
                               struct ar_error *error);

/* Explains the experiment (its policy, device, source, frees, host and seed) with `jobs` workers
 * for the re-runs. An adaptive source must be written to a file first. OK also if no request
 * failed. */
enum ar_status explain_run(const struct experiment *experiment, unsigned jobs,
                           struct explain_result *result, struct ar_error *error);
void explain_result_close(struct explain_result *result);
