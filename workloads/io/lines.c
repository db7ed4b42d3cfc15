/* A text file line by line, over a buffer of two of the longest lines.
 *
 * If the buffer holds no whole line, its rest moves to the front and the input fills the remainder.
 * A byte-order mark before the first line, which spreadsheets and the shell of Windows write, is
 * skipped. */
#include "workloads/io/lines.h"

#include <string.h>

void trace_lines_start(struct trace_lines *lines, struct trace_input *input)
{
    trace_lines_start_log(lines, input, 0);
}

void trace_lines_start_log(struct trace_lines *lines, struct trace_input *input, size_t kept_bytes)
{
    lines->input = input;
    lines->number = 0;
    lines->kept_bytes = kept_bytes;
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
        AR_TRY(trace_input_read(lines->input, lines->buffer + lines->end,
                                sizeof lines->buffer - 1 - lines->end, &got, error));
        lines->ended = !got;
        lines->end += got;
    }
    return AR_OK;
}

/* Skips the rest of a long line, whose kept bytes lie at the front of the buffer. */
static enum ar_status skip_rest(struct trace_lines *lines, struct ar_error *error)
{
    const char *stop = NULL;
    while (!stop && !lines->ended) {
        char *rest = lines->buffer + lines->kept_bytes;
        size_t got;
        AR_TRY(trace_input_read(lines->input, rest, sizeof lines->buffer - 1 - lines->kept_bytes,
                                &got, error));
        stop = memchr(rest, '\n', got);
        lines->ended = !got;
        lines->end = lines->kept_bytes + got;
        lines->begin = stop ? (size_t)(stop + 1 - lines->buffer) : lines->end;
    }
    return AR_OK;
}

static enum ar_status refuse(const struct trace_lines *lines, const char *what,
                             struct ar_error *error)
{
    return ar_error_set(error, AR_INVALID, "%s:%llu: the line %s; is this a text file?",
                        trace_input_path(lines->input), (unsigned long long)lines->number, what);
}

enum ar_status trace_lines_next(struct trace_lines *lines, char **line, size_t *length,
                                struct ar_error *error)
{
    char *from = lines->buffer + lines->begin;
    char *stop = memchr(from, '\n', lines->end - lines->begin);
    if (!stop && !lines->ended) {
        AR_TRY(fill(lines, error));
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
    lines->begin += taken + (stop != NULL);
    if (lines->kept_bytes && taken > lines->kept_bytes) {
        taken = lines->kept_bytes;
        from = memmove(lines->buffer, from, taken);
        AR_TRY(stop ? AR_OK : skip_rest(lines, error));
    } else if (taken >= TRACE_LINE_LIMIT) {
        return refuse(lines, "has more than 65536 bytes", error);
    }
    from[taken] = 0;
    for (char *nul = from; (nul = memchr(nul, 0, (size_t)(from + taken - nul)));) {
        if (!lines->kept_bytes)
            return refuse(lines, "holds a NUL byte", error);
        *nul = ' ';
    }
    if (taken && from[taken - 1] == '\r')
        from[--taken] = 0;
    *line = from;
    *length = taken;
    return AR_OK;
}
