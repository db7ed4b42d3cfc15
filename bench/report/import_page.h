/* The report of what the reader of another program's file found, for people. */
#ifndef BENCH_REPORT_IMPORT_PAGE_H
#define BENCH_REPORT_IMPORT_PAGE_H

#include <stdio.h>

#include "workloads/trace/source.h"

/* Nothing for a source without a report. `path`: what the file is called. Pulls the source once;
 * it stands at its first event then. Errors of printing show in the stream. */
enum ar_status import_page_print(FILE *stream, const char *path, struct trace_source *source,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
