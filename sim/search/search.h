/* The smallest capacities at which a workload passes under a policy. Passing is not monotone
 * in capacity, so a grid is walked: from the live peak rounded up to 2 MiB in steps of
 * max(2 MiB, 0.5 % of it) to twice the live peak, then 5 % to four times; edges are refined
 * to 2 MiB. */
#ifndef SIM_SEARCH_SEARCH_H
#define SIM_SEARCH_SEARCH_H

#include "allocators/spec.h"
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

/* What a trace is held to by a replay: whether it still shows something. `minimize --until`. */

enum condition_kind {
    CONDITION_FAILS,   /* fails: a request fails, or the policy breaks its contract */
    CONDITION_CAUSE,   /* cause=CAUSE: a request fails, the first of them for this reason */
    CONDITION_METRIC,  /* METRIC>VALUE, with > >= < <=; an exact metric, a number or a size */
    CONDITION_DIFFERS, /* differs(SPEC,SPEC): two policies do not put all blocks at the same places,
                      or do not end alike */
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
enum ar_status condition_parse(const char *text, struct condition *out,
                               struct ar_error *error) AR_STATUS_CHECKED;
void condition_close(struct condition *condition);

/* Whether the experiment's source shows it under the experiment's policy (which DIFFERS does not
 * use). Rewinds the source. The experiment's stop_on_failure, measure and hooks do not count.
 * `*runs` grows by the replays that it took. */
enum ar_status condition_holds(const struct condition *condition,
                               const struct experiment *experiment, uint64_t *runs, bool *holds,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* The smallest trace that still shows something: delta debugging over a trace. */

struct minimize_result {
    bool shown;           /* the whole trace shows it; else there is nothing to minimize */
    uint64_t runs;        /* replays */
    uint64_t candidates;  /* traces that were tried */
    uint64_t events[2];   /* before (without notes) and after */
    uint64_t requests[2]; /* a and p of them */
};

/* Finds it. The experiment says policy, device, trace and how it is replayed; an adaptive trace is
 * written down first. `*out` is a trace that shows the condition, the caller's to close (NULL where
 * nothing was shown). It is 1-minimal in its blocks and in its events: without any one of them the
 * condition is not shown. The same arguments always give the same trace. */
enum ar_status minimize(const struct experiment *experiment, const struct condition *condition,
                        struct trace_source **out, struct minimize_result *result,
                        struct ar_error *error) AR_STATUS_CHECKED;

#endif
