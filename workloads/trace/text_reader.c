/* Text traces, and those of the oracles: files without a first line that hold only a and f.
 *
 * What: a source over the lines of a file. How: the file is read twice or more. Opening reads
 * and checks all of it and keeps the counts; each later pass parses again, so that memory is
 * that of the blocks live at once and of the different texts, not that of the file. */
#include <stdlib.h>
#include <string.h>

#include "workloads/trace/check.h"
#include "workloads/io/lines.h"
#include "workloads/trace/reader.h"
#include "workloads/trace/text_line.h"

enum { SPAN = 4096 };

struct text_trace {
    struct trace_source base;
    struct trace_input *input;
    struct trace_tables tables;
    struct trace_check check;
    bool oracle;               /* no first line: only a and f */
    bool free_requested_final; /* said in the header, or found by the first pass */
    bool opened;               /* the first pass is done */
    bool pending;              /* `lines` has given the first line of an oracle trace already */
    char *line;                /* that line */
    struct trace_event span[SPAN];
    struct trace_lines lines;
};

static enum ar_status located(const struct text_trace *trace, enum ar_status status,
                              struct ar_error *error)
{
    return ar_error_prefix(error, status, "%s:%llu", trace_input_path(trace->input),
                           (unsigned long long)trace->lines.number);
}

static enum ar_status first_line(struct text_trace *trace, struct ar_error *error)
{
    static const char stem[] = "# allocrig-trace ";
    char *line;
    size_t length;
    enum ar_status status = trace_lines_next(&trace->lines, &line, &length, error);
    if (status)
        return status;
    const char *path = trace_input_path(trace->input);
    if (!line)
        return ar_error_set(error, AR_FORMAT, "%s: the file is empty; a trace was wanted", path);
    trace->oracle = false;
    trace->pending = false;
    if (!strcmp(line, TRACE_TEXT_FIRST_LINE))
        return AR_OK;
    if (!strncmp(line, stem, sizeof stem - 1))
        return ar_error_set(
            error, AR_FORMAT,
            "%s:1: version \"%.20s\" of the trace format; this program reads version 1", path,
            line + sizeof stem - 1);
    if ((line[0] != 'a' && line[0] != 'f') || line[1] != ',')
        return ar_error_set(error, AR_FORMAT,
                            "%s: no trace: it begins neither with \"" TRACE_TEXT_FIRST_LINE
                            "\" nor with an event a,ID,BYTES nor as any other format that `list "
                            "formats` names",
                            path);
    trace->oracle = true;
    trace->pending = true;
    trace->line = line;
    return AR_OK;
}

/* The next line that holds an event; NULL at the end. */
static enum ar_status event_line(struct text_trace *trace, unsigned *given, char **line,
                                 struct ar_error *error)
{
    *line = trace->line;
    if (trace->pending) {
        trace->pending = false;
        return AR_OK;
    }
    size_t length;
    enum ar_status status;
    while (!(status = trace_lines_next(&trace->lines, line, &length, error)) && *line) {
        if (!length)
            continue;
        if (**line != '#')
            return AR_OK;
        if (trace->check.counts.events || trace->oracle)
            status =
                ar_error_set(error, AR_INVALID,
                             "a # line stands after the first event; headers and comments come "
                             "before it");
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
        status = ar_error_set(error, AR_INVALID,
                              "a file without the line \"" TRACE_TEXT_FIRST_LINE
                              "\" may hold only a and f events");
    if (!status)
        status = trace_check_event(&trace->check, event, error);
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
        enum ar_status status = event_line(trace, &given, &line, error);
        if (status)
            return status;
        if (!line)
            break;
        status = take_line(trace, line, &trace->span[*count], error);
        if (status)
            return status;
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
    enum ar_status status = trace_input_rewind(trace->input, error);
    return status ? status : begin_pass(trace, error);
}

static const struct trace_attributes *text_attributes(struct trace_source *self, uint32_t index)
{
    return trace_tables_at(&((struct text_trace *)self)->tables, index);
}

static const char *text_text(struct trace_source *self, uint64_t index)
{
    return trace_tables_text(&((struct text_trace *)self)->tables, index);
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
    .attributes = text_attributes,
    .text = text_text,
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
    if (status)
        return status;
    trace_check_finish(&trace->check, info);
    (void)strcpy(info->format, trace->oracle ? "oracle" : "text");
    trace->free_requested_final = trace->check.free_requests && !info->has_split_frees;
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
    trace->input = input;
    enum ar_status status = first_pass(trace, error);
    if (status) {
        trace_close(&trace->base);
        return status;
    }
    *out = &trace->base;
    return AR_OK;
}
