/* The options of a policy, a workload or a device as a table: type, default, range, meaning. */
#ifndef BENCH_CLI_OPTION_TABLE_H
#define BENCH_CLI_OPTION_TABLE_H

#include "allocators/base/status.h"
#include "allocators/options.h"

/* Prints them to standard output, or that there are none: `list` is NULL or ends with an option
 * without a name. HOST_MEMORY where the table found none. */
enum status option_table_print(const struct option *list, struct error *error) STATUS_CHECKED;

#endif
