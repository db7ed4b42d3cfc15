/* A replay: the engine drives a policy with a workload on a device, once. And an experiment: all
 * passes of a run. sim/replay/README.md describes both. */
#pragma once

#include "allocators/policy.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"
#include "sim/observer.h"
#include "workloads/trace/source.h"

/* When a freed block may be used again.
 * ordered: the policy is told when the free is requested. The policy, or the engine for policies
 * that are not stream-ordered, keeps the order with the uses of other streams. at-once: when the
 * free is requested, whatever other streams do. recorded: at the recorded completion. */
enum replay_frees { REPLAY_ORDERED, REPLAY_AT_ONCE, REPLAY_RECORDED };
/* none: the host takes no time. recorded: the recorded gaps between events pass on the device's
 * clock, in addition to the policy's time (a closed loop). open: an event comes at its recorded
 * time, or immediately if that has passed, so a policy that stalls is charged with the delay of
 * the events that wait for it. */
enum replay_host { REPLAY_HOST_NONE, REPLAY_HOST_RECORDED, REPLAY_HOST_OPEN };
/* reserved: of the exact metrics only the peak of reserved bytes. */
enum replay_measure { REPLAY_METRICS_NONE, REPLAY_METRICS_RESERVED, REPLAY_METRICS_EXACT };

/* Why a request failed: the first of these that would have served it. */
enum replay_cause {
    REPLAY_CAUSE_NONE,
    /* a block came back while the request waited, and the policy did not look at it again */
    REPLAY_CAUSE_RETURNED,
    REPLAY_CAUSE_FRAGMENTATION,
    REPLAY_CAUSE_CACHE, /* free memory of the policy, for memory asked for beside it */
    REPLAY_CAUSE_PENDING,
    REPLAY_CAUSE_TENANT,
    REPLAY_CAUSE_OUTSIDE,
    REPLAY_CAUSE_CAPACITY,
    REPLAY_CAUSE_PINNED, /* of pinned host memory */
    /* the driver failed with an error other than a lack of memory: the run ends */
    REPLAY_CAUSE_DRIVER,
};

const char *replay_frees_name(enum replay_frees frees);
const char *replay_host_name(enum replay_host host);
const char *replay_cause_name(enum replay_cause cause);

/* The modes in which a recording is replayed if `wanted` is chosen: one, or two (at-once and
 * recorded) if `ordered` is chosen for a recording that has completions but no uses. Returns the
 * number of modes. */
unsigned replay_frees_choices(const struct trace_info *info, enum replay_frees wanted,
                              enum replay_frees out[2]);
/* The last of them: recorded completions of frees are used if there are any. */
enum replay_frees replay_frees_nearest(const struct trace_info *info, enum replay_frees wanted);

/* Advances the device's host clock to that time, if it is not there yet. */
void replay_wait_until(struct ar_device *device, uint64_t time_ns);

struct replay_config {
    struct ar_policy *policy;
    /* Serves the requests of pinned host memory (space=pinned), on device->pinned. NULL: they are
     * served without a block. */
    struct ar_policy *pinned;
    struct ar_device *device;
    struct trace_source *source; /* at its first event */
    enum replay_frees frees;
    enum replay_host host;
    /* Without exact metrics and observers, granted bytes are not compared with those requested. */
    enum replay_measure measure;
    bool stop_on_failure;
    bool timeless; /* the program's own time at each call (`requested` of the device) is left out */
    bool measure_time;               /* read the host's clock around each call */
    uint64_t unit_bytes;             /* for the unusable-free index; 0: not measured */
    struct ar_host *policy_host;     /* of the policy, for metadata bytes; may be NULL */
    const struct observer *observer; /* a list; NULL: none */
    struct tap *tap; /* of the session, if observers want driver calls or memory events; or NULL */
    uint64_t limit_bytes; /* of the policy, for the cause of a failure; 0: none */
    /* On a device with memory: every block is filled with a pattern when it is served, and read
     * when it is freed, on every stream that used it. A wrong byte is CORRUPT. */
    bool verify;
    /* Optional: returns whether a failed request is tried again, for example because another
     * process has freed memory. */
    bool (*again)(void *argument, const struct ar_policy_request *request);
    void *again_argument;
};

struct replay_result {
    bool passed;
    uint64_t first_failed_event; /* valid if the run failed */
    enum replay_cause cause;     /* of the first failure */
    uint64_t first_failed_bytes;
    /* The error of the device that ended the run, also if a request had failed before; "": none. */
    char problem[512];
    char refused_by[128];         /* the first failure: a limit or decorator, not the device; "" */
    struct metric_values metrics; /* without those that need two passes or another run */
    uint64_t *step_end_ns; /* when it is idle after each step; replay_result_close frees it */
    uint64_t steps;
    uint64_t begun_ns; /* device time before the first event */
};

/* Replays from the present event of the source to its end. OK also if requests failed: that is the
 * result. Other statuses: invalid input (the error names the event), FORMAT if the policy refuses
 * what a note changes, UNSUPPORTED if `verify` is wanted of a device without memory, CORRUPT if
 * the policy broke its contract, NO_MEMORY if the device has none to touch, fill or read a block,
 * HOST_MEMORY, or that of an observer. */
