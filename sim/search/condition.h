/* What a trace is held to by a replay: whether it still shows something. `minimize --until`. */
#ifndef SIM_SEARCH_CONDITION_H
#define SIM_SEARCH_CONDITION_H

#include "allocators/spec.h"
#include "sim/replay.h"

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

#endif
