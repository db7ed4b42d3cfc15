/* A device and a policy on it, from their specs: what one replay needs beside the workload. */
#ifndef SIM_EXPERIMENT_SESSION_H
#define SIM_EXPERIMENT_SESSION_H

#include "allocators/registry.h"
#include "sim/replay.h"

struct session {
    struct ar_device *device;
    struct ar_policy *policy;
    struct ar_host host;
    struct ar_policy_context context;
    struct tap *tap;      /* NULL: no observer needs one */
    uint64_t limit_bytes; /* the limit in the policy's spec; 0: none */
    const char *profile;  /* its option `profile`, owned by the spec: see session_plan; or NULL */
};

/* The session must not move until it is closed: the policy points into it. `observer`: a list that
 * sees also the driver calls of the policy's creation; NULL: none. */
enum ar_status session_open(struct session *session, const struct ar_spec *policy,
                            const struct ar_spec *device, uint64_t seed,
                            const struct observer *observer,
                            struct ar_error *error) AR_STATUS_CHECKED;
void session_close(struct session *session);

/* Destroys the policy; the device stays. CORRUPT where the policy still holds memory of it then. */
enum ar_status session_end(struct session *session, struct ar_error *error) AR_STATUS_CHECKED;

/* Shows an offline policy (AR_POLICY_OFFLINE) every lifetime of the trace, once, before the first
 * request; does nothing for others. Where its option `profile` names a workload, a trace or a
 * generator, it sees the lifetimes of that one instead. */
enum ar_status session_plan(struct session *session, struct trace_source *trace,
                            enum replay_frees frees, struct ar_error *error) AR_STATUS_CHECKED;

/* A device's spec with another capacity: what it points into is in `text` and `pairs`, the rest
 * stays the original's. */
struct session_device {
    struct ar_spec spec;
    struct ar_spec_link link;
    struct ar_spec_pair *pairs;
    char text[24];
};

/* With `capacity_bytes` 0 the device has all that the card has, whatever `device` says. */
enum ar_status session_device_with(struct session_device *out, const struct ar_spec *device,
                                   uint64_t capacity_bytes,
                                   struct ar_error *error) AR_STATUS_CHECKED;
void session_device_end(struct session_device *device);

/* An adaptive source, played once with the policy, as a trace in memory: what later passes
 * replay. The caller closes it. The pass stops at the first failure if `experiment` does. */
enum ar_status session_write_down(const struct experiment *experiment, struct trace_source **out,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The trace that the passes of an experiment replay: written down where its source is adaptive
 * (or where `settle` asks for all of it in memory), else the source itself. `*owned` is what
 * the caller closes, or NULL. */
enum ar_status session_trace(const struct experiment *experiment, bool settle,
                             struct trace_source **trace, struct trace_source **owned,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
