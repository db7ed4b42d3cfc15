/* The actions of the recorded allocator, in order, from the notes of a trace. */
#pragma once

#include "allocators/policy.h"
#include "sim/fidelity/fidelity.h"
#include "workloads/trace/source.h"
#include "sim/device.h"

#define RECORDED_NONE SIZE_MAX

enum recorded_kind { RECORDED_MADE, RECORDED_FREED, RECORDED_MAPPED, RECORDED_UNMAPPED };

/* A segment made or freed, or a run of pages mapped or unmapped. */
struct recorded_action {
    uint64_t event;
    uint64_t address, bytes;
    enum recorded_kind kind;
};

struct recorded_request {
    uint64_t event, id;
    uint64_t address; /* of its block */
    bool initial;     /* it represents a block of the start */
    size_t start;     /* index of that block among those in use; valid if `initial` */
    bool known;       /* the recording has its outcome */
    bool failed;
    bool missed; /* memory was made for it, or it failed: no free block was large enough */
    /* Completions right before it: first those seen at its beginning, then those for which it
     * waited because memory was short. */
    size_t first_completion, completions; /* index into the recording's completions */
    size_t waited_least;                  /* those after memory was made for it */
    size_t waited;                        /* by the present explanation */
    /* With one more completion than this it would have been served; or RECORDED_NONE. */
    size_t fits_from;
    bool has_group;     /* memory was released right before it */
    bool waited_tried;  /* the explanation that it waited for all was tried */
    bool missed_before; /* without completions seen, it would have released memory */
    bool refused;       /* it released nothing, but was refused memory before it waited */
    bool captured;      /* it failed in a private pool, perhaps one that is not named */
    struct ar_policy_request request;
};

/* The state before the first event. */
struct recorded_start {
    struct recorded_area {       /* a segment, a range that grows, or a run of its pages */
        uint64_t address, bytes; /* bytes 0: a range, whose end is not known */
        uint32_t stream, pool;
        bool pages;
    } * areas;
    size_t area_count, area_room;
    struct recorded_block {
        uint64_t address, bytes;
        size_t request; /* RECORDED_NONE: it is free */
    } * blocks;
    size_t block_count, block_room;
    /* By address, as a policy adopts them; made after the whole recording is read. */
    struct ar_policy_range *ranges;
    size_t range_count;
    size_t *used; /* the requests of its USED ranges, in their order */
    size_t used_count;
    uint64_t held_bytes;
};

/* The state of the recorded allocator at the end, from a snapshot. */
struct recorded_final {
    struct recorded_area *areas; /* by address, like the blocks; runs of pages count as segments */
    size_t area_count, area_room;
    struct recorded_end_block {
        uint64_t address, bytes;
        uint64_t requested_bytes; /* 0: not recorded */
        uint64_t event;           /* of its note */
        enum ar_policy_range_state state;
    } * blocks;
    size_t block_count, block_room;
    bool has_pending;
};

/* Why memory was released to the device. */
enum recorded_cause {
    CAUSE_UNDECIDED,
    CAUSE_GIVEN,   /* the trace has a release event right before */
    CAUSE_RELEASE, /* the program released its cache; inferred, not in the trace */
    CAUSE_OWN,     /* the allocator itself, to serve the next request */
    CAUSE_REFUSED, /* as OWN, after the device had refused memory */
};
#define CAUSE_BIT(cause) (1u << (cause))

/* Memory that was released without an action of the program in between. */
struct recorded_group {
    size_t first, count; /* actions */
    uint64_t event;      /* of the first */
    size_t request;      /* the next one with only completions in between, or NONE */
    bool served_anew;    /* memory was made between the group and its request, or the request
                            failed: the allocator may have released by itself */
    bool begun;          /* memory was also made for it before the group */
    enum recorded_cause cause;
    unsigned tried; /* CAUSE_BITs */
};

struct recording {
    struct recorded_action *actions;
    size_t action_count, action_room;
    struct recorded_request *requests;
    size_t request_count, request_room;
    struct recorded_group *groups;
    size_t group_count, group_room;
    uint64_t *completions; /* events of completions right before requests */
    size_t completion_count, completion_room;
    uint64_t *unmade; /* ids of blocks that are freed but never made, in segments that are made */
    size_t unmade_count, unmade_room;
    struct recorded_start start;
    struct recorded_final final;
    uint64_t first_event; /* earlier events only describe blocks of the start */
    uint64_t highest_address;
    bool has_pages;       /* pages are mapped */
    bool has_split_frees; /* free requested and completed apart */
    uint64_t peak_bytes, end_bytes;
    bool again; /* a cause was found too late in this replay: replay again */
};

/* Reads all of `source` from its first event. INVALID if it has no such notes, or begins in the
 * middle without the state at the start. The caller closes `out` in either case. */
enum ar_status recording_read(struct trace_source *source, struct recording *out,
                              struct ar_error *error);
void recording_close(struct recording *recording);

/* The largest possible size of a range at `address`, at most `bytes`, from the actions from `first`
 * on until no page of it is mapped: then it is released, and its addresses may be used again. So
 * far `mapped_bytes` are mapped, and nothing above `top` was. Pages are mapped upwards from the
 * lower end, so pages at `gap_bytes` or more above all mapped ones belong to another range. */
