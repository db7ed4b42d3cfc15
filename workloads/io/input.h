/* The bytes of a file, plain or compressed (gzip, zstd), in bounded memory. The file can be read
 * again from its start. */
#ifndef WORKLOADS_IO_INPUT_H
#define WORKLOADS_IO_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct trace_input;

/* Opens a file. Its first bytes say how it is compressed. IO or INVALID with the path. */
enum ar_status trace_input_open(const char *path, struct trace_input **out,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* Reads up to `room` bytes; `*got` 0 is the end. FORMAT if the compressed data is damaged. */
enum ar_status trace_input_read(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* From now on, refuses a compressed file that unpacks to more than 64 MiB and to more than 128
 * times the bytes read of it: such a file of another program is made to fill memory. */
void trace_input_guard(struct trace_input *input);

/* Bytes read of the file since its start, before they are unpacked. */
uint64_t trace_input_bytes(const struct trace_input *input);

enum ar_status trace_input_rewind(struct trace_input *input,
                                  struct ar_error *error) AR_STATUS_CHECKED;
/* Reads the first bytes of a file at its start, up to `room`, and rewinds it. */
enum ar_status trace_input_head(struct trace_input *input, char *bytes, size_t room, size_t *count,
                                struct ar_error *error) AR_STATUS_CHECKED;
/* The descriptor of a file that is not compressed, else -1. */
int trace_input_file(const struct trace_input *input);

const char *trace_input_path(const struct trace_input *input);
void trace_input_close(struct trace_input *input); /* NULL is fine */

#endif
