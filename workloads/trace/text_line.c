/* One event as a line of text.
 *
 * What: the grammar of FORMAT.md. How: a cursor walks the line; after the letter come the
 * fields, each after a comma, then the keys. A field is told from a key by its first byte:
 * keys begin with a letter, numbers do not. */
#include "workloads/trace/text_line.h"

#include <stdio.h>
#include <string.h>

static const char letters[TRACE_KIND_LAST + 1] = {
    [TRACE_ALLOC] = 'a',          [TRACE_PROBE] = 'p',   [TRACE_FREE_REQUESTED] = 'r',
    [TRACE_FREE_COMPLETED] = 'f', [TRACE_USE] = 'u',     [TRACE_KERNEL] = 'k',
    [TRACE_RECORD] = 'e',         [TRACE_WAIT] = 'w',    [TRACE_SYNC] = 's',
    [TRACE_TRIM] = 'c',           [TRACE_OUTSIDE] = 'o', [TRACE_MARK] = 'm',
    [TRACE_TIME] = 't',           [TRACE_NOTE] = '!',
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The number after the next comma. */
static enum ar_status take_number(const char **at, const char *what, uint64_t *value,
                                  struct ar_error *error)
{
    if (**at != ',')
        return ar_error_set(error, AR_INVALID, "the %s is missing", what);
    const char *from = ++*at;
    *value = 0;
    bool over = false;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');
        over |= *value > (UINT64_MAX - digit) / 10;
        *value = *value * 10 + digit;
    }
    if (*at == from || (**at && **at != ',')) {
        int length = (int)strcspn(from, ",");
        return ar_error_set(error, AR_INVALID, "the %s \"%.*s\" is not a whole number%s", what,
                            length < 60 ? length : 60, from,
                            *from == '-' ? " (it is negative)" : "");
    }
    if (over)
        return ar_error_set(error, AR_INVALID, "the %s %.*s is too large for any trace", what,
                            *at - from < 60 ? (int)(*at - from) : 60, from);
    return AR_OK;
}

static enum ar_status take_stream(const char **at, uint32_t *stream, struct ar_error *error)
{
    uint64_t number;
    enum ar_status status = take_number(at, "stream", &number, error);
    if (status)
        return status;
    if (number >= TRACE_NO_STREAM)
        return ar_error_set(error, AR_INVALID,
                            "stream %llu: a trace counts its streams from 0, below 65536",
                            (unsigned long long)number);
    *stream = (uint32_t)number;
    return AR_OK;
}

/* A stream that may be left out. */
static enum ar_status take_stream_if(const char **at, uint32_t absent, uint32_t *stream,
                                     struct ar_error *error)
{
    *stream = absent;
    if (!**at || is_letter((*at)[1]))
        return AR_OK;
    return take_stream(at, stream, error);
}

static enum ar_status take_label(const char **at, struct trace_tables *tables, uint64_t *value,
                                 struct ar_error *error)
{
    size_t length = **at ? strcspn(*at + 1, ",") : 0;
    if (!length)
        return ar_error_set(error, AR_INVALID, "the label of the mark is missing");
    enum ar_status status = trace_tables_add_text(tables, *at + 1, length, value, error);
    *at += 1 + length;
    return status;
}

/* The fields of the event; `*at` is left where the keys may begin. */
static enum ar_status take_fields(const char **at, struct trace_tables *tables,
                                  struct trace_event *event, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        status = take_number(at, "id", &event->id, error);
        if (!status)
            status = take_number(at, "size", &event->value, error);
        return status ? status : take_stream_if(at, 0, &event->stream, error);
    case TRACE_FREE_REQUESTED:
        status = take_number(at, "id", &event->id, error);
        return status ? status : take_stream_if(at, TRACE_NO_STREAM, &event->stream, error);
    case TRACE_FREE_COMPLETED:
        return take_number(at, "id", &event->id, error);
    case TRACE_USE:
        status = take_number(at, "id", &event->id, error);
        return status ? status : take_stream(at, &event->stream, error);
    case TRACE_KERNEL:
        status = take_stream(at, &event->stream, error);
        return status ? status : take_number(at, "duration", &event->value, error);
    case TRACE_RECORD:
        status = take_number(at, "event number", &event->value, error);
        return status ? status : take_stream(at, &event->stream, error);
    case TRACE_WAIT:
        status = take_stream(at, &event->stream, error);
        return status ? status : take_number(at, "event number", &event->value, error);
    case TRACE_SYNC:
        return take_stream_if(at, TRACE_NO_STREAM, &event->stream, error);
    case TRACE_OUTSIDE:
        return take_number(at, "size", &event->value, error);
    case TRACE_MARK:
        return take_label(at, tables, &event->value, error);
    case TRACE_TIME:
        return take_number(at, "time", &event->value, error);
    default:
        return AR_OK;
    }
}

