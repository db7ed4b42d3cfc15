/* The twin of a node: training and inference on its cards, with their sleep and wake, graphs,
 * communication buffers and caches.
 *
 * 1. A scenario has processes, each with a policy and a context on each of its cards; parts in the
 *    processes, which make requests (part.h); and a schedule of phases.
 * 2. A process has one rank for each of its cards. Each rank has its own pool and its own parts. A
 *    rank begins at its first phase; its context is on the card from then on.
 * 3. Phases run one after the other, on all cards at once. `a.train & b.generate` are the actions
 *    of one phase, in turns. Before each turn the device of a rank is told what the others hold.
 * 4. Cards with the same processes are computed once and reported for each, unless a part depends
 *    on its rank.
 * 5. At the end of each phase the bytes of each card are divided among owners. The sum is what the
 *    device says is used. The run ends at the first request that fails. */
#pragma once

#include "allocators/spec.h"
#include "sim/replay.h"
#include "sim/twin/part.h"

#define TWIN_CARDS 64

/* ---- the scenario ---------------------------------------------------------------------------- */

struct twin_process_setup {
    const char *name;
    const char *policy; /* a policy spec; NULL: "torch" */
    /* A policy spec for pinned host memory. NULL: torch-pinned if the policy is torch, else "none":
     * such requests are counted and take no memory. */
    const char *pinned;
    uint64_t cards;         /* a bit for each card of the machine; 0: card 0 */
    uint64_t context_bytes; /* UINT64_MAX: by rule of the card */
    unsigned line;          /* of the file, for the caller's errors */
};

struct twin_part_setup {
    const char *name;
    const struct twin_part_ops *ops;
    const char *process;
    struct ar_spec_link options; /* pairs of keys and values; `name` is not used */
    unsigned line;
};

struct twin_scenario {
    const char *name;
    const char *device;  /* a device spec: "sim:profile=h100"; NULL: "sim" */
    unsigned cards;      /* 0: 1 */
    uint64_t host_bytes; /* of host memory that can be pinned, for all processes; 0: unlimited */
    uint64_t seed;       /* of the parts that have none of their own; 0: 1 */
    const struct twin_process_setup *processes;
    size_t process_count;
    const struct twin_part_setup *parts;
    size_t part_count;
    /* Phases, separated by commas; "" or NULL: none. A phase is an action or several with "&":
     * "PART.ACTION ARGUMENT.." or "PROCESS.ACTION" (twin_process_actions). */
    const char *start, *cycle, *end;
    uint64_t cycles; /* 0: 1 */
    /* Of more cycles than this the result has the first ones, the last one, every n-th between, and
     * phases with more bytes in use than all before. 0: TWIN_CYCLES_KEPT. */
    uint64_t cycles_kept;
};
#define TWIN_CYCLES_KEPT 1000

/* The actions that every process has: empty_cache, reset_peaks, end. */
const struct twin_action *twin_process_actions(void);

enum twin_stage { TWIN_START, TWIN_CYCLE, TWIN_END };

/* Where an error is: the part whose option is wrong, or the step of the schedule. */
struct twin_fault {
    size_t part;  /* SIZE_MAX: in none */
    size_t place; /* in the list of `stage`; SIZE_MAX: in none */
    enum twin_stage stage;
};

/* Checks names, options and schedule without a run. INVALID: a sentence; `fault` may be NULL. */
enum ar_status twin_check(const struct twin_scenario *scenario, struct twin_fault *fault,
                          struct ar_error *error);

/* ---- the result ------------------------------------------------------------------------------ */

/* Kinds of owners, for tables and colours. */
enum twin_owner_kind {
    TWIN_OWNER_PART,     /* PART/PURPOSE: requested bytes of live blocks */
    TWIN_OWNER_OUTSIDE,  /* PART/PURPOSE outside of the pool */
    TWIN_OWNER_CONTEXT,  /* the context of a process */
    TWIN_OWNER_ROUNDING, /* granted and not requested */
    TWIN_OWNER_PENDING,  /* freed, and other streams may still use it */
    TWIN_OWNER_CACHED,   /* reserved and free */
    TWIN_OWNER_PAGES,    /* physical and not reserved: the rest of the driver's pages */
};

struct twin_owner {
    const char *name; /* "actor/weights", "rl/context", "rl/cached" */
    size_t process;   /* index of the scenario */
    size_t part;      /* SIZE_MAX: of the process itself */
    enum twin_owner_kind kind;
};

/* What an owner has. Owners without bytes have no entry. */
struct twin_amount {
    uint32_t owner;
    uint64_t bytes;        /* on the card; the sum of a card is its used_bytes */
    uint64_t asleep_bytes; /* live in sleeping segments, not on the card */
    uint64_t pinned_bytes; /* requested of pinned host memory, not on the card */
};

struct twin_amounts {
    size_t first, count; /* in twin_result.amounts */
};

/* One card at the end of a phase. */
struct twin_card_state {
    uint64_t used_bytes, free_bytes;
    struct twin_amounts amounts;
    /* The moment in the phase at which most was used. */
    uint64_t peak_bytes;
    struct twin_amounts peak_amounts;
};

