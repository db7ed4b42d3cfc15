/* The options of a policy, a workload or a device as a table: type, default, range, meaning. */
#ifndef BENCH_CLI_OPTION_TABLE_H
#define BENCH_CLI_OPTION_TABLE_H

#include "allocators/base/status.h"
#include "allocators/options.h"

/* Prints them to standard output, or that there are none: `list` is NULL or ends with an option
 * without a name. HOST_MEMORY where the table found none. */
enum ar_status option_table_print(const struct ar_option *list,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
