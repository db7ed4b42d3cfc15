/* What a trace's notes say that the recorded allocator did, in the order in which it did it. */
#ifndef SIM_FIDELITY_RECORDING_H
#define SIM_FIDELITY_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/policy.h"
#include "sim/fidelity/recorded_device.h"
#include "workloads/trace/source.h"

#define RECORDED_NONE SIZE_MAX

enum recorded_kind { RECORDED_MADE, RECORDED_FREED, RECORDED_MAPPED, RECORDED_UNMAPPED };

/* A segment made or given back, a run of pages mapped or unmapped. */
struct recorded_action {
    uint64_t event;
    uint64_t address, bytes;
    enum recorded_kind kind;
};

struct recorded_request {
    uint64_t event, id;
    uint64_t address; /* where the block was placed */
    bool initial;     /* it stands for a block of the start */
    size_t start;     /* which, of those in use; valid where it does */
    bool known;       /* the recording tells what became of it */
    bool failed;
    bool missed; /* memory was made for it, or it failed: nothing cached was large enough */
    /* Completions right before it: those that it saw when it began, then those that it waited
     * for when memory was short. */
    size_t first_completion, completions; /* into the recording's */
    size_t waited_least;                  /* of them that came after memory was made for it */
    size_t waited;                        /* as explained at present */
    size_t fits_from;   /* seeing so many and one more it would have fitted; RECORDED_NONE */
    bool has_group;     /* memory went back right before it */
    bool waited_tried;  /* all of them were */
    bool missed_before; /* seeing none, it would have had memory given back */
    bool refused;       /* and that gave nothing back, but it was refused memory before it waited */
    struct ar_policy_request request;
};

/* What was there before the first event. */
struct recorded_start {
    struct recorded_area {       /* a segment, a range that grows, or a run of its pages */
        uint64_t address, bytes; /* bytes 0: a range, which has no known end */
        uint32_t stream, pool;
        bool pages;
    } * areas;
    size_t area_count, area_room;
    struct recorded_block {
        uint64_t address, bytes;
        size_t request; /* RECORDED_NONE: it is free */
    } * blocks;
    size_t block_count, block_room;
    /* By address, as a policy adopts it; made when all of the recording is read. */
    struct ar_policy_range *ranges;
    size_t range_count;
    size_t *used; /* the requests of its USED ranges, in their order */
    size_t used_count;
    uint64_t held_bytes;
};

/* How the recorded allocator stood at the end, as a snapshot tells. */
struct recorded_final {
    struct recorded_area *areas; /* by address, as the blocks; runs of pages count as segments */
    size_t area_count, area_room;
    struct recorded_end_block {
        uint64_t address, bytes;
        uint64_t requested_bytes; /* 0: not told */
        uint64_t event;           /* the note that tells of it */
        enum ar_policy_range_state state;
    } * blocks;
    size_t block_count, block_room;
    bool has_pending;
};

/* Why memory went back to the device. */
enum recorded_cause {
    CAUSE_UNDECIDED,
    CAUSE_GIVEN,   /* the trace has a release right before */
    CAUSE_RELEASE, /* the program released its cache: nowhere in the trace, so inferred */
    CAUSE_OWN,     /* the allocator by itself, while serving the request that follows */
    CAUSE_REFUSED, /* the same, because the device had refused it memory */
};
#define CAUSE_BIT(cause) (1u << (cause))

/* Segments given back with nothing of the program's in between. */
struct recorded_group {
    size_t first, count; /* actions */
    uint64_t event;      /* of the first */
    size_t request;      /* that follows with only completions in between, or NONE */
    bool served_anew;    /* between the group and its request memory was made, or the
                                   request failed: the allocator may have done it by itself */
    bool begun;          /* and memory was made for it before the group, too */
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
    uint64_t *completions; /* events of those right before requests */
    size_t completion_count, completion_room;
    uint64_t *unmade; /* ids of blocks that are freed and never made, in segments that are */
    size_t unmade_count, unmade_room;
    struct recorded_start start;
    struct recorded_final final;
    uint64_t first_event; /* before it only blocks that are there at the start are told of */
    uint64_t highest_address;
    bool has_pages;       /* there are runs mapped */
    bool has_split_frees; /* free requested and completed apart */
    uint64_t peak_bytes, end_bytes;
    bool again; /* a cause was found too late in this replay: once more */
};

