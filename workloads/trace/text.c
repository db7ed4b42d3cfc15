/* The text form of traces: one event as a line, and the source over the lines of a file.
 *
 * 1. A cursor moves along a line: after the letter come the fields, each after a comma, then the
 *    keys. The first byte tells a field from a key: keys begin with a letter, numbers do not.
 * 2. A file is read twice or more. Opening reads and checks all of it and keeps the counts; each
 *    later pass parses again, so that memory is that of the blocks live at once and of the
 *    different texts, not that of the file.
 * 3. The traces of the oracles are files without a first line that have only `a` and `f` events. */
#include "workloads/trace/forms.h"

#include "workloads/io/fields.h"
#include "workloads/trace/check.h"
#include "workloads/trace/trace.h"

/* ---- lines ---- */

/* The grammar of each kind of event: its fields in order. i: id; v: value; s: stream; S: optional
 * stream. Marks and notes have a text instead. */
static const struct grammar {
    const char *fields;
    const char *value;      /* the name of the value in errors */
    uint32_t absent_stream; /* the stream of an event without S */
} grammar[TRACE_KIND_LAST + 1] = {
    [TRACE_ALLOC] = {"ivS", "size", 0},
    [TRACE_PROBE] = {"ivS", "size", 0},
    [TRACE_FREE_REQUESTED] = {"iS", NULL, TRACE_NO_STREAM},
    [TRACE_FREE_COMPLETED] = {"i", NULL, 0},
    [TRACE_USE] = {"is", NULL, 0},
    [TRACE_KERNEL] = {"sv", "duration", 0},
    [TRACE_RECORD] = {"vs", "event number", 0},
    [TRACE_WAIT] = {"sv", "event number", 0},
    [TRACE_SYNC] = {"S", NULL, TRACE_NO_STREAM},
    [TRACE_TRIM] = {"", NULL, 0},
    [TRACE_OUTSIDE] = {"v", "size", 0},
    [TRACE_MARK] = {"", NULL, 0},
    [TRACE_TIME] = {"v", "time", 0},
    [TRACE_NOTE] = {"", NULL, 0},
};

static const char letters[] = TRACE_LETTERS;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The number after the next comma. */
static enum ar_status take_number(const char **at, const char *what, uint64_t *value,
                                  struct ar_error *error)
{
    if (**at != ',')
        return ar_invalid(error, "the %s is missing", what);
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
        return ar_invalid(error, "the %s \"%.*s\" is not a whole number%s", what,
                          length < 60 ? length : 60, from, *from == '-' ? " (it is negative)" : "");
    }
    if (over)
        return ar_invalid(error, "the %s %.*s is too large for any trace", what,
                          *at - from < 60 ? (int)(*at - from) : 60, from);
    return AR_OK;
}

static enum ar_status take_stream(const char **at, uint32_t *stream, struct ar_error *error)
{
    uint64_t number;
    AR_TRY(take_number(at, "stream", &number, error));
    if (number >= TRACE_NO_STREAM)
        return ar_invalid(error, "stream %llu: a trace counts its streams from 0, below 65536",
                          (unsigned long long)number);
    *stream = (uint32_t)number;
    return AR_OK;
}

static enum ar_status take_label(const char **at, struct trace_tables *tables, uint64_t *value,
                                 struct ar_error *error)
{
    size_t length = **at ? strcspn(*at + 1, ",") : 0;
    if (!length)
        return ar_invalid(error, "the label of the mark is missing");
    enum ar_status status = trace_tables_add_text(tables, *at + 1, length, value, error);
    *at += 1 + length;
    return status;
}

/* Reads the fields of the event; `*at` then is at the keys, if there are any. */
static enum ar_status take_fields(const char **at, struct trace_event *event,
                                  struct ar_error *error)
{
    const struct grammar *rule = &grammar[event->kind];
    for (const char *field = rule->fields; *field; field++) {
        if (*field == 'i')
            AR_TRY(take_number(at, "id", &event->id, error));
        else if (*field == 'v')
            AR_TRY(take_number(at, rule->value, &event->value, error));
        else if (*field == 'S' && (!**at || is_letter((*at)[1])))
            event->stream = rule->absent_stream;
        else
            AR_TRY(take_stream(at, &event->stream, error));
    }
    return AR_OK;
}

/* Reads a line; keys and texts are added to the tables. trace_check_event fills in the fields that
 * the line leaves out. INVALID with a sentence without file and line. */
