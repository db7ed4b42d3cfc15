/* The table that `run` prints: workloads as groups, policies as rows, best first. */
#ifndef BENCH_REPORT_RESULTS_TABLE_H
#define BENCH_REPORT_RESULTS_TABLE_H

#include <stdio.h>

#include "bench/report/run_record.h"
#include "bench/report/table.h"

/* Memory, fragmentation and driver cost of each policy: medians over its repetitions, and of these
 * over its draws. Runs of a group stand next to each other in `records`. */
enum ar_status results_table_print(const struct run_record *records, size_t count, FILE *stream,
                                   enum table_form form, struct ar_error *error) AR_STATUS_CHECKED;

/* Host latency and throughput: the median over the repetitions. */
enum ar_status latency_table_print(const struct run_record *records, size_t count, FILE *stream,
                                   enum table_form form, struct ar_error *error) AR_STATUS_CHECKED;

/* The spread over draws: median with its interval from six draws on, least and most. */
enum ar_status spread_table_print(const struct run_record *records, size_t count, FILE *stream,
                                  enum table_form form, struct ar_error *error) AR_STATUS_CHECKED;

#endif
