#include "bench/report/csv.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/utf8.h"
#include "bench/report/json_writer.h"

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

void csv_put_integer(struct csv_writer *self, uint64_t integer)
{
    csv_put_empty(self);
    fprintf(self->stream, "%" PRIu64, integer);
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
        for (; *at && (quoted || *at != ','); at++) {
            if (*at == '"' && quoted && at[1] == '"')
                *to++ = *at++;
            else if (*at == '"')
                quoted = !quoted;
            else
                *to++ = *at;
        }
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
