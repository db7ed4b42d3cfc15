/* The curve "slowdown by capacity": each workload again, on devices with a little more than its
 * live peak, then more and more. With several replicates a point is their median, each on a device
 * by its own live peak; a point has no value if one of them did not finish. */
#ifndef BENCH_SUITE_SLOWDOWN_H
#define BENCH_SUITE_SLOWDOWN_H

#include "bench/report/results.h"
#include "bench/report/table.h"
#include "bench/suite/plan.h"

struct slowdown_curve {
    struct slowdown_point *points; /* by workload, policy, capacity */
    size_t count;
};

/* `records` are those of the plan's runs: they have the live peaks, and tell which workloads have a
 * time at all. Ranked policies only, on the plan's first device. The caller closes the curve; the
 * points borrow names from the plan and the records. */
enum ar_status slowdown_run(const struct plan *plan, const struct run_record *records,
                            unsigned jobs, struct slowdown_curve *curve,
                            struct ar_error *error) AR_STATUS_CHECKED;
void slowdown_close(struct slowdown_curve *curve);

/* The figure in the cells of a table. */
enum slowdown_figure { SLOWDOWN_TIME, SLOWDOWN_FLUSHES, SLOWDOWN_REMAPPED };

/* Whether any point has such a figure other than 0. */
bool slowdown_has(const struct slowdown_curve *curve, enum slowdown_figure figure);

/* Workloads as groups, policies as rows, capacities as columns. */
enum ar_status slowdown_table_print(const struct slowdown_curve *curve, const struct suite *suite,
                                    enum slowdown_figure figure, FILE *stream, enum table_form form,
                                    struct ar_error *error) AR_STATUS_CHECKED;

#endif
