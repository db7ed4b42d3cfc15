/* A pull parser for JSON: the tokens of RFC 8259 over a window of the file.
 *
 * 1. Each open object or array takes one bit, so that the depth is cheap and bounded.
 * 2. A quote follows the last byte of the window, so that the loops over plain bytes need one test
 *    a byte. Code that meets this quote refills the window.
 * 3. A string is copied in runs; what does not fit is read and dropped.
 * 4. Skipping a value looks up a class for each byte and stops at quotes and brackets only. Numbers
 *    and words in it are not checked, because profilers write `inf` and `nan`.
 * 5. Lines are counted when the window is refilled or when a line number is needed.
 * 6. A number is read as its decimal digits (up to 19) and an exponent, and scaled by a power of
 *    ten exactly: a time in microseconds with three decimals has more digits than a double. A half
 *    rounds away from zero.
 * The parser accepts more than the standard: control bytes in strings and a byte-order mark. */
#include "workloads/io/json_pull.h"

#include "allocators/base/utf8.h"
#include "workloads/io/fields.h"

enum { JSON_WINDOW = 1 << 16 };

enum json_state {
    STATE_VALUE,       /* a value must come */
    STATE_FIRST_VALUE, /* a value or the end of an array */
    STATE_FIRST_KEY,   /* a key or the end of an object */
    STATE_KEY,         /* a key must come */
    STATE_AFTER_VALUE, /* a comma or an end */
    STATE_DONE,        /* the value of the file is complete */
};

struct json_pull {
    struct trace_input *input;
    enum json_state state;
    unsigned depth;
    unsigned char objects[JSON_DEPTH_LIMIT / 8]; /* bit d: the level d + 1 is an object */
    bool ended;                                  /* the window holds the last bytes */
    const unsigned char *at, *end;               /* of the window */
    const unsigned char *counted;                /* lines are counted up to here */
    uint64_t line, bytes_before;                 /* of the window's first byte */
    size_t text_length;
    bool text_cut;
    char text[JSON_TEXT_LIMIT + 1];
    unsigned char window[JSON_WINDOW + 1];
};

/* ---- the window -------------------------------------------------------------------------- */

static void count_lines(struct json_pull *pull, const unsigned char *to)
{
    const unsigned char *at = pull->counted;
    while (at < to && (at = memchr(at, '\n', (size_t)(to - at)))) {
        pull->line++;
        at++;
    }
    pull->counted = to;
}

uint64_t json_pull_line(struct json_pull *pull)
{
    count_lines(pull, pull->at);
    return pull->line;
}

enum ar_status json_pull_refuse(struct json_pull *pull, struct ar_error *error, const char *format,
                                ...)
{
    char text[512];
    AR_PRINT(text, sizeof text, format);
    return ar_error_set(
        error, AR_FORMAT, "%s:%llu: byte %llu: %s", trace_input_path(pull->input),
        (unsigned long long)json_pull_line(pull),
        (unsigned long long)(pull->bytes_before + (uint64_t)(pull->at - pull->window)), text);
}

/* Reads more bytes after all of the window is used. None are left at the end of the file. */
static enum ar_status refill(struct json_pull *pull, struct ar_error *error)
{
    size_t got = 0;
    count_lines(pull, pull->end);
    pull->bytes_before += (uint64_t)(pull->end - pull->window);
    pull->at = pull->end = pull->counted = pull->window;
    pull->window[0] = '"';
    if (pull->ended)
        return AR_OK;
    AR_TRY(trace_input_read(pull->input, pull->window, JSON_WINDOW, &got, error));
    pull->ended = !got;
    pull->end = pull->window + got;
    pull->window[got] = '"';
    return AR_OK;
}

static enum ar_status cut_off(struct json_pull *pull, struct ar_error *error)
{
    return json_pull_refuse(pull, error,
                            "the file ends in the middle of its JSON: it is cut off, perhaps "
                            "because the program ended while it was written; write it again");
}

