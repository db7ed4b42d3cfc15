/* Marks of the public interface, and what has no other place. A function with AR_API is
 * visible outside of the library and of the program, where policies in shared objects find it. All
 * other names are hidden. */
#ifndef ALLOCATORS_BASE_API_H
#define ALLOCATORS_BASE_API_H

#include <stdint.h>

#define AR_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define AR_BEGIN_DECLS extern "C" {
#define AR_END_DECLS   }
#else
#define AR_BEGIN_DECLS
#define AR_END_DECLS
#endif

/* A function of which each caller has a copy: it makes no call, and constants that are passed to it
 * are folded in. */
#define AR_INLINE static inline __attribute__((always_inline))

/* Marks a parameter that the type of the function demands and the function does not use. */
#define AR_UNUSED __attribute__((unused))

/* The number of items of an array. */
#define AR_COUNT(array) (sizeof(array) / sizeof *(array))

/* The least and the most of two numbers, and a quotient that is rounded up. */
static inline uint64_t ar_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t ar_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
static inline uint64_t ar_divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Makes a variable at least, or at most, a value. */
#define AR_RAISE(variable, value)                                                                  \
    do {                                                                                           \
        if ((variable) < (value))                                                                  \
            (variable) = (value);                                                                  \
    } while (0)
#define AR_LOWER(variable, value)                                                                  \
    do {                                                                                           \
        if ((variable) > (value))                                                                  \
            (variable) = (value);                                                                  \
    } while (0)

#endif