static enum ar_status trace_line_parse(const char *line, struct trace_tables *tables,
                                       struct trace_event *event, struct ar_error *error)
{
    *event = (struct trace_event){0};
    const char *letter = memchr(letters, line[0], TRACE_KIND_LAST);
    if (!letter || (line[1] && line[1] != ',')) {
        int length = (int)strcspn(line, ",");
        return ar_invalid(
            error, "\"%.*s\" is no event: a line begins with one of the letters %s and a comma",
            length < 20 ? length : 20, line, letters);
    }
    event->kind = (uint8_t)(letter - letters + 1);
    const char *at = line + 1;
    if (event->kind == TRACE_NOTE) {
        if (!*at)
            return ar_invalid(error, "the text of the note is missing");
        return trace_tables_add_text(tables, at + 1, strlen(at + 1), &event->value, error);
    }
    AR_TRY(event->kind == TRACE_MARK ? take_label(&at, tables, &event->value, error)
                                     : take_fields(&at, event, error));
    if (!*at)
        return AR_OK;
    if (!is_letter(at[1]))
        return ar_invalid(error, "\"%.60s\" is one field too many", at + 1);
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
                       const struct grammar *rule, uint32_t absent_stream)
{
    for (const char *field = rule->fields; *field; field++) {
        if (*field == 'i')
            put_number(printer, event->id);
        else if (*field == 'v')
            put_number(printer, event->value);
        else if (*field == 's' || event->stream != absent_stream)
            put_number(printer, event->stream);
    }
}

