/* What the page of `twin` says about a result: the peak, the phases after which something sleeps,
 * residue and drift, memory of graphs. */
#ifndef BENCH_REPORT_TWIN_ANSWERS_H
#define BENCH_REPORT_TWIN_ANSWERS_H

#include "sim/twin/twin.h"

struct twin_peak {
    size_t phase; /* SIZE_MAX: nothing ran */
    unsigned card;
    uint64_t bytes;
    struct twin_amounts amounts;
};

/* The most bytes in use on a card, and where. Where memory ran out, what the phase had at its end
 * counts too. */
struct twin_peak twin_answer_peak(const struct twin_result *result);

/* What an action does to the memory of its part, as its ops say. */
enum twin_effect { TWIN_EFFECT_NONE, TWIN_EFFECT_RELEASES, TWIN_EFFECT_RESTORES };
enum twin_effect twin_answer_effect(const struct twin_part_ops *ops, const char *action);

/* Calls `take` for each action of a phase's text: the index of its part (SIZE_MAX: of a process)
 * and its name. */
typedef void twin_take_call(void *argument, size_t part, const char *action);
void twin_answer_calls(const struct twin_scenario *scenario, const char *phase,
                       twin_take_call *take, void *argument);

/* Whether an action of the phase releases memory, and of which process. */
bool twin_answer_sleeps(const struct twin_scenario *scenario, const char *phase, size_t *process);

/* The greatest residue of a process over its ranks at the end of a phase. */
uint64_t twin_answer_residue(const struct twin_result *result, size_t phase, size_t process);

/* The last phase of the last cycle (or else of `start`) that releases memory. False: there is
 * none. */
bool twin_answer_last_sleep(const struct twin_scenario *scenario, const struct twin_result *result,
                            size_t *phase, size_t *process);

/* The number of cycles that ran, and the cycles that drift is counted from: the first one warms
 * up. */
uint64_t twin_answer_cycles(const struct twin_result *result);
#define TWIN_WARM_CYCLES 1

/* An amount by owner in a state; 0: it has none. */
uint64_t twin_answer_amount(const struct twin_result *result, struct twin_amounts amounts,
                            uint32_t owner);
/* An owner's bytes, for lists; the order is by bytes, the most first. */
struct twin_share {
    uint64_t bytes;
    const char *name;
};
int twin_by_share(const void *left, const void *right);

/* The value of a part's figure at the end of a phase, on rank 0. False: it has none by then. */
bool twin_answer_figure(const struct twin_result *result, size_t part, const char *name,
                        size_t phase, double *value);
/* "cycle 3, rollout.sleep 1", "start, ..". Returns `text`. */
const char *twin_answer_place(const struct twin_result *result, size_t phase, char *text,
                              size_t room);

/* What what-ifs are compared by. */
struct twin_summary {
    uint32_t outcome; /* enum twin_outcome */
    uint32_t has_residue;
    uint64_t peak_bytes;                            /* on the fullest card */
    uint64_t residue_bytes;                         /* after the last phase that releases memory */
    uint64_t phase;                                 /* that of the peak, or that failed */
    char where[120];                                /* of it */
    char why[400];                                  /* of the failure */
    double cache_bytes, cache_blocks, cache_tokens; /* of the engine in question; 0: not known */
};
void twin_answer_summary(const struct twin_scenario *scenario, const struct twin_result *result,
                         struct twin_summary *out);
/* A sentence about a run that did not pass: "a request of 2 GiB for actor/grads fails
 * (capacity)". */
void twin_answer_failure(const struct twin_scenario *scenario, const struct twin_result *result,
                         char *text, size_t room);

#endif
