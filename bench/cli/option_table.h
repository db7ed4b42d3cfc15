/* Prints the options of a policy, workload or device: type, default, range, meaning. */
#ifndef BENCH_CLI_OPTION_TABLE_H
#define BENCH_CLI_OPTION_TABLE_H

#include "allocators/base/status.h"
#include "allocators/options.h"

/* Prints the table to standard output, or "No options." if there are none. `list` is NULL or ends
 * with an option without a name. HOST_MEMORY. */
enum ar_status option_table_print(const struct ar_option *list,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
