/* A failure taken apart, as a page for a reader. */
#ifndef BENCH_REPORT_EXPLAIN_PAGE_H
#define BENCH_REPORT_EXPLAIN_PAGE_H

#include <stdio.h>

#include "sim/explain/explain.h"

struct explain_page {
    const char *workload, *policy;
    enum replay_frees frees;
    const struct explain_result *result;
};

/* HOST_MEMORY where a table found no memory. */
enum ar_status explain_page_print(FILE *stream, const struct explain_page *page,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
