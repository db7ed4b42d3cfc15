#include "tests/support/writing.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void writing_add(struct writing *writing, const char *format, ...)
{
    size_t used = strlen(writing->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(writing->text + used, sizeof writing->text - used, format, arguments);
    va_end(arguments);
}
