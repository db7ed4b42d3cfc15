/* Sizes as text. Units are binary: K, KiB and k all mean 1024. */
#ifndef ALLOCATORS_BASE_SIZE_H
#define ALLOCATORS_BASE_SIZE_H

#include "allocators/base/status.h"

AR_BEGIN_DECLS

#define AR_KIB UINT64_C(1024)
#define AR_MIB UINT64_C(1048576)
#define AR_GIB UINT64_C(1073741824)

/* Reads "4096", "24GiB", "1.5M" or "2t" into bytes. The whole text must be a size below 2^63. A
 * fraction of KiB or a larger unit is rounded down to a whole byte, because frameworks print
 * rounded sizes ("79.11 GiB") that people copy; bytes have no fraction. INVALID otherwise, with a
 * sentence. */
AR_API enum ar_status ar_size_parse(const char *text, uint64_t *bytes, struct ar_error *error);

/* Reads a non-negative decimal integer, which must be the whole text. INVALID otherwise. */
AR_API enum ar_status ar_count_parse(const char *text, uint64_t *count, struct ar_error *error);

/* Reads the decimal number at `text`, which may have a sign, a point and an exponent. Returns its
 * end; NULL: there is none. (strtod takes blanks, hexadecimal numbers and words too.) */
const char *ar_decimal_parse(const char *text, double *number);

/* The same of a number that is the whole text; false: it is not. */
bool ar_number_parse(const char *text, double *number);

/* Prints bytes with four significant digits: "1.500 GiB". Returns `text`. */
AR_API const char *ar_size_print(uint64_t bytes, char *text, size_t text_bytes);

/* The same, but rounded up: a need that is printed is enough when it is copied. `text` has room for
 * at least 16 bytes. */
const char *ar_size_print_up(uint64_t bytes, char *text, size_t text_bytes);

/* Prints the shortest text that ar_size_parse reads as the same number: "1536MiB". */
AR_API const char *ar_size_print_exact(uint64_t bytes, char *text, size_t text_bytes);

/* The three as values: the text lasts as long as the enclosing block. In C only. */
#define AR_SIZE(bytes)       ar_size_print(bytes, (char[32]){0}, 32)
#define AR_SIZE_UP(bytes)    ar_size_print_up(bytes, (char[32]){0}, 32)
#define AR_SIZE_EXACT(bytes) ar_size_print_exact(bytes, (char[32]){0}, 32)

/* The greatest common divisor; 0 divides nothing but 0. */
static inline uint64_t ar_size_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Rounds up to a multiple of a power of two. The result must not overflow. */
static inline uint64_t ar_size_round_up(uint64_t bytes, uint64_t power_of_two)
{
    return (bytes + power_of_two - 1) & ~(power_of_two - 1);
}

static inline bool ar_size_is_power_of_two(uint64_t bytes)
{
    return bytes && (bytes & (bytes - 1)) == 0;
}

static inline uint64_t ar_size_round_down(uint64_t bytes, uint64_t power_of_two)
{
    return bytes & ~(power_of_two - 1);
}

AR_END_DECLS

#endif
