/* liballocrig: run GPU memory allocator policies over recorded or generated workloads.
 *
 * Rules for all of it:
 *  - Every name begins with ar_ or AR_. The version promise is in README.md beside this file.
 *  - Functions that can fail return enum ar_status. The sentence for people goes to `error`, which
 *    may be NULL: what is wrong, where, and what to do. Out-parameters are set on AR_OK only.
 *  - The library prints nothing, never exits, starts no process, and changes no signal handler,
 *    locale or environment variable. ar_experiment_capacity and ar_experiment_advise start threads
 *    and join them before they return; all other work runs in the calling thread.
 *  - An object is used by one thread at a time; different objects may be used at the same time,
 *    also those of one library, which must not change then (ar_register_x).
 *  - The caller closes what it opened. Texts and arrays in structs belong to the object they came
 *    from and are valid until it is closed, unless stated otherwise.
 *  - Structs marked "sized" may grow at their end. The caller passes sizeof; the library fills no
 *    more than that, and sets to 0 what it does not know.
 *
 * Policies and devices are named by specs, "growth:limit=2GiB" (allocators/spec.h). */
#ifndef ALLOCRIG_H
#define ALLOCRIG_H

#include "allocators/base/api.h"
#include "allocators/base/size.h"
#include "allocators/base/status.h"
#include "allocators/policy.h"
#include "allocators/spec.h"
#include "sim/device.h"

AR_BEGIN_DECLS

/* The version of the library that is linked, "0.1.0". */
AR_API const char *ar_version(void);

/* Frees a text that a function says is the caller's. NULL is fine. */
AR_API void ar_free(void *text);

/* ---- the library: names that specs may use -------------------------------------------------- */

struct ar_library;

AR_API enum ar_status ar_library_open(struct ar_library **out, struct ar_error *error);
/* Close what was opened with it first. NULL is fine. */
AR_API void ar_library_close(struct ar_library *library);

/* Adds a policy or a kind of device, which specs name from then on like the built-in ones. The
 * table stays the caller's and must outlive the library. INVALID if it is not complete or its name
 * is taken. Not while another thread uses the library. */
AR_API enum ar_status ar_register_policy(struct ar_library *library,
                                         const struct ar_policy_ops *policy,
                                         struct ar_error *error);
AR_API enum ar_status ar_register_device(struct ar_library *library,
                                         const struct ar_device_kind *kind, struct ar_error *error);

/* Built-in ones first, then those that were registered; NULL past the last. */
AR_API const struct ar_policy_ops *ar_policy_at(const struct ar_library *library, size_t index);
AR_API const struct ar_device_kind *ar_device_kind_at(const struct ar_library *library,
                                                      size_t index);

/* ---- workloads ------------------------------------------------------------------------------ */

struct ar_workload;

/* `text` is the path of a file of any format that `allocrig list formats` names, or the spec of a
 * generator, "random:events=2000". "PATH:device=N" is one GPU of a file of several; without it the
 * events of all of them are given. */
AR_API enum ar_status ar_workload_open(const char *text, struct ar_workload **out,
                                       struct ar_error *error);
AR_API void ar_workload_close(struct ar_workload *workload);

/* Sized. */
struct ar_workload_info {
    const char *name;
    const char *format;   /* "text", "binary", "csv", "generator", ... */
    const char *recorder; /* "torch 2.11.0"; "": not recorded */
    const char *settings; /* of the recorded allocator, in its own syntax; or "" */
    const char *card;     /* that it was recorded on; or "" */
    uint64_t events, requests, frees, steps, kernels, streams;
    uint64_t peak_live_bytes; /* requested and not free requested, pinned host memory too */
    uint64_t requested_bytes; /* the sum of all requests */
    uint64_t capacity_bytes;  /* of the recorded card; 0: not known */
    uint64_t limit_bytes;     /* of the recorded allocator; 0: none */
    bool complete;            /* false: the recorded program died */
};

/* Reads a generator to its end to count its events; the workload is at its first event then. */
AR_API enum ar_status ar_workload_info(struct ar_workload *workload, struct ar_workload_info *out,
                                       size_t out_bytes, struct ar_error *error);

