/* The lines of a log in bounded memory: a line may be as long as it likes, its front is kept. */
#include "workloads/io/log_lines.h"

#include <string.h>

void log_lines_start(struct log_lines *lines, struct trace_input *input)
{
    lines->input = input;
    lines->number = 0;
    lines->at = lines->end = 0;
}

enum ar_status log_lines_next(struct log_lines *lines, char **line, struct ar_error *error)
{
    size_t length = 0;
    bool begun = false, ended = false;
    *line = NULL;
    while (!ended) {
        if (lines->at == lines->end) {
            lines->at = 0;
            enum ar_status status = trace_input_read(lines->input, lines->window,
                                                     sizeof lines->window, &lines->end, error);
            if (status)
                return status;
            if (!lines->end)
                break;
        }
        const char *from = lines->window + lines->at;
        const char *stop = memchr(from, '\n', lines->end - lines->at);
        size_t taken = stop ? (size_t)(stop - from) : lines->end - lines->at;
        size_t kept = taken < LOG_LINE_LIMIT - length ? taken : LOG_LINE_LIMIT - length;
        memcpy(lines->line + length, from, kept);
        length += kept;
        lines->at += taken + (stop != NULL);
        ended = stop != NULL;
        begun = true;
    }
    if (!begun)
        return AR_OK;
    length -= length && lines->line[length - 1] == '\r';
    lines->line[length] = 0;
    for (char *nul = lines->line; (nul = memchr(nul, 0, (size_t)(lines->line + length - nul)));)
        *nul = ' ';
    lines->number++;
    *line = lines->line;
    return AR_OK;
}
