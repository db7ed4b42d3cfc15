/* A SQLite database of unknown origin, read row by row. Nothing in it is run: see sqlite_file.c. */
#pragma once

#include "workloads/io/file.h"

struct sqlite_file;

#define SQLITE_FILE_COLUMNS 16

/* One value of a row. A number that is stored as a text counts as NULL. */
struct sqlite_value {
    bool is_null;
    int64_t number;
    const char *text; /* valid until the next row; "" if the value is no text */
};

/* Opens the database in `input`, which is at its start; the caller closes the input. A compressed
 * one is unpacked into a temporary file. FORMAT, INVALID, IO or HOST_MEMORY with the path. */
enum ar_status sqlite_file_open(struct trace_input *input, struct sqlite_file **out,
                                struct ar_error *error);
void sqlite_file_close(struct sqlite_file *file); /* NULL is fine */

/* Whether there is such a table (not a view, not a virtual table). */
enum ar_status sqlite_file_has(struct sqlite_file *file, const char *table, bool *has,
                               struct ar_error *error);

/* Which of `columns` (up to SQLITE_FILE_COLUMNS names, NULL at the end) an existing table lacks: a
 * bit each. */
enum ar_status sqlite_file_lacks(struct sqlite_file *file, const char *table,
                                 const char *const *columns, unsigned *missing,
                                 struct ar_error *error);

/* Gives each row of an existing table to `take`: the values of `columns`, in that order. A column
 * that the table lacks is null in all rows. Errors name file, table and row. */
enum ar_status
sqlite_file_rows(struct sqlite_file *file, const char *table, const char *const *columns,
                 enum ar_status (*take)(void *self, const struct sqlite_value *values, uint64_t row,
                                        struct ar_error *error),
                 void *self, struct ar_error *error);
