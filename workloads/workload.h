/* Opens the workload that a user names: a file, or a generator's spec. */
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include "workloads/trace/source.h"

/* `text` is a path if a file of that name exists, or if it contains a slash or a known file ending;
 * else a generator's spec. INVALID suggests the nearest name, or the file of a recording in
 * workloads/data/. The caller closes it. */
enum ar_status workload_open(const char *text, struct trace_source **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
