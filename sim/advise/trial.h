/* One trace tried under one policy after another, at one capacity after another. */
#ifndef SIM_ADVISE_TRIAL_H
#define SIM_ADVISE_TRIAL_H

#include "sim/experiment/baseline.h"
#include "sim/experiment/session.h"
#include "sim/replay.h"

/* What is the same for all trials. */
struct trial_setup {
    const struct ar_spec *device; /* its capacity is replaced */
    enum replay_frees frees;
    enum replay_host host;
    uint64_t seed;
    uint64_t live_peak_bytes;
    uint64_t card_bytes;             /* the most capacity there can be; 0: not known */
    const struct baseline *baseline; /* NULL: no slowdown is wanted */
    bool as_limit; /* a capacity is what the policy lets itself hold, on a card that has more */
    uint64_t late_bytes; /* the largest block that was freed and completed later (doubt_late) */
    bool has_outside;    /* the trace tells of memory outside of the policy */
};

/* Why a recording does not tell whether it passes. */
enum trial_doubt {
    TRIAL_SURE,
    TRIAL_UNTIMED,  /* the driver's pool: it depends on when kernels end, which is not recorded */
    TRIAL_LATE,     /* with blocks of other streams free at once it is the other way round */
    TRIAL_RELEASES, /* without releases that may not be the program's it is the other way round */
    TRIAL_TRIES,    /* it fails, but only by requests that a library may go without (tries.h) */
};

struct trial {
    bool begun; /* false: the policy cannot begin on such a device; `why` */
    bool passed;
    uint64_t event, bytes; /* of the first failure */
    enum replay_cause cause;
    enum trial_doubt doubt;
    uint64_t peak_reserved_bytes; /* 0 where not measured */
    uint64_t peak_physical_bytes;
    /* It passed and behaves the same at each capacity from this one to its own; 0: not known. */
    uint64_t enough_bytes;
    uint64_t retries, flushes, driver_calls;
    double slowdown;   /* 0: not known */
    char setting[512]; /* by the policy's own hook; "" */
    char why[200];
};

/* One replay up to its first failure; capacity 0: all that the card has. `exact`: peaks of the
 * policy's own counts too. Statuses of bad input and faults only. */
enum ar_status trial_run(const struct trial_setup *setup, struct trace_source *trace,
                         const char *policy, uint64_t capacity_bytes, bool exact, struct trial *out,
                         struct ar_error *error) AR_STATUS_CHECKED;

/* The lowest capacity above which all that were tried pass: from what the policy took `alone` (with
 * all of the card; at most four times the live peak) down in steps of 5 %, below twice the live
 * peak 2 %, of that peak (at least 2 MiB) to the first failure, then by halving to 2 MiB. One that
 * does not pass where that begins, since it leaves a part of the card to others, is looked for from
 * four times the live peak on. 0: it does not pass there either. */
enum ar_status trial_search(const struct trial_setup *setup, struct trace_source *trace,
                            const char *policy, const struct trial *alone, uint64_t *safe_bytes,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* The same from a capacity on. */
enum ar_status trial_safe(const struct trial_setup *setup, struct trace_source *trace,
                          const char *policy, uint64_t from_bytes, uint64_t *safe_bytes,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* Work on `count` things, by number, with `jobs` workers, each with a copy of the trace of its own.
 * Of several failures the one of the lowest number is returned. */
typedef enum ar_status trial_work(void *argument, size_t number, struct trace_source *trace,
                                  struct ar_error *error);
/* Called after each trial; may be NULL. Never called concurrently. */
typedef void trial_done(void *argument);
enum ar_status trial_each(struct trace_source *trace, unsigned jobs, size_t count, trial_work *work,
                          trial_done *done, void *argument,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* Stands around a policy that waits for pending frees where memory is short. In a recording that
 * tells when blocks completed, but not what for, they complete then, or earlier where the policy
 * waits for them: as they would have. */
/* Puts it around the session's policy, before the first request. `streams`: of the trace.
 * HOST_MEMORY. */
enum ar_status waiting_wrap(struct session *session, uint32_t streams,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Whether an answer would be the other way round by something that the recording does not tell. */
/* One that asks of a trial of `policy` at a capacity (0: all of the card). */
typedef enum ar_status doubt_ask(const struct trial_setup *setup, struct trace_source *trace,
                                 const char *policy, uint64_t capacity_bytes, struct trial *trial,
                                 struct ar_error *error);

/* A trial that failed, once more with `trace`, in which what a library tries out may fail. */
doubt_ask doubt_tries AR_STATUS_CHECKED;

/* Any trial but with all of the card, once more with blocks that other streams used free at once:
 * under another setting they may complete earlier than was recorded. Or later, or some of them: so
 * room for the largest of them more or less must make no difference either. */
doubt_ask doubt_late AR_STATUS_CHECKED;

/* Any trial but with all of the card, once more with `trace`, in which the program releases no
 * cache by itself: where the recorded setting does not do what was recorded, releases may have been
 * the allocator's own. */
doubt_ask doubt_releases AR_STATUS_CHECKED;

#endif
