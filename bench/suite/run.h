/* Executes one run of a plan, in this process or in a process of its own. */
#pragma once

#include "bench/suite/child.h"
#include "bench/suite/plan.h"
#include "bench/suite/progress.h"
#include "sim/search/search.h"

/* Keeps the workload of the last run open. Zeroed at first; the caller closes `source` at the
 * end. */
struct run_worker {
    struct trace_source *source; /* of `workload`; NULL: none is open */
    const char *workload;        /* its spec, the run's own */
};

/* Executes the run here and fills its record. OK also if the run did not finish, or could not start
 * because the device has no memory for it. Other statuses: bad input or a fault. */
enum ar_status run_execute(struct run_worker *worker, const struct plan *plan,
                           const struct plan_run *run, struct run_record *record,
                           struct ar_error *error);

/* The capacity that the run's policy needs (capacity_find). OK with a sentence in `why` if the
 * policy cannot begin on the device (`refusal`: UNSUPPORTED) or refuses what the workload says
 * (FORMAT); else `why` is "" and `refusal` OK. The caller closes `out`. */
enum ar_status run_find_capacity(const struct plan *plan, const struct plan_run *run,
                                 struct capacity_result *out, enum ar_status *refusal, char *why,
                                 size_t why_bytes, struct ar_error *error);

/* A run for a process of its own: the argument of run_work. */
struct run_job {
    const struct plan *plan;
    const struct plan_run *run;
};

/* ---- all runs of a plan ---------------------------------------------------------------------- */

/* Runs a plan on several workers. Records are in the order of the runs, for any number of workers;
 * with a journal an interrupted suite or sweep continues with the runs that are left. */

/* Fills records[i] for runs[i]. Stops at the first run that is bad input or finds a fault, and
 * names it. A run that did not finish is no error. */
enum ar_status matrix_run(const struct plan *plan, const struct plan_run *runs, size_t count,
                          unsigned jobs, struct run_record *records, struct ar_error *error);

/* Opens or creates the journal at `path`, takes the records that it holds, and does the other runs
 * of the plan, each of which is added to the journal as it ends. `longest_first`: in the order of
 * the length of the workloads instead of the plan's. INVALID: the journal belongs to other runs, or
 * is in use. IO. The caller closes the journal if `*opened`. */
enum ar_status matrix_run_journal(const struct plan *plan, unsigned jobs, bool longest_first,
                                  const char *path, struct journal *journal, bool *opened,
                                  struct run_record *records, struct ar_error *error);
