/* A trace as the writers of other programs' files need it: each request with its outcome and, if it
 * is recorded, its address; each free request and completion with its block. */
#pragma once

#include "workloads/trace/source.h"

enum request_kind {
    REQUEST_SERVED,
    REQUEST_FAILED,         /* the recording says so; no free follows */
    REQUEST_FREE_REQUESTED, /* by the program, on `stream` */
    REQUEST_COMPLETE, /* right after the free request if the trace does not separate the two */
    REQUEST_NOTE,     /* any other note: `text` */
    REQUEST_OTHER,    /* any other event except a time: `event` */
};

/* A block from its request to its completion. */
struct request_block {
    uint64_t id, bytes, address;
    uint32_t stream, pool, device, thread;
    bool placed;  /* `address` is recorded; else it is invented and unique */
    bool initial; /* it was there before the trace begins */
    bool pinned;  /* pinned host memory, not device memory */
    bool failed;
    uint32_t user; /* the caller's own */
};

struct request_moment {
    enum request_kind kind;
    struct request_block *block; /* of the first four; valid until it is complete */
    uint32_t stream;
    uint64_t free_bytes; /* FAILED: the free bytes of the device, if recorded */
    uint64_t time_ns;    /* since the trace began; 0 if no times are recorded */
    const char *tag;     /* of the request; NULL: none */
    const char *text;
    const struct trace_event *event;
    bool begun; /* an event came that does not describe the state at the start */
};

typedef enum ar_status request_take(void *argument, struct request_moment *moment,
                                    struct ar_error *error);

/* Reads the whole trace from its first event. */
enum ar_status requests_read(struct trace_source *source, request_take *take, void *argument,
                             struct ar_error *error);

/* The numbers of a note "verb,1,2,3"; missing ones are 0. False if the note has another verb. */
bool request_note(const char *text, const char *verb, uint64_t *numbers, unsigned count);
