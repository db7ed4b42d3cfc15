/* Runs a whole suite or a grid: plans, runs, prints the tables and puts the files in their
 * places. */
#pragma once

#include "bench/machine/environment.h"
#include "bench/report/results.h"
#include "bench/report/table.h"
#include "bench/suite/plan.h"
#include "bench/suite/run_files.h"
#include "bench/suite/suite.h"

/* `run`: the runs, the latency pass, the slowdown curve. The tables go to `stream`. NEGATIVE if a
 * run did not finish and the suite requires it; the files are written then too. Other failures
 * leave no file. */
enum ar_status suite_run(const struct suite *suite, const struct suite_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error);

/* `sweep`: a grid of runs on all processors.
 *
 * 1. Specs with lists of values and the keys of [grid] are expanded (suite.h).
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
                         struct ar_error *error);

/* The curve "slowdown by capacity": each workload again, on devices with a little more than its
 * live peak, then more and more. With several replicates a point is their median, each on a device
 * by its own live peak; a point has no value if one of them did not finish. */

struct slowdown_curve {
    struct slowdown_point *points; /* by workload, policy, capacity */
    size_t count;
};

/* `records` are those of the plan's runs: they have the live peaks, and tell which workloads have a
 * time at all. Ranked policies only, on the plan's first device. The caller closes the curve; the
 * points borrow names from the plan and the records. */
enum ar_status slowdown_run(const struct plan *plan, const struct run_record *records,
                            unsigned jobs, struct slowdown_curve *curve, struct ar_error *error);
void slowdown_close(struct slowdown_curve *curve);

/* The figure in the cells of a table. */
enum slowdown_figure { SLOWDOWN_TIME, SLOWDOWN_FLUSHES, SLOWDOWN_REMAPPED };

/* Whether any point has such a figure other than 0. */
bool slowdown_has(const struct slowdown_curve *curve, enum slowdown_figure figure);

/* Workloads as groups, policies as rows, capacities as columns. For LaTeX a caption has the
 * conditions of the runs, and ends with the title. */
enum ar_status slowdown_table_print(const struct slowdown_curve *curve, const struct suite *suite,
                                    enum slowdown_figure figure, const char *title, FILE *stream,
                                    enum table_form form, struct ar_error *error);