/* The numbers are those of the trace format, allocrig-trace(5). */
enum ar_event_kind {
    AR_EVENT_END = 0,
    AR_EVENT_ALLOC = 1,
    AR_EVENT_PROBE = 2, /* a request that may fail */
    AR_EVENT_FREE_REQUESTED = 3,
    AR_EVENT_FREE_COMPLETED = 4,
    AR_EVENT_USE = 5,    /* on another stream */
    AR_EVENT_KERNEL = 6, /* `value` nanoseconds */
    AR_EVENT_RECORD = 7, /* `value` is the number of the event */
    AR_EVENT_WAIT = 8,
    AR_EVENT_SYNC = 9, /* stream UINT32_MAX: the device */
    AR_EVENT_TRIM = 10,
    AR_EVENT_OUTSIDE = 11, /* `value` bytes are held outside of the allocator */
    AR_EVENT_MARK = 12,    /* `text` */
    AR_EVENT_TIME = 13,    /* `value` nanoseconds pass */
    AR_EVENT_NOTE = 14,    /* `text`: what the recorded allocator did */
};

/* Sized. `text` is valid until the next call. */
struct ar_event {
    enum ar_event_kind kind;
    uint32_t stream;
    uint64_t number; /* from 0 */
    uint64_t id;     /* of the block, for kinds 1 to 5 */
    uint64_t value;  /* bytes of a request; else as the kind says */
    const char *text;
    const char *tag; /* of a request; NULL: none */
    uint32_t pool;
};

/* The next event; AR_EVENT_END after the last. */
AR_API enum ar_status ar_workload_next(struct ar_workload *workload, struct ar_event *out,
                                       size_t out_bytes, struct ar_error *error);
AR_API enum ar_status ar_workload_rewind(struct ar_workload *workload, struct ar_error *error);

/* ---- metrics -------------------------------------------------------------------------------- */

enum ar_metric_class { AR_METRIC_EXACT, AR_METRIC_TIMED };
enum ar_metric_better { AR_METRIC_LOWER, AR_METRIC_HIGHER, AR_METRIC_NEITHER };

/* Sized. */
struct ar_metric {
    const char *name, *unit, *definition;
    enum ar_metric_class metric_class; /* exact: the same bytes on every machine */
    enum ar_metric_better better;
};

/* False past the last one. */
AR_API bool ar_metric_at(size_t index, struct ar_metric *out, size_t out_bytes);

enum ar_value_kind { AR_VALUE_NULL, AR_VALUE_INTEGER, AR_VALUE_REAL };

struct ar_value {
    enum ar_value_kind kind;
    uint64_t integer;
    double real; /* the number, also where it is an integer */
};

/* ---- experiments: policies x workloads x devices, with options ------------------------------ */

struct ar_experiment;

AR_API enum ar_status ar_experiment_open(const struct ar_library *library,
                                         struct ar_experiment **out, struct ar_error *error);
AR_API void ar_experiment_close(struct ar_experiment *experiment);

/* Sets one key. `policy` (for runs and capacities), `workload` and `device` (default: sim) may be
 * set several times, and all combinations run. The others are those of a suite file with the same
 * values: `frees`, `host`, `metrics`, `seed`, `replicates`, `reps`, `capacities`, `on-fail`,
 * `verify`, `name`, `jobs` (threads of capacity and advise); and for advise `capacity` or `limit`,
 * bytes. What is asked then is INVALID if a key is not for it. A workload with several GPUs is as
 * many workloads, "PATH:device=N"; a `device` that is a number selects one. INVALID names the
 * nearest key. */
AR_API enum ar_status ar_experiment_set(struct ar_experiment *experiment, const char *key,
                                        const char *value, struct ar_error *error);

enum ar_run_event_kind {
    AR_RUN_ALLOC,  /* a request was served */
    AR_RUN_FAILED, /* it was not; free_bytes is what the device has */
    AR_RUN_FREE_REQUESTED,
    AR_RUN_FREE_COMPLETED,
    AR_RUN_SEGMENT_ALLOC,
    AR_RUN_SEGMENT_FREE,
    AR_RUN_SEGMENT_MAP,
    AR_RUN_SEGMENT_UNMAP,
    AR_RUN_CALL, /* a driver call; `text` is its name */
    AR_RUN_MARK, /* of the program; `text` is its label */
};

