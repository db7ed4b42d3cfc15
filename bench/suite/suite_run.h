/* Runs a whole suite or a grid: plans, runs, prints the tables and puts the files in their
 * places. */
#ifndef BENCH_SUITE_SUITE_RUN_H
#define BENCH_SUITE_SUITE_RUN_H

#include <stdio.h>

#include "bench/machine/environment.h"
#include "bench/suite/run_files.h"
#include "bench/suite/suite.h"

/* `run`: the runs, the latency pass, the slowdown curve. The tables go to `stream`. NEGATIVE if a
 * run did not finish and the suite requires it; the files are written then too. Other failures
 * leave no file. */
enum ar_status suite_run(const struct suite *suite, const struct suite_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error) AR_STATUS_CHECKED;

/* `sweep`: a grid of runs on all processors.
 *
 * 1. Specs with lists of values and the keys of [grid] are expanded (grid.h).
 * 2. Runs in the journal are not done again.
 * 3. Workers begin with the runs of the longest workload, so that no long run is left for the end.
 * 4. Results are in the order of the plan: the same bytes with any number of workers, and however
 *    often the sweep was interrupted. */
struct sweep_files {
    const char *json, *csv; /* NULL: not wanted */
    const char *suite;      /* the path it was read from, for errors */
    const char *journal;
};

/* Expands the lists of the suite, runs, prints a summary and writes the files; then removes the
 * journal. After a failure the journal stays. */
enum ar_status sweep_run(struct suite *suite, const struct sweep_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
