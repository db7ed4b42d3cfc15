/* The lists of the command `list`. They print to standard output: with a `name`, everything about
 * that one; with NULL, a line for each. */
#ifndef BENCH_CLI_LIST_H
#define BENCH_CLI_LIST_H

#include <stddef.h>

#include "allocators/base/status.h"
#include "bench/report/table.h"

enum ar_status list_policies(const char *name, struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status list_decorators(const char *name, struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status list_workloads(const char *name, struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status list_recordings(const char *name, struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status list_formats(const char *name, struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status list_parts(const char *name, struct ar_error *error) AR_STATUS_CHECKED;

/* The name at an index, in the order of the list; NULL past the last. */
typedef const char *list_name_at(size_t index);
list_name_at list_policy_name, list_decorator_name, list_workload_name, list_format_name,
    list_part_name;

/* Prints the paths of the recordings, one in each line. */
enum ar_status list_recording_paths(struct ar_error *error) AR_STATUS_CHECKED;

/* The columns of a table of names. */
extern const struct table_column list_columns[2];

/* Sets the error and returns HOST_MEMORY. */
enum ar_status list_no_memory(struct ar_error *error);
/* Prints the table and closes it. */
enum ar_status list_print(struct table *table, struct ar_error *error) AR_STATUS_CHECKED;
/* INVALID: there is no `what` of that name; the error suggests the nearest one. */
enum ar_status list_unknown(const char *what, const char *name, list_name_at *at,
                            struct ar_error *error) AR_STATUS_CHECKED;
/* Prints a sentence, broken at 80 columns. */
void list_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
