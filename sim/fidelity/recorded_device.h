/* A device that answers as the recorded one did: it hands out the recorded addresses, refuses
 * where the recorded one is known or taken to have refused, and holds every call of the policy
 * against what was recorded. */
#ifndef SIM_FIDELITY_RECORDED_DEVICE_H
#define SIM_FIDELITY_RECORDED_DEVICE_H

#include "sim/device.h"
#include "sim/fidelity/fidelity.h"
#include "sim/fidelity/recording.h"

/* What the policy is doing. */
enum recorded_step {
    STEP_OTHER,
    STEP_REQUEST,
    STEP_TRIM,
    STEP_START, /* blocks of the start are requested: nothing is compared */
};

struct recorded_place { /* a segment, or an address range */
    uint64_t address, bytes;
    uint64_t ordinal; /* UINT64_MAX: a range in which nothing is mapped */
    uint64_t mapped_bytes;
    uint32_t pool; /* of the request that it was made for */
    bool range;
};

/* A block that was freed and completes later. The policy takes it for one that is used on a
 * stream of its own, `first_stream` + its index. */
struct recorded_pending {
    uint64_t address;
    bool used;  /* the record is */
    bool ended; /* the recording has come past its completion */
    bool done;  /* the policy has seen it complete, or waited for it */
};

struct recorded_span {
    uint64_t address, bytes;
    uint64_t event; /* where the recording has it; 0 for what the policy did */
};

struct recorded_device {
    struct ar_device base;
    struct ar_backing backing;
    const struct recording *recording;
    struct fidelity_result *result;

    size_t cursor; /* the next action */
    enum recorded_step step;
    uint64_t until_event;                   /* actions before it belong to this step */
    const struct recorded_request *request; /* of a STEP_REQUEST */
    const struct recorded_group *group;     /* that comes next; NULL: none is left */
    bool refused_once;                      /* the request was, by itself */
    uint64_t event;                         /* where the replay is, for differences */

    struct recorded_place *places; /* ascending by address */
    size_t place_count, place_room;
    struct recorded_span *given_back; /* by the policy in this step */
    size_t given_back_count, given_back_room;
    struct recorded_span *expected; /* scratch */
    size_t expected_room;
    uint64_t unused_address; /* for what the recording has no address for */
    uint64_t created_bytes;  /* made and not yet usable: a run that is being mapped */
    uint64_t run_handle;     /* the first of that run */
    uint64_t handle_bytes;   /* each of its handles stands for */
    uint64_t next_handle;
    struct recorded_pending *pending;
    size_t pending_count;
    uint32_t first_stream;
    bool holds; /* completions are seen only by a wait */
    bool out_of_host_memory;
};

/* The device stays where it is until it is closed. */
void recorded_device_open(struct recorded_device *self, const struct recording *recording,
                          uint64_t total_bytes, uint32_t streams, struct fidelity_result *result);
void recorded_device_close(struct recorded_device *self);

/* The step that began last is over: everything recorded for it must have been done. */
void recorded_device_settle(struct recorded_device *self);

/* Notes the first difference, at the event in hand, or where the recording has what differs.
 * Later ones are consequences. */
void recorded_device_differs(struct recorded_device *self, const char *policy,
                             const char *recording);

void recorded_device_differs_at(struct recorded_device *self, uint64_t event, const char *policy,
                                const char *recording);

/* Between the files of the device. */

bool recorded_diverged(const struct recorded_device *self); /* nothing is compared any more */
enum ar_status recorded_place_add(struct recorded_device *self, struct recorded_place place);
struct recorded_place *recorded_place_at(const struct recorded_device *self, uint64_t address);
/* The next action of this step; NULL: none. */
const struct recorded_action *recorded_next_action(const struct recorded_device *self);

/* Takes a record for a block; false: no host memory. */
bool recorded_pending_add(struct recorded_device *self, uint64_t address, uint32_t *stream);
/* The recording completes the block; false: there is no such record. */
bool recorded_pending_end(struct recorded_device *self, uint64_t address);

/* given_back.c. BALANCED: the policy has given back in this step what the recording does, and
 * the cursor goes past it. LESS: some of it. */
enum recorded_balance { BALANCED, LESS, OTHER };
void recorded_give_back(struct recorded_device *self, uint64_t address, uint64_t bytes);
enum recorded_balance recorded_balance(struct recorded_device *self);
/* How many of the next actions give memory back in this step. */
size_t recorded_run(const struct recorded_device *self);
/* Notes the first piece that one side gives back and the other does not. */
void recorded_differ_in_spans(struct recorded_device *self, size_t count);
/* "VERB n bytes at ADDRESS" */
void recorded_describe(const struct recorded_span *span, const char *verb, char *text, size_t room);

/* How the recorded allocator stood at the end, compared with the policy's own walk. */
/* Counts what is the same into the device's result, and notes the first difference. Nothing where
 * the recording tells of no end, or has differed before. HOST_MEMORY. */
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

#endif
