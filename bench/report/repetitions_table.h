/* The table of repeated runs: medians of what was timed, with their intervals. */
#ifndef BENCH_REPORT_REPETITIONS_TABLE_H
#define BENCH_REPORT_REPETITIONS_TABLE_H

#include <stdio.h>

#include "bench/report/run_record.h"
#include "bench/report/table.h"

/* Runs of a group stand next to each other in `records`. */
enum ar_status repetitions_table_print(const struct run_record *records, size_t count, FILE *stream,
                                       enum table_form form,
                                       struct ar_error *error) AR_STATUS_CHECKED;

/* True where some run was repeated. */
bool repetitions_any(const struct run_record *records, size_t count);

#endif
