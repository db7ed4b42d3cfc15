/* JSON of any length, token by token, in memory that does not grow with it. */
#pragma once

#include "workloads/io/file.h"

#define JSON_DEPTH_LIMIT  256u  /* open objects and arrays at once */
#define JSON_TEXT_LIMIT   4096u /* bytes kept of a key or string */
#define JSON_NUMBER_LIMIT 128u  /* bytes of a number */

enum json_kind {
    JSON_END, /* of the file, after the one value that it holds */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY, /* of the value that follows */
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

struct json_token {
    enum json_kind kind;
    const char *text; /* of a key, string (escapes resolved, UTF-8) or number, closed by a NUL;
                         valid until the next call */
    size_t length;    /* without the NUL */
    bool cut;         /* the text was longer; its end is missing */
};

struct json_pull;

/* Reads `input` from its current position. The caller closes it. HOST_MEMORY. */
enum ar_status json_pull_open(struct trace_input *input, struct json_pull **out,
                              struct ar_error *error);
void json_pull_close(struct json_pull *pull); /* NULL is fine */
AR_CLOSER(struct json_pull *, json_pull_close)

/* The next token. FORMAT with file, line and byte if the text is no JSON or is cut off. */
enum ar_status json_pull_next(struct json_pull *pull, struct json_token *token,
                              struct ar_error *error);

/* The next token, which the caller takes for a number, text or word: an object or array is skipped
 * as a whole and given as JSON_NULL with an empty text. */
enum ar_status json_pull_scalar(struct json_pull *pull, struct json_token *token,
                                struct ar_error *error);

/* Skips the next value, several times as fast as by tokens: only its brackets, their depth and the
 * ends of its strings are looked at. */
enum ar_status json_pull_skip(struct json_pull *pull, struct ar_error *error);

/* Skips in the same way to the end of the object or array that was opened last, including its
 * end. */
enum ar_status json_pull_leave(struct json_pull *pull, struct ar_error *error);

/* The current line, from 1. */
uint64_t json_pull_line(struct json_pull *pull);

/* Sets an error with file, line and byte in front. Returns FORMAT. */
enum ar_status json_pull_refuse(struct json_pull *pull, struct ar_error *error, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));

/* A number, or a string that holds one (decimal, or hexadecimal after 0x), as an integer. */
struct json_number {
    bool negative;
    uint64_t magnitude;
};

/* The token's number times 10^digits, rounded to an integer; false if it is no number or needs more
 * than 64 bits. */
bool json_number_of(const struct json_token *token, int digits, struct json_number *out);

/* The same as a signed number, below 2^62 in magnitude. */
bool json_integer_of(const struct json_token *token, int digits, int64_t *out);

static inline bool json_is(const struct json_token *token, const char *text)
{
    const char *a = token->text;
    while (*a && *a == *text) {
        a++;
        text++;
    }
    return *a == *text && !token->cut;
}
