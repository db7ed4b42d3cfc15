/* A scenario of `twin` as text: sections with their keys, the schedule, and reported figures, each
 * with its line. What keys and actions mean is known to the parts (twin_study.h), so
 * that a what-if is an edit of this text.
 *
 *   [machine]       card, cards, host
 *   [process NAME]  policy, cards, context, pinned
 *   [KIND NAME]     a part: process = NAME, and the options of its kind
 *   [schedule]      start, cycle, end = lists of steps; cycles = N
 *   [unknown]       SECTION.KEY = VALUE | VALUE ..: inputs that are not known
 *   [reported]      source, tolerance; QUANTITY = VALUE; [cycle N] STEP: QUANTITY = VALUE;
 *                   drift STEP = BYTES. Without a STEP: at the end of the run
 *
 * A list of steps is `PART.ACTION ARGUMENTS, ...`; the actions of a step that is written as
 * `A.train & B.generate` run side by side. Instead of a part, a process may have actions
 * (`PROCESS.empty_cache`). A list that is given again is continued. */
#pragma once

#include "allocators/base/status.h"
#include "bench/suite/ini.h"
#include "workloads/trace/tables.h"

#define SCENARIO_SECTIONS 512
#define SCENARIO_STEPS    65536
#define SCENARIO_CALLS    8 /* actions of a step */
#define SCENARIO_REPORTED 4096
#define SCENARIO_CYCLES   UINT64_C(1000000)
#define SCENARIO_VALUES   8  /* of what is unknown */
#define SCENARIO_RUNS     64 /* combinations of such values */

struct scenario_key {
    const char *name, *value;
    unsigned line; /* 0: of an edit */
};

struct scenario_section {
    const char *kind; /* "machine", "process", or the kind of a part */
    const char *name; /* "" of [machine] */
    unsigned line;
    struct scenario_key *keys;
    size_t key_count, key_room;
};

struct scenario_call {
    const char *part, *action, *arguments; /* arguments: words with one blank between; "" */
};

struct scenario_step {
    const char *text; /* as it is shown: "a.train & b.generate 3" */
    unsigned line;
    struct scenario_call calls[SCENARIO_CALLS];
    size_t call_count;
};

enum scenario_list { SCENARIO_START, SCENARIO_CYCLE, SCENARIO_END, SCENARIO_LISTS };

struct scenario_steps {
    struct scenario_step *at;
    size_t count, room;
};

/* What a figure is of: the name in the file, and the kind of its value. */
#define SCENARIO_QUANTITIES(X)                                                                     \
    X(CARD_USED, "card used", BYTES)                                                               \
    X(CARD_FREE, "card free", BYTES)                                                               \
    X(PROCESS_USED, "process used", BYTES)                                                         \
    X(RESERVED, "reserved", BYTES)                                                                 \
    X(ALLOCATED, "allocated", BYTES)                                                               \
    X(RESIDUE, "residue", BYTES)                                                                   \
    X(PINNED, "pinned", BYTES)                                                                     \
    X(PEAK_USED, "peak card used", BYTES) /* within the step; without a step: of the run */        \
    X(PEAK_RESERVED, "peak reserved", BYTES)                                                       \
    X(PEAK_ALLOCATED, "peak allocated", BYTES)                                                     \
    X(OWNER, "owner", BYTES)                                                                       \
    X(GRAPHS, "graphs", BYTES)                                                                     \
    X(NCCL, "nccl", BYTES)                                                                         \
    X(DRIFT, "drift", SIGNED)                                                                      \
    X(KV_BLOCKS, "kv blocks", COUNT)                                                               \
    X(KV_TOKENS, "kv tokens", COUNT)                                                               \
    X(FIGURE, "figure", NUMBER) /* any other that a part reports */                                \
    X(OUTCOME, "outcome", OUTCOME)

