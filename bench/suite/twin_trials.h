/* Runs changed scenarios on all processors, with a journal of those that are finished. */
#ifndef BENCH_SUITE_TWIN_TRIALS_H
#define BENCH_SUITE_TWIN_TRIALS_H

#include "bench/report/twin_answers.h"
#include "bench/suite/journal.h"
#include "bench/suite/scenario.h"

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
                                const char *journal, struct ar_error *error) AR_STATUS_CHECKED;
/* `finished`: the journal is no longer needed. */
void twin_trials_close(struct twin_trials *self, bool finished);

/* Fills in all trials. An error is of the host or of the journal. */
enum ar_status twin_trials_run(struct twin_trials *self, struct twin_trial *trials, size_t count,
                               struct ar_error *error) AR_STATUS_CHECKED;

#endif
