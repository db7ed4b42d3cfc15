/* The state of one replay, shared by the files of this folder only. */
#pragma once

#include "sim/replay.h"
#include "sim/replay/exact.h"
#include "sim/replay/kernel_ops.h"
#include "sim/replay/timing.h"
#include "sim/replay/verify.h"

/* A block, by its slot. UNUSED: no block. FREE_REQUESTED: the program freed it; a completion may
 * still come, which frees the block in mode `recorded`. EMPTY: served without a block (zero bytes,
 * pinned memory without a policy for it). PINNED: a live block of the policy of pinned memory; in
 * mode `recorded` until its free is completed. FAILED: the request failed; later events of the
 * block are ignored. */
enum replay_slot_state {
    SLOT_UNUSED,
    SLOT_LIVE,
    SLOT_FREE_REQUESTED,
    SLOT_EMPTY,
    SLOT_PINNED,
    SLOT_FAILED
};

struct replay_slot {
    struct ar_policy_block block;
    int64_t segment, offset; /* of rows, if observers want them; -1: no block */
    enum replay_slot_state state;
    uint32_t stream; /* next to the state: both are compared at once */
    uint32_t uses;   /* 1 + index of the first node in replay.uses; 0: none */
    uint32_t pad;    /* makes it 64 bytes: its address is a shift */
};
_Static_assert(sizeof(struct replay_slot) == 64, "a slot has the size of a cache line");

/* A further stream that a block is used on; a list for each slot. */
struct replay_use {
    uint32_t stream;
    uint32_t next; /* 1 + index; 0: the last */
};

struct replay {
    /* The request that the shortcuts pass; only `bytes` is ever set. It is the first member, so
     * that its address is that of the run and needs no instruction. */
    struct ar_policy_request plain;
    /* The loop uses these at each event. */
    struct ar_policy *policy;
    struct replay_slot *slots;
    uint64_t slot_count;
    /* The policy's hooks, called directly by the shortcuts: two loads less for each call than
     * ar_policy_alloc and ar_policy_free. */
    enum ar_status (*policy_alloc)(struct ar_policy *, const struct ar_policy_request *,
                                   struct ar_policy_block *);
    enum ar_status (*policy_free)(struct ar_policy *, const struct ar_policy_block *, uint32_t);
    void (*kernel)(struct ar_device *, uint32_t, uint64_t);
    const uint64_t *clock_ns; /* of the device, if it is virtual */
    uint64_t allocs, frees;
    uint64_t time_ns; /* recorded */
    struct exact exact;
    bool watched;                   /* every event goes through replay_event */
    bool wants_rows, wants_samples; /* of the observers */
    bool wants_calls;               /* calls to the policy are reported to observers or the tap */
    bool follow_up;                 /* each call is followed by reports, charges or times */
    bool
        keeps_state; /* live and granted bytes in `exact`, and pauses: for metrics, or if watched */
    bool by_time;    /* the clock of the means is the recorded time */
    bool orders_streams;      /* several, in mode ordered: the device is told of uses */
    bool stream_ordered;      /* the policy orders them itself */
    bool free_requested_ends; /* no separate completions: a free request ends the slot */
    bool at_completion;       /* blocks are freed at the recorded completion */
    enum ar_status status;    /* of the policy's call in a shortcut, if it failed */
    /* What the shortcuts need to know of events other than requests and frees at once. */
    bool plain_times;   /* recorded times are only the clock of the means */
    bool plain_kernels; /* kernels are only launched */
    bool plain_splits;  /* a free request frees the block, and its completion ends the slot */

    const struct replay_config *config;
    struct ar_device *device;
    const struct trace_event *span; /* being replayed; and the number of its first event */
    uint64_t span_first;

    struct replay_use *uses;      /* nodes; the unused ones form a list */
    uint32_t use_count, free_use; /* free_use: 1 + the index of the first unused one; 0: none */

    struct ar_policy_request request; /* the latest one through events.c */
    uint64_t weight;                  /* of the state that this event ended */
    uint64_t failed_allocs, failed_probes;
    uint64_t failed_by[REPLAY_CAUSE_DRIVER + 1];
    bool failed, stop;
    uint64_t first_failed_event, first_failed_bytes;
    enum replay_cause cause;
    char refused_by[128]; /* as in the result */

