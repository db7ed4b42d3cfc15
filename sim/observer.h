/* Somebody who stands by while one run is played, and tells others what is asked and done: each
 * request and free of the policy with its address, each call to the device with what it took,
 * each mark of the program. The run is the same with and without. */
#ifndef SIM_OBSERVER_H
#define SIM_OBSERVER_H

#include "allocators/policy.h"
#include "sim/device.h"
#include "workloads/trace/source.h"

enum observer_kind {
    OBSERVER_ALLOC,          /* a request was served */
    OBSERVER_FAILED,         /* it was not; `bytes` were asked for, `free_bytes` the device has */
    OBSERVER_FREE_REQUESTED, /* the program let a block go */
    OBSERVER_FREE_COMPLETED, /* it may be used again */
    /* What the policy obtained and gave back, told once the call to the policy is over in which it
     * did, and before the request that it did it for. */
    OBSERVER_SEGMENT_ALLOC,
    OBSERVER_SEGMENT_FREE,
    OBSERVER_SEGMENT_MAP,
    OBSERVER_SEGMENT_UNMAP,
    OBSERVER_CALL, /* a call to the device, told at once */
    OBSERVER_MARK, /* of the program: `tag` is its label */
};

/* Valid during the call only. */
struct observer_event {
    enum observer_kind kind;
    uint64_t address, bytes; /* of requests and frees the bytes asked for */
    uint64_t free_bytes;
    uint32_t stream, pool;
    const char *tag;  /* of the request; NULL: none */
    const char *keys; /* of a MARK: those that the format does not know; NULL: none */
    uint64_t event;   /* number of the trace's event; 0 before the first too */
    uint64_t now_ns;  /* since the device was opened */
    /* Of a CALL. */
    const char *call;
    uint64_t begun_ns;
    bool refused;
    /* As things stand now. */
    const struct ar_policy_totals *totals;
    uint64_t physical_bytes;
};

typedef enum ar_status observer_hear(void *argument, const struct observer_event *event,
                                     struct ar_error *error);

#define OBSERVER_LISTENERS 4

struct observer;

/* NULL: no host memory. */
struct observer *observer_create(void);
void observer_destroy(struct observer *self);

/* Adds one who listens, at most OBSERVER_LISTENERS, before the run begins. What a listener returns
 * other than OK ends the telling, and is what observer_end returns. */
void observer_listen(struct observer *self, observer_hear *hear, void *argument);

/* For the session: puts it between policy and device, around the policy, and between engine and
 * trace. `policy` is replaced by one that owns it. What is returned is the witness's. */
struct ar_backing *observer_backing(struct observer *self, struct ar_device *device);
enum ar_status observer_policy(struct observer *self, struct ar_policy **policy,
                               struct ar_error *error) AR_STATUS_CHECKED;
struct trace_source *observer_source(struct observer *self, struct trace_source *inner);

/* The run is over: tells what is left. From here on nothing is told, whatever is closed. */
enum ar_status observer_end(struct observer *self, struct ar_error *error) AR_STATUS_CHECKED;

#endif
