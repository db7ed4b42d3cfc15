/* Strings of the pull parser: runs of plain bytes, escapes, halves of pairs. */
#include <string.h>

#include "workloads/io/json_state.h"

/* Bytes at which the loops stop. */
static const unsigned char inside[256] = {['"'] = 1, ['\\'] = 1};

void json_keep(struct json_pull *pull, const void *bytes, size_t count)
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
    unsigned char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count; i-- > 1; code >>= 6)
        bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
    bytes[0] = (unsigned char)(first[count] | code);
    if (JSON_TEXT_LIMIT - pull->text_length >= count)
        json_keep(pull, bytes, count);
    else
        pull->text_cut = true;
}

/* The four digits of \uXXXX. */
static enum ar_status read_unit(struct json_pull *pull, unsigned *unit, struct ar_error *error)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        enum ar_status status = json_need(pull, error);
        if (status)
            return status;
        unsigned c = *pull->at;
        unsigned digit = c - '0' <= 9 ? c - '0' : (c | 32) - 'a' <= 5 ? (c | 32) - 'a' + 10 : 16;
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
    json_keep(pull, &bytes[code - codes], 1);
    return AR_OK;
}

/* After "\u": a code point, of two units where it is beyond 16 bits. Half a pair becomes U+FFFD. */
static enum ar_status read_code_point(struct json_pull *pull, struct ar_error *error)
{
    unsigned unit, low = 0;
    enum ar_status status = read_unit(pull, &unit, error);
    while (!status && unit >= 0xd800 && unit < 0xdc00) {
        status = json_need(pull, error);
        if (status || *pull->at != '\\')
            break;
        pull->at++;
        status = json_need(pull, error);
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
    enum ar_status status = json_need(pull, error);
    if (status)
        return status;
    if (*pull->at != 'u')
        return keep_short_escape(pull, error);
    pull->at++;
    return read_code_point(pull, error);
}

enum ar_status json_read_string(struct json_pull *pull, struct ar_error *error)
{
    pull->text_length = 0;
    pull->text_cut = false;
    for (;;) {
        const unsigned char *at = pull->at;
        while (!inside[*at])
            at++;
        json_keep(pull, pull->at, (size_t)(at - pull->at));
        pull->at = at;
        enum ar_status status = AR_OK;
        if (at == pull->end) {
            status = json_need(pull, error);
        } else {
            pull->at++;
            if (*at == '"')
                break;
            status = read_escape(pull, error);
        }
        if (status)
            return status;
    }
    pull->text[pull->text_length] = 0;
    return AR_OK;
}

enum ar_status json_skip_string(struct json_pull *pull, struct ar_error *error)
{
    for (;;) {
        const unsigned char *at = pull->at;
        while (!inside[*at])
            at++;
        pull->at = at;
        if (at == pull->end) {
            enum ar_status status = json_need(pull, error);
            if (status)
                return status;
            continue;
        }
        pull->at++;
        if (*at == '"')
            return AR_OK;
        enum ar_status status = json_need(pull, error);
        if (status)
            return status;
        pull->at++;
    }
}
