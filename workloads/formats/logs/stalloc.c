/* STAlloc's traces: the log of its tracing allocator under PyTorch, one line for each request and
 * free, and lines by which Megatron says where it is.
 *
 *     Iteration Index : 0
 *     micro-batch : F
 *     1 0x7f1e41329c00 512 0
 *     0 0x7f1e41329c00 512 0
 *
 * A numbered iteration is a step; it ends at the next "Iteration Index". All other such lines
 * become marks.
 *
 * Source of the format: infinigence/STAlloc, Allocator/trace.cpp and
 * Synthesizer/trace_parser.py. */

#include "allocators/base/size.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"

#define ITERATION "Iteration Index"

enum { ACTION, POINTER, SIZE, STREAM, COLUMNS };

struct reading {
    struct rows rows;
    bool in_step;
};

/* Whether the line says where the program is. */
static bool is_place(const char *line)
{
    static const char *const stems[] = {ITERATION, "micro-batch", "token_"};
    for (size_t i = 0; i < AR_COUNT(stems); i++)
        if (field_begins_with(line, stems[i]))
            return strchr(line, ':') != NULL;
    return strstr(line, "->") && strstr(line, "Layer");
}

static enum ar_status parse_row(char *line, struct row *row, struct ar_error *error)
{
    char *fields[COLUMNS];
    size_t count = fields_split(line, ' ', fields, COLUMNS);
    if (count != COLUMNS)
        return ar_invalid(error, "there are %zu words instead of 4: 1 or 0, address, size, stream",
                          count);
    if (strcmp(fields[ACTION], "0") != 0 && strcmp(fields[ACTION], "1") != 0)
        return ar_invalid(error, "\"%.40s\" is neither 1 (a request) nor 0 (a free)",
                          fields[ACTION]);
    row->action = fields[ACTION][0] == '1' ? ROW_ALLOC : ROW_FREE;
    AR_TRY(ar_error_prefix(error, field_pointer(fields[POINTER], &row->address, error), "address"));
    AR_TRY(ar_error_prefix(error, ar_count_parse(fields[SIZE], &row->bytes, error), "size"));
    return ar_error_prefix(error, field_pointer(fields[STREAM], &row->stream, error), "stream");
}

static bool matches_stalloc(const char *head, size_t count)
{
    char line[256];
    struct row row;
    struct ar_error ignored;
    const char *end;
    for (; count && (end = memchr(head, '\n', count));
         count -= (size_t)(end + 1 - head), head = end + 1) {
        if (!head_line(head, count, line, sizeof line))
            return false;
        if (!is_place(line))
            return parse_row(line, &row, &ignored) == AR_OK;
    }
    return false;
}

/* Makes the line the label of a mark: a word without commas and equals signs. */
static void make_label(char *line)
{
    char *to = line;
    for (const char *from = line; *from; from++) {
        bool space = *from == ' ' || *from == '\t';
        bool beside_colon = from[1] == ':' || (to > line && to[-1] == ':');
        if (space && (beside_colon || to == line || to[-1] == '_'))
            continue;
        bool plain = *from > ' ' && *from < 0x7f && *from != ',' && *from != '=';
        *to++ = plain ? *from : '_';
    }
    while (to > line && to[-1] == '_')
        to--;
    *to = 0;
}

static enum ar_status take_place(struct reading *r, char *line, struct row *row,
                                 struct ar_error *error)
{
    if (field_begins_with(line, ITERATION)) {
        const char *index = strchr(line, ':') + 1;
        bool ends = r->in_step;
        index += strspn(index, " ");
        r->in_step = *index >= '0' && *index <= '9';
        row->action = ROW_STEP;
        return ends ? rows_add(&r->rows, row, error) : AR_OK;
    }
    make_label(line);
    row->action = ROW_MARK;
    AR_TRY(texts_intern(&r->rows.texts, line, strlen(line), &row->text, error));
    row->text++;
    return rows_add(&r->rows, row, error);
}

static enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error)
{
    struct reading *r = self;
    struct row row = {.position = number};
    if (is_place(line))
        return take_place(r, line, &row, error);
    AR_TRY(parse_row(line, &row, error));
    r->rows.reading->report->records++;
    return rows_add(&r->rows, &row, error);
}

static enum ar_status read_stalloc(struct format_reading *reading, struct ar_error *error)
{
    struct reading r = {.rows = {.reading = reading, .unit = ":"}};
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "stalloc");
    enum ar_status status = fields_lines(reading->input, take_line, &r, error);
    AR_THEN(status, rows_convert(&r.rows, error));
    rows_close(&r.rows);
    return status;
}

const struct format_reader format_stalloc = {
    .name = "stalloc",
    .summary = "STAlloc's log of requests and frees as text, read",
    .matches = matches_stalloc,
    .read = read_stalloc,
};
