/* Runs the cells of a plan on several workers. The records come out in the order of the cells,
 * whatever the number of workers. */
#ifndef BENCH_SUITE_MATRIX_H
#define BENCH_SUITE_MATRIX_H

#include "bench/suite/journal.h"
#include "bench/suite/plan.h"

/* Fills records[i] for cells[i]. Stops at the first cell that is bad input or finds a fault,
 * and says which that was. A run that did not finish is no error. */
enum ar_status matrix_run(const struct plan *plan, const struct plan_cell *cells, size_t count,
                          unsigned jobs, struct run_record *records,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* The same for all cells of the plan, without those that are `done`: their records are there. Each
 * other one enters the journal as it ends; IO where it cannot. */
enum ar_status matrix_run_on(const struct plan *plan, unsigned jobs, struct run_record *records,
                             const bool *done, struct journal *journal,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
