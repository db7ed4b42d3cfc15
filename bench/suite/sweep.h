/* A grid of cases over all cores.
 *
 * 1. Specs with lists of values become all that they stand for (grid.h), and so do the keys of [grid]
 *    (axes.h); the suite becomes a plan.
 * 2. What a journal holds is not done again.
 * 3. Workers take the other cases from one counter, those of the longest workload first, so that no
 *    long one is left for the end; each keeps the workload of its last case open.
 * 4. Results stand in the order of the plan, whoever made them: the same bytes with 1 or n workers,
 *    and however often it was interrupted. */
#ifndef BENCH_SUITE_SWEEP_H
#define BENCH_SUITE_SWEEP_H

#include <stdio.h>

#include "bench/machine/environment.h"
#include "bench/suite/suite.h"

struct sweep_files {
    const char *json, *csv; /* NULL: not wanted */
    const char *suite;      /* the path it was read from, for errors */
    const char *journal;
};

/* Expands the suite's lists, runs, prints a summary and writes the files; then the journal is
 * removed. On failure it stays. */
enum ar_status sweep_run(struct suite *suite, const struct sweep_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
