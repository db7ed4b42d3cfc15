/* The exact metrics of one run: what holds at every event, kept so that an event costs little.
 *
 * 1. Live and granted bytes and their peaks are counted by the engine, from request to let-go,
 *    so that they mean the same for every policy. Only requests that were served count.
 * 2. A state lasts until the next tick of the clock of the means: the recorded time where the
 *    trace has one, else the bytes of the next request. Before a tick with weight the state is
 *    read from the policy and added to the sums; between ticks nothing is.
 * 3. Whenever the live bytes reach a new strict maximum, the state is kept: at the end that is
 *    the first moment of the greatest live bytes, in one pass.
 * 4. For the unusable-free index a policy with AR_POLICY_WATCHES_FREE keeps the usable bytes
 *    itself; for others each reading walks the policy, as slow as it has ranges. */
#ifndef SIM_REPLAY_EXACT_H
#define SIM_REPLAY_EXACT_H

#include "sim/replay.h"

/* What can be read of a policy after an event. Without hole metrics (AR_POLICY_OPAQUE) the
 * fields from `free_bytes` on are 0. */
struct exact_state {
    uint64_t live_bytes, granted_bytes, reserved_bytes, pending_bytes;
    uint64_t free_bytes, stranded_bytes, stranded_by_stream_bytes, largest_free_block_bytes;
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT];
    uint64_t usable_bytes;
};

/* Weighted sums; each set of sums shares its weight. */
struct exact_sums {
    uint64_t weight, granted_weight, free_weight; /* of all states; of those with such bytes */
    double internal, external[AR_POLICY_EFFORT_COUNT], unusable;
    double stranded, stranded_by_stream;
};

struct exact {
    const struct ar_policy *policy;
    uint64_t live_bytes, granted_bytes, live_blocks;
    uint64_t peak_live_bytes, peak_granted_bytes, peak_reserved_bytes, peak_blocks;
    uint64_t unit_bytes;
    bool opaque, walks;
    bool one_effort; /* no servable hook: the largest hole at every price, external[0] for all */
    struct ar_policy_free_watch watch;
    struct exact_state at_peak; /* valid where peak_live_bytes is not 0 */
    struct exact_sums sums;
};

/* Begins with a policy that serves nothing yet. Sets its hole watch where it has one. */
void exact_begin(struct exact *exact, struct ar_policy *policy, uint64_t unit_bytes);
/* Takes the watch off again. */
void exact_end(struct exact *exact, struct ar_policy *policy);

void exact_read(const struct exact *exact, struct exact_state *state);

/* The clock of the means moves on by `weight`; before the event that moves it. */
void exact_tick(struct exact *exact, uint64_t weight);

/* A new strict maximum of the live bytes. */
void exact_peak(struct exact *exact);

/* Writes the peaks, ratios, at-peak values and means. */
void exact_report(const struct exact *exact, struct metric_values *metrics);

/* After a request, served or not: the policy may hold more. */
static inline void exact_reserved(struct exact *exact)
{
    uint64_t reserved_bytes = exact->policy->totals.reserved_bytes;
    if (reserved_bytes > exact->peak_reserved_bytes)
        exact->peak_reserved_bytes = reserved_bytes;
}

static inline void exact_served(struct exact *exact, const struct ar_policy_block *block)
{
    exact->live_bytes += block->requested_bytes;
    exact->granted_bytes += block->granted_bytes;
    if (++exact->live_blocks > exact->peak_blocks)
        exact->peak_blocks = exact->live_blocks;
    if (exact->granted_bytes > exact->peak_granted_bytes)
        exact->peak_granted_bytes = exact->granted_bytes;
    exact_reserved(exact);
    if (exact->live_bytes > exact->peak_live_bytes)
        exact_peak(exact);
}

static inline void exact_free_requested(struct exact *exact, const struct ar_policy_block *block)
{
    exact->live_bytes -= block->requested_bytes;
    exact->granted_bytes -= block->granted_bytes;
    exact->live_blocks--;
}

#endif
