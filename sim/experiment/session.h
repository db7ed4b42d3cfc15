/* A device and a policy on it, from their specs: what one replay needs beside the workload. */
#ifndef SIM_EXPERIMENT_SESSION_H
#define SIM_EXPERIMENT_SESSION_H

#include "allocators/registry.h"
#include "sim/replay.h"
#include "sim/observer.h"

struct session {
    struct device *device;
    struct policy *policy;
    struct host host;
    struct policy_context context;
    uint64_t limit_bytes; /* that the policy's spec sets; 0: none */
    const char *profile;  /* its option of that name, the spec's: see session_plan; or NULL */
};

/* The session stays where it is until it is closed: the policy points into it. */
enum status session_open(struct session *session, const struct spec *policy,
                         const struct spec *device, uint64_t seed,
                         struct error *error) STATUS_CHECKED;
/* The same; `listener` (may be NULL) hears the device's calls from its opening on. */
enum status session_open_heard(struct session *session, const struct spec *policy,
                               const struct spec *device, uint64_t seed,
                               const struct device_listener *listener,
                               struct error *error) STATUS_CHECKED;
/* The same; `witness` (may be NULL) stands between the device and the policy, and around it. */
enum status session_open_witnessed(struct session *session, const struct spec *policy,
                                   const struct spec *device, uint64_t seed,
                                   const struct device_listener *listener,
                                   struct observer *observer, struct error *error) STATUS_CHECKED;
void session_close(struct session *session);

/* Destroys the policy; the device stays. CORRUPT where the policy still holds memory of it then. */
enum status session_end(struct session *session, struct error *error) STATUS_CHECKED;

/* Shows an offline policy (POLICY_OFFLINE) every lifetime of the trace, once, before the first
 * request; does nothing for others. Where its option `profile` names a workload, a trace or a
 * generator, it sees the lifetimes of that one instead. */
enum status session_plan(struct session *session, struct trace_source *trace,
                         enum replay_frees frees, struct error *error) STATUS_CHECKED;

/* A device's spec with another capacity: what it points into is in `text` and `pairs`, the rest
 * stays the original's. */
struct session_device {
    struct spec spec;
    struct spec_link link;
    struct spec_pair *pairs;
    char text[24];
};

/* With `capacity_bytes` 0 the device has all that the card has, whatever `device` says. */
enum status session_device_with(struct session_device *out, const struct spec *device,
                                uint64_t capacity_bytes, struct error *error) STATUS_CHECKED;
void session_device_end(struct session_device *device);

/* An adaptive source, played once with the policy, as a trace in memory: what later passes
 * replay. The caller closes it. The pass stops at the first failure if `experiment` does. */
enum status session_write_down(const struct experiment *experiment, struct trace_source **out,
                               struct error *error) STATUS_CHECKED;

/* The trace that the passes of an experiment replay: written down where its source is adaptive
 * (or where `settle` asks for all of it in memory), else the source itself. `*owned` is what
 * the caller closes, or NULL. */
enum status session_trace(const struct experiment *experiment, bool settle,
                          struct trace_source **trace, struct trace_source **owned,
                          struct error *error) STATUS_CHECKED;

#endif
