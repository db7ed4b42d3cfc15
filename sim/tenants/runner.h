/* One pool of one process at work: a device, a policy, a workload behind a gate, and a replay that
 * is driven in turns. Only this folder includes it. */
#ifndef SIM_TENANTS_RUNNER_H
#define SIM_TENANTS_RUNNER_H

#include "sim/experiment/session.h"
#include "sim/tenants/tenants.h"
#include "workloads/trace/source.h"

/* A source that lets through so many steps or events of another one, and then says that there is
 * no more, until it is opened again: what makes replays take turns. */
struct gate {
    struct trace_source base;
    struct trace_source *inner;
    const struct trace_event *events; /* pulled and not let through */
    size_t count;
    uint64_t steps_left, events_left;
    uint64_t steps; /* let through in all */
    bool ended;     /* the inner source has no more */
    bool serves;    /* the inner source is adaptive */
};

/* `inner` stays the caller's and stands at its first event. */
void gate_begin(struct gate *gate, struct trace_source *inner);

/* Lets through up to that many steps or events, whichever ends first. */
void gate_let(struct gate *gate, uint64_t steps, uint64_t events);

struct runner {
    struct session session;
    struct gate gate;
    struct trace_source *source;
    struct replay_config config;
    struct replay *replay;
    uint32_t card;          /* of the machine */
    uint64_t context_bytes; /* outside of the pool */
    uint64_t others_at_start_bytes;
    bool pinned;        /* of host memory: see pinned_view.h */
    bool limit_of_free; /* its policy's limit follows from what was free then */
    uint64_t own_ns;    /* that its turns took */
    uint64_t peak_live_bytes, peak_reserved_bytes, peak_physical_bytes;
    bool open, failed; /* failed: a request of its, when it was reported */
};

/* Opens everything at the first event. The runner stays where it is. `others_bytes` is what the
 * card's other users hold. REFUSED: the context does not fit. Else INVALID. `again` as in
 * replay_config. */
enum ar_status runner_open(struct runner *runner, const struct ar_spec *device, const char *policy,
                           const char *workload, uint64_t context_bytes, uint64_t others_bytes,
                           bool (*again)(void *, const struct ar_policy_request *), void *argument,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* What it holds of its card, in and outside of the pool. */
uint64_t runner_held_bytes(const struct runner *runner);

/* Its clock: when all of its work so far is done. */
uint64_t runner_time_ns(const struct runner *runner);
/* Lets its clock pass to that time. */
void runner_wait_until(struct runner *runner, uint64_t time_ns);

/* One turn of so many steps or events, while others hold `others_bytes`. */
enum ar_status runner_go(struct runner *runner, uint64_t others_bytes, uint64_t steps,
                         uint64_t events, struct ar_error *error) AR_STATUS_CHECKED;

/* It has no more to do: its workload has ended, or a request failed. */
bool runner_done(const struct runner *runner);

/* Adds what became of it to its process's result, once; the memory stays until runner_close. */
enum ar_status runner_report(struct runner *runner, struct tenant_result *result,
                             struct ar_error *error) AR_STATUS_CHECKED;
/* Gives everything back. */
void runner_close(struct runner *runner);

#endif
