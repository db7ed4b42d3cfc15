/* A comparison for people and for services: a table, JUnit XML, annotations of GitHub. */
#ifndef BENCH_REGRESS_COMPARE_PAGE_H
#define BENCH_REGRESS_COMPARE_PAGE_H

#include <stdio.h>

#include "bench/regress/verdict.h"
#include "bench/report/table.h"

/* What has changed, or could not be told; then how many figures have which verdict, the smallest
 * effect that would have been seen, waivers that have expired or covered nothing, and runs that are
 * missing. `all`: a row
 * for every figure; else one for those that share a policy or a figure (groups.h). */
enum ar_status compare_page(const struct verdicts *verdicts, const struct waivers *waivers,
                            bool all, FILE *stream, enum table_form form,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* A test case for every row: WORSE is a failure, unless it is waived; what is waived, AMBIGUOUS or
 * NO-DATA is skipped. */
void compare_junit(const struct verdicts *verdicts, FILE *stream);

/* A line for every WORSE row: ::error, or ::warning where it is waived. */
void compare_annotations(const struct verdicts *verdicts, FILE *stream);

/* A figure that is worse as a line that GitHub shows beside a commit: a workflow command. */
/* `level`: "error" or "warning". Signs of workflow commands in the other two stand as percent
 * codes. */
void annotation_worse(FILE *stream, const char *level, const char *figure, const char *text);

#endif
