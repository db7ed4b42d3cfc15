#ifndef BENCH_CLI_CMD_ADVISE_H
#define BENCH_CLI_CMD_ADVISE_H

#include "bench/suite/suite.h"
#include "sim/advise/advise.h"

/* `advise --what-if`: recordings of programs under several settings, each predicted from the
 * others. */
/* Prints a Markdown table with a row for each pair of traces whose file names begin with the same
 * PROGRAM, as PROGRAM.SETTING.csv.gz. INVALID where there is no such pair. */
enum ar_status advise_whatif(const struct suite *suite, const struct ar_spec *device,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
