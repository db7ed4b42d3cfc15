/* A pull parser for JSON.
 *
 * What: tokens of RFC 8259 over a window of the file. How:
 * 1. One bit per open object or array, so that depth costs nothing and is bounded.
 * 2. A quote stands behind the last byte of the window, so that the loops over plain
 *    bytes need one test a byte; whoever meets that quote refills.
 * 3. A string is copied in runs; what does not fit is read and dropped.
 * 4. Passing over a value looks up a class for each byte and stops at quotes and brackets only: in
 *    there numbers and words are not checked, since profilers write `inf` and `nan`.
 * 5. Lines are counted when the window is refilled, or a place is asked for.
 * More lenient than the standard: control bytes in strings, a byte-order mark at the front. */
#include <string.h>

#include "workloads/io/json_state.h"

/* Bytes at which passing over stops. */
enum { CLASS_QUOTE = 1, CLASS_OPEN = 2, CLASS_CLOSE = 3 };
static const unsigned char outside[256] = {
    ['"'] = CLASS_QUOTE, ['{'] = CLASS_OPEN,  ['['] = CLASS_OPEN,
    ['}'] = CLASS_CLOSE, [']'] = CLASS_CLOSE,
};

/* Depth. */

static bool in_object(const struct json_pull *pull)
{
    unsigned level = pull->depth - 1;
    return pull->objects[level / 8] >> (level % 8) & 1;
}

static enum ar_status push(struct json_pull *pull, bool object, struct ar_error *error)
{
    if (pull->depth == JSON_DEPTH_LIMIT)
        return json_pull_refuse(pull, error,
                                "more than %u brackets are open at once; no profiler writes such "
                                "a file",
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

/* Numbers and words. */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *digits_end(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
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

/* A run of bytes that belong to no other token, kept. */
static enum ar_status read_run(struct json_pull *pull, struct ar_error *error)
{
    pull->text_length = 0;
    pull->text_cut = false;
    for (;;) {
        const unsigned char *at = pull->at;
        while (is_scalar_byte(*at))
            at++;
        json_keep(pull, pull->at, (size_t)(at - pull->at));
        pull->at = at;
        if (at < pull->end || pull->ended)
            break;
        enum ar_status status = json_refill(pull, error);
        if (status)
            return status;
        if (pull->text_length > JSON_NUMBER_LIMIT)
            break;
    }
    pull->text[pull->text_length] = 0;
    return AR_OK;
}

static enum ar_status read_scalar(struct json_pull *pull, enum json_kind *kind,
                                  struct ar_error *error)
{
    enum ar_status status = read_run(pull, error);
    if (status)
        return status;
    if (pull->at == pull->end && pull->depth)
        return json_cut_off(pull, error);
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
        return json_pull_refuse(pull, error, "\"%.40s\" is no value of JSON", pull->text);
    return AR_OK;
}

/* Tokens. */

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
        status = json_read_string(pull, error);
    } else {
        status = read_scalar(pull, kind, error);
    }
    value_ended(pull);
    return status;
}

static enum ar_status read_key(struct json_pull *pull, enum json_kind *kind, struct ar_error *error)
{
    if (*pull->at != '"')
        return json_pull_refuse(pull, error, "a key in quotes should stand here");
    pull->at++;
    *kind = JSON_KEY;
    enum ar_status status = json_read_string(pull, error);
    if (!status)
        status = json_skip_blanks(pull, error);
    if (!status)
        status = json_need(pull, error);
    if (status)
        return status;
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

/* To the byte at which the next token begins, and past a comma before it. */
static enum ar_status find_token(struct json_pull *pull, struct ar_error *error)
{
    enum ar_status status = json_skip_blanks(pull, error);
    if (pull->state == STATE_DONE || status)
        return status;
    status = json_need(pull, error);
    if (status || pull->state != STATE_AFTER_VALUE || *pull->at == '}' || *pull->at == ']')
        return status;
    if (*pull->at != ',')
        return json_pull_refuse(pull, error, "a comma or the end of the %s should stand here",
                                in_object(pull) ? "object" : "array");
    pull->at++;
    pull->state = in_object(pull) ? STATE_KEY : STATE_VALUE;
    status = json_skip_blanks(pull, error);
    return status ? status : json_need(pull, error);
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
                   : json_pull_refuse(pull, error, "the file goes on after the end of its JSON");
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
    if (!status)
        status = read_token(pull, &token->kind, error);
    token->text = pull->text;
    token->length = pull->text_length;
    token->cut = pull->text_cut;
    return status;
}

/* Passing over. */

static enum ar_status leave_to(struct json_pull *pull, unsigned depth, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    while (!status && pull->depth > depth) {
        const unsigned char *at = pull->at;
        while (!outside[*at])
            at++;
        pull->at = at;
        if (at == pull->end) {
            status = json_need(pull, error);
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
            status = json_skip_string(pull, error);
    }
    value_ended(pull);
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
        enum ar_status status = json_refill(pull, error);
        if (status)
            return status;
        if (pull->at == pull->end)
            return pull->depth ? json_cut_off(pull, error) : AR_OK;
    }
}

enum ar_status json_pull_skip(struct json_pull *pull, struct ar_error *error)
{
    enum ar_status status = find_token(pull, error);
    if (status || pull->state == STATE_DONE)
        return status;
    unsigned char c = *pull->at;
    if (pull->state != STATE_VALUE && pull->state != STATE_FIRST_VALUE)
        return json_pull_refuse(pull, error, "a value should stand here");
    if (c == '{' || c == '[') {
        status = push(pull, c == '{', error);
        pull->at++;
        return status ? status : leave_to(pull, pull->depth - 1, error);
    }
    if (c == '"') {
        pull->at++;
        status = json_skip_string(pull, error);
    } else if (is_scalar_byte(c)) {
        status = skip_scalar(pull, error);
    } else {
        status = json_pull_refuse(pull, error, "a value should stand here");
    }
    value_ended(pull);
    return status;
}
