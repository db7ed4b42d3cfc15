/* Searches over replays: the smallest capacities (capacity.c), conditions on a trace (condition.c),
 * the smallest trace (minimize.c).
 *
 * Whether a run passes is not monotone in the capacity, so a grid is tried: from the live peak,
 * rounded up to 2 MiB, in steps of max(2 MiB, 0.5 % of it) to twice the live peak, then in steps of
 * max(2 MiB, 5 %) to the end: four times the live peak, and at least CAPACITY_GRID_LEAST_BYTES,
 * because the first segments of a policy are larger than a small program. Edges are refined to
 * 2 MiB. */
#pragma once

#include "allocators/base/size.h"
#include "allocators/spec.h"
#include "sim/experiment/recorded_card.h"
#include "sim/replay.h"

struct capacity_gap { /* capacities above first_pass that fail, both inclusive, on the grid */
    uint64_t from_bytes, to_bytes;
};

struct capacity_result {
    struct recorded_card card; /* probes beyond it do not count in the live peak */
    uint64_t card_bytes;
    uint64_t live_peak_bytes;
    uint64_t firm_peak_bytes;  /* of requests that may not fail; no more than live_peak_bytes */
    uint64_t first_pass_bytes; /* 0: none passed */
    uint64_t safe_bytes;       /* the lowest above which all of the grid pass; 0: none */
    /* The same for runs without a flush of cached memory, and without a retried request: a run with
     * a cache near its limit passes, but is slow. */
    uint64_t no_flush_bytes, no_retry_bytes;
    uint64_t runs;
    struct capacity_gap *gaps; /* capacity_result_close */
    size_t gap_count;
};

/* The grid of a workload with that live peak, ascending, up to the most that the device can have
 * (ar_device_props). */
struct capacity_grid {
    uint64_t *bytes;
    size_t count;
};

#define CAPACITY_GRID_LEAST_BYTES (256 * AR_MIB)

/* The end of the grid. */
static inline uint64_t capacity_grid_end(uint64_t live_peak_bytes)
{
    uint64_t end_bytes = 4 * ar_size_round_up(live_peak_bytes, 2 * AR_MIB);
    return end_bytes > CAPACITY_GRID_LEAST_BYTES ? end_bytes : CAPACITY_GRID_LEAST_BYTES;
}

enum ar_status capacity_grid_make(uint64_t live_peak_bytes, uint64_t most_bytes,
                                  struct capacity_grid *out, struct ar_error *error);
void capacity_grid_close(struct capacity_grid *grid);

/* `experiment` has policy, workload and device; its capacity is replaced. `jobs`: workers. */
enum ar_status capacity_find(const struct experiment *experiment, unsigned jobs,
                             struct capacity_result *result, struct ar_error *error);
void capacity_result_close(struct capacity_result *result);

/* A condition on a trace, checked by replays. `minimize --until` reads it. */

enum condition_kind {
    CONDITION_FAILS,   /* fails: a request fails, or the policy breaks its contract */
    CONDITION_CAUSE,   /* cause=CAUSE: a request fails, the first one for this cause */
    CONDITION_METRIC,  /* METRIC>VALUE, with > >= < <=; an exact metric, a number or a size */
    CONDITION_DIFFERS, /* differs(SPEC,SPEC): two policies place a block differently, or end
                      differently */
};

enum condition_order { CONDITION_ABOVE, CONDITION_FROM, CONDITION_BELOW, CONDITION_UP_TO };

struct condition {
    enum condition_kind kind;
    enum replay_cause cause;
    enum metric metric;
    enum condition_order order;
    double value;
    struct ar_spec policies[2]; /* of DIFFERS */
};

/* Reads one of the forms above. INVALID with a sentence; else the caller closes `out`. */
enum ar_status condition_parse(const char *text, struct condition *out, struct ar_error *error);
void condition_close(struct condition *condition);

/* Whether the condition holds for the experiment's source under its policy (DIFFERS does not use
 * the policy). Rewinds the source. The experiment's stop_on_failure, measure and observers are not
 * used. Adds the number of replays to `*runs`. */
enum ar_status condition_holds(const struct condition *condition,
                               const struct experiment *experiment, uint64_t *runs, bool *holds,
                               struct ar_error *error);

/* The smallest trace for which a condition holds, by delta debugging. */

struct minimize_result {
    bool shown;           /* the condition holds for the whole trace; else nothing is minimized */
    uint64_t runs;        /* replays */
    uint64_t candidates;  /* traces tried */
    uint64_t events[2];   /* before (without notes) and after */
    uint64_t requests[2]; /* requests and probes among them */
};

/* Minimizes the experiment's trace; an adaptive one is played once first. `*out` is a trace for
 * which the condition holds (NULL if it does not hold for the whole trace); the caller closes it.
 * It is 1-minimal in its blocks and in its events: without any one of them the condition does not
 * hold. The same arguments always give the same trace. */
enum ar_status minimize(const struct experiment *experiment, const struct condition *condition,
                        struct trace_source **out, struct minimize_result *result,
                        struct ar_error *error);
