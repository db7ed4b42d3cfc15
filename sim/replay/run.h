/* The state of one replay, shared by the files of this folder; nobody else includes it. */
#ifndef SIM_REPLAY_RUN_H
#define SIM_REPLAY_RUN_H

#include "sim/replay.h"
#include "sim/replay/exact.h"
#include "sim/replay/kernel_ops.h"
#include "sim/replay/timing.h"

struct latency;
struct steps;
struct verify;

/* What the engine knows of a block, by its slot. UNUSED: no block. FREE_REQUESTED: the program has let
 * go; a completion may still come, and in mode `recorded` it frees the block. EMPTY: served without a block of the
 * policy (zero bytes, pinned memory). FAILED: not served; what follows is ignored. */
enum replay_slot_state { SLOT_UNUSED, SLOT_LIVE, SLOT_FREE_REQUESTED, SLOT_EMPTY, SLOT_FAILED };

struct replay_slot {
    struct ar_policy_block block;
    int64_t segment, offset; /* where rows are wanted; -1: no block */
    enum replay_slot_state state;
    uint32_t stream; /* beside the state: both are compared at once */
    uint32_t uses;   /* 1 + index of the first node in replay.uses; 0: none */
    uint32_t unused; /* 64 bytes: its place is a shift away */
};
_Static_assert(sizeof(struct replay_slot) == 64, "a slot is a cache line");

/* A stream that a block is used on beside its own; a list per slot. */
struct replay_use {
    uint32_t stream;
    uint32_t next; /* 1 + index; 0: the last */
};

struct replay {
    /* What the loop touches at each event. */
    struct ar_policy *policy;
    struct replay_slot *slots;
    uint64_t slot_count;
    /* The policy's hooks, for the shortcuts, which do by hand what ar_policy_alloc and ar_policy_free
     * do: two loads less for each call. */
    enum ar_status (*policy_alloc)(struct ar_policy *, const struct ar_policy_request *,
                                   struct ar_policy_block *);
    enum ar_status (*policy_free)(struct ar_policy *, const struct ar_policy_block *, uint32_t);
    struct ar_policy_request request;
    uint64_t allocs, frees;
    struct exact exact;
    bool is_exact;                  /* metrics are wanted */
    bool watched;                   /* every event goes through replay_event */
    bool wants_rows, wants_samples; /* of the observers */
    bool wants_calls;               /* calls to the policy are reported, to observers or the tap */
    bool follow_up;                 /* something is done after each call to the policy */
    bool counts;                    /* `exact` is kept up to date: is_exact or watched */
    bool by_time;                   /* the clock of the means is the recorded time */
    bool hazards; /* several streams in mode ordered: tell the device who uses what */
    bool stream_ordered;
    bool free_requested_ends; /* no completions in this trace: a slot is free at the let-go */
    bool at_completion;       /* blocks are freed at the completion that the trace tells of */

    const struct replay_config *config;
    struct ar_device *device;
    const struct trace_event *span; /* being replayed, and the number of its first event */
    uint64_t span_first;

    struct replay_use *uses; /* nodes, the unused ones in a list */
    uint32_t use_count, use_unused;

    uint64_t time_ns; /* recorded */
    uint64_t weight;  /* that this event ended the state before it with */
    uint64_t failed_allocs, failed_probes;
    uint64_t failed_by[REPLAY_CAUSE_DRIVER + 1];
    bool failed, stop;
    uint64_t first_failed_event, first_failed_bytes;
    enum replay_cause cause;

    struct steps *steps;
    uint64_t steps_expected; /* 0: not known */
    struct latency *latency; /* NULL: the host clock is not read */
    struct pauses pauses;
    struct card card;
    struct verify *verify; /* NULL: blocks are not verified */
    struct kernel_ops kernel_ops;
    bool has_kernel_ops; /* kernels do what their keys say */
    bool lengths; /* the device only tells what the host does for that, or how long it takes */
    bool follows; /* blocks are known by their ids, for either */
    bool touches; /* each block is touched when it is given */
    uint64_t opened_ns; /* device time when the replay began: times of the trace count from it */
};

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static inline uint64_t replay_number(const struct replay *run, const struct trace_event *event)
{
    return run->span_first + (uint64_t)(event - run->span);
}

/* The clock of the means moves on. */
static inline void replay_tick(struct replay *run, uint64_t weight)
{
    run->weight = weight;
    if (weight && run->is_exact)
        exact_tick(&run->exact, weight);
}

/* events.c: one event of any kind, by the rules that engine.c states. */
enum ar_status replay_event(struct replay *run, const struct trace_event *event,
                            struct ar_error *error);

/* slots.c: the array grows as slots appear. HOST_MEMORY or INVALID. */
enum ar_status replay_slots_grow(struct replay *run, const struct trace_event *event,
                                 struct ar_error *error);
/* Remembers that the slot's block is used on a stream. */
enum ar_status replay_use_add(struct replay *run, struct replay_slot *slot, uint32_t stream,
                              struct ar_error *error);
/* Tells the device that the streams of a block, and `stream`, may use it until now; forgets
 * the uses. */
void replay_uses_end(struct replay *run, struct replay_slot *slot, uint32_t stream, uint64_t event);

/* failure.c: what the policy or the device answered other than OK. A request that was not
 * served is counted; the rest becomes a sentence. */
/* Tries a request that was not served (`status`) again, as often as who watches over the run says
 * so. Returns what came of it. */
