/* A table of texts: columns as wide as they need to be, titles with a unit line below, groups
 * under headings. Printed for a terminal, as Markdown or for LaTeX. For a terminal a last column of
 * text is broken between words to fit 80 columns, and long cells get lines of their own; so do
 * long cells for LaTeX, where a table is to fit the column of a paper. */
#ifndef BENCH_REPORT_TABLE_H
#define BENCH_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "allocators/base/status.h"

struct table_column {
    const char *title;
    const char *unit;   /* "" where it has none */
    bool left;          /* texts to the left, numbers to the right */
    unsigned most_wide; /* a longer cell gets a line of its own; 0: no limit */
};

/* The wide ones hold what has no room in 80 columns of text or in a column of a paper. */
enum table_form {
    TABLE_TEXT,
    TABLE_MARKDOWN,
    TABLE_LATEX,
    TABLE_TEXT_WIDE,
    TABLE_LATEX_WIDE,
};

/* Where a column is shown besides the wide forms and Markdown, which show all. */
enum table_room {
    TABLE_ROOM_WIDE = 0,
    TABLE_ROOM_TEXT = 1,
    TABLE_ROOM_LATEX = 2,
    TABLE_ROOM_ALL = TABLE_ROOM_TEXT | TABLE_ROOM_LATEX,
};
bool table_has_room(enum table_form form, enum table_room room);
static inline bool table_is_latex(enum table_form form)
{
    return form == TABLE_LATEX || form == TABLE_LATEX_WIDE;
}

struct table;

/* `columns` must outlive the table. NULL: no host memory. The caller closes it. */
struct table *table_create(const struct table_column *columns, size_t column_count);
void table_close(struct table *self);

/* For LaTeX: each group is labelled `tab:LABEL-GROUP`. The text must outlive the table. */
void table_label(struct table *self, const char *label);

/* A group begins. A memory failure here and below is reported by table_print. */
void table_heading(struct table *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next cell; a row is complete with its last column. */
void table_cell(struct table *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One text over all the columns that are left in the row. */
void table_rest(struct table *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* HOST_MEMORY where a row was lost. Errors of the stream show in the stream. */
enum ar_status table_print(const struct table *self, FILE *stream, enum table_form form,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
