/* Traces for a reader: what a trace holds, and what the import of another program's file found. */
#ifndef BENCH_REPORT_TRACE_PAGE_H
#define BENCH_REPORT_TRACE_PAGE_H

#include <stdio.h>

#include "workloads/trace/inspect.h"
#include "workloads/trace/source.h"

/* 80 columns wide. Errors show in the stream. */
void trace_page_print(FILE *stream, const struct trace_info *info, const struct inspect *inspect);

/* Nothing for a source without an import report. `path`: the name of the file. Reads the source
 * once and leaves it at its first event. Errors of printing show in the stream. */
enum ar_status import_page_print(FILE *stream, const char *path, struct trace_source *source,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
