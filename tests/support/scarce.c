#include "tests/support/scarce.h"

#include <errno.h>
#include <stddef.h>

static _Thread_local unsigned long at, first, end; /* of the allocations; `end`: 0: none fails */

void scarce_begin(unsigned long number, unsigned long count)
{
    at = 0;
    first = number;
    end = number + count;
}

bool scarce_end(void)
{
    end = 0;
    return at >= first;
}

static bool fails(void)
{
    bool failing = end && ++at >= first && at < end;
    if (failing)
        errno = ENOMEM;
    return failing;
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
