/* A file that appears under its name when it is whole, or not at all. */
#ifndef WORKLOADS_IO_OUTPUT_H
#define WORKLOADS_IO_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

struct trace_output;

/* Opens a new file next to `path`, which gets that name at the end; devices and pipes are written
 * directly. `compress`: as one zstd frame. IO or INVALID with the path. */
enum ar_status trace_output_open(const char *path, bool compress, struct trace_output **out,
                                 struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status trace_output_write(struct trace_output *output, const void *bytes, size_t count,
                                  struct ar_error *error) AR_STATUS_CHECKED;
/* A line or a part of one, below 256 bytes. */
enum ar_status trace_output_print(struct trace_output *output, struct ar_error *error,
                                  const char *format, ...)
    __attribute__((format(printf, 3, 4))) AR_STATUS_CHECKED;

/* Ends the file and gives it its name; after a failure nothing of it remains. Frees `output`. */
enum ar_status trace_output_commit(struct trace_output *output,
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* Removes the bytes written. Frees `output`; NULL is fine. */
void trace_output_discard(struct trace_output *output);

#endif