size_t trace_line_print(const struct trace_event *event, const struct trace_line_parts *parts,
                        char *out, size_t room)
{
    struct printer printer = {out, room, 0};
    const struct grammar *rule = &grammar[event->kind];
    put_text(&printer, &letters[event->kind - 1], 1);
    put_fields(&printer, event, rule,
               event->kind == TRACE_FREE_REQUESTED ? parts->block_stream : rule->absent_stream);
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

/* ---- the source ---- */

enum { SPAN = 4096 };

struct text_trace {
    struct trace_source base;
    struct trace_input *input;
    struct trace_tables tables;
    struct trace_check check;
    bool oracle;               /* no first line: only a and f */
    bool free_requested_final; /* from the header, or from the first pass */
    bool opened;               /* the first pass is done */
    char *line;                /* the first line of an oracle trace, until it is parsed */
    struct trace_event span[SPAN];
    struct trace_lines lines;
};

static enum ar_status located(const struct text_trace *trace, enum ar_status status,
                              struct ar_error *error)
{
    return ar_error_prefix(error, status, "%s:%llu", trace_input_path(trace->input),
                           (unsigned long long)trace->lines.number);
}

static enum ar_status no_trace(const char *path, const char *line, struct ar_error *error)
{
    char shown[48];
    field_text(line, shown, sizeof shown);
    return ar_error_set(
        error, AR_FORMAT,
        "%s: no trace: it begins with \"%s\". A trace begins with \"" TRACE_TEXT_FIRST_LINE
        "\" or an event a,ID,BYTES, a recorded CSV with the columns "
        "action,addr,size,stream,time_us; `list formats` names the other formats",
        path, shown);
}

static enum ar_status first_line(struct text_trace *trace, struct ar_error *error)
{
    static const char stem[] = "# allocrig-trace ";
    char *line;
    size_t length;
    AR_TRY(trace_lines_next(&trace->lines, &line, &length, error));
    const char *path = trace_input_path(trace->input);
    if (!line)
        return ar_error_set(error, AR_FORMAT, "%s: the file is empty; it should be a trace", path);
    trace->oracle = false;
    trace->line = NULL;
    if (!strcmp(line, TRACE_TEXT_FIRST_LINE))
        return AR_OK;
    if (strchr(line, '\r'))
        return ar_error_set(error, AR_FORMAT,
                            "%s:1: lines end with CR alone; save them with LF or CR LF", path);
    if (!strncmp(line, stem, sizeof stem - 1))
        return ar_error_set(
            error, AR_FORMAT,
            "%s:1: version \"%.20s\" of the trace format; this program reads version 1", path,
            line + sizeof stem - 1);
    if ((line[0] != 'a' && line[0] != 'f') || line[1] != ',')
        return no_trace(path, line, error);
    trace->oracle = true;
    trace->line = line;
    return AR_OK;
}

/* The next line with an event; NULL at the end. */
static enum ar_status event_line(struct text_trace *trace, unsigned *given, char **line,
                                 struct ar_error *error)
{
    *line = trace->line;
    trace->line = NULL;
    if (*line)
        return AR_OK;
    size_t length;
    enum ar_status status;
    while (!(status = trace_lines_next(&trace->lines, line, &length, error)) && *line) {
        if (!length)
            continue;
        if (**line != '#')
            return AR_OK;
        if (trace->check.counts.events || trace->oracle)
            status = ar_invalid(
                error, "a # line follows the first event; headers and comments come before it");
        else if (!trace->opened)
            status =
                trace_header_parse(*line, &trace->base, &trace->free_requested_final, given, error);
        if (status)
            return located(trace, status, error);
        if (trace->free_requested_final)
            trace->check.free_requested_final = true;
    }
    return status;
}

static enum ar_status take_line(struct text_trace *trace, const char *line,
                                struct trace_event *event, struct ar_error *error)
{
    enum ar_status status = trace_line_parse(line, &trace->tables, event, error);
    if (!status && trace->oracle && event->kind != TRACE_ALLOC &&
        event->kind != TRACE_FREE_COMPLETED)
        status = ar_invalid(error, "a file without the line \"" TRACE_TEXT_FIRST_LINE
                                   "\" may have only a and f events");
    AR_THEN(status, trace_check_event(&trace->check, event, error));
    return status ? located(trace, status, error) : AR_OK;
}

static enum ar_status text_next(struct trace_source *self, const struct trace_event **events,
                                size_t *count, struct ar_error *error)
{
    struct text_trace *trace = (struct text_trace *)self;
    unsigned given = 0;
    *events = trace->span;
    for (*count = 0; *count < SPAN; ++*count) {
        char *line;
        AR_TRY(event_line(trace, &given, &line, error));
        if (!line)
            break;
        AR_TRY(take_line(trace, line, &trace->span[*count], error));
    }
    return AR_OK;
}

static enum ar_status begin_pass(struct text_trace *trace, struct ar_error *error)
{
    trace_lines_start(&trace->lines, trace->input);
    trace_check_close(&trace->check);
    trace_check_start(&trace->check, &trace->tables, false, trace->free_requested_final);
    trace->check.hash_off = trace->opened;
    return first_line(trace, error);
}

static enum ar_status text_rewind(struct trace_source *self, struct ar_error *error)
{
    struct text_trace *trace = (struct text_trace *)self;
    AR_TRY(trace_input_rewind(trace->input, error));
    return begin_pass(trace, error);
}

static void text_close(struct trace_source *self)
{
    struct text_trace *trace = (struct text_trace *)self;
    trace_check_close(&trace->check);
    trace_tables_close(&trace->tables);
    trace_input_close(trace->input);
    free(trace);
}

static const struct trace_source_ops text_ops = {
    .next = text_next,
    .rewind = text_rewind,
    .close = text_close,
};

/* The pass that checks and counts. */
static enum ar_status first_pass(struct text_trace *trace, struct ar_error *error)
{
    struct trace_info *info = &trace->base.info;
    trace_name_from_path(trace_input_path(trace->input), info->name, sizeof info->name);
    info->complete = true;
    enum ar_status status = begin_pass(trace, error);
    unsigned given = 0;
    while (!status) {
        char *line;
        struct trace_event event;
        status = event_line(trace, &given, &line, error);
        if (status || !line)
            break;
        status = take_line(trace, line, &event, error);
    }
    AR_TRY(status);
    trace_check_finish(&trace->check, info);
    (void)strcpy(info->format, trace->oracle ? "oracle" : "text");
    trace->free_requested_final = trace_check_is_final(&trace->check);
    trace->opened = true;
    return text_rewind(&trace->base, error);
}

enum ar_status trace_text_open(struct trace_input *input, struct trace_source **out,
                               struct ar_error *error)
{
    struct text_trace *trace = calloc(1, sizeof *trace);
    if (!trace) {
        trace_input_close(input);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a trace");
    }
    trace->base.ops = &text_ops;
    trace->base.tables = &trace->tables;
    trace->input = input;
    enum ar_status status = first_pass(trace, error);
    if (status) {
        trace_close(&trace->base);
        return status;
    }
    *out = &trace->base;
    return AR_OK;
}
