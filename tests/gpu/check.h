/* Cases for programs that run on a GPU box, where cmocka may not be: a few lines that print what
 * tests/run.sh counts, `ok NAME`, `not ok NAME` or `skip NAME: reason`, and a last line with the
 * sums. A failed check prints where and why, and its case goes on. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct check {
    const char *name;    /* of the case */
    unsigned complaints; /* in this case */
    unsigned passed, failed, skipped;
};

static inline void check_begin(struct check *check, const char *name)
{
    check->name = name;
    check->complaints = 0;
}

static inline void check_end(struct check *check)
{
    check->passed += check->complaints == 0;
    check->failed += check->complaints != 0;
    printf("%s %s\n", check->complaints ? "not ok" : "ok", check->name);
    fflush(stdout);
}

static inline void check_skip(struct check *check, const char *name, const char *reason)
{
    check->skipped++;
    printf("skip %s: %s\n", name, reason);
}

/* Returns `good`. The first ten complaints of a case are printed. */
__attribute__((format(printf, 3, 4))) static inline bool check_that(struct check *check, bool good,
                                                                    const char *format, ...)
{
    if (good)
        return true;
    if (check->complaints++ < 10) {
        va_list arguments;
        va_start(arguments, format);
        printf("# %s: ", check->name);
        vprintf(format, arguments);
        printf("\n");
        va_end(arguments);
    }
    return false;
}

/* The last line; the exit status of the program. */
static inline int check_report(const struct check *check)
{
    printf("%u passed, %u failed, %u skipped\n", check->passed, check->failed, check->skipped);
    return check->failed != 0;
}
