/* MiniMalloc's CSV: lifetimes of buffers for offline planning, read and written.
 *
 *     id,lower,upper,size
 *     0,995328,1000448,656384
 *
 * Reading:
 * 1. The first line names the columns, in any order: id (or buffer, buffer_id), lower (begin,
 *    start), upper or end, size; alignment, hint, gaps and offset may follow.
 * 2. A buffer lives from lower until just before upper; an `end` is its last moment, so upper is
 *    one more.
 * 3. Moments become an order: at each, frees come first, then requests in the order of rows. A
 *    buffer that ends where it begins is freed right after its request.
 * 4. A hint is the offset that a planner should try first (-1: none). No policy here does; it is
 *    omitted.
 * 5. A buffer's id is kept as `tag` if it differs from the number of its request in the trace. An
 *    offset is the address that a planner chose: a note. The lifetime is kept in the keys `lower`
 *    and `upper`, so that a plan of the trace (`bound --plan`) can name it in the file's own terms.
 *
 * Writing: lifetimes are half-open and counted in requests and completions of the trace. A block
 * without a completion lives to the end. Blocks without bytes of device memory and requests that
 * failed have no row. If any request has an alignment, there is a column for it.
 *
 * Source of the format: google/minimalloc, src/converter.cc. */

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/formats/requests.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"

enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, HINT, GAPS, OFFSET, COLUMNS };

static const struct {
    const char *name;
    enum column column;
} names[] = {
    {"id", ID},         {"buffer", ID},           {"buffer_id", ID}, {"lower", LOWER},
    {"begin", LOWER},   {"start", LOWER},         {"upper", UPPER},  {"end", UPPER},
    {"size", SIZE},     {"alignment", ALIGNMENT}, {"hint", HINT},    {"gaps", GAPS},
    {"offset", OFFSET},
};

struct layout {
    int index[COLUMNS]; /* of a column in a row; -1: missing */
    int count;
    bool end_inclusive;
};

struct buffer {
    int64_t lower, upper;
    uint64_t size, alignment, offset, line;
    uint32_t text; /* of its id */
};

struct moment { /* a request (phase 1) or a free (phase 0) of a buffer */
    int64_t time;
    int phase;
    size_t buffer;
};

struct reading {
    struct format_reading *reading;
    struct layout layout;
    struct buffer *buffers;
    size_t count, capacity;
    struct texts ids;
    uint64_t with_gaps, with_hints, odd_alignments;
};

/* The columns that a first line names; false if one is unknown, named twice, or missing. */
static bool layout_read(char *line, struct layout *out)
{
    char *fields[COLUMNS];
    size_t count = fields_split(line, ',', fields, COLUMNS);
    *out = (struct layout){.index = {-1, -1, -1, -1, -1, -1, -1, -1}, .count = (int)count};
    if (count > COLUMNS)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < AR_COUNT(names) && strcmp(names[at].name, fields[i]) != 0)
            at++;
        if (at == AR_COUNT(names) || out->index[names[at].column] >= 0)
            return false;
        out->index[names[at].column] = (int)i;
        out->end_inclusive |= strcmp(fields[i], "end") == 0;
    }
    return out->index[ID] >= 0 && out->index[LOWER] >= 0 && out->index[UPPER] >= 0 &&
           out->index[SIZE] >= 0;
}

static bool matches_minimalloc(const char *head, size_t count)
{
    char line[128];
    struct layout layout;
    return head_line(head, count, line, sizeof line) && layout_read(line, &layout);
}

/* An integer with or without a sign, below 2^62 in magnitude. */
static enum ar_status parse_moment(const char *text, const char *what, int64_t *value,
                                   struct ar_error *error)
{
    uint64_t number;
    bool below = *text == '-';
    enum ar_status status = ar_count_parse(text + below, &number, error);
    if (!status && number >= UINT64_C(1) << 62)
        status = ar_invalid(error, "%.40s is too large", text);
    if (status)
        return ar_error_prefix(error, status, "%s", what);
    *value = below ? -(int64_t)number : (int64_t)number;
    return AR_OK;
}

static enum ar_status parse_optional(struct reading *r, char *const *fields, struct buffer *buffer,
                                     struct ar_error *error)
{
    const int *index = r->layout.index;
    enum ar_status status = AR_OK;
    buffer->offset = UINT64_MAX;
    if (index[ALIGNMENT] >= 0 &&
        (status = ar_count_parse(fields[index[ALIGNMENT]], &buffer->alignment, error)))
        return ar_error_prefix(error, status, "alignment");
    if (index[OFFSET] >= 0 &&
        (status = ar_count_parse(fields[index[OFFSET]], &buffer->offset, error)))
        return ar_error_prefix(error, status, "offset");
    if (buffer->alignment > 1 && !ar_size_is_power_of_two(buffer->alignment))
        r->odd_alignments++;
    if (buffer->alignment == 1 || !ar_size_is_power_of_two(buffer->alignment))
        buffer->alignment = 0;
    int64_t hint = -1;
    if (index[HINT] >= 0 && (status = parse_moment(fields[index[HINT]], "hint", &hint, error)))
        return status;
    r->with_hints += hint >= 0;
    if (index[GAPS] >= 0)
        r->with_gaps += fields[index[GAPS]][strspn(fields[index[GAPS]], " ")] != 0;
    return AR_OK;
}

