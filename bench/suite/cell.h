/* One cell of a plan, run: in this process, or in a process of its own. */
#ifndef BENCH_SUITE_CELL_H
#define BENCH_SUITE_CELL_H

#include "bench/suite/child.h"
#include "bench/suite/plan.h"

/* Keeps the workload of the last cell open. Zeroed at first; `source` is closed in the end. */
struct cell_worker {
    struct trace_source *source; /* of `workload`; NULL: none is open */
    const char *workload;        /* its text, the cell's own */
};

/* Runs the cell here and fills its record. OK also where the run did not finish, or could not
 * begin since the device has no memory for it. Other statuses: bad input or a fault. */
enum ar_status cell_run(struct cell_worker *worker, const struct plan *plan,
                        const struct plan_cell *cell, struct run_record *record,
                        struct ar_error *error) AR_STATUS_CHECKED;

/* A cell for a process of its own: the argument of cell_work. */
struct cell_job {
    const struct plan *plan;
    const struct plan_cell *cell;
};

/* The record of a cell as bytes of this very program, which cell_receive reads; the caller frees
 * them. HOST_MEMORY. */
enum ar_status cell_pack(const struct plan_cell *cell, const struct run_record *record,
                         void **payload, size_t *bytes, struct ar_error *error) AR_STATUS_CHECKED;

/* A child_work: runs the cell and gives its record and thin series, if it has one, as bytes. Rows
 * and samples go from there straight to their files. */
enum ar_status cell_work(void *argument, void **payload, size_t *bytes, struct ar_error *error);

/* The record of a cell from what its process answered. One that crashed or took too long is a
 * run that did not finish. CORRUPT where the answer is not what cell_work gives. */
enum ar_status cell_receive(const struct cell_job *job, const struct child_answer *answer,
                            struct run_record *record, struct ar_error *error) AR_STATUS_CHECKED;

#endif