enum ar_status replay_ask_again(struct replay *run, const struct trace_event *event,
                                struct ar_policy_block *block, enum ar_status status);
enum ar_status replay_not_served(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot, enum ar_status status,
                                 struct ar_error *error);
/* The program's own memory outside of the pool found no place. */
void replay_outside_refused(struct replay *run, const struct trace_event *event);
/* The driver failed: the run ends here, before `event` if that was not done with. */
void replay_driver_failed(struct replay *run, bool in_event);
/* A kernel that the device could not launch for want of memory. */
void replay_launch_refused(struct replay *run, const struct trace_event *event);
/* A call other than alloc that did not return OK; or a broken contract. */
enum ar_status replay_broken(const struct replay *run, const struct trace_event *event,
                             enum ar_status status, const char *what, struct ar_error *error);
#define REPLAY_GRANTED_LESS "it granted less than was asked for"
#define REPLAY_FREE_FAILED  "a free failed"
/* Input that the trace's reader should have refused. */
enum ar_status replay_bad_input(const struct replay *run, const struct trace_event *event,
                                const char *what, struct ar_error *error);

/* observe.c: reports to the observers, and answers to adaptive sources. */
void replay_observe_begin(struct replay *run);
/* The row of a request ('a', 'p') or a free ('f'). */
enum ar_status replay_row(struct replay *run, const struct trace_event *event, char op,
                          const struct replay_slot *slot, struct ar_error *error);
/* The segment and offset of a slot's block. */
void replay_place(struct replay *run, struct replay_slot *slot);
enum ar_status replay_sample_take(struct replay *run, const struct trace_event *event,
                                  struct ar_error *error);
/* A call to the policy of that kind; `block` NULL for a trim. */
void replay_called(struct replay *run, const struct trace_event *event,
                   enum observer_policy_kind kind, enum ar_status status,
                   const struct ar_policy_block *block, uint32_t stream);
void replay_mark(struct replay *run, const struct trace_event *event);
void replay_answer(struct replay *run, const struct trace_event *event,
                   const struct replay_slot *slot);

/* memory.c: what is done to blocks where the device has memory: verify, touch, work. */
enum ar_status replay_memory_open(struct replay *run, struct ar_error *error);
void replay_memory_close(struct replay *run);
enum ar_status replay_memory_given(struct replay *run, const struct trace_event *event,
                                   const struct replay_slot *slot, struct ar_error *error);
enum ar_status replay_memory_free_requested(struct replay *run, const struct trace_event *event,
                                            const struct replay_slot *slot, uint32_t stream,
                                            struct ar_error *error);
/* Also of requests without a block, and failed ones: kernels name them too. */
enum ar_status replay_memory_request(struct replay *run, const struct trace_event *event,
                                     struct ar_error *error);
enum ar_status replay_memory_kernel(struct replay *run, const struct trace_event *event,
                                    struct ar_error *error);
/* On a device that does no work and has something to prepare for it, or knows how long it takes. */
enum ar_status replay_memory_length(struct replay *run, const struct trace_event *event,
                                    uint64_t *ns, struct ar_error *error);
/* Whether the run has to go through all of these. */
static inline bool replay_memory_used(const struct replay *run)
{
    return run->verify || run->follows || run->touches;
}

/* report.c: the policy's own count of live bytes must be the engine's: CORRUPT. */
enum ar_status replay_check_end(const struct replay *run, struct ar_error *error);
enum ar_status replay_report(struct replay *run, struct replay_result *result,
                             struct ar_error *error);

/* Whether blocks keep their contents, on a device that has memory.
 *
 * 1. A block is filled with a pattern on its stream as soon as it is given, behind what the engine
 *    makes that stream wait for.
 * 2. When it is let go, before anybody is told, the pattern is read again: on each stream that uses
 *    the block, on its own, and on the one of the free. A stream other than the block's own is
 *    first made to wait for that one, as a program that uses what another stream wrote must.
 * 3. With blocks on several streams a long kernel goes before each reading: a policy that hands the
 *    bytes to another stream too early lets that stream's filling overtake the reading, which then
 *    finds the other block's pattern.
 * 4. Where frees are not ordered by streams (at-once, recorded) the program itself is taken to have
 *    waited: the host waits for the reading.
 * 5. Blocks that are live at the end are read then. Then the device tells the first wrong byte.
 *    What was given latest is remembered, to tell who was given the same bytes. */

#define VERIFY_KERNEL_NS UINT64_C(20000)

struct replay;
struct replay_slot;
struct verify;

/* How long a kernel of the trace runs under verify: how much longer says nothing of contents. */
static inline uint64_t verify_kernel_ns(uint64_t nanoseconds)
{
    return nanoseconds < VERIFY_KERNEL_NS ? nanoseconds : VERIFY_KERNEL_NS;
}

/* HOST_MEMORY. `several`: blocks live on several streams. */
enum ar_status verify_open(struct verify **out, bool several,
                           struct ar_error *error) AR_STATUS_CHECKED;
void verify_close(struct verify *verify);

enum ar_status verify_given(struct replay *run, const struct trace_event *event,
                            const struct replay_slot *slot) AR_STATUS_CHECKED;
enum ar_status verify_free_requested(struct replay *run, const struct replay_slot *slot,
                                     uint64_t id, uint32_t stream) AR_STATUS_CHECKED;
/* CORRUPT with a sentence where a byte is wrong. */
enum ar_status verify_end(struct replay *run, struct ar_error *error) AR_STATUS_CHECKED;

#endif
