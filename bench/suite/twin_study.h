/* All that `twin` does with a scenario: the run, the comparison with reported figures, the largest
 * safe key-value cache, and the what-ifs. */
#pragma once

#include "bench/report/twin_page.h"
#include "bench/suite/progress.h"
#include "bench/suite/scenario.h"
#include "sim/twin/twin.h"

/* Makes what `twin_run` takes out of a scenario's text, and checks it: each error names the line
 * and what to write. */

struct twin_setup {
    struct twin_scenario scenario; /* points into the text and to the members below */
    struct twin_process_setup *processes;
    struct twin_part_setup *parts;
    char *lists[SCENARIO_LISTS];
};

/* The kinds of parts, for scenario_read. Returns their number; `kinds` has room for `most`. */
size_t twin_setup_kinds(const char **kinds, size_t most);
#define TWIN_KINDS_MOST 64

/* `text` must outlive the setup. The caller closes it, not after a failure. */
enum ar_status twin_setup_make(const struct scenario *text, struct twin_setup *out,
                               struct ar_error *error);
/* The values of a part's options. The caller frees them, also after a failure. */
enum ar_status twin_setup_values(const struct twin_part_setup *part, void **values,
                                 struct ar_error *error);

/* Puts file and line before an error of the engine. If `fault` names no part, it is of the part
 * that the error begins with ("buffer kv: ..."). */
enum ar_status twin_setup_error(const struct scenario *text, const struct twin_setup *setup,
                                const struct twin_fault *fault, enum ar_status status,
                                struct ar_error *error);
void twin_setup_close(struct twin_setup *self);

/* ---- changes to try -------------------------------------------------------------------------- */

/* The what-ifs of a scenario: each is a copy of its text with one change. Changes come from the
 * options of the policies, from the parts (struct twin_part_ops), and from the schedule. */

struct twin_change {
    char text[400];
    struct scenario edited;
    enum ar_status failed; /* why the edit is not possible; OK: it is */
    char why[400];
    size_t first; /* of a pair: the index of the first change, and the text of the second */
    char second[200];
};

struct twin_changes {
    struct twin_change *at;
    size_t count, room;
};

/* `text` is what was run, with that setup and result, and must outlive the changes. The caller
 * closes them, also after a failure. */
enum ar_status twin_changes_find(const struct scenario *text, const struct twin_setup *setup,
                                 const struct twin_result *result, struct twin_changes *out,
                                 struct ar_error *error);
void twin_changes_close(struct twin_changes *self);

/* The policy spec with that key set. The caller frees it; NULL: no host memory, or no spec. */
char *twin_policy_with(const char *policy, const char *key, const char *value);

/* ---- trials ---------------------------------------------------------------------------------- */

/* Runs changed scenarios on all processors, with a journal of those that are finished. */

/* One run and its result. */
struct twin_trial {
    const struct scenario *text;
    size_t cache_part; /* of the key-value cache in the summary; SIZE_MAX: none */
    bool cannot_run;   /* the scenario is wrong, or something is not offered; `why` says what */
    char why[400];
    struct twin_summary summary;
};

struct twin_trials {
    struct journal journal;
    bool has_journal;
    struct twin_done *done; /* of the journal and of this process */
    size_t done_count, done_room;
};

/* `journal` NULL: none. INVALID: it belongs to another scenario. */
enum ar_status twin_trials_open(struct twin_trials *self, const struct scenario *text,
                                const char *journal, struct ar_error *error);
/* `finished`: the journal is no longer needed. */
void twin_trials_close(struct twin_trials *self, bool finished);

/* Fills in all trials. An error is of the host or of the journal. */
enum ar_status twin_trials_run(struct twin_trials *self, struct twin_trial *trials, size_t count,
                               struct ar_error *error);

/* ---- the study ----------------------------------------------------------------------------- */

/* What-ifs of long scenarios run so many cycles, and are compared with as many. */
#define TWIN_WHATIF_CYCLES 5
/* Pairs of changes that the page has, at most. */
#define TWIN_PAIRS 3

struct twin_study {
    struct twin_setup setup;
    struct twin_result result;
    struct twin_changes changes;
    struct twin_changes pairs; /* each is two of them, made one after the other */
    struct twin_trials trials; /* its journal */
    struct scenario few;       /* of at most TWIN_WHATIF_CYCLES cycles */
    char name[64];
    struct twin_page page; /* points to the above; its arrays belong to the study */
};

/* Runs it. The answers are in `page`. `text` must outlive the study. `again`: also the runs with
 * changes; `journal`: NULL or the path of a journal of these. The caller closes the study, not
 * after a failure. */
enum ar_status twin_study_run(const struct scenario *text, bool again, const char *journal,
                              struct twin_study *out, struct ar_error *error);
/* `finished`: the answers are written, and the journal is no longer needed. */
void twin_study_close(struct twin_study *self, bool finished);

/* The reported figures of a scenario beside those of its twin. */

/* Checks that the steps of reported figures are in the schedule. FORMAT names the line. */
enum ar_status twin_compare_check(const struct scenario *text, struct ar_error *error);