static enum ar_status parse_row(struct reading *r, char *line, struct buffer *buffer,
                                struct ar_error *error)
{
    char *fields[COLUMNS];
    const int *index = r->layout.index;
    size_t count = fields_split(line, ',', fields, COLUMNS);
    if (count != (size_t)r->layout.count)
        return ar_invalid(error, "there are %zu columns where the first line names %d", count,
                          r->layout.count);
    AR_TRY(parse_moment(fields[index[LOWER]], "lower", &buffer->lower, error));
    AR_TRY(parse_moment(fields[index[UPPER]], "upper", &buffer->upper, error));
    AR_TRY(
        ar_error_prefix(error, ar_count_parse(fields[index[SIZE]], &buffer->size, error), "size"));
    buffer->upper += r->layout.end_inclusive;
    if (buffer->upper < buffer->lower)
        return ar_invalid(error, "the buffer ends (%" PRId64 ") before it begins (%" PRId64 ")",
                          buffer->upper, buffer->lower);
    if (buffer->size >= TRACE_BYTES_LIMIT)
        return ar_invalid(error, "a buffer of %" PRIu64 " bytes cannot be", buffer->size);
    AR_TRY(parse_optional(r, fields, buffer, error));
    char id[256];
    field_text(fields[index[ID]], id, sizeof id);
    return texts_intern(&r->ids, id, strlen(id), &buffer->text, error);
}

static enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error)
{
    struct reading *r = self;
    struct buffer buffer = {.line = number};
    if (!r->layout.count)
        return layout_read(line, &r->layout)
                   ? AR_OK
                   : ar_error_set(error, AR_FORMAT,
                                  "the first line must name the columns id, lower, upper and size");
    AR_TRY(parse_row(r, line, &buffer, error));
    return AR_APPEND(r->buffers, r->count, r->capacity, buffer, error, "the file");
}

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    AR_ORDER(a->time, b->time);
    AR_ORDER(a->phase, b->phase);
    return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static struct moment *sort_moments(const struct reading *r, size_t *count)
{
    struct moment *moments = malloc((2 * r->count + 1) * sizeof *moments);
    *count = 0;
    for (size_t i = 0; moments && i < r->count; i++) {
        const struct buffer *buffer = &r->buffers[i];
        moments[(*count)++] = (struct moment){buffer->lower, 1, i};
        if (buffer->lower < buffer->upper)
            moments[(*count)++] = (struct moment){buffer->upper, 0, i};
    }
    if (moments)
        qsort(moments, *count, sizeof *moments, compare_moments);
    return moments;
}

static enum ar_status append_completion(const struct reading *r, uint64_t id,
                                        struct ar_error *error)
{
    const struct trace_event event = {.kind = TRACE_FREE_COMPLETED, .id = id};
    return format_event(r->reading, event, NULL, NULL, error);
}

static enum ar_status append_request(const struct reading *r, size_t at, uint64_t id,
                                     struct ar_error *error)
{
    const struct buffer *buffer = &r->buffers[at];
    const char *name = r->ids.items[buffer->text];
    char number[32], life[64];
    snprintf(number, sizeof number, "%" PRIu64, id);
    snprintf(life, sizeof life, "lower=%" PRId64 ",upper=%" PRId64, buffer->lower, buffer->upper);
    struct trace_attributes keys = {.align = buffer->alignment,
                                    .tag = strcmp(number, name) == 0 || !*name ? NULL : name,
                                    .rest = life};
    struct trace_event event = {.kind = TRACE_ALLOC, .id = id, .value = buffer->size};
    AR_TRY(format_event(r->reading, event, &keys, NULL, error));
    if (buffer->offset != UINT64_MAX)
        AR_TRY(format_note(r->reading, error, "alloc,%" PRIu64, buffer->offset));
    return buffer->lower == buffer->upper ? append_completion(r, id, error) : AR_OK;
}

