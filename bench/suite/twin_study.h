/* All that `twin` does with a scenario: the run, the comparison with reported figures, the largest
 * safe key-value cache, and the what-ifs. */
#ifndef BENCH_SUITE_TWIN_STUDY_H
#define BENCH_SUITE_TWIN_STUDY_H

#include "bench/report/twin_page.h"
#include "bench/suite/twin_changes.h"
#include "bench/suite/twin_trials.h"

/* What-ifs of long scenarios run so many cycles, and are compared with as many. */
#define TWIN_WHATIF_CYCLES 5

struct twin_study {
    struct twin_setup setup;
    struct twin_result result;
    struct twin_changes changes;
    struct twin_trials trials; /* its journal */
    struct scenario few;       /* of at most TWIN_WHATIF_CYCLES cycles */
    bool has_few;
    struct twin_page_reported *reported;
    struct twin_page_cache *caches;
    struct twin_page_whatif *whatifs;
    size_t cache_count, whatif_count;
    char name[64];
    struct twin_page page; /* points to the above */
};

/* Runs it. The answers are in `page`. `text` must outlive the study. `again`: also the runs with
 * changes; `journal`: NULL or the path of a journal of these. The caller closes the study, not
 * after a failure. */
enum ar_status twin_study_run(const struct scenario *text, bool again, const char *journal,
                              struct twin_study *out, struct ar_error *error) AR_STATUS_CHECKED;
/* `finished`: the answers are written, and the journal is no longer needed. */
void twin_study_close(struct twin_study *self, bool finished);

#endif
