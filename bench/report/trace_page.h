/* The page that describes a trace to a reader: 80 columns wide. */
#ifndef BENCH_REPORT_TRACE_PAGE_H
#define BENCH_REPORT_TRACE_PAGE_H

#include <stdio.h>

#include "workloads/trace/inspect.h"

/* Errors show in the stream. */
void trace_page_print(FILE *stream, const struct trace_info *info, const struct inspect *inspect);

#endif
