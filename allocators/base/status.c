#include "allocators/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/utf8.h"

/* The sentence, with what it quotes of the input made readable: no byte of a file or an argument
 * reaches a terminal or a log as it is, where it could move the cursor or begin a line. */
static void print(struct error *error, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void print(struct error *error, const char *format, va_list arguments)
{
    char text[sizeof error->text];
    vsnprintf(text, sizeof text, format, arguments);
    utf8_escape(text, error->text, sizeof error->text);
}

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        print(error, format, arguments);
        va_end(arguments);
    }
    return status;
}

enum status error_prefix(struct error *error, enum status status, const char *format, ...)
{
    if (error) {
        struct error before;
        struct error after = *error;
        va_list arguments;
        va_start(arguments, format);
        print(&before, format, arguments);
        va_end(arguments);
        after.text[sizeof after.text - 1] = '\0';
        size_t used = strlen(before.text);
        size_t room = sizeof error->text - used;
        memcpy(error->text, before.text, used + 1);
        if (room > 3) {
            memcpy(error->text + used, ": ", 3);
            memcpy(error->text + used + 2, after.text, room - 3);
            error->text[sizeof error->text - 1] = '\0';
        }
    }
    return status;
}

const char *status_name(enum status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case STATUS_##name:                                                                            \
        return #name;
        STATUS_LIST(X)
#undef X
    }
    return "UNKNOWN";
}

const char *status_meaning(enum status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case STATUS_##name:                                                                            \
        return text;
        STATUS_LIST(X)
#undef X
    }
    return "an unknown status";
}

int status_exit(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return 0;
    case STATUS_NEGATIVE:
        return 1;
    case STATUS_MISSING:
        return 3;
    case STATUS_CORRUPT:
    case STATUS_HOST_MEMORY:
        return 4;
    default:
        return 2;
    }
}
