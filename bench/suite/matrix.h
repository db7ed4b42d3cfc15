/* Runs a plan on several workers. Records are in the order of the runs, for any number of workers;
 * with a journal an interrupted suite or sweep continues with the runs that are left. */
#ifndef BENCH_SUITE_MATRIX_H
#define BENCH_SUITE_MATRIX_H

#include "bench/suite/plan.h"

/* Fills records[i] for runs[i]. Stops at the first run that is bad input or finds a fault, and
 * names it. A run that did not finish is no error. */
enum ar_status matrix_run(const struct plan *plan, const struct plan_run *runs, size_t count,
                          unsigned jobs, struct run_record *records,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* The finished runs of an interrupted suite or sweep: a file that only grows.
 *
 * 1. Its head holds a key: a hash of this program, of shared objects and of all runs. A journal
 *    with another key belongs to other runs and is refused.
 * 2. A record holds the number of its run, the result and a check sum. Reading ends at the first
 *    record that is not whole, which is cut off: a process killed while it writes leaves at most
 *    one.
 * 3. What is written survives the process at once; it is flushed to the disk once a second. */
struct journal {
    int file;
    uint64_t synced_ns;
    const char *path; /* borrowed */
};

/* Opens or creates the journal at `path`, takes the records that it holds, and does the other runs
 * of the plan, each of which is added to the journal as it ends. `longest_first`: in the order of
 * the length of the workloads instead of the plan's. INVALID: the journal belongs to other runs, or
 * is in use. IO. The caller closes the journal if `*opened`. */
enum ar_status matrix_run_journal(const struct plan *plan, unsigned jobs, bool longest_first,
                                  const char *path, struct journal *journal, bool *opened,
                                  struct run_record *records,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* `remove`: it is no longer needed. */
void journal_close(struct journal *self, bool remove);

#endif
