/* A text file line by line, in bounded memory. */
#ifndef WORKLOADS_IO_LINES_H
#define WORKLOADS_IO_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/io/input.h"

#define TRACE_LINE_LIMIT 65536u /* bytes of a line, its end included */

struct trace_lines {
    struct trace_input *input; /* the caller's */
    uint64_t number;           /* of the line given last, from 1 */
    size_t kept_bytes;         /* 0: see trace_lines_start_log */
    size_t begin, end;         /* of the bytes in the buffer that are not given yet */
    bool ended;
    char buffer[2 * TRACE_LINE_LIMIT + 1];
};

void trace_lines_start(struct trace_lines *lines, struct trace_input *input);
/* For the log of a program, which may hold anything: a line may have any length, of which the first
 * `kept_bytes` (at most TRACE_LINE_LIMIT) are given, and its NULs become blanks. */
void trace_lines_start_log(struct trace_lines *lines, struct trace_input *input, size_t kept_bytes);

/* The next line without its end (LF or CR LF), closed by a NUL, valid until the next call. `*line`
 * is NULL at the end of the file. INVALID if a line is too long or holds a NUL. */
enum ar_status trace_lines_next(struct trace_lines *lines, char **line, size_t *length,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
