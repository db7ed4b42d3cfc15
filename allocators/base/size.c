#include "allocators/base/size.h"

#include <ctype.h>

/* A fraction of a size times its unit needs more than 64 bits. */
__extension__ typedef unsigned __int128 wide;

static const char unit_letters[] = "kmgtpe";

/* Reads the unit after the digits: "", "B", "K", "KB", "KiB" and so on. -1: not a unit. */
static int unit_shift(const char *text)
{
    if (text[0] == '\0' || strcmp(text, "B") == 0)
        return 0;
    const char *letter = strchr(unit_letters, tolower((unsigned char)text[0]));
    if (!letter)
        return -1;
    if (text[1] != '\0' && strcmp(text + 1, "iB") != 0 && strcmp(text + 1, "B") != 0 &&
        strcmp(text + 1, "ib") != 0 && strcmp(text + 1, "b") != 0)
        return -1;
    return 10 * (int)(letter - unit_letters + 1);
}

static enum ar_status size_bad(const char *text, const char *why, struct ar_error *error)
{
    return ar_invalid(error,
                      "\"%.60s\" is not a size: %s; write bytes, or a number with KiB, MiB or GiB",
                      text, why);
}

enum ar_status ar_size_parse(const char *text, uint64_t *bytes, struct ar_error *error)
{
    const uint64_t most = UINT64_C(1) << 63;
    const char *at = text;
    uint64_t whole = 0;
    uint64_t fraction = 0;
    uint64_t fraction_scale = 1;
    if (!isdigit((unsigned char)*at))
        return size_bad(text, "it does not start with a digit", error);
    for (; isdigit((unsigned char)*at); at++) {
        if (whole > most / 10)
            return size_bad(text, "it is too large", error);
        whole = whole * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        for (at++; isdigit((unsigned char)*at); at++) {
            if (fraction_scale > UINT64_C(100000000000))
                return size_bad(text, "it has too many digits after the point", error);
            fraction = fraction * 10 + (uint64_t)(*at - '0');
            fraction_scale *= 10;
        }
    }
    int shift = unit_shift(at);
    if (shift < 0)
        return size_bad(text, "its unit is unknown", error);
    if (whole >= most >> shift)
        return size_bad(text, "it is too large", error);
    wide part = (wide)fraction << shift;
    if (shift == 0 && fraction)
        return size_bad(text, "a byte has no parts", error);
    *bytes = (whole << shift) + (uint64_t)(part / fraction_scale);
    return AR_OK;
}

enum ar_status ar_count_parse(const char *text, uint64_t *count, struct ar_error *error)
{
    uint64_t value = 0;
    if (!isdigit((unsigned char)*text))
        return ar_invalid(error, "\"%.60s\" is not a whole number from 0 up", text);
    for (const char *at = text; *at; at++) {
        if (!isdigit((unsigned char)*at))
            return ar_invalid(error, "\"%.60s\" is not a whole number from 0 up", text);
        unsigned digit = (unsigned)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return ar_invalid(error, "\"%.60s\" is too large a number", text);
        value = value * 10 + digit;
    }
    *count = value;
    return AR_OK;
}

const char *ar_decimal_parse(const char *text, double *number)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end = NULL;
    bool decimal =
        isdigit((unsigned char)digits[*digits == '.']) && tolower((unsigned char)digits[1]) != 'x';
    *number = decimal ? strtod(text, &end) : 0;
    return decimal ? end : NULL;
}

bool ar_number_parse(const char *text, double *number)
{
    const char *end = ar_decimal_parse(text, number);
    return end && !*end;
}

const char *ar_size_print(uint64_t bytes, char *text, size_t text_bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (unit < 6 && bytes >> (10 * (unit + 1)))
        unit++;
    if (unit == 0) {
        snprintf(text, text_bytes, "%" PRIu64 " B", bytes);
        return text;
    }
    double value = (double)bytes / (double)(UINT64_C(1) << (10 * unit));
    int decimals = value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3;
    snprintf(text, text_bytes, "%.*f %s", decimals, value, names[unit]);
    return text;
}

/* The bytes of a text of ar_size_print. */
static uint64_t printed_bytes(const char *text)
{
    char joined[32];
    struct ar_error ignored;
    uint64_t bytes = 0;
    const char *blank = strchr(text, ' ');
    snprintf(joined, sizeof joined, "%.*s%s", (int)(blank - text), text, blank + 1);
    return ar_size_parse(joined, &bytes, &ignored) == AR_OK ? bytes : UINT64_MAX;
}

const char *ar_size_print_up(uint64_t bytes, char *text, size_t text_bytes)
{
    uint64_t more = bytes;
    ar_size_print(bytes, text, text_bytes);
    while (printed_bytes(text) < bytes) {
        more += bytes / 16384 + 1; /* less than the last digit */
        ar_size_print(more, text, text_bytes);
    }
    return text;
}

const char *ar_size_print_exact(uint64_t bytes, char *text, size_t text_bytes)
{
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (bytes && unit < 6 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, text_bytes, "%" PRIu64 "%s", bytes, names[unit]);
    return text;
}
