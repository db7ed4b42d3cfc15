/* A file that appears under its name when it is whole, or not at all. */
#ifndef WORKLOADS_IO_OUTPUT_H
#define WORKLOADS_IO_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

struct trace_output;

/* Opens a file beside `path` for what will be `path`; devices and pipes are written directly.
 * `compress`: as one zstd frame. IO or INVALID with the path. */
enum ar_status trace_output_open(const char *path, bool compress, struct trace_output **out,
                                 struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status trace_output_write(struct trace_output *output, const void *bytes, size_t count,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* Ends the file and gives it its name; where that fails, nothing of it stays. Frees `output`. */
enum ar_status trace_output_commit(struct trace_output *output,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Removes what was written. Frees `output`; NULL is fine. */
void trace_output_discard(struct trace_output *output);

#endif
