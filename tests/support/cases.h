/* Tables of cases as text, for tests whose rows are texts: tests/unit/cases/FILE.
 *
 * A line is a row, with tabs between its fields. "\n", "\t", "\\" and "\xHH" are as in C; a field
 * "-" is NULL. A line "== NAME" begins the section of that name. After a line "head: TEXT", "{}" at
 * the start of a field is that text. Lines that are empty or begin with "#" are left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "allocators/base/status.h"

#define CASES_FIELDS 8

struct cases {
    FILE *file;
    size_t count;  /* rows so far */
    unsigned line; /* of this row, from 1 */
    char text[8192], fields[32768], head[1024];
    char *field[CASES_FIELDS]; /* NULL too behind the last one of the row */
};

/* The next row of a section; false behind the last one. Fails the test if the section has none, or
 * a row has fewer than `least` fields. for (struct cases row = {0}; cases_next(&row, ..);)
 * `file` may be that of a test. */
bool cases_next(struct cases *self, const char *file, const char *section, size_t least);

/* The rows of the section that has the name of this case, in the file that has the name of its
 * test: of TEST(sums) in the test "tree", section "sums" of "tree". */
#define EACH_ROW(row, least)                                                                       \
    for (struct cases row = {0}; cases_next(&row, __FILE__, __func__, least);)

/* A field that is a whole number or a size such as 2MiB, and one that is any number. */
uint64_t cases_number(const struct cases *self, size_t field);
double cases_real(const struct cases *self, size_t field);

/* The next block of a section: lines of text, "-->" and the lines that come of it, "--" and facts,
 * "----" at its end. These three are field[0] to field[2]. Lines that begin with "//" are left out;
 * a backslash at the end of a line takes its line end away. */
bool cases_block(struct cases *self, const char *file, const char *section);

/* The text of the first block of a section, in `self`, which is zeroed at first. */
const char *cases_text(struct cases *self, const char *file, const char *section);

/* Each first field of a section is refused, and the error's sentence has the other fields, or one
 * of them is the name of the status. */
typedef enum ar_status case_read(const char *text, struct ar_error *error);
void cases_refused(const char *file, const char *section, case_read *read);