enum ar_status trace_line_parse(const char *line, struct trace_tables *tables,
                                struct trace_event *event, struct ar_error *error)
{
    *event = (struct trace_event){0};
    for (unsigned kind = 1; kind <= TRACE_KIND_LAST; kind++)
        if (letters[kind] == line[0])
            event->kind = (uint8_t)kind;
    if (!event->kind || (line[1] && line[1] != ',')) {
        int length = (int)strcspn(line, ",");
        return ar_error_set(
            error, AR_INVALID,
            "\"%.*s\" is no event: a line begins with one of a p r f u k e w s c o m t "
            "! and a comma",
            length < 20 ? length : 20, line);
    }
    const char *at = line + 1;
    if (event->kind == TRACE_NOTE) {
        if (!*at)
            return ar_error_set(error, AR_INVALID, "the text of the note is missing");
        return trace_tables_add_text(tables, at + 1, strlen(at + 1), &event->value, error);
    }
    enum ar_status status = take_fields(&at, tables, event, error);
    if (status || !*at)
        return status;
    if (!is_letter(at[1]))
        return ar_error_set(error, AR_INVALID, "\"%.60s\" is one field too many", at + 1);
    return trace_tables_keys(tables, at + 1, strlen(at + 1), &event->attributes, error);
}

struct printer {
    char *out;
    size_t room, used;
};

static void put_text(struct printer *printer, const char *text, size_t length)
{
    if (printer->used + length <= printer->room)
        memcpy(printer->out + printer->used, text, length);
    printer->used += length;
}

static void put_number(struct printer *printer, uint64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    digits[--at] = ',';
    put_text(printer, digits + at, sizeof digits - at);
}

static void put_fields(struct printer *printer, const struct trace_event *event,
                       const struct trace_line_parts *parts)
{
    if (trace_kind_has_block(event->kind))
        put_number(printer, event->id);
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        put_number(printer, event->value);
        if (event->stream)
            put_number(printer, event->stream);
        break;
    case TRACE_FREE_REQUESTED:
        if (event->stream != parts->block_stream)
            put_number(printer, event->stream);
        break;
    case TRACE_KERNEL:
    case TRACE_WAIT:
        put_number(printer, event->stream);
        put_number(printer, event->value);
        break;
    case TRACE_RECORD:
        put_number(printer, event->value);
        put_number(printer, event->stream);
        break;
    case TRACE_USE:
        put_number(printer, event->stream);
        break;
    case TRACE_SYNC:
        if (event->stream != TRACE_NO_STREAM)
            put_number(printer, event->stream);
        break;
    case TRACE_OUTSIDE:
    case TRACE_TIME:
        put_number(printer, event->value);
        break;
    default:
        break;
    }
}

size_t trace_line_print(const struct trace_event *event, const struct trace_line_parts *parts,
                        char *out, size_t room)
{
    struct printer printer = {out, room, 0};
    put_text(&printer, &letters[event->kind <= TRACE_KIND_LAST ? event->kind : 0], 1);
    put_fields(&printer, event, parts);
    if (event->kind == TRACE_MARK || event->kind == TRACE_NOTE) {
        put_text(&printer, ",", 1);
        put_text(&printer, parts->text, strlen(parts->text));
    }
    if (parts->keys && *parts->keys) {
        put_text(&printer, ",", 1);
        put_text(&printer, parts->keys, strlen(parts->keys));
    }
    put_text(&printer, "\n", 1);
    return printer.used;
}
