/* A run taken apart at its first failure: what was asked for, what was free and with which effort,
 * which blocks stand between the free ranges, why it failed, and what would have helped.
 *
 * 1. The trace is replayed up to its first failure. The policy and the device stay as they are
 *    then; an observer has kept which request each block came from.
 * 2. The policy is walked. In each segment the stretch is found that is as large as the request
 *    and holds the fewest live bytes: were these few blocks elsewhere, the request would fit.
 *    Blocks next to the most free bytes are listed too.
 * 3. The cause is that of the ladder in sim/replay/cause.h.
 * 4. The trace is replayed with other settings, other policies and more capacity. */
#ifndef SIM_EXPLAIN_EXPLAIN_H
#define SIM_EXPLAIN_EXPLAIN_H

#include "sim/advise/candidates.h"
#include "sim/advise/trial.h"
#include "sim/replay/cause.h"

#define EXPLAIN_PINS_MOST 10

/* A live block beside free ranges. */
struct explain_pin {
    uint64_t address, bytes;    /* bytes as asked for */
    uint64_t event, age_events; /* of its request; how many events before the failure */
    uint64_t age_bytes;         /* asked for since by all requests */
    uint64_t step;              /* in which it was made, from 1; 0: the trace has no steps */
    uint64_t free_bytes;        /* of the free ranges right before and behind it */
    uint32_t stream;
    char tag[64]; /* "" */
    bool in_stretch;
};

/* How the free bytes f lie in n free blocks, for a request of s bytes. The last two are the Linux
 * kernel's (mm/vmstat.c). */
struct explain_indices {
    double external; /* external fragmentation: 1 - largest free block / f; 0 where f is 0 */
    double unusable; /* unusable free index: the part of f that no piece of s has; 1 where f is 0 */
    double fragmentation; /* fragmentation index: 1 - (1 + f / s) / n, at least 0: towards 0 the
                             request fails for lack of memory, towards 1 by fragmentation;
                             -1 where a free block is large enough */
};

struct explain_rerun {
    struct candidate candidate;
    struct trial trial;
};

struct explain_result {
    bool passed;
    uint64_t event, id, bytes, step, steps;
    uint32_t stream, pool;
    char tag[64];
    enum replay_cause cause;
    char problem[512]; /* cause DRIVER */
    struct cause_ladder ladder;
    struct ar_policy_totals totals;
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT];
    bool opaque; /* its inside cannot be seen */
    uint64_t device_free_bytes, capacity_bytes, others_bytes, outside_bytes, limit_bytes;
    uint64_t physical_bytes;
    uint64_t free_blocks, free_block_bytes, largest_free_block_bytes;
    struct explain_indices indices;
    uint64_t stretch_bytes, stretch_live_bytes; /* see rule 2; 0: there is none so large */
    size_t stretch_blocks;
    struct explain_pin pins[EXPLAIN_PINS_MOST];
    size_t pin_count;
    uint64_t live_peak_bytes, live_peak_event; /* of the whole trace */
    struct explain_rerun *reruns;              /* that passed or came further, best first */
    size_t rerun_count, rerun_tried;
    uint64_t more_capacity_bytes; /* that it would have passed with; 0: not even with the card's */
};

/* Explains the experiment (its row, sample and measure are not used) with `jobs` workers for the
 * re-runs. An adaptive source must have been written down. OK also where nothing failed. */
enum ar_status explain_run(const struct experiment *experiment, unsigned jobs,
                           struct explain_result *result, struct ar_error *error) AR_STATUS_CHECKED;
void explain_result_close(struct explain_result *result);

#endif
