/* The actions of the recorded allocator, in order, from the notes of a trace. */
#ifndef SIM_FIDELITY_RECORDING_H
#define SIM_FIDELITY_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/policy.h"
#include "sim/fidelity/fidelity.h"
#include "sim/fidelity/recorded_device.h"
#include "workloads/trace/source.h"

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
                              struct ar_error *error) AR_STATUS_CHECKED;
void recording_close(struct recording *recording);

/* The largest possible size of a range at `address`, at most `bytes`. Nothing above `top` was
 * mapped yet. Pages are mapped upwards from the lower end, so pages at `gap_bytes` or more above
 * all mapped ones belong to another range. */
uint64_t recorded_range_bytes(const struct recording *recording, uint64_t address, uint64_t top,
                              uint64_t gap_bytes, uint64_t bytes);

/* Private to the files that read. */

enum ar_status recording_no_memory(struct ar_error *error);
/* Whether a note is `verb` and a comma. */
bool recording_is_verb(const char *text, const char *verb);
/* Reads the next number after a comma and moves `*at` past it; false: there is none. */
bool recording_number(const char **at, uint64_t *number);
/* Reads STREAM[,POOL] of an area, to the end of the note. */
bool recording_owner(const char *at, struct recorded_area *area);

/* start.c: reads a note before the first event; `*known` false: it does not describe the state. */
enum ar_status recorded_start_note(struct recorded_start *start, const char *text, bool *known,
                                   struct ar_error *error) AR_STATUS_CHECKED;
/* Makes the ranges and sets the addresses of the requests of blocks. INVALID if the state is
 * contradictory. */
enum ar_status recorded_start_finish(struct recording *recording,
                                     struct ar_error *error) AR_STATUS_CHECKED;
void recorded_start_close(struct recorded_start *start);

/* fidelity.c: reads a note of the end; ignores other notes. */
enum ar_status recorded_final_note(struct recorded_final *final, const char *text, uint64_t event,
                                   struct ar_error *error) AR_STATUS_CHECKED;
/* Sorts everything, once. */
void recorded_final_finish(struct recorded_final *final);
void recorded_final_close(struct recorded_final *final);

/* From the next replay on, the request waits for its completions: from the one that would have let
 * it be served, or for all. False: this was set already. */
bool recorded_request_waits(struct recording *recording, struct recorded_request *request);

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
    struct trace_event unnamed; /* a request in a private pool that the recording does not name */
};

/* Rewinds `inner`. */
enum ar_status recorded_source_open(struct recorded_source *self, struct trace_source *inner,
                                    struct recording *recording, struct recorded_device *device,
                                    struct ar_policy *policy, struct fidelity_result *result,
                                    struct ar_error *error) AR_STATUS_CHECKED;

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
enum ar_status causes_find(const struct causes *causes, struct ar_error *error) AR_STATUS_CHECKED;

#endif