uint64_t recorded_range_bytes(const struct recording *recording, size_t first, uint64_t address,
                              uint64_t top, uint64_t mapped_bytes, uint64_t gap_bytes,
                              uint64_t bytes);

/* Private to the files that read. */

/* Whether a note is `verb` and a comma. */
bool recording_is_verb(const char *text, const char *verb);
/* Reads the next number after a comma and moves `*at` past it; false: there is none. */
bool recording_number(const char **at, uint64_t *number);
/* Reads STREAM[,POOL] of an area, to the end of the note. */
bool recording_owner(const char *at, struct recorded_area *area);

/* start.c: reads a note before the first event; `*known` false: it does not describe the state. */
enum ar_status recorded_start_note(struct recorded_start *start, const char *text, bool *known,
                                   struct ar_error *error);
/* Makes the ranges and sets the addresses of the requests of blocks. INVALID if the state is
 * contradictory. */
enum ar_status recorded_start_finish(struct recording *recording, struct ar_error *error);
void recorded_start_close(struct recorded_start *start);

/* fidelity.c: reads a note of the end; ignores other notes. */
enum ar_status recorded_final_note(struct recorded_final *final, const char *text, uint64_t event,
                                   struct ar_error *error);
/* Sorts everything, once. */
void recorded_final_finish(struct recorded_final *final);
void recorded_final_close(struct recorded_final *final);

/* From the next replay on, the request waits for its completions: from the one that would have let
 * it be served, or for all. False: this was set already. */
bool recorded_request_waits(struct recording *recording, struct recorded_request *request);

/* The request that was served at an event, or for which memory was released there. */
size_t recorded_request_of(const struct recording *recording, uint64_t event);

/* Whether `id` is in `unmade`. */
bool recording_is_unmade(const struct recording *recording, uint64_t id);

/* The source of a replay: the events of a recording one at a time, with the inferred releases of
 * the cache inserted. Every answer to a request is compared with the recorded one. */
struct recorded_source {
    struct trace_source base;
    struct recording *recording;
    struct recorded_device *device;
    struct ar_policy *policy;
    struct fidelity_result *result;

    const struct trace_event *span; /* of the inner source */
    size_t span_count, span_at;
    uint64_t next_event; /* number of the next event of the inner source */
    size_t group;        /* the next one */
    size_t request;      /* the next one */
    size_t completion;   /* the next one */
    bool completed;      /* the current event is a completion that the next request may have seen */
    bool released;       /* the release before the next group was inserted */
    bool deletes;        /* it was that of private pools alone */
    struct trace_event captured; /* a request in a private pool, with other keys */
    struct trace_attributes captured_keys;
};

/* Rewinds `inner`. */
enum ar_status recorded_source_open(struct recorded_source *self, struct trace_source *inner,
                                    struct recording *recording, struct recorded_device *device,
                                    struct ar_policy *policy, struct fidelity_result *result,
                                    struct ar_error *error);

/* Ends the replay. All recorded actions must have happened. */
void recorded_source_finish(struct recorded_source *self);

/* Finds the cause of each release of memory in a recording by replays that try the possible
 * causes. */

struct causes {
    struct recording *recording;
    struct fidelity_result *result; /* of the last replay */
    enum ar_status (*replay)(void *argument, struct ar_error *error);
    void *argument;
};

/* Replays until there is no difference, or none that another cause could explain. Then, if the
 * number of retries is recorded, replays until the number agrees, if possible. */
enum ar_status causes_find(const struct causes *causes, struct ar_error *error);

/* limit.c: limits that are not recorded. */

/* The bytes held before the request of a difference and before its release, and those released. */
struct limit_evidence {
    uint64_t held_bytes, released_bytes;
};

void recorded_limit_evidence(const struct recording *recording, uint64_t event,
                             struct limit_evidence *out);

/* Compares under the policy of `config`. */
typedef enum ar_status limit_try(const struct fidelity *config, struct fidelity_result *result,
                                 struct limit_evidence *evidence, struct ar_error *error);

/* Compares, if necessary with the limit that fits. */
enum ar_status recorded_limit_find(const struct fidelity *config, limit_try *try,
                                   struct fidelity_result *result, struct ar_error *error);

/* A device that answers as the recorded one did. It returns the recorded addresses, refuses when
 * the recorded device is known or assumed to have refused, and compares every call of the policy
 * with the recording. */

/* The current activity of the policy. */
enum recorded_step {
    STEP_OTHER,
    STEP_REQUEST,
    STEP_TRIM,
    STEP_START, /* blocks of the start are requested; nothing is compared */
};

struct recorded_place { /* a segment, or an address range */
    uint64_t address, bytes;
    uint64_t ordinal; /* UINT64_MAX: a range without mapped pages */
    uint64_t mapped_bytes;
    uint32_t pool; /* of the request for which it was made */
    bool range;
};

