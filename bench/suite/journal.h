/* What an interrupted sweep or suite has done already: a file that only grows, one record for each case.
 *
 * 1. Its head holds a key: a hash of this very program, of shared objects and of all cases. Another
 *    key is of other runs, and is refused.
 * 2. A record holds the number of its case, the case's result and a check sum. Reading ends at the
 *    first one that is not whole, which is cut off: a process that is killed while it writes leaves
 *    at most one such.
 * 3. What was written survives the process at once; for the machine's sake it is brought to the disk
 *    once a second. */
#ifndef BENCH_SUITE_JOURNAL_H
#define BENCH_SUITE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/suite/plan.h"

struct journal {
    int file;
    uint64_t synced_ns;
    const char *path; /* borrowed */
};

/* Opens or begins it, and puts what it holds into the records of the plan's cells; `done` says of
 * which. INVALID: of another sweep, or in use. IO. */
enum ar_status journal_open(struct journal *self, const char *path, const struct plan *plan,
                            struct run_record *records, bool *done,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Adds the record of a cell. IO. */
enum ar_status journal_add(struct journal *self, const struct plan *plan, size_t cell,
                           const struct run_record *record,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* `remove`: it has done its duty. */
void journal_close(struct journal *self, bool remove);

#endif
