#include "allocators/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/utf8.h"

/* Prints the sentence with all quoted input escaped, so that no byte of a file or an argument can
 * move the cursor of a terminal or begin a line of a log. */
static void print(struct ar_error *error, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void print(struct ar_error *error, const char *format, va_list arguments)
{
    char text[sizeof error->text];
    vsnprintf(text, sizeof text, format, arguments);
    ar_utf8_escape(text, error->text, sizeof error->text);
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
        struct ar_error after = *error;
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