/* A pending block. For the policy it is used by an extra stream, `first_stream` + its index. */
struct recorded_pending {
    struct ar_policy_block block;
    bool used;  /* the record is in use */
    bool ended; /* the recording completed the block */
    bool done;  /* the policy has seen the completion or waited for it */
};

struct recorded_span {
    uint64_t address, bytes;
    uint64_t event; /* in the recording; 0: an action of the policy */
};

struct recorded_device {
    struct ar_device base;
    struct ar_backing backing;
    const struct recording *recording;
    struct fidelity_result *result;

    size_t cursor; /* the next action */
    enum recorded_step step;
    uint64_t until_event;                   /* actions before this event belong to the step */
    const struct recorded_request *request; /* of a STEP_REQUEST */
    const struct recorded_group *group;     /* the next one; NULL: none */
    bool refused_once;                      /* the request was refused once */
    uint64_t event;                         /* the current event, for differences */

    struct recorded_place *places; /* ascending by address */
    size_t place_count, place_room;
    struct recorded_span *given_back; /* released by the policy in this step */
    size_t given_back_count, given_back_room;
    struct recorded_span *expected; /* scratch */
    size_t expected_room;
    uint64_t unused_address; /* for memory without a recorded address */
    uint64_t created_bytes;  /* created and not accessible yet: a run that is being mapped */
    uint64_t run_handle;     /* the first of that run */
    uint64_t handle_bytes;   /* of each of its handles */
    uint64_t next_handle;
    struct recorded_pending *pending;
    size_t pending_count;
    uint32_t first_stream;
    bool holds;   /* completions are seen only by a wait */
    bool misused; /* the policy asked for what cannot be */
    bool out_of_host_memory;
};

/* The device must not move until it is closed. */
void recorded_device_open(struct recorded_device *self, const struct recording *recording,
                          uint64_t total_bytes, uint32_t streams, struct fidelity_result *result);
void recorded_device_close(struct recorded_device *self);

/* Ends the current step. All recorded actions of the step must have happened. */
void recorded_device_settle(struct recorded_device *self);

/* Records the first difference, at the current event or at the given one. Later differences are
 * consequences and are ignored. */
void recorded_device_differs(struct recorded_device *self, const char *policy,
                             const char *recording);

void recorded_device_differs_at(struct recorded_device *self, uint64_t event, const char *policy,
                                const char *recording);

/* Private to the files of the device. */

/* Whether a difference was found: then nothing is compared. */
bool recorded_diverged(const struct recorded_device *self);
enum ar_status recorded_place_add(struct recorded_device *self, struct recorded_place place);
struct recorded_place *recorded_place_at(const struct recorded_device *self, uint64_t address);
/* The next action of this step; NULL: none. */
const struct recorded_action *recorded_next_action(const struct recorded_device *self);

/* Adds a record for a block; false: no host memory. */
bool recorded_pending_add(struct recorded_device *self, const struct ar_policy_block *block,
                          uint32_t *stream);
/* The recording completes the block; false: it has no record. */
bool recorded_pending_end(struct recorded_device *self, const struct ar_policy_block *block);

/* causes.c. BALANCED: the policy has released in this step the same memory as the recording, and
 * the cursor moves past it. LESS: a part of it. */
enum recorded_balance { BALANCED, LESS, OTHER };
void recorded_give_back(struct recorded_device *self, uint64_t address, uint64_t bytes);
enum recorded_balance recorded_balance(struct recorded_device *self);
/* The number of the next actions that release memory in this step. */
size_t recorded_run(const struct recorded_device *self);
/* Records the first span that only one of the two releases as a difference. */
void recorded_differ_in_spans(struct recorded_device *self, size_t count);
/* Writes "VERB n bytes at ADDRESS". */
void recorded_describe(const struct recorded_span *span, const char *verb, char *text, size_t room);

/* Compares the recorded state at the end with the ranges of the policy, counts the equal blocks in
 * the device's result, and records the first difference. Does nothing if the recording has no such
 * state or has differed before. HOST_MEMORY. */
enum ar_status recorded_final_compare(struct recorded_device *device,
                                      const struct ar_policy *policy, struct ar_error *error);

/* A wrapper around a policy that keeps blocks from other streams by itself. A block that is freed
 * and completes later is given to the policy as one that another stream uses, so that it completes
 * inside of the policy, when the recorded device says so. */
/* Puts it around `inner`, which it owns from then on; `inner` itself where it keeps no blocks from
 * others. After HOST_MEMORY `out` is `inner`. */
enum ar_status deferring_wrap(struct ar_host *host, struct ar_policy *inner,
                              struct recorded_device *device, struct ar_policy **out,
                              struct ar_error *error);

/* Wraps a policy for a recording that begins in the middle: the wrapper gives the existing blocks
 * to their requests. `inner` must be new. It adopts the state at the start; if it cannot, the
 * blocks are requested in the order of their addresses. `out` owns `inner`, or is `inner` if there
 * was no state. INVALID: the policy can never have reached this state. On failure `out` is
 * `inner`. */
enum ar_status starting_wrap(struct ar_host *host, struct ar_policy *inner,
                             struct recorded_device *device, struct ar_policy **out,
                             struct ar_error *error);
