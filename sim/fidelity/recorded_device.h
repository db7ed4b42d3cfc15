/* A device that answers as the recorded one did. It returns the recorded addresses, refuses when
 * the recorded device is known or assumed to have refused, and compares every call of the policy
 * with the recording. */
#ifndef SIM_FIDELITY_RECORDED_DEVICE_H
#define SIM_FIDELITY_RECORDED_DEVICE_H

#include "sim/device.h"
#include "sim/fidelity/fidelity.h"
#include "sim/fidelity/recording.h"

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
    uint64_t address;
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
    bool holds; /* completions are seen only by a wait */
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
bool recorded_pending_add(struct recorded_device *self, uint64_t address, uint32_t *stream);
/* The recording completes the block; false: it has no record. */
bool recorded_pending_end(struct recorded_device *self, uint64_t address);

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
                                      const struct ar_policy *policy,
                                      struct ar_error *error) AR_STATUS_CHECKED;

/* A wrapper around a policy that keeps blocks from other streams by itself. A block that is freed
 * and completes later is given to the policy as one that another stream uses, so that it completes
 * inside of the policy, when the recorded device says so. */
/* Puts it around `inner`, which it owns from then on; `inner` itself where it keeps no blocks from
 * others. HOST_MEMORY leaves `inner` to the caller. */
enum ar_status deferring_wrap(struct ar_host *host, struct ar_policy *inner,
                              struct recorded_device *device, struct ar_policy **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

/* Wraps a policy for a recording that begins in the middle: the wrapper gives the existing blocks
 * to their requests. `inner` must be new. It adopts the state at the start; if it cannot, the
 * blocks are requested in the order of their addresses. `out` owns `inner`, or is `inner` if there
 * was no state. INVALID: the policy can never have reached this state. On failure the caller keeps
 * `inner`. */
enum ar_status starting_wrap(struct ar_host *host, struct ar_policy *inner,
                             struct recorded_device *device, struct ar_policy **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