/* Makes sure that there is a byte at `at`; the end of the file is an error. */
static enum ar_status need(struct json_pull *pull, struct ar_error *error)
{
    if (pull->at < pull->end)
        return AR_OK;
    AR_TRY(refill(pull, error));
    return pull->at == pull->end ? cut_off(pull, error) : AR_OK;
}

/* Moves to the next byte that is no white space; to `end` at the end of the file. */
static enum ar_status skip_blanks(struct json_pull *pull, struct ar_error *error)
{
    for (;;) {
        const unsigned char *at = pull->at;
        while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
            at++;
        pull->at = at;
        if (at < pull->end || pull->ended)
            return AR_OK;
        AR_TRY(refill(pull, error));
    }
}

enum ar_status json_pull_open(struct trace_input *input, struct json_pull **out,
                              struct ar_error *error)
{
    struct json_pull *pull = calloc(1, sizeof *pull);
    AR_TRY_MEMORY(pull, error, "%s", trace_input_path(input));
    pull->input = input;
    pull->line = 1;
    pull->at = pull->end = pull->counted = pull->window;
    enum ar_status status = refill(pull, error);
    if (status) {
        free(pull);
        return status;
    }
    if (pull->end - pull->at >= 3 && !memcmp(pull->at, "\xef\xbb\xbf", 3))
        pull->at += 3;
    *out = pull;
    return AR_OK;
}

void json_pull_close(struct json_pull *pull)
{
    free(pull);
}

/* ---- strings ----------------------------------------------------------------------------- */

/* Bytes at which the loops stop. */
static const unsigned char inside[256] = {['"'] = 1, ['\\'] = 1};

/* Adds to the text as much as fits. */
static void keep(struct json_pull *pull, const void *bytes, size_t count)
{
    size_t room = JSON_TEXT_LIMIT - pull->text_length;
    if (count > room) {
        count = room;
        pull->text_cut = true;
    }
    memcpy(pull->text + pull->text_length, bytes, count);
    pull->text_length += count;
}

static void keep_code_point(struct json_pull *pull, unsigned code)
{
    char bytes[4];
    size_t count = ar_utf8_put(code, bytes);
    if (JSON_TEXT_LIMIT - pull->text_length >= count)
        keep(pull, bytes, count);
    else
        pull->text_cut = true;
}

/* The four digits of \uXXXX. */
static enum ar_status read_unit(struct json_pull *pull, unsigned *unit, struct ar_error *error)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        AR_TRY(need(pull, error));
        unsigned digit = field_hex_digit((char)*pull->at);
        if (digit == 16)
            return json_pull_refuse(pull, error, "\\u is not followed by four digits");
        *unit = *unit * 16 + digit;
        pull->at++;
    }
    return AR_OK;
}

