/* The window of the pull parser: bytes of the file, refilled, and the place that was come to. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/io/json_state.h"

static void count_lines(struct json_pull *pull, const unsigned char *to)
{
    const unsigned char *at = pull->counted;
    while (at < to && (at = memchr(at, '\n', (size_t)(to - at)))) {
        pull->line++;
        at++;
    }
    pull->counted = to;
}

uint64_t json_pull_line(struct json_pull *pull)
{
    count_lines(pull, pull->at);
    return pull->line;
}

enum ar_status json_pull_refuse(struct json_pull *pull, struct ar_error *error, const char *format,
                                ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return ar_error_set(
        error, AR_FORMAT, "%s:%llu: byte %llu: %s", trace_input_path(pull->input),
        (unsigned long long)json_pull_line(pull),
        (unsigned long long)(pull->bytes_before + (uint64_t)(pull->at - pull->window)), text);
}

enum ar_status json_refill(struct json_pull *pull, struct ar_error *error)
{
    size_t got = 0;
    count_lines(pull, pull->end);
    pull->bytes_before += (uint64_t)(pull->end - pull->window);
    pull->at = pull->end = pull->counted = pull->window;
    pull->window[0] = '"';
    if (pull->ended)
        return AR_OK;
    enum ar_status status = trace_input_read(pull->input, pull->window, JSON_WINDOW, &got, error);
    if (status)
        return status;
    pull->ended = !got;
    pull->end = pull->window + got;
    pull->window[got] = '"';
    return AR_OK;
}

enum ar_status json_cut_off(struct json_pull *pull, struct ar_error *error)
{
    return json_pull_refuse(pull, error,
                            "the file ends in the middle of its JSON: it is cut off, perhaps "
                            "because the program ended while it was written; write it again");
}

enum ar_status json_need(struct json_pull *pull, struct ar_error *error)
{
    if (pull->at < pull->end)
        return AR_OK;
    enum ar_status status = json_refill(pull, error);
    if (!status && pull->at == pull->end)
        status = json_cut_off(pull, error);
    return status;
}

enum ar_status json_skip_blanks(struct json_pull *pull, struct ar_error *error)
{
    for (;;) {
        const unsigned char *at = pull->at;
        while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
            at++;
        pull->at = at;
        if (at < pull->end || pull->ended)
            return AR_OK;
        enum ar_status status = json_refill(pull, error);
        if (status)
            return status;
    }
}

enum ar_status json_pull_open(struct trace_input *input, struct json_pull **out,
                              struct ar_error *error)
{
    struct json_pull *pull = calloc(1, sizeof *pull);
    if (!pull)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it",
                            trace_input_path(input));
    pull->input = input;
    pull->line = 1;
    pull->at = pull->end = pull->counted = pull->window;
    enum ar_status status = json_refill(pull, error);
    if (status) {
        free(pull);
        return status;
    }
    if (pull->end - pull->at >= 3 && !memcmp(pull->at, "\xef\xbb\xbf", 3))
        pull->at += 3;
    *out = pull;
    return AR_OK;
}

void json_pull_close(struct json_pull *pull)
{
    free(pull);
}
