#include "allocators/base/status.h"

#include <limits.h>

#include "allocators/base/utf8.h"

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80; /* of a character of UTF-8 */
}

/* Of a text without room the middle is left out: the end says what is wrong and what to do, after
 * a path or a word of any length. */
static void fit(struct ar_error *error, const char *text)
{
    static const char gap[] = "...";
    size_t length = strlen(text), room = sizeof error->text, head = length;
    const char *tail = text + length;
    if (length >= room) {
        head = room / 2;
        tail -= room - head - sizeof gap;
        while (head > 0 && is_inside(text[head]))
            head--;
        while (is_inside(*tail))
            tail++;
    }
    snprintf(error->text, room, "%.*s%s%s", (int)head, text, length >= room ? gap : "", tail);
}

/* Prints the sentence with all quoted input escaped, so that no byte of a file or an argument can
 * move the cursor of a terminal or begin a line of a log. */
static void print(struct ar_error *error, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void print(struct ar_error *error, const char *format, va_list arguments)
{
    char text[PATH_MAX + sizeof error->text], escaped[2 * sizeof text];
    vsnprintf(text, sizeof text, format, arguments);
    ar_utf8_escape(text, escaped, sizeof escaped);
    fit(error, escaped);
}

enum ar_status ar_error_set(struct ar_error *error, enum ar_status status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        print(error, format, arguments);
        va_end(arguments);
    }
    return status;
}

enum ar_status ar_error_prefix(struct ar_error *error, enum ar_status status, const char *format,
                               ...)
{
    if (error && status) {
        struct ar_error before;
        char both[2 * sizeof error->text + 4];
        va_list arguments;
        va_start(arguments, format);
        print(&before, format, arguments);
        va_end(arguments);
        error->text[sizeof error->text - 1] = '\0';
        snprintf(both, sizeof both, "%s: %s", before.text, error->text);
        fit(error, both);
    }
    return status;
}

const char *ar_status_name(enum ar_status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case AR_##name:                                                                                \
        return #name;
        AR_STATUS_LIST(X)
#undef X
    }
    return "UNKNOWN";
}

const char *ar_status_meaning(enum ar_status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case AR_##name:                                                                                \
        return text;
        AR_STATUS_LIST(X)
#undef X
    }
    return "an unknown status";
}

int ar_status_exit(enum ar_status status)
{
    switch (status) {
    case AR_OK:
        return 0;
    case AR_NEGATIVE:
        return 1;
    case AR_MISSING:
        return 3;
    case AR_CORRUPT:
    case AR_HOST_MEMORY:
        return 4;
    default:
        return 2;
    }
}
