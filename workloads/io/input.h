/* The bytes of a file, plain, gzip or zstd, in bounded memory, as often as wanted. */
#ifndef WORKLOADS_IO_INPUT_H
#define WORKLOADS_IO_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct trace_input;

/* Opens a file; which of the three it is, its first bytes say. IO or INVALID with the path. */
enum ar_status trace_input_open(const char *path, struct trace_input **out,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* Reads up to `room` bytes; `*got` 0 is the end. FORMAT where the compression is broken. */
enum ar_status trace_input_read(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* From here on a compressed file that unpacks to more than 64 MiB and 128 times what was read of it is
 * refused: another program's file that does is made to fill memory. */
void trace_input_guard(struct trace_input *input);

/* Bytes of the file that were read since its start, as they lie there. */
uint64_t trace_input_bytes(const struct trace_input *input);

enum ar_status trace_input_rewind(struct trace_input *input,
                                  struct ar_error *error) AR_STATUS_CHECKED;
/* The file's descriptor where it is not compressed, else -1. */
int trace_input_file(const struct trace_input *input);

const char *trace_input_path(const struct trace_input *input);
void trace_input_close(struct trace_input *input); /* NULL is fine */

#endif
