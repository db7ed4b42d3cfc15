/* The curve "slowdown against capacity": each workload again, on a device that has a little
 * more than the workload's live peak, then more and more. With several draws a point is their
 * median, each on a device by its own live peak; one that did not finish leaves none. */
#ifndef BENCH_SUITE_SLOWDOWN_H
#define BENCH_SUITE_SLOWDOWN_H

#include "bench/report/results_json.h"
#include "bench/report/table.h"
#include "bench/suite/plan.h"

struct slowdown_curve {
    struct slowdown_point *points; /* by workload, policy, capacity */
    size_t count;
};

/* `records` are those of the plan's cells: they say what the live peak is and which workloads
 * have a time at all. Ranked policies only, on the plan's first device. The caller closes it;
 * the points borrow names from the plan and the records. */
enum ar_status slowdown_run(const struct plan *plan, const struct run_record *records,
                            unsigned jobs, struct slowdown_curve *curve,
                            struct ar_error *error) AR_STATUS_CHECKED;
void slowdown_close(struct slowdown_curve *curve);

/* What the cells of a table show. */
enum slowdown_figure { SLOWDOWN_TIME, SLOWDOWN_FLUSHES, SLOWDOWN_REMAPPED };

/* Whether any point has such a figure other than 0. */
bool slowdown_has(const struct slowdown_curve *curve, enum slowdown_figure figure);

/* Workloads as groups, policies as rows, capacities as columns. */
enum ar_status slowdown_table_print(const struct slowdown_curve *curve, const struct suite *suite,
                                    enum slowdown_figure figure, FILE *stream, enum table_form form,
                                    struct ar_error *error) AR_STATUS_CHECKED;

#endif
