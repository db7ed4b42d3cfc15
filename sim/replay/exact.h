/* The exact metrics of one run, with little cost for each event. The rules are in exact.c. */
#pragma once

#include "allocators/policy.h"
#include "sim/metrics/metrics.h"

/* The state of a policy after an event. */
struct exact_state {
    uint64_t live_bytes, granted_bytes, reserved_bytes, pending_bytes;
    /* 0 if the policy does not report free blocks (AR_POLICY_OPAQUE): */
    uint64_t free_bytes, stranded_bytes, stranded_by_stream_bytes, largest_free_block_bytes;
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT];
    uint64_t usable_bytes;
};

/* What has a mean. */
enum exact_mean {
    EXACT_INTERNAL,
    EXACT_UNUSABLE,
    EXACT_STRANDED,
    EXACT_STRANDED_BY_STREAM,
    EXACT_EXTERNAL, /* one for each effort */
    EXACT_MEANS = EXACT_EXTERNAL + AR_POLICY_EFFORT_COUNT
};
_Static_assert(EXACT_MEANS == 8, "exact_tick adds four pairs");

/* Two means as one operand: the build turns the compiler's own vectors off (Makefile). */
typedef double exact_pair __attribute__((vector_size(2 * sizeof(double))));
union exact_values {
    double of[EXACT_MEANS];
    exact_pair pairs[EXACT_MEANS / 2];
};

struct exact {
    const struct ar_policy *policy;
    uint64_t live_bytes, granted_bytes, live_blocks;
    uint64_t peak_live_bytes, peak_granted_bytes, peak_reserved_bytes, peak_blocks;
    uint64_t unit_bytes;
    bool opaque, walks;
    struct ar_policy_free_watch watch;
    struct exact_state at_peak; /* valid where peak_live_bytes is not 0 */
    /* What a tick adds to each sum, times its weight; 0 where the present state does not count. The
     * masks are all ones if there are granted bytes, and free bytes, else 0. */
    bool stale; /* the policy was called since the terms were computed */
    union exact_values terms;
    uint64_t granted_mask, free_mask;
    /* Sums of the state, and of the weights: of all states, of those with granted bytes, of those
     * with free bytes. */
    union exact_values sums;
    uint64_t weight, granted_weight, free_weight;
};

/* Begins with a policy that has no blocks yet. Sets its free-block watch if it supports one. */
void exact_begin(struct exact *exact, struct ar_policy *policy, uint64_t unit_bytes);
/* Removes the watch. */
void exact_end(struct exact *exact, struct ar_policy *policy);

void exact_read(const struct exact *exact, struct exact_state *state);

/* Reads the present state for exact_tick. */
void exact_refresh(struct exact *exact);

/* The clock of the means advances by `weight`. Call this before the event that advances it, and set
 * `stale` at each call to the policy. */
static inline void exact_tick(struct exact *exact, uint64_t weight)
{
    if (exact->stale)
        exact_refresh(exact);
    /* Byte counts are far below 2^63, and the conversion of a signed number is one instruction. */
    double by = (double)(int64_t)weight;
    const exact_pair both = {by, by}, *terms = exact->terms.pairs;
    exact_pair *sums = exact->sums.pairs;
    exact->weight += weight;
    exact->granted_weight += weight & exact->granted_mask;
    exact->free_weight += weight & exact->free_mask;
    sums[0] += both * terms[0];
    sums[1] += both * terms[1];
    sums[2] += both * terms[2];
    sums[3] += both * terms[3];
}

/* A new strict maximum of the live bytes. */
void exact_peak(struct exact *exact);

/* Writes the peaks, ratios, at-peak values and means. */
void exact_report(const struct exact *exact, struct metric_values *metrics);

/* After a request, served or failed: the policy may have reserved more. */
static inline void exact_reserved(struct exact *exact)
{
    uint64_t reserved_bytes = exact->policy->totals.reserved_bytes;
    AR_RAISE(exact->peak_reserved_bytes, reserved_bytes);
}

static inline void exact_served(struct exact *exact, const struct ar_policy_block *block)
{
    exact->live_bytes += block->requested_bytes;
    exact->granted_bytes += block->granted_bytes;
    if (++exact->live_blocks > exact->peak_blocks)
        exact->peak_blocks = exact->live_blocks;
    AR_RAISE(exact->peak_granted_bytes, exact->granted_bytes);
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