enum ar_status replay_run(const struct replay_config *config, struct replay_result *result,
                          struct ar_error *error);
void replay_result_close(struct replay_result *result);

/* The same in parts, for several replays that take turns: open, then go until the source has no
 * more events for now (it may have more later), or the replay has stopped; then end. `config` must
 * live as long. */
struct replay;
enum ar_status replay_open(const struct replay_config *config, struct replay **out,
                           struct ar_error *error);
enum ar_status replay_go(struct replay *run, struct ar_error *error);
/* After a failure with stop_on_failure, or of the driver. */
bool replay_stopped(const struct replay *run);
bool replay_has_failed(const struct replay *run);
/* The policy's block of a slot of the trace; NULL: the slot has no live block of it. */
const struct ar_policy_block *replay_block(const struct replay *run, size_t slot);
/* Fills in the result. Frees the replay, also if it fails. */
enum ar_status replay_end(struct replay *run, struct replay_result *result, struct ar_error *error);
void replay_discard(struct replay *run); /* without a report; NULL is fine */

/* A run as users see it: all passes that the metrics need, the baseline (an allocator that costs
 * nothing), and timing if wanted. */
struct experiment {
    const struct ar_spec *policy;
    const struct ar_spec *pinned; /* the policy of pinned host memory; NULL: none, as above */
    const struct ar_spec *device;
    struct trace_source
        *source; /* rewound as needed; an adaptive one is played once and kept in memory */
    enum replay_frees frees;
    enum replay_host host;
    enum replay_measure measure;
    bool stop_on_failure, measure_time;
    uint64_t seed;
    const struct observer *observer; /* a list, of the run itself; NULL: none */
    bool verify;                     /* see replay_config */
};

enum ar_status experiment_run(const struct experiment *experiment, struct replay_result *result,
                              struct ar_device_props *props, struct ar_error *error);

/* Why a request failed. The ladder: each step adds memory to the step before it. The first step at
 * which the request could have been served is the cause.
 *
 *   again     the policy would serve it now                              returned
 *   same      free ranges of the request's pool and stream, merged       fragmentation
 *   other     and free ranges of other pools and streams                 fragmentation
 *   pending   and pending blocks                                         pending
 *   tenant    and memory of other processes on the card                  tenant
 *   outside   and memory that the program holds outside of the pool      outside
 *             otherwise                                                  capacity
 *
 * The policy serves it now if a block came back while it waited for the request, and it did not
 * look at its free ranges again before it gave up (ar_policy_would_fit).
 *
 * Every step includes the memory that the policy could still obtain: what the device has free,
 * within the policy's limit. If that alone was enough, the policy has a rule against using it (for
 * example the memory that TensorFlow leaves to the system). Then it is left out, and a failure
 * that is not fragmentation or pending is capacity. Steps that add to the device's free memory do
 * not help a policy that is at its limit.
 *
 * Memory that the program asks for beside the pool has a ladder of its own. The device's free
 * memory is part of every step:
 *
 *   cached    whole segments, or pages, that the policy holds free       cache
 *   other     and free ranges between live blocks                        cache
 *   pending   and pending blocks                                         pending
 *   tenant    and memory of other processes on the card                  tenant
 *             otherwise                                                  capacity
 */

struct cause_ladder {
    bool beside; /* memory beside the pool is asked for */
    bool again;  /* the policy would serve the request now; not if `beside` */
    bool barred; /* a rule of the policy prevents the use of what the device has free */
    /* Bytes that could be used at each step, cumulative. */
    uint64_t obtainable_bytes; /* of the device, within the limit; part of all that follow */
    uint64_t cached_bytes;     /* if `beside`, else as obtainable_bytes */
    uint64_t same_bytes;       /* if not `beside`, else as other_bytes */
    uint64_t other_bytes, pending_bytes, tenant_bytes, outside_bytes;
};

/* Fills the ladder for a request in the present state. It walks the policy, so it takes time in
 * proportion to the policy's ranges; of an opaque policy it takes the totals. `limit_bytes` is the
 * policy's limit, 0 for none. The step `again` may poll pending frees (ar_policy_would_fit). */
void cause_ladder_fill(struct cause_ladder *ladder, struct ar_policy *policy,
                       const struct ar_device *device, const struct ar_policy_request *request,
                       uint64_t limit_bytes);

/* The same for memory beside the pool, from the policy's totals. */
void cause_ladder_fill_beside(struct cause_ladder *ladder, const struct ar_policy *policy,
                              const struct ar_device *device);

/* The cause according to a ladder. */
enum replay_cause cause_of_ladder(const struct cause_ladder *ladder, uint64_t bytes);

/* The same cause from the policy's totals, without a walk: the two steps of fragmentation need not
 * be separated for it. As cause_ladder_fill, it may poll the policy's pending frees. */
enum replay_cause cause_of_failure(struct ar_policy *policy, const struct ar_device *device,
                                   const struct ar_policy_request *request, uint64_t limit_bytes);
