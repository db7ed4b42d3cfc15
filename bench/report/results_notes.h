/* Sentences under the tables of `run` for what they cannot show, with the reason. */
#ifndef BENCH_REPORT_RESULTS_NOTES_H
#define BENCH_REPORT_RESULTS_NOTES_H

#include <stdio.h>

#include "bench/report/run_record.h"

/* Workloads without a slowdown, and draws that changed nothing; nothing where there are none. Runs of
 * a group stand next to each other in `records`. */
void results_notes_print(FILE *stream, const struct run_record *records, size_t count);

#endif
