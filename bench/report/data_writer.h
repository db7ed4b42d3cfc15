/* Writes JSON without building a tree: keys in the order of the calls, integers of 64 bits exactly,
 * reals as the shortest text that reads back as the same number. */
#pragma once

#include <stdio.h>

#include "sim/metrics/metrics.h"

struct json_writer {
    FILE *stream;
    unsigned depth;
    bool filled;        /* the innermost object or array is not empty */
    unsigned lean_from; /* values below this depth share a line; 0: each has its own */
};

#define REAL_TEXT_BYTES 32

/* The shortest decimal text that reads back as `real`. Returns `text`. */
const char *real_print(double real, char text[REAL_TEXT_BYTES]);

/* A text as JSON writes it, in quotes. */
void json_text(FILE *stream, const char *text);

/* `key` is NULL for the outermost value and inside arrays. Errors show in the stream. */
void json_begin_object(struct json_writer *self, const char *key);
void json_end_object(struct json_writer *self);
void json_begin_array(struct json_writer *self, const char *key);
void json_end_array(struct json_writer *self);
void json_put_text(struct json_writer *self, const char *key, const char *text); /* NULL: null */
void json_put_integer(struct json_writer *self, const char *key, uint64_t integer);
void json_put_real(struct json_writer *self, const char *key, double real); /* not finite: null */
void json_put_bool(struct json_writer *self, const char *key, bool value);
void json_put_null(struct json_writer *self, const char *key);
/* null if it is not known. */
void json_put_known(struct json_writer *self, const char *key, bool known, uint64_t integer);
void json_put_known_real(struct json_writer *self, const char *key, bool known, double real);
/* null if the integer means "none": 0; if it means "no limit": UINT64_MAX. */
void json_put_some(struct json_writer *self, const char *key, uint64_t integer);
void json_put_bounded(struct json_writer *self, const char *key, uint64_t integer);

/* Members of a struct, each under its own name: JSON_PUT(json, run, seed, steps) puts "seed" and
 * "steps" of `*run` as their types are. Two to eight. */
#define JSON_PUT(json, of, ...)                                                                    \
    JSON_PUT_COUNT(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(json, of, __VA_ARGS__)
#define JSON_PUT_COUNT(a, b, c, d, e, f, g, h, count, ...) JSON_PUT_##count
#define JSON_PUT_1(json, of, member)                                                               \
    _Generic((of)->member, bool: json_put_bool, double: json_put_real, char *: json_put_text,      \
        const char *: json_put_text, default: json_put_integer)(json, #member, (of)->member)
#define JSON_PUT_2(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_1(json, of, __VA_ARGS__))
#define JSON_PUT_3(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_2(json, of, __VA_ARGS__))
#define JSON_PUT_4(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_3(json, of, __VA_ARGS__))
#define JSON_PUT_5(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_4(json, of, __VA_ARGS__))
#define JSON_PUT_6(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_5(json, of, __VA_ARGS__))
#define JSON_PUT_7(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_6(json, of, __VA_ARGS__))
#define JSON_PUT_8(json, of, member, ...)                                                          \
    (JSON_PUT_1(json, of, member), JSON_PUT_7(json, of, __VA_ARGS__))

/* Comma-separated values: a header line, then one line for each row. A field with a comma, a quote
 * or a line end is written in double quotes; an unknown value is an empty field; bytes that are not
 * UTF-8 (file names may contain any) become U+FFFD. */

/* One field, quoted if necessary. */
void csv_text(FILE *stream, const char *text);

/* Writes rows field by field. */
struct csv_writer {
    FILE *stream;
    bool filled; /* the row has a field */
};

void csv_put_text(struct csv_writer *self, const char *text);
void csv_put_integer(struct csv_writer *self, uint64_t integer);
void csv_put_real(struct csv_writer *self, double real);
void csv_put_empty(struct csv_writer *self);
void csv_put_metric(struct csv_writer *self, const struct metric_value *value);
/* A field that needs no quotes: a fixed name, or several fields with their commas. */
void csv_put_plain(struct csv_writer *self, const char *text);
void csv_end_row(struct csv_writer *self);

/* Divides a line into its fields, in place, and removes quotes and the line end. Returns the number
 * of fields, at most `room`. */
size_t csv_split(char *line, char **fields, size_t room);

/* SHA-256 or other bytes as lower-case hexadecimal digits. Returns `text`, 2 * count + 1 bytes. */
const char *hex_print(const uint8_t *bytes, size_t count, char *text);
