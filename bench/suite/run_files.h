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
    struct call_list calls; /* that are not written yet */
    struct run_snapshot snapshot;
    size_t count;                      /* cells of the plan */
    struct chrome_trace *chromes;      /* of each; NULL: not wanted */
    struct observer *chrome_observers; /* of each */
    /* Of all runs: what goes to the streams, the snapshot, the end, the histograms. */
    struct observer events, memory, end, timed;
    bool alone; /* the run has a process of its own */
};

/* INVALID for a histogram that there is not. `streams` stays the caller's. HOST_MEMORY. */
enum ar_status run_files_open(struct run_files *self, FILE *const *streams,
                              const struct suite_files *files, const struct plan *plan,
                              struct ar_error *error) AR_STATUS_CHECKED;
void run_files_close(struct run_files *self);

/* The observers of the cell of that index; and those of the pass that reads the clock, if it is a
 * run of its own. NULL: none. */
const struct observer *run_files_observer(const struct run_files *self, size_t index);
const struct observer *run_files_timed(const struct run_files *self);

/* Writes what is left to write when all runs are over. */
enum ar_status run_files_finish(const struct run_files *self,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* The first lines of those that have any. */
void run_files_headers(FILE *const *streams);

#endif
