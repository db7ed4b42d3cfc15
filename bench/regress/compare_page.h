/* Writes a comparison as a table, as JUnit XML, and as annotations of GitHub. */
#ifndef BENCH_REGRESS_COMPARE_PAGE_H
#define BENCH_REGRESS_COMPARE_PAGE_H

#include <stdio.h>

#include "bench/regress/verdict.h"
#include "bench/report/table.h"

/* Prints the figures that changed or have no data; then the number of figures by verdict, the
 * smallest change that is detected, waivers that expired or cover nothing, and missing runs. `all`:
 * a row for every figure; otherwise one row for those that share a policy or a figure. */
enum ar_status compare_page(const struct verdicts *verdicts, const struct waivers *waivers,
                            bool all, FILE *stream, enum table_form form,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* A test case for every row: WORSE is a failure; waived, AMBIGUOUS and NO-DATA rows are skipped. */
void compare_junit(const struct verdicts *verdicts, FILE *stream);

/* A line for every WORSE row: ::error, or ::warning if it is waived. */
void compare_annotations(const struct verdicts *verdicts, FILE *stream);

/* Prints a workflow command, which GitHub shows at the commit. `level` is "error" or "warning".
 * Special characters in `figure` and `text` become percent codes. */
void annotation_worse(FILE *stream, const char *level, const char *figure, const char *text);

#endif
