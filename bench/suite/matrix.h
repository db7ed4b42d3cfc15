/* Runs a plan on several workers. Records are in the order of the runs, for any number of workers;
 * with a journal an interrupted suite or sweep continues with the runs that are left. */
#ifndef BENCH_SUITE_MATRIX_H
#define BENCH_SUITE_MATRIX_H

#include "bench/suite/journal.h"
#include "bench/suite/plan.h"

/* Fills records[i] for runs[i]. Stops at the first run that is bad input or finds a fault, and
 * names it. A run that did not finish is no error. */
enum ar_status matrix_run(const struct plan *plan, const struct plan_run *runs, size_t count,
                          unsigned jobs, struct run_record *records,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* Opens or creates the journal at `path`, takes the records that it holds, and does the other runs
 * of the plan, each of which is added to the journal as it ends. `longest_first`: in the order of
 * the length of the workloads instead of the plan's. INVALID: the journal belongs to other runs, or
 * is in use. IO. The caller closes the journal if `*opened`. */
enum ar_status matrix_run_journal(const struct plan *plan, unsigned jobs, bool longest_first,
                                  const char *path, struct journal *journal, bool *opened,
                                  struct run_record *records,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