/* What the observer of a run is told. Grows at its end; valid during the call. */
struct ar_run_event {
    enum ar_run_event_kind kind;
    uint32_t stream, pool;
    uint32_t row;            /* the row of the results that the run becomes */
    uint64_t event;          /* number of the workload's event */
    uint64_t now_ns;         /* since the device was opened */
    uint64_t address, bytes; /* of requests and frees the bytes requested */
    uint64_t free_bytes;
    const char *tag, *text;                                             /* or NULL */
    uint64_t live_bytes, granted_bytes, reserved_bytes, physical_bytes; /* now */
};

/* Returns AR_OK to go on; any other status ends the run with it. */
typedef enum ar_status ar_observer(void *argument, const struct ar_run_event *event,
                                   struct ar_error *error);

/* Calls `observer` at each event of the runs to come, in the thread of ar_experiment_run. The runs
 * are the same with and without it. NULL: none. */
AR_API void ar_experiment_observe(struct ar_experiment *experiment, ar_observer *observer,
                                  void *argument);

struct ar_results;

/* Runs all combinations. AR_OK also where a program ran out of memory: that is a result. The
 * results do not depend on the experiment any more, which may be run again. */
AR_API enum ar_status ar_experiment_run(const struct ar_experiment *experiment,
                                        struct ar_results **out, struct ar_error *error);
AR_API void ar_results_close(struct ar_results *results);

/* Sized. One run. */
struct ar_row {
    const char *policy, *workload, *device; /* specs as they were given */
    const char *workload_name;
    const char *frees, *host;
    uint64_t seed, repetition, capacity_bytes;
    bool passed;
    const char *outcome; /* "played", or "not started": the policy or device cannot begin */
    const char *cause;   /* why it has not passed: "fragmentation", ...; NULL where it has */
    const char *detail;  /* a sentence of the device, or "" */
    uint64_t first_failed_event, first_failed_bytes;
};

AR_API size_t ar_results_count(const struct ar_results *results);
AR_API enum ar_status ar_results_row(const struct ar_results *results, size_t index,
                                     struct ar_row *out, size_t out_bytes, struct ar_error *error);
/* A metric of a row by its name. INVALID names the nearest one. */
AR_API enum ar_status ar_results_metric(const struct ar_results *results, size_t index,
                                        const char *name, struct ar_value *out,
                                        struct ar_error *error);
/* All rows in the form of `allocrig run --json`, results/schema.json. The text is the caller's:
 * ar_free. */
AR_API enum ar_status ar_results_json(const struct ar_results *results, char **out,
                                      struct ar_error *error);

/* ---- the smallest capacities ---------------------------------------------------------------- */

struct ar_capacities;

/* For each combination the smallest capacities at which it passes; the capacities that devices
 * have do not count. */
AR_API enum ar_status ar_experiment_capacity(const struct ar_experiment *experiment,
                                             struct ar_capacities **out, struct ar_error *error);
AR_API void ar_capacities_close(struct ar_capacities *capacities);

/* Capacities from `from_bytes` to `to_bytes` fail, although smaller ones pass. */
struct ar_capacity_gap {
    uint64_t from_bytes, to_bytes;
};

/* Sized. Capacities of 0: none passes up to four times the live peak or 256 MiB. */
struct ar_capacity {
    const char *policy, *workload, *device, *frees;
    uint64_t seed;
    uint64_t live_peak_bytes;
    uint64_t first_pass_bytes; /* the smallest that passes */
    uint64_t safe_bytes;       /* the smallest above which all pass */
    uint64_t no_flush_bytes;   /* the same, without a flush */
    uint64_t no_retry_bytes;   /* the same, without a retry */
    uint64_t runs;             /* that the search took */
    const struct ar_capacity_gap *gaps;
    uint64_t gap_count;
    const char *why; /* the policy cannot begin on the device; "": it can */
};

