/* Words, numbers and times in the text of other programs' files. */
#pragma once

#include "workloads/io/file.h"

/* Gives each line that is not empty to `take`, which may write into it. Errors of `take` get file
 * and line in front. */
enum ar_status fields_lines(struct trace_input *input,
                            enum ar_status (*take)(void *self, char *line, uint64_t number,
                                                   struct ar_error *error),
                            void *self, struct ar_error *error);

/* The same for a text that may hold anything: of a long line the first 64 KiB are given. */
enum ar_status fields_log_lines(struct trace_input *input,
                                enum ar_status (*take)(void *self, char *line, uint64_t number,
                                                       struct ar_error *error),
                                void *self, struct ar_error *error);

/* Cuts `line` at each `separator` in place: up to `room` fields. Returns the number of fields in
 * the line, also if that is more than `room`. */
size_t fields_split(char *line, char separator, char **fields, size_t room);

/* Of the first bytes of a file, which may hold NULs: the index of the first byte from `at` on that
 * is not white space, or `count`. A byte-order mark at the front is skipped. */
size_t head_blanks(const char *head, size_t count, size_t at);
/* Whether `text` is anywhere in them. */
bool head_holds(const char *head, size_t count, const char *text);
/* Copies their first line without its end. False if it does not fit into `room` or holds a NUL. */
bool head_line(const char *head, size_t count, char *line, size_t room);

bool field_begins_with(const char *text, const char *stem);
bool field_ends_with(const char *text, const char *ending);
/* The name of a file in its path, after the last slash. */
const char *field_file_name(const char *path);

/* 0 to 15, or 16 if the byte is no hexadecimal digit. */
static inline unsigned field_hex_digit(char byte)
{
    unsigned c = (unsigned char)byte;
    return c - '0' <= 9 ? c - '0' : (c | 32) - 'a' <= 5 ? (c | 32) - 'a' + 10 : 16;
}

/* The bytes of a text, at most `length`, before its first control byte or byte that is no UTF-8. */
size_t field_plain(const char *text, size_t length);

/* Copies a text of another program, as much as fits; control bytes and bytes that are no UTF-8
 * become underscores. */
void field_text(const char *text, char *out, size_t room);

/* Copies the first `length` bytes of a text, or as many as fit, as a word: blanks, control bytes,
 * bytes above 0x7e and those in `refused` become underscores. */
void field_word(const char *text, size_t length, const char *refused, char *out, size_t room);

/* An address or handle as programs print it: "0x7f00", "7f00", "(nil)", "NULL", "nullptr". Below
 * UINT64_MAX; else INVALID. */
enum ar_status field_pointer(const char *text, uint64_t *value, struct ar_error *error);

/* A time of day "HH:MM:SS.ffffff" (older logs have a colon before the fraction), with or without a
 * date "YYYY-MM-DD" in front, or seconds since any moment "1634567890.123456". `*dated`: the time
 * is since 1970 (or that moment), else since midnight. INVALID otherwise. */
enum ar_status field_time(const char *text, uint64_t *time_ns, bool *dated, struct ar_error *error);

/* A text file line by line, in bounded memory. */

#define TRACE_LINE_LIMIT 65536u /* bytes of a line, its end included */

struct trace_lines {
    struct trace_input *input; /* the caller's */
    uint64_t number;           /* of the line given last, from 1 */
    size_t kept_bytes;         /* 0: see trace_lines_start_log */
    size_t begin, end;         /* of the bytes in the buffer that are not given yet */
    bool ended;
    char buffer[2 * TRACE_LINE_LIMIT + 1];
};

void trace_lines_start(struct trace_lines *lines, struct trace_input *input);
/* For the log of a program, which may hold anything: a line may have any length, of which the first
 * `kept_bytes` (at most TRACE_LINE_LIMIT) are given, and its NULs become blanks. */
void trace_lines_start_log(struct trace_lines *lines, struct trace_input *input, size_t kept_bytes);

/* The next line without its end (LF or CR LF), closed by a NUL, valid until the next call. `*line`
 * is NULL at the end of the file. INVALID if a line is too long or holds a NUL. */
enum ar_status trace_lines_next(struct trace_lines *lines, char **line, size_t *length,
                                struct ar_error *error);
