/* Somebody who stands by while one run is played, and tells others what is asked and done: each
 * request and free of the policy with its address, each call to the device with what it took,
 * each mark of the program. The run is the same with and without. */
#ifndef SIM_OBSERVER_H
#define SIM_OBSERVER_H

#include "allocators/policy.h"
#include "sim/device.h"
#include "workloads/trace/source.h"

enum witness_kind {
    WITNESS_ALLOC,          /* a request was served */
    WITNESS_FAILED,         /* it was not; `bytes` were asked for, `free_bytes` the device has */
    WITNESS_FREE_REQUESTED, /* the program let a block go */
    WITNESS_FREE_COMPLETED, /* it may be used again */
    /* What the policy obtained and gave back, told once the call to the policy is over in which it
     * did, and before the request that it did it for. */
    WITNESS_SEGMENT_ALLOC,
    WITNESS_SEGMENT_FREE,
    WITNESS_SEGMENT_MAP,
    WITNESS_SEGMENT_UNMAP,
    WITNESS_CALL, /* a call to the device, told at once */
    WITNESS_MARK, /* of the program: `tag` is its label */
};

/* Valid during the call only. */
struct witness_event {
    enum witness_kind kind;
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
    const struct policy_totals *totals;
    uint64_t physical_bytes;
};

typedef enum status witness_hear(void *argument, const struct witness_event *event,
                                 struct error *error);

#define WITNESS_LISTENERS 4

struct witness;

/* NULL: no host memory. */
struct witness *witness_create(void);
void witness_destroy(struct witness *self);

/* Adds one who listens, at most WITNESS_LISTENERS, before the run begins. What a listener returns
 * other than OK ends the telling, and is what witness_end returns. */
void witness_listen(struct witness *self, witness_hear *hear, void *argument);

/* For the session: puts it between policy and device, around the policy, and between engine and
 * trace. `policy` is replaced by one that owns it. What is returned is the witness's. */
struct backing *witness_backing(struct witness *self, struct device *device);
enum status witness_policy(struct witness *self, struct policy **policy,
                           struct error *error) STATUS_CHECKED;
struct trace_source *witness_source(struct witness *self, struct trace_source *inner);

/* The run is over: tells what is left. From here on nothing is told, whatever is closed. */
enum status witness_end(struct witness *self, struct error *error) STATUS_CHECKED;

#endif
