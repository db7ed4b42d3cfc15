#ifndef BENCH_CLI_CMD_ADVISE_H
#define BENCH_CLI_CMD_ADVISE_H

#include "bench/suite/suite.h"
#include "sim/advise/advise.h"

/* `advise --what-if`: predicts each recording of a program from its recordings under other
 * settings. Prints a Markdown table with a row for each pair of traces whose file names begin with
 * the same PROGRAM, as in PROGRAM.SETTING.csv.gz. INVALID if there is no such pair. */
enum ar_status advise_whatif(const struct suite *suite, const struct ar_spec *device,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