enum scenario_quantity {
#define X(name, text, value) SCENARIO_##name,
    SCENARIO_QUANTITIES(X)
#undef X
        SCENARIO_QUANTITY_COUNT
};
enum scenario_value_kind {
    SCENARIO_VALUE_BYTES,
    SCENARIO_VALUE_SIGNED,
    SCENARIO_VALUE_COUNT,
    SCENARIO_VALUE_NUMBER, /* a size, or a number */
    SCENARIO_VALUE_OUTCOME
};
const char *scenario_quantity_name(enum scenario_quantity quantity);
enum scenario_value_kind scenario_quantity_kind(enum scenario_quantity quantity);

/* Values of an outcome, and their words. */
enum { SCENARIO_REFUSED = -1, SCENARIO_OUT_OF_MEMORY = 0, SCENARIO_FITS = 1 };
const char *scenario_outcome_name(int outcome);

#define SCENARIO_CYCLE_LAST UINT64_MAX

struct scenario_reported {
    unsigned line;
    const char *text;  /* left of the equals sign */
    const char *given; /* right of it */
    uint64_t cycle;    /* from 1; SCENARIO_CYCLE_LAST; 0: the first time that the step runs */
    const char *step;  /* its text; NULL: at the end, or where it happens first (outcome) */
    enum scenario_quantity quantity;
    const char *name; /* of `owner NAME` and `figure NAME`, else "" */
    double value;     /* bytes, a count, or of `outcome` 1: fits, 0: out of memory */
};

/* An input that is not known, and values that it may have. */
struct scenario_unknown {
    unsigned line;
    const char *section, *key, *values[SCENARIO_VALUES];
    size_t count;
};

struct scenario {
    const char *path;
    struct scenario_section *sections; /* [machine] first, if it is there */
    size_t section_count, section_room;
    struct scenario_steps lists[SCENARIO_LISTS];
    unsigned schedule_line, reported_line, unknown_line, cycles_line; /* 0: it is not there */
    uint64_t cycles;
    const char *source;
    double tolerance; /* of the reported figures, as a part of them */
    struct scenario_reported *reported;
    size_t reported_count, reported_room;
    struct scenario_unknown *unknown;
    size_t unknown_count, unknown_room;
    struct texts texts; /* private: all texts above are among them */
};

/* Reads the file. `kinds` are the kinds of parts. Errors name file and line, and say what to
 * write. The caller closes the file, not after a failure. */
enum ar_status scenario_read(const char *path, const char *const *kinds, size_t kind_count,
                             struct scenario *out, struct ar_error *error);
/* A copy to edit; its texts may be those of `from`, which must outlive it. */
enum ar_status scenario_copy(const struct scenario *from, struct scenario *out,
                             struct ar_error *error);
void scenario_close(struct scenario *self);

/* The section of that name ("machine" is one), or NULL; the value of a key in it, or NULL. */
struct scenario_section *scenario_find(const struct scenario *self, const char *name);
const char *scenario_value(const struct scenario_section *self, const char *key);

/* INVALID or FORMAT: several cycles of an empty list. One is the default. */
enum ar_status scenario_check_cycles(const struct scenario *self, struct ar_error *error);

/* Edits. `scenario_set` replaces or adds a key; a value of NULL removes it. `line` is the one that
 * errors of the value name; 0: none. */
enum ar_status scenario_set(struct scenario *self, const char *section, const char *key,
                            const char *value, unsigned line, struct ar_error *error);
/* Reads `SECTION.KEY=VALUE` (an argument of --set) and does it. INVALID. */
enum ar_status scenario_set_text(struct scenario *self, const char *text, struct ar_error *error);
/* Puts a step before the one at `place` of a list, or at its end. */
enum ar_status scenario_insert(struct scenario *self, enum scenario_list list, size_t place,
                               const char *step, struct ar_error *error);
void scenario_remove(struct scenario *self, enum scenario_list list, size_t place);

/* The number of combinations of what is unknown; 1: nothing is. */
size_t scenario_combinations(const struct scenario *self);

/* A hash of all that a run depends on: not of the reported figures, nor of lines. */
uint64_t scenario_hash(const struct scenario *self);

/* ---- reported figures ------------------------------------------------------------------------ */

/* Reads a size with or without a blank before its unit: "5.6 GiB". */
enum ar_status scenario_bytes_parse(const char *text, uint64_t *bytes, struct ar_error *error);
