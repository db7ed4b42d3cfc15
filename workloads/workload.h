/* A workload by what the user wrote: a file, or a generator's spec. */
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include "workloads/trace/source.h"

/* `text` is a path if a file of that name exists or it holds a slash or ends in a known file
 * ending; else a generator's spec. INVALID suggests the nearest name, or the file
 * of a recording in workloads/data/. The caller closes it. */
enum ar_status workload_open(const char *text, struct trace_source **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
