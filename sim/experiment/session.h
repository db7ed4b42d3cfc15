/* A session: a device and a policy on it, from their specs. A replay needs a session and a
 * trace. */
#ifndef SIM_EXPERIMENT_SESSION_H
#define SIM_EXPERIMENT_SESSION_H

#include "allocators/registry.h"
#include "sim/replay.h"

struct session {
    struct ar_device *device;
    struct ar_policy *policy;
    struct ar_policy *pinned; /* of pinned host memory; NULL: there is none */
    struct ar_host host, pinned_host;
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
/* The same for a replay whose host time is measured: a policy of a shared object has no guard. */
enum ar_status session_open_timed(struct session *session, const struct ar_spec *policy,
                                  const struct ar_spec *device, uint64_t seed,
                                  const struct observer *observer,
                                  struct ar_error *error) AR_STATUS_CHECKED;
/* Adds a policy of pinned host memory, if the device has such memory. */
enum ar_status session_open_pinned(struct session *session, const struct ar_spec *pinned,
                                   uint64_t seed, struct ar_error *error) AR_STATUS_CHECKED;
void session_close(struct session *session);

/* Destroys the policy; the device stays. CORRUPT if the policy leaves memory allocated. */
enum ar_status session_end(struct session *session, struct ar_error *error) AR_STATUS_CHECKED;

/* Passes every lifetime of the trace to an offline policy (AR_POLICY_OFFLINE), once, before the
 * first request; does nothing for other policies. If its option `profile` names a workload, the
 * lifetimes are those of that workload. */
enum ar_status session_plan(struct session *session, struct trace_source *trace,
                            enum replay_frees frees, struct ar_error *error) AR_STATUS_CHECKED;

/* Plans, and replays the trace from its first event. `config` has all but what session and trace
 * determine. */
enum ar_status session_replay(struct session *session, struct trace_source *trace,
                              struct replay_config config, struct replay_result *result,
                              struct ar_error *error) AR_STATUS_CHECKED;

/* The spec of a device with another capacity. It uses `text` and `pairs`; the rest is shared with
 * the original. */
struct session_device {
    struct ar_spec spec;
    struct ar_spec_link link;
    struct ar_spec_pair *pairs;
    char text[24];
};

/* With `capacity_bytes` 0 the device has the whole card, whatever `device` says. `profile`: the
 * card (recorded_card.h); NULL: that of `device`. */
enum ar_status session_device_as(struct session_device *out, const struct ar_spec *device,
                                 const char *profile, uint64_t capacity_bytes,
                                 struct ar_error *error) AR_STATUS_CHECKED;
/* The same with the profile of `device`. */
enum ar_status session_device_with(struct session_device *out, const struct ar_spec *device,
                                   uint64_t capacity_bytes,
                                   struct ar_error *error) AR_STATUS_CHECKED;
void session_device_end(struct session_device *device);

/* Plays an adaptive source once with the policy and keeps the trace in memory, for later passes.
 * The caller closes it. The pass stops at the first failure if `experiment` does. */
enum ar_status session_write_down(const struct experiment *experiment, struct trace_source **out,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The trace for the passes of an experiment: a copy in memory if the source is adaptive (or if
 * `settle` wants one), else the source itself. The caller closes `*owned`, which may be NULL. */
enum ar_status session_trace(const struct experiment *experiment, bool settle,
                             struct trace_source **trace, struct trace_source **owned,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
