#include "tests/support/scarce.h"

#include <errno.h>
#include <stddef.h>

static _Thread_local unsigned long left; /* until the one that fails; 0: none fails */
static _Thread_local bool reached;

void scarce_begin(unsigned long number)
{
    left = number;
    reached = false;
}

bool scarce_end(void)
{
    left = 0;
    return reached;
}

static bool fails(void)
{
    if (!left || --left)
        return false;
    reached = true;
    errno = ENOMEM;
    return true;
}

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails() ? NULL : __real_##name arguments;                                           \
    }

WRAP(void *, malloc, (size_t bytes), (bytes))
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(void *, realloc, (void *old, size_t bytes), (old, bytes))
WRAP(char *, strdup, (const char *text), (text))
