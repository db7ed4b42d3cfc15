/* Runs a whole suite: the cells, the latency pass, the slowdown curve; then prints the tables
 * and puts the files in their places. */
#ifndef BENCH_SUITE_SUITE_RUN_H
#define BENCH_SUITE_SUITE_RUN_H

#include <stdio.h>

#include "bench/machine/environment.h"
#include "bench/suite/suite.h"
#include "bench/suite/suite_files.h"

/* The table goes to `stream`. NEGATIVE where a run did not finish and the suite requires it;
 * the files are written then too. Other failures leave no file. */
enum ar_status suite_run(const struct suite *suite, const struct suite_files *files,
                         const struct environment *environment, FILE *stream,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