AR_API size_t ar_capacities_count(const struct ar_capacities *capacities);
AR_API enum ar_status ar_capacities_row(const struct ar_capacities *capacities, size_t index,
                                        struct ar_capacity *out, size_t out_bytes,
                                        struct ar_error *error);

/* ---- advice --------------------------------------------------------------------------------- */

struct ar_advice;

/* Which settings would let a recorded program run in less memory: for one workload on one simulated
 * device, at `capacity` or `limit`, else at the recorded capacity. Policies that are set do not
 * count: the settings of the recorded allocator are tried, then the built-in policies. */
AR_API enum ar_status ar_experiment_advise(const struct ar_experiment *experiment,
                                           struct ar_advice **out, struct ar_error *error);
AR_API void ar_advice_close(struct ar_advice *advice);

enum ar_fit { AR_FITS, AR_FITS_NOT, AR_FIT_UNSURE };

/* Sized. A setting; own ones come first, each kind by rank. */
struct ar_setting {
    const char *policy;  /* a spec */
    const char *setting; /* what a user sets to get it; "": nothing, as for the defaults */
    const char *cost;    /* a sentence; NULL: none is known */
    bool own;            /* of the recorded allocator */
    bool given;          /* the recorded setting */
    bool best;           /* the one to take */
    enum ar_fit fit;     /* at the capacity in question */
    uint64_t safe_bytes; /* the smallest capacity above which all pass; 0: not known */
    double slowdown;     /* at the capacity in question; 0: not known */
    uint64_t peak_reserved_bytes, peak_physical_bytes; /* with all of the card */
    const char *workload; /* the workload, or one GPU of it: "TRACE:device=N" */
    /* From 1, own settings and others each; equal if the needs differ by less than their error. */
    uint64_t rank;
    unsigned needs_major, needs_minor; /* the release of PyTorch that the setting needs, if the
                                          recorder's is not known; else 0, 0 */
};

AR_API size_t ar_advice_count(const struct ar_advice *advice);
AR_API enum ar_status ar_advice_row(const struct ar_advice *advice, size_t index,
                                    struct ar_setting *out, size_t out_bytes,
                                    struct ar_error *error);
/* In the form of `allocrig advise --json`. The text is the caller's: ar_free. */
AR_API enum ar_status ar_advice_json(const struct ar_advice *advice, char **out,
                                     struct ar_error *error);

/* ---- a policy by hand ----------------------------------------------------------------------- */

struct ar_session;

/* A policy on a device of its own, both by spec. */
AR_API enum ar_status ar_session_open(const struct ar_library *library, const char *policy,
                                      const char *device, uint64_t seed, struct ar_session **out,
                                      struct ar_error *error);
/* A policy on memory of the caller's own (allocators/backing.h), which must outlive it. */
AR_API enum ar_status ar_session_open_on(const struct ar_library *library, const char *policy,
                                         struct ar_backing *backing, uint64_t seed,
                                         struct ar_session **out, struct ar_error *error);
/* Destroys the policy and closes the device. */
AR_API void ar_session_close(struct ar_session *session);

/* For the functions of policy.h and device.h. Both stay the session's; the device is NULL on memory
 * of the caller's own. */
AR_API struct ar_policy *ar_session_policy(struct ar_session *session);
AR_API struct ar_device *ar_session_device(struct ar_session *session);

/* ar_policy_alloc and ar_policy_free as functions of the library, with a sentence if they fail.
 * Streams are below 65536. */
AR_API enum ar_status ar_session_alloc(struct ar_session *session,
                                       const struct ar_policy_request *request,
                                       struct ar_policy_block *out, struct ar_error *error);
AR_API enum ar_status ar_session_free(struct ar_session *session,
                                      const struct ar_policy_block *block, uint32_t stream,
                                      struct ar_error *error);
AR_API void ar_session_stats(const struct ar_session *session, struct ar_policy_stats *out);

/* Opens a device alone. The caller closes it with ar_device_close. */
AR_API enum ar_status ar_library_device(const struct ar_library *library, const char *device,
                                        struct ar_device **out, struct ar_error *error);

AR_END_DECLS

#endif
