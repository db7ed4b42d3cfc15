/* Looking for words in the first bytes of a file, which end with no NUL and may hold some. */
#include "workloads/io/head.h"

#include <string.h>

size_t head_blanks(const char *head, size_t count, size_t at)
{
    if (!at && count >= 3 && !memcmp(head, "\xef\xbb\xbf", 3))
        at = 3;
    while (at < count && (head[at] == ' ' || (head[at] >= '\t' && head[at] <= '\r')))
        at++;
    return at;
}

bool head_holds(const char *head, size_t count, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = head, *end = head + count; at < end; at++) {
        at = memchr(at, text[0], (size_t)(end - at));
        if (!at || (size_t)(end - at) < length)
            return false;
        if (!memcmp(at, text, length))
            return true;
    }
    return false;
}