    /* plans.c: for each choice the size that was served last, counted from 1; 0: none. */
    uint8_t *choices;
    size_t choice_count;
    bool must_serve; /* a probe that fails is a failed request: the last of its sizes */

    /* pinned.c: pinned host memory. `policy` NULL: there is none. */
    struct {
        struct ar_policy *policy;
        uint64_t requests;
        uint64_t peak_live_bytes, peak_granted_bytes, peak_reserved_bytes;
    } pinned;

    struct steps steps;
    uint64_t steps_expected; /* 0: not known */
    struct latency *latency; /* NULL: the host clock is not read */
    struct pauses pauses;
    struct card_memory card;
    struct verify *verify; /* NULL: blocks are not verified */
    struct kernel_ops kernel_ops;
    bool has_kernel_ops; /* kernels do what their keys say */
    bool asks_lengths;   /* of kernels: the device knows them, or the host's time to prepare them */
    bool finds_blocks;   /* by id, for operands: for has_kernel_ops, or for lengths */
    bool touches_blocks; /* when they are served */
    uint64_t opened_ns;  /* device time at the beginning; times of the trace are relative to it */
};

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static inline uint64_t replay_event_number(const struct replay *run,
                                           const struct trace_event *event)
{
    return run->span_first + (uint64_t)(event - run->span);
}

/* The clock of the means advances. */
static inline void replay_tick(struct replay *run, uint64_t weight)
{
    run->weight = weight;
    if (weight && run->config->measure == REPLAY_METRICS_EXACT)
        exact_tick(&run->exact, weight);
}

/* events.c: one event of any kind, by the rules that engine.c states. */
enum ar_status replay_event(struct replay *run, const struct trace_event *event,
                            struct ar_error *error);

/* Grows the array of slots. HOST_MEMORY or INVALID. */
enum ar_status replay_slots_grow(struct replay *run, const struct trace_event *event,
                                 struct ar_error *error);
/* Adds a stream that uses the slot's block. */
enum ar_status replay_use_add(struct replay *run, struct replay_slot *slot, uint32_t stream,
                              struct ar_error *error);
/* Tells the device that the streams of a block, and `stream`, may use it until now. Clears the list
 * of uses. */
void replay_uses_end(struct replay *run, struct replay_slot *slot, uint32_t stream, uint64_t event);

/* After the first call to the policy for run->request, which returned `status`: repeats it as
 * config->again says, and counts the failure or keeps the block. */
enum ar_status replay_settle_request(struct replay *run, const struct trace_event *event,
                                     struct replay_slot *slot, enum ar_status status,
                                     struct ar_error *error);

/* failure.c: results of the policy or the device other than OK. A failed request is counted; the
 * rest becomes an error. */

/* Repeats a failed request (`status`) as long as config->again returns true. Returns the last
 * status. The repetitions are in no figure: latencies and pauses are those of the first call, and
 * the metric `retries` is the policy's own. */
enum ar_status replay_ask_again(struct replay *run, const struct trace_event *event,
                                struct ar_policy_block *block, enum ar_status status);
enum ar_status replay_not_served(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot, enum ar_status status,
                                 struct ar_error *error);
/* A request of `bytes` failed. */
void replay_count_failure(struct replay *run, const struct trace_event *event, uint64_t bytes,
                          enum replay_cause cause);
/* The program's memory outside of the pool was refused. */
void replay_outside_refused(struct replay *run, const struct trace_event *event);
/* The driver failed: the run ends here. `unfinished`: in the event at span_first, else in the one
 * before it. */
void replay_driver_failed(struct replay *run, bool unfinished);
/* A kernel that the device could not launch because of a lack of memory. */
void replay_launch_refused(struct replay *run, const struct trace_event *event);
/* A status of the policy that is no outcome, or a broken contract. */
enum ar_status replay_broken(const struct replay *run, const struct trace_event *event,
                             enum ar_status status, const char *what, struct ar_error *error);
#define REPLAY_GRANTED_LESS "it granted less than was asked for"
#define REPLAY_FREE_FAILED  "a free failed"
/* Puts trace and event before the error. */
enum ar_status replay_at_event(const struct replay *run, const struct trace_event *event,
                               enum ar_status status, struct ar_error *error);
