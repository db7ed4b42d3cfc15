/* The observer of a run: one struct with a callback for each kind of event that a run can report.
 *
 * 1. Whoever starts a run (an experiment, a fidelity check, a bare replay) passes a list of
 *    observers. A callback that is NULL is not wanted. Without observers no
 *    instruction is spent on them (`decide` in replay/engine.c says which runs take shortcuts).
 * 2. Callbacks are called in the order of events, in the thread of the run. What they point to is
 *    valid during the call only. A status other than OK ends the run with that status, except that
 *    `memory` events end only the reports: the run goes on, and the status is returned at its end.
 * 3. The exact figures of a run are the same with and without observers.
 * 4. `driver_call` and `memory` need a part between policy and device: the tap (below). The
 *    session makes it when an observer of its list has one of them. */
#pragma once

#include "allocators/policy.h"
#include "sim/device.h"

struct latency; /* sim/replay/timing.h */

/* One row of a placements file: one for each request and probe, and one for each free. */
struct replay_row {
    uint64_t event; /* number from 0 */
    char op;        /* 'a', 'p' or 'f' */
    uint64_t id;
    uint64_t requested_bytes, granted_bytes; /* granted 0 if the request failed or is empty */
    int64_t segment, offset; /* -1, -1: no block. On a free: the address range that was freed */
    uint64_t granted_total_bytes, reserved_bytes; /* after the event */
};

/* One row of a series file: the state after an event. */
struct replay_sample {
    uint64_t event;
    uint64_t time_ns; /* recorded time so far; 0 if the trace has no times */
    uint64_t weight;  /* of the state before this event in the means (their clock) */
    uint64_t live_bytes, granted_bytes, reserved_bytes, physical_bytes, free_bytes;
    uint64_t pending_bytes, stranded_bytes, largest_free_block_bytes;
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT];
    uint64_t usable_bytes; /* see policy_free_watch; 0 if the unit is not known */
    uint64_t stranded_by_stream_bytes;
    uint64_t failed_allocs; /* so far */
};

enum observer_policy_kind {
    OBSERVER_POLICY_ALLOC,
    OBSERVER_POLICY_FREE,
    OBSERVER_POLICY_USE,
    OBSERVER_POLICY_RETIRE,
    OBSERVER_POLICY_TRIM,
};

/* A call of the engine to the policy of the device, reported right after it: an alloc, free, use,
 * retire or trim, and the deletion of a pool as a TRIM. Not reported: plan, progress, the end of a
 * pool, calls to the policy of pinned memory, and hooks that the policy does not have. */
struct observer_policy_call {
    enum observer_policy_kind kind;
    enum ar_status status;                   /* the result of the call; OK for a retire */
    uint64_t event;                          /* number of the trace's event */
    uint32_t stream;                         /* of an alloc, a free and a use */
    const struct ar_policy_request *request; /* of an alloc; else NULL */
    const struct ar_policy_block *block;     /* NULL for a trim and for an alloc that failed */
    const char *tag;                         /* of the request; NULL: none */
};

/* A counted call to the device, reported right after it. */
struct observer_driver_call {
    uint64_t event; /* in which the call is made; 0 before the first event too */
    enum ar_device_call call;
    uint64_t bytes, ns, waited_ns; /* `ns` is the call's own time, without `waited_ns` */
    bool refused;
};

enum observer_kind {
    OBSERVER_ALLOC,          /* a request was served */
    OBSERVER_FAILED,         /* a request of `bytes` failed; the device has `free_bytes` */
    OBSERVER_FREE_REQUESTED, /* the program freed a block */
    OBSERVER_FREE_COMPLETED, /* the block may be used again */
    /* What the policy obtained and released: reported at the end of the policy's call, and before
     * the request that the policy served in this call. */
    OBSERVER_SEGMENT_ALLOC,
    OBSERVER_SEGMENT_FREE,
    OBSERVER_SEGMENT_MAP,
    OBSERVER_SEGMENT_UNMAP,
    OBSERVER_CALL,   /* a call to the device, reported right after it */
    OBSERVER_MARK,   /* of the program: `tag` is its label */
    OBSERVER_CHANGE, /* of the policy, before it is made: `tag` is the text of the note */
};

