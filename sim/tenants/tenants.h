/* Runs several processes, each with its settings and workloads, on the cards of one machine.
 *
 * 1. A process has a pool on each card that it sees, and a workload in each pool. In addition it
 *    has a context of a constant size on each of its cards.
 * 2. Processes compete for the memory of a card. Before the turn of a process, its device is told
 *    the memory of all other processes.
 * 3. Mode barriered: in each round every present process takes one step, in the given order, and
 *    waits for the others. There is one outcome. Mode free: the process with the earliest clock
 *    runs a number of events drawn from the seed. An arriving process reads the free memory of its
 *    cards at once and begins a microsecond to a second later. Each seed is one interleaving; many
 *    seeds give the set of outcomes.
 * 4. A process arrives after a given number of rounds (free: of steps). It leaves after a given
 *    number of rounds, when its workload ends, or when a request fails. Its memory is released
 *    then, unless it stays.
 * 5. If the framework waits before a failure (TensorFlow: ten seconds) and the mode is free, the
 *    other processes run for that time, and the request is retried when one of them has released
 *    memory. Barriered, no other process runs during the wait, so the request fails. A setup may
 *    set another wait, although no framework offers this, so that many trials of a failing pair do
 *    not take hours.
 * 6. With `pinned` a process also has a pool of pinned host memory for the requests of its first
 *    workload with space=pinned. All processes share the host's memory, which has its own capacity.
 *    The time of pinning is not modelled.
 * 7. The time of the cards is not shared: kernels of two processes run as if each had the card.
 *    Processes influence each other's speed only through memory. */
#pragma once

#include "allocators/spec.h"
#include "sim/replay.h"
#include "sim/tenants/process.h"

#define TENANTS_MOST 256

enum tenant_placement {
    TENANT_GIVEN,       /* on the cards of its settings */
    TENANT_FIRST_FIT,   /* on the first card with `needs_bytes` free */
    TENANT_LEAST_LOADED /* on the card with the most free memory */
};

struct tenant_setup {
    const char *name;
    const struct process_line *lines; /* its settings; NULL: `policy` instead */
    size_t line_count;
    const char *policy; /* a spec, for one pool on the first visible card, or NULL */
    uint32_t card;      /* with `policy` and TENANT_GIVEN: the machine's number */
    const char *const
        *beside; /* specs of further pools of the process, on the card of its first pool */
    size_t beside_count;
    const char *const *workloads; /* of its pools in order; further pools use the last one */
    size_t workload_count;
    uint64_t context_bytes;   /* context and libraries, on each card */
    uint64_t arrives, leaves; /* in rounds; leaves 0: when the workload ends */
    bool stays;               /* keeps its memory after its workload has ended */
    enum tenant_placement placement;
    uint64_t needs_bytes;
    bool retry_given; /* `retry_ms` replaces the framework's wait; 0: no wait */
    uint64_t retry_ms;
    const char *pinned; /* NULL: no pool; "yes": its framework's; else a policy spec */
};

enum tenant_outcome {
    TENANT_PASSED,
    TENANT_REFUSED_SETTINGS, /* by its framework */
    TENANT_NO_ROOM,          /* no card has enough memory for its context or for `needs_bytes` */
    TENANT_FAILED,           /* a request failed */
    TENANT_CRASHED,          /* on a real card: its process died or did not answer in time */
};

struct tenant_result {
    enum tenant_outcome outcome;
    char why[256];    /* TENANT_REFUSED_SETTINGS and NO_ROOM: a sentence */
    uint32_t card;    /* of its first pool */
    uint64_t arrived; /* the round */
    uint64_t steps;   /* completed, by all pools together */
    uint64_t failed_step, failed_event, failed_bytes; /* of the first failure, from 0 */
    enum replay_cause cause;
    uint64_t refused_bytes; /* of all requests that failed because of others' memory */
    uint64_t
        refused_by; /* number of the one whose other pools held most of the card then, be it itself;
                     * TENANTS_MOST: none */
    uint64_t retries_waited; /* requests that were retried during a wait */
    uint64_t peak_live_bytes, peak_reserved_bytes, peak_physical_bytes;
    uint64_t end_reserved_bytes, end_physical_bytes; /* when its workload ended, before it left */
    uint64_t
        peak_card_bytes; /* at the end of a step: pools and context; on a real card, as measured */
    char warned[256];    /* the warnings of its framework about its settings; or "" */
    bool failed_pinned;  /* TENANT_FAILED: the first failure was of pinned memory */
    /* Not memory of a card, and not in any other figure. */
    uint64_t peak_pinned_live_bytes, peak_pinned_reserved_bytes;
    uint64_t stall_ns, own_ns; /* own: by its clock, without waits for the others */
    uint64_t driver_calls;
};

/* The state of one process at the end of a round (barriered), or of a turn in which its memory
 * changed (free). */
struct tenant_sample {
    uint64_t round, time_ns;
    size_t tenant;
    uint32_t card;
    bool pinned; /* of its pinned host memory, not of cards; `card` is not used */
    uint64_t live_bytes, reserved_bytes, physical_bytes;
    uint64_t card_free_bytes; /* of the card of its first pool; pinned: of the host */
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
    uint64_t host_bytes;  /* of host memory that can be pinned; 0: 1 TiB */
    enum ar_status (*sample)(void *argument, const struct tenant_sample *sample,
                             struct ar_error *error);
    void *argument;
};

/* Fills one result for each setup. OK also if processes fail. INVALID if a setup is not valid, for
 * example because of an unknown workload or policy. */
enum ar_status tenants_run(const struct tenants *tenants, struct tenant_result *results,
                           struct ar_error *error);
