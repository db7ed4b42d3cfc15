/* The one engine that drives a policy with a workload on a device. */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/policy.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"
#include "sim/observer.h"
#include "workloads/trace/source.h"

struct tap; /* sim/observer/tap.h */

/* When a block that the program lets go is free again.
 * ordered: the policy is told at the let-go; it, or the engine for policies that are not
 * stream-ordered, sees to it that no other stream's use is overtaken. at-once: at the let-go,
 * nothing else is looked at. recorded: when the recording says so. */
enum replay_frees { REPLAY_ORDERED, REPLAY_AT_ONCE, REPLAY_RECORDED };
/* none: the host is never late. recorded: the recorded gaps between events pass on the device's
 * clock, behind whatever the policy took (a closed loop). open: an event comes at its recorded
 * time, or at once where that has passed, so a policy that stalls is charged with what waits
 * behind it. */
enum replay_host { REPLAY_HOST_NONE, REPLAY_HOST_RECORDED, REPLAY_HOST_OPEN };
enum replay_measure { REPLAY_METRICS_NONE, REPLAY_METRICS_EXACT };

/* Why a request failed: the first of these that would have served it. */
enum replay_cause {
    REPLAY_CAUSE_NONE,
    REPLAY_CAUSE_FRAGMENTATION,
    REPLAY_CAUSE_PENDING,
    REPLAY_CAUSE_TENANT,
    REPLAY_CAUSE_OUTSIDE,
    REPLAY_CAUSE_CAPACITY,
    REPLAY_CAUSE_DRIVER, /* the driver failed, and not for want of memory: the run ends there */
};

const char *replay_frees_name(enum replay_frees frees);
const char *replay_host_name(enum replay_host host);
const char *replay_cause_name(enum replay_cause cause);

/* The modes in which a recording is to be replayed when `wanted` is asked for: one, or, where
 * `ordered` is wanted of a recording that holds let-go and completion apart but not the uses
 * between them, two (at-once and recorded). Returns how many were written. */
unsigned replay_frees_choices(const struct trace_info *info, enum replay_frees wanted,
                              enum replay_frees out[2]);

/* Lets host time pass until then on the device's clock; nothing where that has passed. */
void replay_wait_until(struct ar_device *device, uint64_t time_ns);

struct replay_config {
    struct ar_policy *policy;
    struct ar_device *device;
    struct trace_source *source; /* stands at its first event */
    enum replay_frees frees;
    enum replay_host host;
    enum replay_measure measure;
    bool stop_on_failure;
    bool measure_time;           /* read the host clock around each call; a mode of its own */
    uint64_t unit_bytes;         /* for the unusable-free index; 0: not wanted */
    struct ar_host *policy_host; /* that the policy was made with: metadata bytes; may be NULL */
    const struct observer *observer; /* a list; NULL: none */
    struct tap *tap; /* of the session, if the list wants driver calls or memory events; or NULL */
    uint64_t limit_bytes; /* of the policy, for the cause of a failure; 0: none */
    /* On a device with memory: every block is filled with a pattern when it is given, which is
     * checked where it is used and when it is let go. A wrong byte is CORRUPT. */
    bool verify;
    /* Optional: asked where a request was not served, whether it is to be tried again: time has
     * passed, or somebody else has freed memory. */
    bool (*again)(void *argument, const struct ar_policy_request *request);
    void *again_argument;
};

struct replay_result {
    bool passed;
    uint64_t first_failed_event; /* valid where it has not passed */
    enum replay_cause cause;     /* of the first failure */
    uint64_t first_failed_bytes;
    char problem[512];            /* cause DRIVER: the device's sentence */
    struct metric_values metrics; /* without what needs two passes or another run */
    uint64_t *step_end_ns;        /* device idle time at each step's end; replay_result_close */
    uint64_t steps;
    uint64_t begun_ns; /* device time before the first event */
};

/* Replays from where the source stands to its end. OK also where requests failed: that is
 * the result. Other statuses: bad input (event named), UNSUPPORTED where `verify` is asked of a
 * device without memory, or CORRUPT where the policy broke its contract. */
enum ar_status replay_run(const struct replay_config *config, struct replay_result *result,
                          struct ar_error *error) AR_STATUS_CHECKED;
void replay_result_close(struct replay_result *result);

/* The same in parts, for several replays that take turns: opened, then driven until the source says that
 * there is no more, which it may take back later, and ended. `config` lives as long. */
struct replay;
enum ar_status replay_open(const struct replay_config *config, struct replay **out,
                           struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status replay_go(struct replay *run, struct ar_error *error) AR_STATUS_CHECKED;
bool replay_stopped(const struct replay *run); /* stop_on_failure, and it has failed */
bool replay_has_failed(const struct replay *run);
/* Reports, and frees the replay, also where it fails. */
enum ar_status replay_end(struct replay *run, struct replay_result *result,
                          struct ar_error *error) AR_STATUS_CHECKED;
void replay_discard(struct replay *run); /* without a report; NULL is fine */

/* The whole of a run as users mean it: passes that the metrics need, the baseline with an
 * allocator that costs nothing, and timing if asked for. Specs are texts. */
struct experiment {
    const struct ar_spec *policy;
    const struct ar_spec *device;
    struct trace_source *source; /* rewound as needed; an adaptive one is written down first */
    enum replay_frees frees;
    enum replay_host host;
    enum replay_measure measure;
    bool stop_on_failure, measure_time;
    uint64_t seed;
    const struct observer *observer; /* a list, of the run itself; NULL: none */
    bool verify;                     /* see replay_config */
};

enum ar_status experiment_run(const struct experiment *experiment, struct replay_result *result,
                              struct ar_device_props *props,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
