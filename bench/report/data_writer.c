/* JSON, two spaces for each level, one value a line. Bytes that are no UTF-8 (file names may
 * hold any) become U+FFFD, so that what is written can always be read. */
#include "bench/report/data_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/utf8.h"

const char *real_print(double real, char text[REAL_TEXT_BYTES])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, REAL_TEXT_BYTES, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
            break;
    }
    return text;
}

void json_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const char *at = text; *at;) {
        size_t bytes = ar_utf8_bytes(at);
        if (*at == '"' || *at == '\\')
            fprintf(stream, "\\%c", *at);
        else if ((unsigned char)*at < 0x20)
            fprintf(stream, "\\u%04x", (unsigned)(unsigned char)*at);
        else if (bytes)
            fwrite(at, 1, bytes, stream);
        else
            fputs("\\ufffd", stream);
        at += bytes ? bytes : 1;
    }
    fputc('"', stream);
}

static bool is_lean(const struct json_writer *self, unsigned depth)
{
    return self->lean_from && depth > self->lean_from;
}

static void new_line(struct json_writer *self)
{
    fprintf(self->stream, "\n%*s", (int)self->depth * 2, "");
}

/* Before every value: the comma, the line break or blank, the key. */
static void begin_value(struct json_writer *self, const char *key)
{
    bool lean = is_lean(self, self->depth);
    if (self->filled)
        fputs(lean ? ", " : ",", self->stream);
    if (self->depth && !lean)
        new_line(self);
    if (key) {
        json_text(self->stream, key);
        fputs(": ", self->stream);
    }
    self->filled = true;
}

static void begin_group(struct json_writer *self, const char *key, char opening)
{
    begin_value(self, key);
    fputc(opening, self->stream);
    self->depth++;
    self->filled = false;
}

static void end_group(struct json_writer *self, char closing)
{
    bool lean = is_lean(self, self->depth--);
    if (self->filled && !lean)
        new_line(self);
    fputc(closing, self->stream);
    self->filled = true;
    if (self->depth == 0)
        fputc('\n', self->stream);
}

void json_begin_object(struct json_writer *self, const char *key)
{
    begin_group(self, key, '{');
}

void json_end_object(struct json_writer *self)
{
    end_group(self, '}');
}

void json_begin_array(struct json_writer *self, const char *key)
{
    begin_group(self, key, '[');
}

void json_end_array(struct json_writer *self)
{
    end_group(self, ']');
}

void json_put_text(struct json_writer *self, const char *key, const char *text)
{
    if (!text) {
        json_put_null(self, key);
        return;
    }
    begin_value(self, key);
    json_text(self->stream, text);
}

void json_put_integer(struct json_writer *self, const char *key, uint64_t integer)
{
    begin_value(self, key);
    fprintf(self->stream, "%" PRIu64, integer);
}

void json_put_real(struct json_writer *self, const char *key, double real)
{
    char text[REAL_TEXT_BYTES];
    if (!isfinite(real)) {
        json_put_null(self, key);
        return;
    }
    begin_value(self, key);
    fputs(real_print(real, text), self->stream);
}

void json_put_bool(struct json_writer *self, const char *key, bool value)
{
    begin_value(self, key);
    fputs(value ? "true" : "false", self->stream);
}

void json_put_null(struct json_writer *self, const char *key)
{
    begin_value(self, key);
    fputs("null", self->stream);
}

void json_put_known(struct json_writer *self, const char *key, bool known, uint64_t integer)
{
    if (known)
        json_put_integer(self, key, integer);
    else
        json_put_null(self, key);
}

void json_put_known_real(struct json_writer *self, const char *key, bool known, double real)
{
    json_put_real(self, key, known ? real : (double)NAN);
}

void json_put_some(struct json_writer *self, const char *key, uint64_t integer)
{
    json_put_known(self, key, integer != 0, integer);
}

void json_put_bounded(struct json_writer *self, const char *key, uint64_t integer)
{
    json_put_known(self, key, integer < UINT64_MAX, integer);
}

void csv_text(FILE *stream, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        fputc('"', stream);
    for (const char *at = text; *at;) {
        size_t bytes = ar_utf8_bytes(at);
        if (*at == '"')
            fputc('"', stream);
        if (bytes)
            fwrite(at, 1, bytes, stream);
        else
            fputs(AR_UTF8_REPLACEMENT, stream);
        at += bytes ? bytes : 1;
    }
    if (quoted)
        fputc('"', stream);
}

void csv_put_empty(struct csv_writer *self)
{
    if (self->filled)
        fputc(',', self->stream);
    self->filled = true;
}

void csv_put_text(struct csv_writer *self, const char *text)
{
    csv_put_empty(self);
    csv_text(self->stream, text);
}

void csv_put_plain(struct csv_writer *self, const char *text)
{
    csv_put_empty(self);
    fputs(text, self->stream);
}

/* A series is a million rows of integers, and printf took two thirds of the time of such a run. */
void csv_put_integer(struct csv_writer *self, uint64_t integer)
{
    char text[1 + 20]; // 2^64 - 1 has 20 digits
    char *at = text + sizeof text;
    do {
        *--at = (char)('0' + integer % 10);
    } while (integer /= 10);
    if (self->filled)
        *--at = ',';
    self->filled = true;
    fwrite(at, 1, (size_t)(text + sizeof text - at), self->stream);
}

void csv_put_real(struct csv_writer *self, double real)
{
    char text[REAL_TEXT_BYTES];
    csv_put_plain(self, real_print(real, text));
}

void csv_put_metric(struct csv_writer *self, const struct metric_value *value)
{
    if (value->kind == METRIC_INTEGER)
        csv_put_integer(self, value->integer);
    else if (value->kind == METRIC_REAL)
        csv_put_real(self, value->real);
    else
        csv_put_empty(self);
}

void csv_end_row(struct csv_writer *self)
{
    fputc('\n', self->stream);
    self->filled = false;
}

size_t csv_split(char *line, char **fields, size_t room)
{
    size_t count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; count < room; at++) {
        char *to = at;
        bool quoted = false;
        fields[count++] = at;
        for (; *at && (quoted || *at != ','); at++)
            if (*at == '"' && quoted && at[1] == '"')
                *to++ = *at++;
            else if (*at == '"')
                quoted = !quoted;
            else
                *to++ = *at;
        bool last = !*at;
        *to = '\0';
        if (last)
            break;
    }
    return count;
}

const char *hex_print(const uint8_t *bytes, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return text;
}
