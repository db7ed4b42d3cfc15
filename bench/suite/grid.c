#include "bench/suite/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MOST 100000

/* The first of the signs outside of quotes, or the end. */
static size_t find(const char *text, size_t at, const char *signs)
{
    for (char quote = 0; text[at]; at++) {
        if (quote)
            quote = text[at] == quote ? 0 : quote;
        else if (text[at] == '\'' || text[at] == '"')
            quote = text[at];
        else if (strchr(signs, text[at]))
            break;
    }
    return at;
}

enum ar_status grid_add(struct text_list *list, const char *text, struct ar_error *error)
{
    if (list->count == TEXTS_MOST)
        return ar_error_set(error, AR_INVALID, "a grid of more than %d specs; ask for fewer",
                            TEXTS_MOST);
    return text_list_add(list, text, error);
}

static enum ar_status expand(struct text_list *out, const char *text, struct ar_error *error)
{
    size_t bar = find(text, 0, "|");
    size_t begin = 0;
    if (!text[bar])
        return grid_add(out, text, error);
    for (size_t at; (at = find(text, begin, "=,()|")) < bar;)
        begin = at + 1;
    if (begin == 0 || text[begin - 1] != '=')
        return ar_error_set(error, AR_INVALID,
                            "\"%.80s\": a list a|b stands where a value stands: key=a|b", text);
    size_t end = find(text, bar, ",)");
    enum ar_status status = AR_OK;
    for (size_t at = begin, next; at <= end && !status; at = next + 1) {
        char *one = NULL;
        next = find(text, at, "|,)");
        if (next == at)
            return ar_error_set(error, AR_INVALID, "\"%.80s\": a value of a list is empty", text);
        if (asprintf(&one, "%.*s%.*s%s", (int)begin, text, (int)(next - at), text + at,
                     text + end) < 0)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for a grid");
        status = expand(out, one, error);
        free(one);
    }
    return status;
}

enum ar_status grid_expand(struct text_list *list, struct ar_error *error)
{
    struct text_list out = {0};
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = expand(&out, list->items[i], error);
    if (status) {
        text_list_close(&out);
        return status;
    }
    text_list_close(list);
    *list = out;
    return AR_OK;
}
