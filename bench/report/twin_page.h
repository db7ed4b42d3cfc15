/* The answer of `twin` as a page for a person, as JSON (schema allocrig.twin/1), and the bytes by
 * owner as rows of CSV. */
#pragma once

#include "sim/twin/twin.h"

/* A reported figure, and the twin's. */
struct twin_page_reported {
    const char *text; /* "rollout.sleep 1: card used" */
    const char *given;
    char ours[64];
    bool known;    /* the twin has such a figure */
    bool agrees;   /* within the tolerance */
    bool has_part; /* `part` is of numbers */
    double part;   /* ours / given - 1 */
    double value, our_value;
    /* With all values of what is unknown. */
    bool has_range, in_range; /* in_range: one of them agrees, or the figure is between them */
    double least, most;
    char least_text[64], most_text[64];
    double nearest_value;
    char nearest[160]; /* the values that come nearest; "": those of the file */
};

/* The search for the largest key-value cache of a part. */
struct twin_page_cache {
    size_t part;
    const char *option;
    bool is_bytes;    /* the option is of bytes */
    double now, safe; /* the option's value; now 0: its default; safe 0: none passes */
    /* The least value above `safe` that fails, for which `why` is; or none. If none passes, the one
     * with which the schedule comes furthest. */
    double tried;
    double blocks, tokens; /* at `safe`; 0: not known */
    double bytes;
    unsigned runs;
    char why[400];
};

struct twin_page_whatif {
    const char *text;
    bool runs; /* else `why` says why not */
    bool passes, refused;
    bool now_fits;                    /* it passes and the scenario does not */
    double peak_saved, residue_saved; /* bytes; negative: it needs more */
    bool has_residue;
    char why[400];
};

struct twin_page {
    const char *name, *source; /* source NULL: none */
    const struct twin_scenario *scenario;
    const struct twin_result *result;
    struct twin_page_reported *reported;
    size_t reported_count;
    double tolerance;
    size_t range_count; /* runs with other values of what is unknown */
    size_t range_fits;  /* those that pass */
    uint64_t range_least_peak_bytes, range_most_peak_bytes; /* of these */
    struct twin_page_cache *caches;
    size_t cache_count;
    struct twin_page_whatif *whatifs; /* the best first */
    size_t whatif_count;
    bool has_whatifs;       /* they were tried */
    uint64_t whatif_cycles; /* the runs with changes have fewer cycles; 0: as many */
};

enum ar_status twin_page_print(FILE *stream, const struct twin_page *page, struct ar_error *error);
void twin_json_write(FILE *stream, const struct twin_page *page);
/* A row for each card, owner and end of a phase, and for the moment of the peak in it. The
 * free bytes of the card at an end are a row too, so that the rows of an end are the card. */
void twin_series_write(FILE *stream, const struct twin_page *page);

static inline double twin_mib(double bytes)
{
    return bytes / 1048576;
}

static inline const char *twin_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *twin_owner_kind_name(enum twin_owner_kind kind);

/* What the page of `twin` says about a result: the peak, the phases after which something sleeps,
 * residue and drift, memory of graphs. */

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
const char *twin_answer_phase(const struct twin_phase *at, char *text, size_t room);
static inline const char *twin_answer_place(const struct twin_result *result, size_t phase,
                                            char *text, size_t room)
{
    return twin_answer_phase(&result->phases[phase], text, room);
}

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