/* One entry of the history of a run's memory, with addresses and times. */
struct observer_event {
    enum observer_kind kind;
    uint64_t address, bytes; /* of requests and frees the requested bytes */
    uint64_t free_bytes;
    uint32_t stream, pool;
    const char *tag;  /* of the request; NULL: none */
    const char *keys; /* of a MARK: the keys that the format does not know; NULL: none. Of a CHANGE:
                         the policy's setting before it, or "" */
    uint64_t event;   /* number of the trace's event; 0 before the first too */
    uint64_t now_ns;  /* since the device was opened */
    /* Of a CALL. */
    const char *call; /* a literal */
    uint64_t begun_ns;
    bool refused;
    /* The present state. */
    const struct ar_policy_totals *totals;
    uint64_t physical_bytes;
};

struct observer {
    const struct observer *next; /* NULL: the last of the list */
    void *argument;              /* of all callbacks */
    /* Before the run, in its process; and before each further attempt, which makes what was
     * reported before it void (fidelity). */
    enum ar_status (*begin)(void *argument, struct ar_error *error);
    enum ar_status (*row)(void *argument, const struct replay_row *row, struct ar_error *error);
    /* After each event. */
    enum ar_status (*sample)(void *argument, const struct replay_sample *sample,
                             struct ar_error *error);
    void (*policy_call)(void *argument, const struct observer_policy_call *call);
    /* Also calls that the policy makes while it is created. */
    void (*driver_call)(void *argument, const struct observer_driver_call *call);
    enum ar_status (*memory)(void *argument, const struct observer_event *event,
                             struct ar_error *error);
    /* At the end of a pass that reads the clock around each call. */
    enum ar_status (*latencies)(void *argument, const struct latency *latency,
                                struct ar_error *error);
    /* At the end of the run, after all other callbacks: the policy in its final state. */
    enum ar_status (*finished)(void *argument, const struct ar_policy *policy,
                               struct ar_error *error);
};

/* Each calls the callback of that name in all observers of a list (NULL: none), and returns the
 * first status that is not OK. */
enum ar_status observer_begin(const struct observer *list, struct ar_error *error);
enum ar_status observer_row(const struct observer *list, const struct replay_row *row,
                            struct ar_error *error);
enum ar_status observer_sample(const struct observer *list, const struct replay_sample *sample,
                               struct ar_error *error);
void observer_policy_call(const struct observer *list, const struct observer_policy_call *call);
void observer_driver_call(const struct observer *list, const struct observer_driver_call *call);
enum ar_status observer_memory(const struct observer *list, const struct observer_event *event,
                               struct ar_error *error);
enum ar_status observer_latencies(const struct observer *list, const struct latency *latency,
                                  struct ar_error *error);
enum ar_status observer_finished(const struct observer *list, const struct ar_policy *policy,
                                 struct ar_error *error);

/* Which callbacks the observers of a list have. */
struct observer_wants {
    bool rows, samples, policy_calls, driver_calls, memory;
};
struct observer_wants observer_wants(const struct observer *list);

/* The tap of an observed run: it stands between policy and device and turns what passes there into
 * driver calls and memory events for the observers.
 *
 * The session opens it when an observer wants one of the two, gives its backing to the policy, and
 * closes it after the policy. The engine tells it where the trace is (tap_at_event) and of each
 * call to the policy (tap_policy_call). */

struct tap;

/* Opens a tap on a device, unless no observer of the list needs one: then `*out` is NULL. */
enum ar_status tap_open(struct tap **out, const struct observer *observers,
                        struct ar_device *device, struct ar_error *error);
/* After the policy is destroyed and before the device is closed. NULL is fine. */
void tap_close(struct tap *self);

/* The backing to make the policy with. */
struct ar_backing *tap_backing(struct tap *self);
/* The policy that was made with it. */
void tap_set_policy(struct tap *self, const struct ar_policy *policy);

/* The engine begins an event, or goes on with it after a call to the policy that is not reported:
 * what the policy has from here on is the state before its next call. */
void tap_at_event(struct tap *self, uint64_t event);
void tap_policy_call(struct tap *self, const struct observer_policy_call *call);
/* A mark of the program with its label and the keys that the format does not know, or NULL. */
void tap_mark(struct tap *self, const char *label, const char *keys);
/* A note that changes the policy, before it does. */
void tap_change(struct tap *self, const char *note);

/* The run is over: reports what is left. After this nothing is reported, whatever is closed. */
enum ar_status tap_end(struct tap *self, struct ar_error *error);
