/* The results of calls in the whole project: one list of statuses, and a sentence for people.
 * Libraries return them; only the program prints. Nearly every file includes this one, directly or
 * not, and with it the headers below of the C library, which no such file repeats. */
#ifndef ALLOCATORS_BASE_STATUS_H
#define ALLOCATORS_BASE_STATUS_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

/* Name, number (stable, because it may be stored), meaning. NO_MEMORY and REFUSED are outcomes that
 * a run counts; the others stop it. */
#define AR_STATUS_LIST(X)                                                                          \
    X(OK, 0, "done")                                                                               \
    X(NO_MEMORY, 1, "the policy cannot serve the request")                                         \
    X(REFUSED, 2, "the device refused memory")                                                     \
    X(UNSUPPORTED, 3, "not offered here")                                                          \
    X(INVALID, 4, "bad usage or input")                                                            \
    X(CORRUPT, 5, "an internal fault was found")                                                   \
    X(HOST_MEMORY, 6, "the host has no memory left")                                               \
    X(IO, 7, "a file cannot be read or written")                                                   \
    X(FORMAT, 8, "a file does not hold what it should")                                            \
    X(MISSING, 9, "no such device or component")                                                   \
    X(NEGATIVE, 10, "the answer is no")

/* A compiler warns of a call whose status is not used. */
#if defined(__clang__)
#define AR_CHECKED __attribute__((warn_unused_result))
#elif defined(__cplusplus) || (defined(__GNUC__) && __GNUC__ >= 11)
#define AR_CHECKED [[nodiscard]]
#else
#define AR_CHECKED
#endif

__extension__ enum AR_CHECKED ar_status {
#define X(name, number, text) AR_##name = number,
    AR_STATUS_LIST(X)
#undef X
};

/* The sentence for a status other than OK: what is wrong, where, what to do. */
struct ar_error {
    char text[1024];
};

/* Writes the sentence to `error` (may be NULL) and returns `status`, so that a function can end
 * with `return ar_error_set(...)`. A later call overwrites it. Control bytes and bytes that are not
 * UTF-8 are written as \xNN. */
AR_API enum ar_status ar_error_set(struct ar_error *error, enum ar_status status,
                                   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same with INVALID, as most sentences have it. */
#define ar_invalid(error, ...) ar_error_set(error, AR_INVALID, __VA_ARGS__)

/* Puts "prefix: " before the present sentence, unless `status` is OK. Returns `status`. */
AR_API enum ar_status ar_error_prefix(struct ar_error *error, enum ar_status status,
                                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the error "no host memory for ..." and returns HOST_MEMORY. */
#define ar_no_memory(error, ...)                                                                   \
    ar_error_set(error, AR_HOST_MEMORY, "no host memory for " __VA_ARGS__)

/* In a function whose parameters end in (.., format, ...): prints its arguments into `text`. */
#define AR_PRINT(text, room, format)                                                               \
    do {                                                                                           \
        va_list ar_arguments;                                                                      \
        va_start(ar_arguments, format);                                                            \
        (void)vsnprintf(text, room, format, ar_arguments);                                         \
        va_end(ar_arguments);                                                                      \
    } while (0)

AR_API const char *ar_status_name(enum ar_status status);    /* "NO_MEMORY" */
AR_API const char *ar_status_meaning(enum ar_status status); /* "the policy cannot ..." */

/* The exit status of the program: 0 done, 1 the answer is no, 2 bad usage or input, 3 missing
 * device or component, 4 internal fault. */
AR_API int ar_status_exit(enum ar_status status);

/* Returns the status of the expression from the calling function, unless it is OK. */
#define AR_TRY(expression)                                                                         \
    do {                                                                                           \
        enum ar_status ar_tried = (expression);                                                    \
        if (ar_tried != AR_OK)                                                                     \
            return ar_tried;                                                                       \
    } while (0)

/* Returns ar_no_memory(error, ...) from the calling function unless the condition holds, such as an
 * array that was made. */
#define AR_TRY_MEMORY(condition, error, ...)                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return ar_no_memory(error, __VA_ARGS__);                                               \
    } while (0)

/* The same without a sentence, where there is no error to set or the failed call has set it. */
#define AR_TRY_HOST(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return AR_HOST_MEMORY;                                                                 \
    } while (0)

/* The next step of a chain whose function cleans up at its end: sets `status` to the result of the
 * expression, which is evaluated only if all steps before it were OK. */
#define AR_THEN(status, expression)                                                                \
    do {                                                                                           \
        if ((status) == AR_OK)                                                                     \
            (status) = (expression);                                                               \
    } while (0)

/* In front of a variable: at the end of its block it is closed by a function that takes a pointer
 * to it, or what it points to is freed, the last one first. So AR_TRY may leave the function at any
 * step. From its declaration on it has a value that may be closed:
 *     AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
 *     AR_FREED char *text = NULL; */
#define AR_CLOSED(close) __attribute__((cleanup(close)))
#define AR_FREED         AR_CLOSED(ar_free_pointed)

static inline void ar_free_pointed(void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

/* Defines CLOSE_at, for AR_CLOSED before a pointer. CLOSE is a function that takes NULL. */
#define AR_CLOSER(type, close)                                                                     \
    static inline void close##_at(type *pointer)                                                   \
    {                                                                                              \
        close(*pointer);                                                                           \
    }

AR_END_DECLS

#endif