static enum ar_status keep_short_escape(struct json_pull *pull, struct ar_error *error)
{
    static const char codes[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    const char *code = *pull->at ? strchr(codes, *pull->at) : NULL;
    if (!code)
        return json_pull_refuse(pull, error, "a backslash is followed by no escape");
    pull->at++;
    keep(pull, &bytes[code - codes], 1);
    return AR_OK;
}

/* A code point after "\u", in two units if it has more than 16 bits. Half a pair becomes U+FFFD. */
static enum ar_status read_code_point(struct json_pull *pull, struct ar_error *error)
{
    unsigned unit, low = 0;
    enum ar_status status = read_unit(pull, &unit, error);
    while (!status && unit >= 0xd800 && unit < 0xdc00) {
        status = need(pull, error);
        if (status || *pull->at != '\\')
            break;
        pull->at++;
        status = need(pull, error);
        if (!status && *pull->at != 'u') {
            keep_code_point(pull, 0xfffd);
            return keep_short_escape(pull, error);
        }
        if (status)
            break;
        pull->at++;
        status = read_unit(pull, &low, error);
        if (!status && low >= 0xdc00 && low < 0xe000) {
            keep_code_point(pull, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            return AR_OK;
        }
        keep_code_point(pull, 0xfffd);
        unit = low;
    }
    if (!status)
        keep_code_point(pull, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
    return status;
}

static enum ar_status read_escape(struct json_pull *pull, struct ar_error *error)
{
    AR_TRY(need(pull, error));
    if (*pull->at != 'u')
        return keep_short_escape(pull, error);
    pull->at++;
    return read_code_point(pull, error);
}

/* Passes a string after its opening quote, to after the closing one; `kept`: with its text. */
static inline enum ar_status pass_string(struct json_pull *pull, bool kept, struct ar_error *error)
{
    for (;;) {
        const unsigned char *at = pull->at;
        while (!inside[*at])
            at++;
        if (kept)
            keep(pull, pull->at, (size_t)(at - pull->at));
        pull->at = at;
        if (at == pull->end) {
            AR_TRY(need(pull, error));
            continue;
        }
        pull->at++;
        if (*at == '"')
            return AR_OK;
        if (kept) {
            AR_TRY(read_escape(pull, error));
        } else {
            AR_TRY(need(pull, error));
            pull->at++;
        }
    }
}

static enum ar_status read_string(struct json_pull *pull, struct ar_error *error)
{
    pull->text_length = 0;
    pull->text_cut = false;
    AR_TRY(pass_string(pull, true, error));
    pull->text[pull->text_length] = 0;
    return AR_OK;
}

/* Bytes at which skipping stops. */
enum { CLASS_QUOTE = 1, CLASS_OPEN = 2, CLASS_CLOSE = 3 };
static const unsigned char outside[256] = {
    ['"'] = CLASS_QUOTE, ['{'] = CLASS_OPEN,  ['['] = CLASS_OPEN,
    ['}'] = CLASS_CLOSE, [']'] = CLASS_CLOSE,
};

/* ---- depth ------------------------------------------------------------------------------- */

static bool in_object(const struct json_pull *pull)
{
    unsigned level = pull->depth - 1;
    return pull->objects[level / 8] >> (level % 8) & 1;
}

static enum ar_status push(struct json_pull *pull, bool object, struct ar_error *error)
{
    if (pull->depth == JSON_DEPTH_LIMIT)
        return json_pull_refuse(
            pull, error, "more than %u brackets are open at once; no profiler writes such a file",
            JSON_DEPTH_LIMIT);
    unsigned char bit = (unsigned char)(1u << (pull->depth % 8));
    unsigned char *byte = &pull->objects[pull->depth / 8];
    *byte = (unsigned char)(object ? *byte | bit : *byte & ~bit);
    pull->depth++;
    return AR_OK;
}

static enum ar_status pop(struct json_pull *pull, bool object, struct ar_error *error)
{
    if (!pull->depth || in_object(pull) != object)
        return json_pull_refuse(pull, error, "\"%c\" closes what is not open", object ? '}' : ']');
    pull->depth--;
    return AR_OK;
}

static void value_ended(struct json_pull *pull)
{
    pull->state = pull->depth ? STATE_AFTER_VALUE : STATE_DONE;
}

/* ---- numbers and words ------------------------------------------------------------------- */

static const char *digits_end(const char *at)
{
    return at + strspn(at, "0123456789");
}

/* The grammar of a number. */
static bool is_number(const char *at)
{
    at += *at == '-';
    const char *whole = at;
    at = digits_end(at);
    if (at == whole || (*whole == '0' && at != whole + 1))
        return false;
    if (*at == '.') {
        const char *fraction = ++at;
        at = digits_end(at);
        if (at == fraction)
            return false;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        const char *exponent = at;
        at = digits_end(at);
        if (at == exponent)
            return false;
    }
    return !*at;
}

static bool is_scalar_byte(unsigned char c)
{
    return c > ' ' && c != ',' && c != ']' && c != '}' && c != '"' && c != '[' && c != '{' &&
           c != ':';
}

/* Keeps a run of bytes that belong to no other token. */
static enum ar_status read_run(struct json_pull *pull, struct ar_error *error)
{
    pull->text_length = 0;
    pull->text_cut = false;
    for (;;) {
        const unsigned char *at = pull->at;
        while (is_scalar_byte(*at))
            at++;
        keep(pull, pull->at, (size_t)(at - pull->at));
        pull->at = at;
        if (at < pull->end || pull->ended)
            break;
        AR_TRY(refill(pull, error));
        if (pull->text_length > JSON_NUMBER_LIMIT)
            break;
    }
    pull->text[pull->text_length] = 0;
    return AR_OK;
}

static enum ar_status read_scalar(struct json_pull *pull, enum json_kind *kind,
                                  struct ar_error *error)
{
    AR_TRY(read_run(pull, error));
    if (pull->at == pull->end && pull->depth)
        return cut_off(pull, error);
    if (pull->text_length > JSON_NUMBER_LIMIT)
        return json_pull_refuse(pull, error, "a number has more than %u bytes", JSON_NUMBER_LIMIT);
    if (is_number(pull->text))
        *kind = JSON_NUMBER;
    else if (!strcmp(pull->text, "true"))
        *kind = JSON_TRUE;
    else if (!strcmp(pull->text, "false"))
        *kind = JSON_FALSE;
    else if (!strcmp(pull->text, "null"))
        *kind = JSON_NULL;
    else
        return json_pull_refuse(pull, error, "\"%.40s\" is not a JSON value", pull->text);
    return AR_OK;
}

/* ---- tokens ------------------------------------------------------------------------------ */

static enum ar_status read_value(struct json_pull *pull, enum json_kind *kind,
                                 struct ar_error *error)
{
    unsigned char c = *pull->at;
    enum ar_status status;
    if (c == '{' || c == '[') {
        *kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        status = push(pull, c == '{', error);
        pull->at++;
        pull->state = c == '{' ? STATE_FIRST_KEY : STATE_FIRST_VALUE;
        return status;
    }
    if (c == '"') {
        *kind = JSON_STRING;
        pull->at++;
        status = read_string(pull, error);
    } else {
        status = read_scalar(pull, kind, error);
    }
    value_ended(pull);
    return status;
}

static enum ar_status read_key(struct json_pull *pull, enum json_kind *kind, struct ar_error *error)
{
    if (*pull->at != '"')
        return json_pull_refuse(pull, error, "a key in quotes is expected here");
    pull->at++;
    *kind = JSON_KEY;
    AR_TRY(read_string(pull, error));
    AR_TRY(skip_blanks(pull, error));
    AR_TRY(need(pull, error));
    if (*pull->at != ':')
        return json_pull_refuse(pull, error, "a colon should follow the key \"%.40s\"", pull->text);
    pull->at++;
    pull->state = STATE_VALUE;
    return AR_OK;
}

static enum ar_status read_end(struct json_pull *pull, enum json_kind *kind, struct ar_error *error)
{
    bool object = *pull->at == '}';
    enum ar_status status = pop(pull, object, error);
    pull->at++;
    *kind = object ? JSON_OBJECT_END : JSON_ARRAY_END;
    value_ended(pull);
    return status;
}

/* Moves to the first byte of the next token, and past a comma in front of it. */
static enum ar_status find_token(struct json_pull *pull, struct ar_error *error)
{
    enum ar_status status = skip_blanks(pull, error);
    if (pull->state == STATE_DONE || status)
        return status;
    status = need(pull, error);
    if (status || pull->state != STATE_AFTER_VALUE || *pull->at == '}' || *pull->at == ']')
        return status;
    if (*pull->at != ',')
        return json_pull_refuse(pull, error, "a comma or the end of the %s is expected here",
                                in_object(pull) ? "object" : "array");
    pull->at++;
    pull->state = in_object(pull) ? STATE_KEY : STATE_VALUE;
    AR_TRY(skip_blanks(pull, error));
    return need(pull, error);
}

static enum ar_status read_token(struct json_pull *pull, enum json_kind *kind,
                                 struct ar_error *error)
{
    unsigned char c = *pull->at;
    switch (pull->state) {
    case STATE_DONE:
        *kind = JSON_END;
        return pull->at == pull->end
                   ? AR_OK
                   : json_pull_refuse(pull, error, "the file continues after the end of its JSON");
    case STATE_AFTER_VALUE:
        return read_end(pull, kind, error);
    case STATE_FIRST_KEY:
        return c == '}' ? read_end(pull, kind, error) : read_key(pull, kind, error);
    case STATE_KEY:
        return read_key(pull, kind, error);
    case STATE_FIRST_VALUE:
        if (c == ']')
            return read_end(pull, kind, error);
        break;
    case STATE_VALUE:
        break;
    }
    return read_value(pull, kind, error);
}

enum ar_status json_pull_next(struct json_pull *pull, struct json_token *token,
                              struct ar_error *error)
{
    enum ar_status status = find_token(pull, error);
    pull->text_length = 0;
    pull->text_cut = false;
    pull->text[0] = 0;
    AR_THEN(status, read_token(pull, &token->kind, error));
    token->text = pull->text;
    token->length = pull->text_length;
    token->cut = pull->text_cut;
    return status;
}

/* ---- skipping ---------------------------------------------------------------------------- */

static enum ar_status leave_to(struct json_pull *pull, unsigned depth, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    while (!status && pull->depth > depth) {
        const unsigned char *at = pull->at;
        while (!outside[*at])
            at++;
        pull->at = at;
        if (at == pull->end) {
            status = need(pull, error);
            continue;
        }
        unsigned char class = outside[*at];
        if (class == CLASS_OPEN)
            status = push(pull, *at == '{', error);
        else if (class == CLASS_CLOSE)
            status = pop(pull, *at == '}', error);
        if (status)
            break;
        pull->at++;
        if (class == CLASS_QUOTE)
            status = pass_string(pull, false, error);
    }
    value_ended(pull);
    return status;
}

enum ar_status json_pull_scalar(struct json_pull *pull, struct json_token *token,
                                struct ar_error *error)
{
    enum ar_status status = json_pull_next(pull, token, error);
    if (!status && (token->kind == JSON_OBJECT || token->kind == JSON_ARRAY)) {
        status = json_pull_leave(pull, error);
        *token = (struct json_token){.kind = JSON_NULL, .text = ""};
    }
    return status;
}

enum ar_status json_pull_leave(struct json_pull *pull, struct ar_error *error)
{
    return pull->depth ? leave_to(pull, pull->depth - 1, error) : AR_OK;
}

static enum ar_status skip_scalar(struct json_pull *pull, struct ar_error *error)
{
    for (;;) {
        const unsigned char *at = pull->at;
        while (is_scalar_byte(*at))
            at++;
        pull->at = at;
        if (at < pull->end)
            return AR_OK;
        AR_TRY(refill(pull, error));
        if (pull->at == pull->end)
            return pull->depth ? cut_off(pull, error) : AR_OK;
    }
}

enum ar_status json_pull_skip(struct json_pull *pull, struct ar_error *error)
{
    enum ar_status status = find_token(pull, error);
    if (status || pull->state == STATE_DONE)
        return status;
    unsigned char c = *pull->at;
    if (pull->state != STATE_VALUE && pull->state != STATE_FIRST_VALUE)
        return json_pull_refuse(pull, error, "a value is expected here");
    if (c == '{' || c == '[') {
        status = push(pull, c == '{', error);
        pull->at++;
        return status ? status : leave_to(pull, pull->depth - 1, error);
    }
    if (c == '"') {
        pull->at++;
        status = pass_string(pull, false, error);
    } else if (is_scalar_byte(c)) {
        status = skip_scalar(pull, error);
    } else {
        status = json_pull_refuse(pull, error, "a value is expected here");
    }
    value_ended(pull);
    return status;
}

/* ---- numbers as integers ----------------------------------------------------------------- */

#define DIGITS_KEPT    19
#define EXPONENT_LIMIT 400

struct decimal {
    uint64_t digits;
    int count;    /* of digits kept, leading zeros left out */
    int exponent; /* the value is digits times 10^exponent */
};

/* Reads a run of digits. */
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
        unsigned digit = field_hex_digit(*at);
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