/* Input that the trace's reader should have refused. */
enum ar_status replay_bad_input(const struct replay *run, const struct trace_event *event,
                                const char *what, struct ar_error *error);

/* plans.c: the sizes that a program tries one after another, the key `plans` of a probe. */
#define REPLAY_PLANS_MAX 64u
struct replay_plans {
    uint32_t choice;
    unsigned count; /* 0: the request has one size */
    uint64_t bytes[REPLAY_PLANS_MAX];
};

/* Reads the key from the keys that this version does not know. INVALID: it is malformed. */
enum ar_status replay_plans_read(const struct replay *run, const struct trace_event *event,
                                 const char *rest, struct replay_plans *out,
                                 struct ar_error *error);
/* The entry of a choice; NULL: no host memory. */
uint8_t *replay_choice(struct replay *run, uint32_t choice);

/* pinned.c: events of blocks of pinned host memory, for run->pinned.policy. */
enum ar_status replay_pinned_alloc(struct replay *run, const struct trace_event *event,
                                   struct replay_slot *slot, const struct trace_attributes *keys,
                                   struct ar_error *error);
enum ar_status replay_pinned_free(struct replay *run, const struct trace_event *event,
                                  const struct replay_slot *slot, struct ar_error *error);
enum ar_status replay_pinned_use(struct replay *run, const struct trace_event *event,
                                 const struct replay_slot *slot, struct ar_error *error);
enum ar_status replay_pinned_trim(struct replay *run, const struct trace_event *event,
                                  struct ar_error *error);
enum ar_status replay_pinned_check(const struct replay *run, struct ar_error *error);
void replay_pinned_report(const struct replay *run, struct metric_values *metrics);

/* observe.c: reports to the observers, and answers to adaptive sources. */
void replay_observe_begin(struct replay *run);
/* The row of a request ('a', 'p') or a free ('f'). */
enum ar_status replay_row(struct replay *run, const struct trace_event *event, char op,
                          const struct replay_slot *slot, struct ar_error *error);
/* The segment and offset of a slot's block. */
void replay_locate(struct replay *run, struct replay_slot *slot);
enum ar_status replay_sample_take(struct replay *run, const struct trace_event *event,
                                  struct ar_error *error);
/* A call to the policy of that kind; `block` NULL for a trim. */
void replay_called(struct replay *run, const struct trace_event *event,
                   enum observer_policy_kind kind, enum ar_status status,
                   const struct ar_policy_block *block, uint32_t stream);
void replay_mark(struct replay *run, const struct trace_event *event);
void replay_answer(struct replay *run, const struct trace_event *event,
                   const struct replay_slot *slot);

/* contents.c: contents of blocks: verify, touch, kernel ops. */
enum ar_status replay_contents_open(struct replay *run, struct ar_error *error);
void replay_contents_close(struct replay *run);
enum ar_status replay_contents_given(struct replay *run, const struct trace_event *event,
                                     const struct replay_slot *slot, struct ar_error *error);
enum ar_status replay_contents_freed(struct replay *run, const struct trace_event *event,
                                     const struct replay_slot *slot, uint32_t stream,
                                     struct ar_error *error);
/* For all requests, also empty and failed ones: kernels name these too. */
enum ar_status replay_contents_request(struct replay *run, const struct trace_event *event,
                                       struct ar_error *error);
enum ar_status replay_contents_kernel(struct replay *run, const struct trace_event *event,
                                      struct ar_error *error);
/* On a device without memory that knows lengths of kernel ops or prepares them. */
enum ar_status replay_contents_length(struct replay *run, const struct trace_event *event,
                                      uint64_t *ns, struct ar_error *error);
/* Whether any of these is needed. */
static inline bool replay_contents_used(const struct replay *run)
{
    return run->verify || run->finds_blocks || run->touches_blocks;
}

/* report.c: compares the policy's count of live bytes with the engine's. CORRUPT. */
enum ar_status replay_check_end(const struct replay *run, struct ar_error *error);
enum ar_status replay_report(struct replay *run, struct replay_result *result,
                             struct ar_error *error);
