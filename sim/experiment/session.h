/* A session: a device and a policy on it, from their specs. A replay needs a session and a
 * trace. Also declares what survey.c and baseline.c do. */
#pragma once

#include "allocators/registry.h"
#include "sim/replay.h"
#include "workloads/trace/source.h"

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
                            const struct observer *observer, struct ar_error *error);
/* The same; with `timed` for a replay whose host time is measured: a policy of a shared object has
 * no guard. */
enum ar_status session_open_timed(struct session *session, const struct ar_spec *policy,
                                  const struct ar_spec *device, uint64_t seed, bool timed,
                                  const struct observer *observer, struct ar_error *error);
/* Adds a policy of pinned host memory, if the device has such memory. */
enum ar_status session_open_pinned(struct session *session, const struct ar_spec *pinned,
                                   uint64_t seed, struct ar_error *error);
void session_close(struct session *session);

/* Destroys the policy; the device stays. CORRUPT if the policy leaves memory allocated, or
 * releases what it does not hold. */
enum ar_status session_end(struct session *session, struct ar_error *error);

/* Passes every lifetime of the trace to an offline policy (AR_POLICY_OFFLINE), once, before the
 * first request; does nothing for other policies. If its option `profile` names a workload, the
 * lifetimes are those of that workload. */
enum ar_status session_plan(struct session *session, struct trace_source *trace,
                            enum replay_frees frees, struct ar_error *error);

/* Plans, and replays the trace from its first event. `config` has all but what session and trace
 * determine. */
enum ar_status session_replay(struct session *session, struct trace_source *trace,
                              struct replay_config config, struct replay_result *result,
                              struct ar_error *error);

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
                                 struct ar_error *error);
/* Once: segments lie where the driver of a card puts them, because allocators break ties by address
 * (results/published/h200/addresses.md), unless the spec says where. */
void session_device_as_driver(struct session_device *device);
void session_device_end(struct session_device *device);
/* The properties of a device, which is opened for that and closed. */
enum ar_status session_device_props(const struct ar_spec *spec, struct ar_device_props *props,
                                    struct ar_error *error);

/* Plays an adaptive source once with the policy and keeps the trace in memory, for later passes.
 * The caller closes it. The pass stops at the first failure if `experiment` does. */
enum ar_status session_write_down(const struct experiment *experiment, struct trace_source **out,
                                  struct ar_error *error);

/* The trace for the passes of an experiment: a copy in memory if the source is adaptive (or if
 * `settle` wants one), else the source itself. The caller closes `*owned`, which may be NULL. */
enum ar_status session_trace(const struct experiment *experiment, bool settle,
                             struct trace_source **trace, struct trace_source **owned,
                             struct ar_error *error);

/* Figures of a whole trace that are needed before a replay, found without a policy. Each function
 * rewinds the source, reads it to its end, and needs memory for the most blocks live at once
 * (lifetimes: for each request). Requests of zero bytes and of pinned host memory do not count,
 * because no policy gets them. */

/* The byte-weighted median request: the smallest size such that requests of at most this size have
 * at least half of all requested bytes. 0 if there are no requests. Exact: a histogram finds the
 * bucket, and further passes divide the bucket until it holds one size. */
enum ar_status survey_median(struct trace_source *source, uint64_t *bytes, struct ar_error *error);

/* The most bytes live at once, from a request to its free request, and the first event with them. A
 * probe counts if live bytes stay within `card_bytes`: beyond that no allocator can serve it; with
 * 0 none counts. */
struct survey_peak {
    uint64_t bytes, event;
};

enum ar_status survey_peak_live(struct trace_source *source, uint64_t card_bytes,
                                struct survey_peak *out, struct ar_error *error);

/* The lifetime of each request, in order and in events, by the mode `frees`: to the free request,
 * or to the completion if it is recorded. Blocks that are never freed end after the last event. The
 * caller frees the array. */
enum ar_status survey_lifetimes(struct trace_source *source, enum replay_frees frees,
                                struct ar_policy_lifetime **out, size_t *count,
                                struct ar_error *error);

/* The baseline of a slowdown: the timeline of a workload with an allocator that costs nothing, on a
 * device of the same kind, with its kernels, events, waits and host times. Kernels of a given
 * length need no memory. Kernels with an operation, on a device that has memory, find their blocks
 * at fixed addresses in one allocation (the arena below): no policy, and no driver call within the
 * run. */

struct baseline {
    uint64_t time_ns;   /* until the end of all work */
    uint64_t steady_ns; /* of the second half of the steps */
    uint64_t steps;
    char problem[512]; /* the driver's error, if it failed during the baseline; else "" */
};

/* Opens a device of its own, rewinds the source and reads it to its end. If the device has not
 * enough memory for the arena, or the driver fails, there is no baseline: all is 0. */
enum ar_status baseline_run(const struct ar_spec *device, struct trace_source *source,
                            enum replay_host host, struct baseline *out, struct ar_error *error);

/* Sets slowdown and steady_slowdown of a run that finished the same trace. If the driver failed,
 * there is nothing to compare with, and the run counts as failed too. */
void baseline_report(const struct baseline *baseline, struct replay_result *result);

/* All blocks of a trace in one arena, placed by first fit before the run: the fixed addresses of a
 * program whose allocator costs nothing. The policy first-fit places them on a device without gaps,
 * so the arena is as large as its peak. Eight bytes for each request. */

struct arena {
    uint64_t *offsets; /* by id; ARENA_NOWHERE: the request needs no device memory */
    size_t count;
    uint64_t bytes;
    bool needed; /* a kernel works on blocks */
};

#define ARENA_NOWHERE UINT64_MAX

/* Whether a request needs memory of the device. */
bool arena_wants(struct trace_source *source, const struct trace_event *event);

/* Rewinds the source and reads it to its end. */
enum ar_status arena_plan(struct arena *arena, struct trace_source *source, struct ar_error *error);
void arena_close(struct arena *arena);
