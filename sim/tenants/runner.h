/* One pool of a running process: a device, a policy, a workload behind a gate, and a replay that
 * runs in turns. Private to this folder. */
#pragma once

#include "sim/experiment/session.h"
#include "sim/tenants/tenants.h"
#include "workloads/trace/source.h"

/* A source that passes on a given number of steps or events of another source and then reports the
 * end, until it is opened again. This is how replays take turns. */
struct gate {
    struct trace_source base;
    const struct trace_event *events; /* read and not passed on yet */
    size_t count;
    uint64_t steps_left, events_left;
    uint64_t steps; /* passed on in total */
    bool ended;     /* the inner source is at its end */
};

/* The caller keeps `inner`, which must be at its first event. */
void gate_begin(struct gate *gate, struct trace_source *inner);

/* Opens the gate for that many steps or events, whichever ends first. */
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
    bool pinned;        /* of host memory: see pinned_view_open */
    bool limit_of_free; /* the policy's limit depends on the memory that was free at the start */
    uint64_t own_ns;    /* the time of its own turns */
    uint64_t peak_live_bytes, peak_reserved_bytes, peak_physical_bytes;
    bool open, failed; /* failed: a request had failed when it was reported */
};

/* Opens the pool at its first event. The runner must not move. `others_bytes` is the memory of
 * other users of the card. `again` is as in replay_config. REFUSED: no memory for the context. Else
 * INVALID. */
enum ar_status runner_open(struct runner *runner, const struct ar_spec *device, const char *policy,
                           const char *workload, uint64_t context_bytes, uint64_t others_bytes,
                           bool (*again)(void *, const struct ar_policy_request *), void *argument,
                           struct ar_error *error);

/* Its memory on the card, in and outside of the pool. */
uint64_t runner_held_bytes(const struct runner *runner);

/* Its clock: the time at which all of its work so far is done. */
uint64_t runner_time_ns(const struct runner *runner);
/* Advances its clock to that time. */
void runner_wait_until(struct runner *runner, uint64_t time_ns);

/* One turn of so many steps or events, while others hold `others_bytes`. */
enum ar_status runner_go(struct runner *runner, uint64_t others_bytes, uint64_t steps,
                         uint64_t events, struct ar_error *error);

/* It has no more to do: its workload has ended, or a request failed. */
bool runner_done(const struct runner *runner);

/* Adds what became of it to its process's result, once; the memory stays until runner_close. */
enum ar_status runner_report(struct runner *runner, struct tenant_result *result,
                             struct ar_error *error);
/* Destroys the policy, as session_end does, and releases everything. */
enum ar_status runner_end(struct runner *runner, struct ar_error *error);
/* Releases everything. */
void runner_close(struct runner *runner);

/* Places an arriving process: its card by its placement, its pools by its settings. `cards` is the
 * present state, from which `context_bytes` of the process is not yet subtracted. Statuses as of
 * process_configure, and REFUSED if no card has enough free memory. */
enum ar_status tenant_place(const struct tenant_setup *setup, const struct process_card *cards,
                            size_t card_count, uint64_t context_bytes, struct process *process,
                            struct ar_error *error);

/* Makes a view of a workload for a pool of pinned host memory. Pinned requests become requests of
 * the pool, and requests of device memory get zero bytes, so that no policy sees them. All other
 * events stay, so both pools of a process reach the same step at the same time. The view owns
 * `source`; a failure closes it too. */
enum ar_status pinned_view_open(struct trace_source *source, struct trace_source **out,
                                struct ar_error *error);