static enum ar_status append_all(const struct reading *r, const struct moment *moments,
                                 size_t count, struct ar_error *error)
{
    uint64_t next_id = 0;
    AR_FREED uint64_t *ids = calloc(r->count + 1, sizeof *ids);
    AR_TRY_MEMORY(ids, error, "the file");
    for (size_t i = 0; i < count; i++) {
        size_t at = moments[i].buffer;
        ids[at] = moments[i].phase ? next_id++ : ids[at];
        enum ar_status status = trace_memory_line(r->reading->memory, r->buffers[at].line, error);
        AR_THEN(status, moments[i].phase ? append_request(r, at, ids[at], error)
                                         : append_completion(r, ids[at], error));
        AR_TRY(ar_error_prefix(error, status, "%s:%" PRIu64, trace_input_path(r->reading->input),
                               r->buffers[at].line));
    }
    return AR_OK;
}

static enum ar_status make_trace(struct reading *r, struct ar_error *error)
{
    size_t count;
    AR_FREED struct moment *moments = sort_moments(r, &count);
    AR_TRY(format_start(r->reading, error));
    return moments ? append_all(r, moments, count, error) : format_no_memory(error);
}

static void say_guesses(const struct reading *r)
{
    struct import_report *report = r->reading->report;
    report->records = r->count;
    if (r->layout.end_inclusive)
        import_guess(report, "the column is called end: a buffer lives through that moment");
    import_guess_count(report, r->with_gaps,
                       "buffers have gaps: they are taken to be live all through");
    import_guess_count(report, r->with_hints,
                       "buffers have hints, offsets to be tried first: left out");
    import_guess_count(report, r->odd_alignments, "alignments are not powers of two: left out");
}

static enum ar_status read_minimalloc(struct format_reading *reading, struct ar_error *error)
{
    struct reading r = {.reading = reading};
    enum ar_status status = fields_lines(reading->input, take_line, &r, error);
    if (!status && !r.count)
        status = ar_error_set(error, AR_FORMAT, "the file holds no buffers");
    say_guesses(&r);
    AR_THEN(status, make_trace(&r, error));
    free(r.buffers);
    texts_close(&r.ids);
    return status;
}

const struct format_reader format_minimalloc = {
    .name = "minimalloc",
    .summary = "MiniMalloc's lifetimes of buffers as CSV, read",
    .matches = matches_minimalloc,
    .read = read_minimalloc,
};

/* ---- writing ----------------------------------------------------------------------------- */

struct lifetime {
    uint64_t id, lower, upper, bytes, align;
};

struct lifetimes {
    struct trace_source *source;
    struct lifetime *items; /* in the order of ids */
    size_t count, room;
    uint64_t now;
    bool aligned;
};

static enum ar_status add(struct lifetimes *self, const struct request_moment *moment,
                          struct ar_error *error)
{
    struct request_block *block = moment->block;
    uint64_t align = 0;
    if (moment->event->attributes)
        align = trace_attributes_of(self->source, moment->event->attributes)->align;
    self->aligned |= align != 0;
    const struct lifetime item = {.id = block->id,
                                  .lower = self->now++,
                                  .upper = UINT64_MAX,
                                  .bytes = block->bytes,
                                  .align = align ? align : 1};
    AR_TRY(AR_APPEND(self->items, self->count, self->room, item, error, "lifetimes"));
    block->user = (uint32_t)self->count;
    return AR_OK;
}

static enum ar_status take(void *argument, struct request_moment *moment, struct ar_error *error)
{
    struct lifetimes *self = argument;
    const struct request_block *block = moment->block;
    if (moment->kind == REQUEST_SERVED && block->bytes && !block->pinned) {
        if (self->count == UINT32_MAX)
            return ar_invalid(error, "there are more than 2^32 - 1 requests");
        return add(self, moment, error);
    }
    if (moment->kind == REQUEST_COMPLETE && block->user)
        self->items[block->user - 1].upper = self->now++;
    return AR_OK;
}

static enum ar_status write_minimalloc(struct trace_source *source, struct trace_output *output,
                                       struct ar_error *error)
{
    struct lifetimes self = {.source = source};
    enum ar_status status = requests_read(source, take, &self, error);
    AR_THEN(status, trace_output_print(output, error, "id,lower,upper,size%s\n",
                                       self.aligned ? ",alignment" : ""));
    for (size_t i = 0; i < self.count && !status; i++) {
        const struct lifetime *item = &self.items[i];
        uint64_t upper = item->upper < self.now ? item->upper : self.now;
        status = trace_output_print(output, error, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                                    item->id, item->lower, upper, item->bytes);
        if (!status && self.aligned)
            status = trace_output_print(output, error, ",%" PRIu64, item->align);
        AR_THEN(status, trace_output_print(output, error, "\n"));
    }
    free(self.items);
    return status;
}

const struct format_writer format_writer_minimalloc = {
    .name = "minimalloc",
    .ending = ".minimalloc.csv",
    .summary = "lifetimes id,lower,upper,size for offline planners, MiniMalloc's form, written "
               "(.minimalloc.csv)",
    .write = write_minimalloc,
};
