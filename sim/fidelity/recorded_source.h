/* A recording as the engine replays it: its events one at a time, with the releases of the cache
 * that were inferred in their places, and every request's answer held against the recorded one. */
#ifndef SIM_FIDELITY_RECORDED_SOURCE_H
#define SIM_FIDELITY_RECORDED_SOURCE_H

#include "sim/fidelity/recorded_device.h"

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
