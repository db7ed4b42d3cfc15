/* What `list` shows, kind by kind, and what its lists share. `name` is of the one to show all
 * about, NULL: a line for each. All print to standard output. */
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

/* The name of one of a kind, in the order in which they are listed; NULL past the last. */
typedef const char *list_name_at(size_t index);
list_name_at list_policy_name, list_decorator_name, list_workload_name, list_format_name;

/* The recordings' paths, one a line. */
enum ar_status list_recording_paths(struct ar_error *error) AR_STATUS_CHECKED;

/* Of a table of names: the name, what it is. */
extern const struct table_column list_columns[2];

/* HOST_MEMORY and its sentence. */
enum ar_status list_no_memory(struct ar_error *error);
/* Prints the table and closes it. */
enum ar_status list_print(struct table *table, struct ar_error *error) AR_STATUS_CHECKED;
/* INVALID: there is no `what` of that name; says which one is near. */
enum ar_status list_unknown(const char *what, const char *name, list_name_at *at,
                            struct ar_error *error) AR_STATUS_CHECKED;
/* One sentence, in lines that fit. */
void list_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
