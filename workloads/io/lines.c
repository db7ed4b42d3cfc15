/* A text file line by line.
 *
 * What: lines over a buffer of two of the longest. How: what is left of the buffer moves to
 * its front when it holds no whole line, and the rest is filled from the input. A byte-order mark
 * before the first line, which spreadsheets and Windows' shell write, is passed over. */
#include "workloads/io/lines.h"

#include <string.h>

void trace_lines_start(struct trace_lines *lines, struct trace_input *input)
{
    lines->input = input;
    lines->number = 0;
    lines->begin = lines->end = 0;
    lines->ended = false;
}

static enum ar_status fill(struct trace_lines *lines, struct ar_error *error)
{
    memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    while (!lines->ended && lines->end < TRACE_LINE_LIMIT) {
        size_t got;
        enum ar_status status =
            trace_input_read(lines->input, lines->buffer + lines->end,
                             sizeof lines->buffer - 1 - lines->end, &got, error);
        if (status)
            return status;
        lines->ended = !got;
        lines->end += got;
    }
    return AR_OK;
}

enum ar_status trace_lines_next(struct trace_lines *lines, char **line, size_t *length,
                                struct ar_error *error)
{
    char *from = lines->buffer + lines->begin;
    char *stop = memchr(from, '\n', lines->end - lines->begin);
    if (!stop && !lines->ended) {
        enum ar_status status = fill(lines, error);
        if (status)
            return status;
        if (!lines->number && lines->end >= 3 && !memcmp(lines->buffer, "\xef\xbb\xbf", 3))
            lines->begin = 3;
        from = lines->buffer + lines->begin;
        stop = memchr(from, '\n', lines->end - lines->begin);
    }
    *line = NULL;
    size_t left = lines->end - lines->begin;
    if (!stop && !left)
        return AR_OK;
    lines->number++;
    size_t taken = stop ? (size_t)(stop - from) : left;
    if (taken >= TRACE_LINE_LIMIT)
        return ar_error_set(
            error, AR_INVALID, "%s:%llu: the line has more than %u bytes; is this a text file?",
            trace_input_path(lines->input), (unsigned long long)lines->number, TRACE_LINE_LIMIT);
    lines->begin += taken + (stop != NULL);
    from[taken] = 0;
    if (memchr(from, 0, taken))
        return ar_error_set(error, AR_INVALID,
                            "%s:%llu: the line holds a NUL byte; is this a text file?",
                            trace_input_path(lines->input), (unsigned long long)lines->number);
    if (taken && from[taken - 1] == '\r')
        from[--taken] = 0;
    *line = from;
    *length = taken;
    return AR_OK;
}
