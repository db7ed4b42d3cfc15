/* Files: the bytes of one, plain or compressed (gzip, zstd, or in a page of PyTorch's memory
 * viewer), in bounded memory, which can be read again from the start; and a new one, which appears
 * under its name when it is whole, or not at all. */
#pragma once

#include "allocators/base/status.h"

struct trace_input;

/* Opens a file. Its first bytes say how it is compressed. IO or INVALID with the path. */
enum ar_status trace_input_open(const char *path, struct trace_input **out, struct ar_error *error);

/* Reads up to `room` bytes; `*got` 0 is the end. FORMAT if the compressed data is damaged. */
enum ar_status trace_input_read(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                struct ar_error *error);

/* From now on, refuses a compressed file that unpacks to more than 64 MiB and to more than 128
 * times the bytes read of it: such a file of another program is made to fill memory. */
void trace_input_guard(struct trace_input *input);

/* Bytes read of the file since its start, before they are unpacked. */
uint64_t trace_input_bytes(const struct trace_input *input);

enum ar_status trace_input_rewind(struct trace_input *input, struct ar_error *error);
/* Reads the first bytes of a file at its start, up to `room`, and rewinds it. */
enum ar_status trace_input_head(struct trace_input *input, char *bytes, size_t room, size_t *count,
                                struct ar_error *error);
/* The descriptor of a file that is not compressed, else -1. */
int trace_input_file(const struct trace_input *input);

const char *trace_input_path(const struct trace_input *input);
void trace_input_close(struct trace_input *input); /* NULL is fine */
AR_CLOSER(struct trace_input *, trace_input_close)

/* ---- writing ---- */

/* The path of the file that a symbolic link leads to, also if it is not there yet; of any other
 * path a copy. The caller frees it; NULL: no host memory. */
char *file_behind_links(const char *path);

/* Calls `visit` with each part of `text` between two of the characters `between`, or its ends, that
 * is the path of a regular file, as in TRACE:device=0 and sim:profile=FILE; returns true when one
 * call does. A text that is too long for a path has no parts. */
typedef bool file_part(void *argument, const char *path);
bool file_parts(const char *text, const char *between, file_part *visit, void *argument);
/* What stands between the parts of a spec. */
#define FILE_PARTS_SPEC ":=,|()+'\""

struct trace_output;

/* Opens a new file next to `path`, which gets that name at the end; devices, pipes and "-", which
 * is standard output, are written directly. `compress`: as one zstd frame. IO or INVALID with the
 * path. */
enum ar_status trace_output_open(const char *path, bool compress, struct trace_output **out,
                                 struct ar_error *error);
enum ar_status trace_output_write(struct trace_output *output, const void *bytes, size_t count,
                                  struct ar_error *error);
/* A line or a part of one, below 256 bytes. */
enum ar_status trace_output_print(struct trace_output *output, struct ar_error *error,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Ends the file and gives it its name; after a failure nothing of it remains. Frees `output`. */
enum ar_status trace_output_commit(struct trace_output *output, struct ar_error *error);

/* Removes the bytes written. Frees `output`; NULL is fine. */
void trace_output_discard(struct trace_output *output);

/* Makes a file of a new name in TMPDIR, or in /tmp, puts its name into `path` and returns its
 * descriptor. -1: it cannot be made; errno says why. */
int file_temporary(char *path, size_t room);
