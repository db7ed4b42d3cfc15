/* The files that hold the events of runs: what a cell of the plan needs so that they are filled in as the
 * run goes, or when it has come to its end. */
#ifndef BENCH_SUITE_RUN_FILES_H
#define BENCH_SUITE_RUN_FILES_H

#include <stdio.h>

#include "bench/report/calls_csv.h"
#include "bench/report/chrome_trace.h"
#include "bench/report/run_snapshot.h"
#include "bench/suite/plan.h"
#include "bench/suite/suite_files.h"

struct run_files {
    FILE *const *streams; /* by enum suite_file; NULL: not wanted */
    const char *hdr_of;
    uint64_t event_now;     /* of the run whose calls are written */
    struct call_list calls; /* that are not written yet */
    struct run_snapshot snapshot;
    size_t count;                 /* cells of the plan */
    struct chrome_trace *chromes; /* of each; NULL: not wanted */
    struct observer **observers;  /* of each; NULL: nobody needs one */
    bool alone;                   /* the run has a process of its own */
};

/* INVALID for a histogram that there is not. `streams` stays the caller's. HOST_MEMORY. */
enum ar_status run_files_open(struct run_files *self, FILE *const *streams,
                              const struct suite_files *files, const struct plan *plan,
                              struct ar_error *error) AR_STATUS_CHECKED;
void run_files_close(struct run_files *self);

/* Has the cell of that index fill them in; and the cell of the pass that reads the clock, where that is one of
 * its own. */
void run_files_attach(struct run_files *self, struct plan_cell *cell, size_t index);
void run_files_attach_timed(struct run_files *self, struct plan_cell *cell);

/* Writes what is left to write when all runs are over. */
enum ar_status run_files_finish(const struct run_files *self,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* The first lines of those that have any. */
void run_files_headers(FILE *const *streams);

#endif
