/* Results and rows as comma-separated values: a header line, then one line each. Fields with
 * commas, quotes or line ends stand in double quotes; what is null is empty;
 * bytes that are no UTF-8 (file names may hold any) become U+FFFD. */
#ifndef BENCH_REPORT_RESULTS_CSV_H
#define BENCH_REPORT_RESULTS_CSV_H

#include <stddef.h>
#include <stdio.h>

#include "bench/report/run_record.h"

/* One field, quoted where it has to be. */
void csv_text(FILE *stream, const char *text);

/* One row for each run, with a column for every metric. */
void results_csv_write(FILE *stream, const struct run_record *records, size_t count);

/* Draws in pairs, a row for each policy, workload and metric: against the first policy of its group
 * (draw_pairs.h) the medians of the differences and of the ratios with their intervals, held at
 * `level` (empty: too few pairs for one). HOST_MEMORY. */
enum ar_status pairs_csv_write(FILE *stream, const struct run_record *records, size_t count,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* A placements file: what was asked, given and freed, event by event. */
void placements_csv_header(FILE *stream);
void placements_csv_row(FILE *stream, const struct replay_row *row);

/* A series file: the state after every event. */
void series_csv_header(FILE *stream);
void series_csv_row(FILE *stream, const struct replay_sample *sample);

#endif
