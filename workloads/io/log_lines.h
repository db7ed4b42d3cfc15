/* The lines of a program's log, of which only the front matters. */
#ifndef WORKLOADS_IO_LOG_LINES_H
#define WORKLOADS_IO_LOG_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/io/input.h"

#define LOG_LINE_LIMIT 4096u /* bytes kept of a line */

struct log_lines {
    struct trace_input *input; /* its owner's */
    uint64_t number;           /* of the line given last, from 1 */
    size_t at, end;            /* of the window */
    char line[LOG_LINE_LIMIT + 1];
    char window[1 << 16];
};

void log_lines_start(struct log_lines *lines, struct trace_input *input);

/* The next line without its end, closed by a NUL, its NULs made blanks and what is beyond the limit
 * left out; valid until the next call. `*line` NULL: the end of the file. */
enum ar_status log_lines_next(struct log_lines *lines, char **line,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
