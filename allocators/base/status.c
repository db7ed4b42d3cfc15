#include "allocators/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

enum status error_prefix(struct error *error, enum status status, const char *format, ...)
{
    if (error) {
        char before[sizeof error->text];
        char after[sizeof error->text];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(before, sizeof before, format, arguments);
        va_end(arguments);
        memcpy(after, error->text, sizeof after);
        after[sizeof after - 1] = '\0';
        size_t used = strlen(before);
        size_t room = sizeof error->text - used;
        memcpy(error->text, before, used + 1);
        if (room > 3) {
            memcpy(error->text + used, ": ", 3);
            memcpy(error->text + used + 2, after, room - 3);
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
