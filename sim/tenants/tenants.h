/* Several processes, each with its settings and workloads, on the cards of one machine.
 *
 * 1. A process has a pool on each card that it sees, and a workload in each pool. Beside the pools
 *    it holds its context: a constant on each of its cards.
 * 2. What one holds of a card, another cannot have: before a process takes its turn its device is
 *    told what all others hold there.
 * 3. barriered: in each round every process that is there takes one step, in the order in which
 *    they are given, and waits for the others: one outcome. free: the process whose clock is
 *    furthest behind goes on for a number of events that the seed draws; one that has come looks at
 *    its cards at once, and begins a microsecond to a second later. Each seed is one interleaving,
 *    and many seeds are the set of outcomes.
 * 4. A process arrives when the others have come so many rounds (steps, where free), and leaves
 *    after as many as are given, when its workload ends or when a request fails; what it held is
 *    free then, unless it stays.
 * 5. Where the framework waits before a failure (TensorFlow's ten seconds), and the mode is free,
 *    the others go on for so long, and the request is tried again when one of them has given memory
 *    back. In barriered mode no other process runs meanwhile, so the request fails. A setup may set
 *    another wait, which no framework lets its user do: so that many trials of a pair that fails
 *    take less than hours.
 * 6. With `pinned` a process has a pool of pinned host memory, too, for the requests of its first
 *    workload that say space=pinned. The host's memory is one for all processes, with a capacity of
 *    its own; what pinning takes in time is not modelled.
 * 7. The cards' time is not shared: kernels of two processes run as if each had the card. What one
 *    process does to another's speed here is what its memory does. */
#ifndef SIM_TENANTS_TENANTS_H
#define SIM_TENANTS_TENANTS_H

#include "allocators/spec.h"
#include "sim/replay.h"
#include "sim/tenants/process.h"

#define TENANTS_MOST 256

enum tenant_placement {
    TENANT_GIVEN,       /* on the cards that its settings name */
    TENANT_FIRST_FIT,   /* the first card with room for `needs_bytes` */
    TENANT_LEAST_LOADED /* the card with the most free */
};

struct tenant_setup {
    const char *name;
    const struct process_line *lines; /* its settings; NULL: `policy` instead */
    size_t line_count;
    const char *policy;        /* a spec, for one pool on the first card that it sees, or NULL */
    uint32_t card;             /* with `policy` and TENANT_GIVEN: the machine's number */
    const char *const *beside; /* specs of further pools in the process, on the card of its first */
    size_t beside_count;
    const char *const *workloads; /* of its pools in order; the last one of all further ones */
    size_t workload_count;
    uint64_t context_bytes;   /* context and libraries, on each card */
    uint64_t arrives, leaves; /* in rounds; leaves 0: when the workload ends */
    bool stays;               /* keeps its memory when its workload has ended */
    enum tenant_placement placement;
    uint64_t needs_bytes;
    bool retry_given; /* `retry_ms` instead of the framework's wait; 0: none at all */
    uint64_t retry_ms;
    const char *pinned; /* NULL: none; "yes": its framework's; else a policy spec */
};

enum tenant_outcome {
    TENANT_PASSED,
    TENANT_REFUSED_SETTINGS, /* by its framework */
    TENANT_NO_ROOM,          /* no card with room for its context, or for what it needs */
    TENANT_FAILED,           /* a request failed */
    TENANT_CRASHED,          /* on a card: its process died, or did not answer in time */
};

struct tenant_result {
    enum tenant_outcome outcome;
    char why[256];    /* TENANT_REFUSED_SETTINGS and NO_ROOM: a sentence */
    uint32_t card;    /* of its first pool */
    uint64_t arrived; /* the round */
    uint64_t steps;   /* done, all pools together */
    uint64_t failed_step, failed_event, failed_bytes; /* of the first failure, from 0 */
    enum replay_cause cause;
    uint64_t refused_bytes; /* of all requests that failed for lack of others' memory */
    uint64_t
        refused_by; /* number of the one whose other pools held most of the card then, be it itself;
                     * TENANTS_MOST: none */
    uint64_t retries_waited; /* requests that were tried again while it waited */
    uint64_t peak_live_bytes, peak_reserved_bytes, peak_physical_bytes;
    uint64_t end_reserved_bytes, end_physical_bytes; /* when its workload ended, before it left */
    uint64_t peak_card_bytes; /* at the end of a step: pools and context; on a card, what it says */
    char warned[256];         /* what its framework logged of its settings, and went on; or "" */
    bool failed_pinned;       /* TENANT_FAILED: the first failure was of pinned memory */
    uint64_t peak_pinned_live_bytes,
        peak_pinned_reserved_bytes; /* of no card, and in no other figure */
    uint64_t stall_ns, own_ns;      /* own: of its clock, without waiting for the others */
    uint64_t driver_calls;
};

/* The state of one process at the end of a round (barriered), or of a turn in which what it holds
 * changed (free). */
struct tenant_sample {
    uint64_t round, time_ns;
    size_t tenant;
    uint32_t card;
    bool pinned; /* what it holds of the host's pinned memory, not of cards; `card` means nothing */
    uint64_t live_bytes, reserved_bytes, physical_bytes;
    uint64_t card_free_bytes; /* of its first pool's card; of the host */
};

struct tenants_card {
    struct ar_spec device; /* of kind sim, with its capacity */
    unsigned compute_capability;
};

struct tenants {
    const struct tenants_card *cards;
    size_t card_count;
    const struct tenant_setup *setups;
    size_t count;
    bool free;            /* else barriered */
    uint64_t seed;        /* of the interleaving */
    uint64_t turn_events; /* free: the mean length of a turn; 0: 64 */
    uint64_t host_bytes;  /* that can be pinned of the host's memory; 0: 1 TiB */
    enum ar_status (*sample)(void *argument, const struct tenant_sample *sample,
                             struct ar_error *error);
    void *argument;
};

/* `results`: one for each setup. OK whatever became of the processes. INVALID where a setup cannot
 * be: an unknown workload or policy. */
enum ar_status tenants_run(const struct tenants *tenants, struct tenant_result *results,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
