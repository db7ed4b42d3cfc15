/* Numbers of JSON as whole ones.
 *
 * What: the decimal digits of a number, scaled by a power of ten, exactly: times of day in
 * microseconds with three decimals have more digits than a double. How: up to 19 digits are
 * collected, the place of the point is kept as an exponent, and the scaling multiplies or divides;
 * a half rounds away from zero. */
#include "workloads/io/json_pull.h"

#define DIGITS_KEPT    19
#define EXPONENT_LIMIT 400

struct decimal {
    uint64_t digits;
    int count;    /* of digits kept, leading zeros left out */
    int exponent; /* the value is digits times 10^exponent */
};

/* Takes a run of digits. */
static const char *take_digits(const char *at, struct decimal *out, bool fraction)
{
    for (; *at >= '0' && *at <= '9'; at++) {
        if (out->count < DIGITS_KEPT) {
            out->digits = out->digits * 10 + (uint64_t)(*at - '0');
            out->count += out->digits != 0;
            out->exponent -= fraction;
        } else {
            out->exponent += !fraction;
        }
    }
    return at;
}

static bool parse_decimal(const char *at, struct decimal *out)
{
    const char *begin = at;
    bool fraction = false;
    *out = (struct decimal){0};
    at = take_digits(at, out, false);
    if (at == begin)
        return false;
    if (*at == '.') {
        fraction = true;
        at = take_digits(at + 1, out, true);
    }
    if (*at == 'e' || *at == 'E') {
        bool negative = at[1] == '-';
        int exponent = 0;
        at += 1 + (at[1] == '-' || at[1] == '+');
        if (*at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9'; at++)
            if (exponent < EXPONENT_LIMIT)
                exponent = exponent * 10 + (*at - '0');
        out->exponent += negative ? -exponent : exponent;
    }
    return !*at && (!fraction || at[-1] != '.');
}

static bool scale(struct decimal value, int digits, uint64_t *out)
{
    int exponent = value.exponent + digits;
    bool half = false;
    for (; exponent > 0 && value.digits; exponent--)
        if (__builtin_mul_overflow(value.digits, UINT64_C(10), &value.digits))
            return false;
    for (; exponent < 0 && (value.digits || half); exponent++) {
        half = value.digits % 10 >= 5;
        value.digits /= 10;
    }
    *out = value.digits + half;
    return true;
}

static bool parse_hexadecimal(const char *at, uint64_t *out)
{
    int count = 0;
    *out = 0;
    for (; *at; at++, count++) {
        unsigned c = (unsigned char)*at;
        unsigned digit = c - '0' <= 9 ? c - '0' : (c | 32) - 'a' <= 5 ? (c | 32) - 'a' + 10 : 16;
        if (digit == 16 || count == 16)
            return false;
        *out = *out * 16 + digit;
    }
    return count > 0;
}

bool json_number_of(const struct json_token *token, int digits, struct json_number *out)
{
    struct decimal value;
    const char *at = token->text;
    if ((token->kind != JSON_NUMBER && token->kind != JSON_STRING) || token->cut)
        return false;
    out->negative = *at == '-';
    at += out->negative;
    if (at[0] == '0' && (at[1] | 32) == 'x')
        return !digits && parse_hexadecimal(at + 2, &out->magnitude);
    return parse_decimal(at, &value) && scale(value, digits, &out->magnitude);
}

bool json_integer_of(const struct json_token *token, int digits, int64_t *out)
{
    struct json_number number;
    if (!json_number_of(token, digits, &number) || number.magnitude >= UINT64_C(1) << 62)
        return false;
    *out = number.negative ? -(int64_t)number.magnitude : (int64_t)number.magnitude;
    return true;
}
