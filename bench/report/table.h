/* A table of texts: columns as wide as their cells, titles with a unit line below, groups with
 * headings. Printed for a terminal, as Markdown or for LaTeX (packages booktabs, textcomp). For a
 * terminal a last column of text is broken between words to fit 80 columns, and long cells get
 * lines of their own, as they do for LaTeX, where a table must fit the column of a paper. */
#pragma once

#include "allocators/base/status.h"

struct table_column {
    const char *title;
    const char *unit;   /* "": none */
    bool left;          /* aligned left (texts) or right (numbers) */
    unsigned most_wide; /* a longer cell gets a line of its own; 0: no limit */
};

/* The wide forms have the columns that do not fit 80 columns of text or the column of a paper. */
enum table_form {
    TABLE_TEXT,
    TABLE_MARKDOWN,
    TABLE_LATEX,
    TABLE_TEXT_WIDE,
    TABLE_LATEX_WIDE,
};

/* The forms that show a column, in addition to the wide ones and Markdown, which show all. */
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

/* `columns` must outlive the table. NULL: no host memory; the functions below accept that, and
 * table_print() reports it. The caller closes the table. */
struct table *table_create(const struct table_column *columns, size_t column_count);
/* The columns as a text of printf, "#; policy<30; safe|MiB least; gaps<": for each its title, its
 * unit after |, and < if it is aligned left, with the most that it is wide. */
struct table *table_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
void table_close(struct table *self);
AR_CLOSER(struct table *, table_close)

/* For LaTeX: each group has the label `tab:LABEL-GROUP`, and `note` (NULL: none) ends its caption,
 * since a table that floats stands alone. The texts must outlive the table. */
void table_label(struct table *self, const char *label, const char *note);

/* Begins a group. table_print() reports it if memory runs out here or below. */
void table_heading(struct table *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next cell; a row is complete with its last column. */
void table_cell(struct table *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The next cell, or "-" if it is not known. */
void table_known(struct table *self, bool known, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A number, or "-" if it is not known. */
void table_number(struct table *self, bool known, int decimals, double value);

/* One text that spans all columns left in the row. */
void table_rest(struct table *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* HOST_MEMORY if memory ran out. Errors of the stream show in the stream. */
enum ar_status table_print(const struct table *self, FILE *stream, enum table_form form,
                           struct ar_error *error);

/* The same, and closes the table. */
enum ar_status table_end(struct table *self, FILE *stream, enum table_form form,
                         struct ar_error *error);

/* Writes a text so that it stays in its cell of a Markdown table. */
void markdown_text(FILE *stream, const char *text);

/* Writes a text so that LaTeX sets it as it is. */
void latex_text(FILE *stream, const char *text);