/* Reads all of `source` from its first event. INVALID where it holds no such notes, or begins
 * in the middle without telling what was there. The caller closes `out` in either case. */
enum ar_status recording_read(struct trace_source *source, struct recording *out,
                              struct ar_error *error) AR_STATUS_CHECKED;
void recording_close(struct recording *recording);

/* How long a range at `address` can be, `bytes` at most, of which nothing above `top` was ever
 * mapped: pages are mapped from the lower end up, so where some are mapped `gap_bytes` and more
 * above all that were, another range begins. */
uint64_t recorded_range_bytes(const struct recording *recording, uint64_t address, uint64_t top,
                              uint64_t gap_bytes, uint64_t bytes);

/* Between the files that read. */

/* ar_array_make_room, with a sentence if it fails. */
bool recording_make_room(void *array, size_t count, size_t *room, size_t bytes,
                         struct ar_error *error);
/* Whether a note is `verb` and a comma. */
bool recording_is_verb(const char *text, const char *verb);
/* The next number after a comma; false: there is none. `*at` goes past it. */
bool recording_number(const char **at, uint64_t *number);

/* start.c: takes a note before the first event; `*known` false: it tells nothing of a state. */
enum ar_status recorded_start_note(struct recorded_start *start, const char *text, bool *known,
                                   struct ar_error *error) AR_STATUS_CHECKED;
/* Makes the ranges, and gives the requests of blocks their places. INVALID where the state cannot
 * be. */
enum ar_status recorded_start_finish(struct recording *recording,
                                     struct ar_error *error) AR_STATUS_CHECKED;
void recorded_start_close(struct recorded_start *start);

/* final.c: takes a note of the end, others too, which tell it nothing. */
enum ar_status recorded_final_note(struct recorded_final *final, const char *text, uint64_t event,
                                   struct ar_error *error) AR_STATUS_CHECKED;
/* Puts all in order, once. */
void recorded_final_finish(struct recorded_final *final);
void recorded_final_close(struct recorded_final *final);

/* From the next replay on the request waits for its completions, from the one on with which it
 * would have fitted, or for all. False: that is so already. */
bool recorded_request_waits(struct recording *recording, struct recorded_request *request);

/* Is it one of the ids in `unmade`? */
bool recording_is_unmade(const struct recording *recording, uint64_t id);

/* A recording as the engine replays it: its events one at a time, with the releases of the cache
 * that were inferred in their places, and every request's answer compared with the recorded one. */
struct recorded_source {
    struct trace_source base;
    struct trace_source *inner;
    struct recording *recording;
    struct recorded_device *device;
    struct ar_policy *policy;
    struct fidelity_result *result;

    const struct trace_event *span; /* of the inner source */
    size_t span_count, span_at;
    uint64_t next_event; /* number of the next event of the inner source */
    size_t group;        /* the next one */
    size_t request;      /* the next one */
    size_t completion;   /* into the recording's, the next one */
    bool completed;      /* the event in hand was one that the next request may have seen */
    bool released;       /* the release before the next group was given */
};

/* `inner` is rewound. */
enum ar_status recorded_source_open(struct recorded_source *self, struct trace_source *inner,
                                    struct recording *recording, struct recorded_device *device,
                                    struct ar_policy *policy, struct fidelity_result *result,
                                    struct ar_error *error) AR_STATUS_CHECKED;

/* The trace is at its end: whatever was recorded must have been done. */
void recorded_source_finish(struct recorded_source *self);

#endif