/* One rank of a process at the end of a phase. */
struct twin_rank_state {
    uint64_t live_bytes, allocated_bytes, reserved_bytes; /* asleep included, as torch counts */
    uint64_t peak_allocated_bytes, peak_reserved_bytes;   /* in the phase */
    uint64_t physical_bytes, outside_bytes;               /* on the card */
    uint64_t asleep_bytes;                                /* reserved and not on the card */
    uint64_t context_bytes;                               /* part of outside_bytes */
    uint64_t pinned_bytes;                                /* of host memory, as the driver counts */
    uint64_t pinned_live_bytes;
    uint64_t ns; /* its time in the phase */
    uint64_t events;
};

/* Bytes of the card that the process uses beyond its context. */
static inline uint64_t twin_residue(const struct twin_rank_state *state)
{
    return state->physical_bytes + state->outside_bytes - state->context_bytes;
}

struct twin_phase {
    const char *text; /* as in the schedule: "rollout.sleep 1" */
    enum twin_stage stage;
    uint64_t cycle;          /* from 1; 0 in `start`; the last one in `end` */
    size_t place;            /* its index within start, cycle or end */
    size_t first_card_state; /* of card 0 in twin_result.card_states, one for each card */
    size_t first_rank_state; /* in twin_result.rank_states, one for each of twin_result.ranks */
};

/* A rank: a process on a card. */
struct twin_rank {
    size_t process;
    uint32_t rank, card;
};

struct twin_figure {
    size_t part;
    uint32_t rank;
    const char *name;
    double value;
    /* At whose end it has this value; an entry for each change. A change in a phase that the result
     * leaves out has the next phase that stays. */
    size_t phase;
};

/* A live block that keeps free bytes of its segment from being released, at the end of a phase of
 * the last cycle, or when a request failed. */
struct twin_pin {
    size_t phase;
    size_t rank; /* in twin_result.ranks */
    uint64_t address, bytes;
    uint64_t segment_bytes;
    uint64_t keeps_bytes; /* free bytes of the segment, divided by its live blocks */
    uint32_t owner;
    const char *tag;
    /* The phase in which it was requested, without its states, also if the result leaves it out
     * (twin_scenario.cycles_kept); text NULL: not known. */
    struct twin_phase born;
};

struct twin_line { /* of twin_say */
    size_t phase, part;
    uint32_t rank;
    const char *text;
};

enum twin_outcome {
    TWIN_PASSED,
    TWIN_OUT_OF_MEMORY,
    TWIN_REFUSED, /* a part refused as the real program does; `why` is its sentence */
};

struct twin_failure {
    size_t phase, rank;                  /* SIZE_MAX: none, as in what passed */
    size_t part;                         /* SIZE_MAX: the context of the process */
    const char *action;                  /* "rollout.wake" */
    uint64_t bytes;                      /* of the request */
    uint64_t unused_bytes, others_bytes; /* free on the card or in the pool; of other processes */
    uint32_t owner;
    enum replay_cause cause;
    bool pinned; /* of host memory */
    char why[1024];
};

struct twin_result {
    enum twin_outcome outcome;
    struct twin_fault fault; /* if twin_run returns an error: the step in which it was found */
    struct twin_failure failure;
    uint64_t total_bytes; /* of a card */
    const struct twin_owner *owners;
    size_t owner_count;
    const struct twin_rank *ranks;
    size_t rank_count;
    unsigned card_count;
    const struct twin_phase *phases; /* those that ended, and the one that failed */
    size_t phase_count;
    const struct twin_card_state *card_states;
    const struct twin_rank_state *rank_states;
    const struct twin_amount *amounts;
    const struct twin_figure *figures;
    size_t figure_count;
    const struct twin_pin *pins;
    size_t pin_count;
    const struct twin_line *lines;
    size_t line_count;
    uint64_t events; /* replayed */
    void *storage;   /* private; all pointers above point into it */
};

/* Runs the scenario. OK also if memory runs out: that is the result. INVALID: the scenario is
 * wrong. The scenario must live until twin_result_close: texts of the result point into it. */
enum ar_status twin_run(const struct twin_scenario *scenario, struct twin_result *result,
                        struct ar_error *error);
/* A zeroed result is fine. */
void twin_result_close(struct twin_result *result);

/* The states of a card and of a rank (an index of `ranks`) at the end of a phase. */
static inline const struct twin_card_state *twin_card_at(const struct twin_result *result,
                                                         size_t phase, unsigned card)
{
    return &result->card_states[result->phases[phase].first_card_state + card];
}

static inline const struct twin_rank_state *twin_rank_at(const struct twin_result *result,
                                                         size_t phase, size_t rank)
{
    return &result->rank_states[result->phases[phase].first_rank_state + rank];
}

/* The phase with that place in the cycle `cycle`; SIZE_MAX: it did not run. */
size_t twin_phase_find(const struct twin_result *result, enum twin_stage stage, uint64_t cycle,
                       size_t place);

/* The change of a card's used bytes per cycle at the end of the phase `place` of the cycle: the
 * difference of the last cycle and the first one after `warm` cycles, divided by their number.
 * False: there are fewer than two such cycles. */
bool twin_drift(const struct twin_result *result, size_t place, unsigned card, uint64_t warm,
                double *bytes);
