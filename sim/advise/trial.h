/* Replays of one trace under different policies and capacities. */
#pragma once

#include "sim/experiment/session.h"
#include "sim/replay.h"
#include "allocators/spec.h"
#include "sim/device.h"

/* The parameters that all trials share. */
struct trial_setup {
    const struct ar_spec *device; /* its capacity is replaced */
    enum replay_frees frees;
    enum replay_host host;
    uint64_t seed;
    uint64_t live_peak_bytes;
    uint64_t card_bytes;             /* the capacity of `device` without one in its spec */
    uint64_t whole_bytes;            /* that of "all of the card"; 0: card_bytes */
    const struct baseline *baseline; /* NULL: slowdowns are not computed */
    bool as_limit;                   /* the capacity is a limit of the policy, on a larger card */
    uint64_t late_bytes; /* the largest block whose free completed later (sensitivity_late) */
    bool has_outside;    /* the trace has memory outside of the policy */
    /* The trace in fewer events, with times and without, for trials that do not need them. It takes
     * the place of the trace that is given. NULL: there is none. */
    const struct lean *timed, *timeless;
    /* Recorded completions are replayed as `run` does, without waiting_wrap. */
    bool as_run;
};

/* Why the recording does not show whether a setting passes. */
enum trial_sensitivity {
    TRIAL_SURE,
    TRIAL_UNTIMED,  /* the driver's pool: depends on when kernels end, which is not recorded */
    TRIAL_LATE,     /* the answer changes if blocks of other streams are free at once */
    TRIAL_RELEASES, /* the answer changes without releases that may not be the program's */
    TRIAL_TRIES,    /* only tries fail (advise.h), without which the library continues */
};

struct trial {
    bool begun; /* false: the policy cannot start on this device; see `why` */
    bool full;  /* not begun, because the memory is too small */
    bool passed;
    uint64_t event, bytes; /* of the first failure */
    enum replay_cause cause;
    enum trial_sensitivity sensitivity;
    uint64_t peak_reserved_bytes; /* 0: not measured */
    uint64_t peak_physical_bytes;
    /* The trial passed, and would run the same at each capacity from here up to its own; 0: not
     * known. */
    uint64_t enough_bytes;
    uint64_t capacity_bytes; /* of the device of the run */
    uint64_t retries, flushes, driver_calls;
    double slowdown;   /* 0: not known */
    char setting[512]; /* from the policy's own hook; or "" */
    char why[200];
};

/* Runs one replay up to its first failure. Capacity 0: all of the card. `peaks`: also measures the
 * peak of the policy's own reserved bytes. The status reports bad input and faults only. */
enum ar_status trial_run(const struct trial_setup *setup, struct trace_source *trace,
                         const char *policy, uint64_t capacity_bytes, bool peaks, struct trial *out,
                         struct ar_error *error);

/* Runs a replay with all of the card, for the peaks. If that is not enough, with the end of the
 * grid of capacities (sim/search/search.h): what a policy needs does not depend on the card. */
enum ar_status trial_alone(const struct trial_setup *setup, struct trace_source *trace,
                           const char *policy, struct trial *out, struct ar_error *error);

/* Finds the lowest capacity above which all tried capacities pass; 0: none up to the end of the
 * grid. It goes down from the peak of `alone` (trial_alone) in steps of 2 % of the live peak (above
 * twice that peak of 5 %; at least 2 MiB) to the first failure, and bisects to 2 MiB. If the start
 * fails, because the policy leaves a part of the card unused, it starts again at the capacity of
 * `alone`, then at the end of the grid. */
enum ar_status trial_search(const struct trial_setup *setup, struct trace_source *trace,
                            const char *policy, const struct trial *alone, uint64_t *safe_bytes,
                            struct ar_error *error);

/* The same search from a given capacity. */
enum ar_status trial_safe(const struct trial_setup *setup, struct trace_source *trace,
                          const char *policy, uint64_t from_bytes, uint64_t *safe_bytes,
                          struct ar_error *error);

/* The same search on a given grid of capacities, ascending: the lowest of them above which all
 * pass, with the edge below it bisected to 2 MiB. `failed_bytes`: a capacity that is known to fail;
 * 0: none. 0: the highest fails. */
enum ar_status trial_safe_on(const struct trial_setup *setup, struct trace_source *trace,
                             const char *policy, const uint64_t *grid_bytes, size_t count,
                             uint64_t failed_bytes, uint64_t *safe_bytes, struct ar_error *error);

/* Checks whether the answer of a trial changes if something varies that is not recorded, and sets
 * `trial->sensitivity`. The trial was of `policy` at a capacity (0: all of the card). */
typedef enum ar_status sensitivity_check(const struct trial_setup *setup,
                                         struct trace_source *trace, const char *policy,
                                         uint64_t capacity_bytes, struct trial *trial,
                                         struct ar_error *error);

/* Repeats a failed trial with `trace`, in which tries may fail. */
sensitivity_check sensitivity_tries;

/* Repeats a trial at a capacity with the blocks of other streams free at once, because they may
 * complete earlier under another setting than recorded. Some may also complete later, so the trial
 * is repeated with memory for the largest of them more or less. */
sensitivity_check sensitivity_late;

/* Repeats a trial at a capacity with `trace`, in which the program does not release the cache. If
 * the recorded setting differs from the recording, the releases may have been the allocator's. */
sensitivity_check sensitivity_releases;

/* A recording in fewer events, for replays that measure little. The policy sees the same calls.
 *
 * 1. If blocks are freed when the free is requested (modes ordered and at-once), free requested and
 *    free completed become one event at the place of the first. The engine has a shortcut for it.
 * 2. Recorded times that do not pass (host none) and notes are left out.
 * 3. Without times (`timeless`), kernels, records of events and waits for them are left out too.
 *    They can change what a policy does only if it asks the device whether work is done. After the
 *    replay the caller must check that it did not (lean_is_equal). A wait gives no answer. */

struct lean {
    struct trace_info info;
    const struct trace_tables *tables; /* of the recording, which must stay open */
    struct trace_event *events;        /* NULL: the recording has no such form */
    uint64_t *numbers;                 /* of the events in the recording */
    size_t count;
    uint64_t largest_bytes; /* of all requests */
    bool timeless;
};

/* There is no such form if streams must be ordered, because races depend on time. HOST_MEMORY. */
enum ar_status lean_make(struct trace_source *trace, enum replay_frees frees, enum replay_host host,
                         bool timeless, struct lean *out, struct ar_error *error);
void lean_close(struct lean *self);

/* A source of the events. Several may be used at once. It needs no close. */
struct lean_source {
    struct trace_source base;
    const struct lean *lean;
    bool given;
};

void lean_open(const struct lean *self, struct lean_source *out);

/* Whether a replay that ended is the same with and without times. */
bool lean_is_equal(const struct ar_device *device, const struct ar_policy *policy);
