/* MiniMalloc's CSV: lifetimes of buffers for offline planning.
 *
 *     id,lower,upper,size
 *     0,995328,1000448,656384
 *
 * 1. The first line names the columns, in any order: id (or buffer, buffer_id), lower (begin,
 *    start), upper or end, size; alignment, hint, gaps and offset may follow.
 * 2. A buffer lives from lower to before upper; an `end` is its last moment, so upper is one more.
 * 3. Moments become an order: at each, frees come first, then requests in the order of rows. A
 *    buffer that ends where it begins is freed right after its request.
 * 4. A hint is the offset that a planner shall try first (-1: none); no policy here does: left out.
 * 5. A buffer's id is kept as `tag` where it is not the number that its request has in the trace;
 *    an offset is the place where a planner put it: a note. Its life is kept in the keys `lower`
 *    and `upper`, so that a plan of the trace (`bound --plan`) speaks of it in the file's own words.
 *
 * Source of the format: google/minimalloc, src/converter.cc. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/requests.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"
#include "workloads/io/output.h"
#include "workloads/trace/header.h"
#include "workloads/trace/trace.h"

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
    int place[COLUMNS]; /* of a column in a row; -1: not there */
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
    const char *path;
    struct layout layout;
    struct buffer *buffers;
    size_t count, capacity;
    struct texts ids;
    struct import_report report;
    uint64_t with_gaps, with_hints, odd_alignments;
};

/* The columns that a first line names; false where one is unknown, there twice, or missing. */
static bool layout_read(char *line, struct layout *out)
{
    char *fields[COLUMNS];
    size_t count = fields_split(line, ',', fields, COLUMNS);
    *out = (struct layout){.place = {-1, -1, -1, -1, -1, -1, -1, -1}, .count = (int)count};
    if (count > COLUMNS)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < sizeof names / sizeof names[0] && strcmp(names[at].name, fields[i]) != 0)
            at++;
        if (at == sizeof names / sizeof names[0] || out->place[names[at].column] >= 0)
            return false;
        out->place[names[at].column] = (int)i;
        out->end_inclusive |= strcmp(fields[i], "end") == 0;
    }
    return out->place[ID] >= 0 && out->place[LOWER] >= 0 && out->place[UPPER] >= 0 &&
           out->place[SIZE] >= 0;
}

static bool matches_minimalloc(const char *head, size_t count)
{
    char line[128];
    struct layout layout;
    const char *end = memchr(head, '\n', count < sizeof line ? count : sizeof line);
    size_t length = end ? (size_t)(end - head) : count;
    if (length >= sizeof line || memchr(head, 0, length))
        return false;
    memcpy(line, head, length);
    line[length] = 0;
    line[strcspn(line, "\r")] = 0;
    return layout_read(line, &layout);
}

/* A whole number with or without a sign, far from the ends of its type. */
static enum ar_status parse_moment(const char *text, const char *what, int64_t *value,
                                   struct ar_error *error)
{
    uint64_t number;
    bool below = *text == '-';
    enum ar_status status = ar_count_parse(text + below, &number, error);
    if (!status && number >= UINT64_C(1) << 62)
        status = ar_error_set(error, AR_INVALID, "%.40s is too large", text);
    if (status)
        return ar_error_prefix(error, status, "%s", what);
    *value = below ? -(int64_t)number : (int64_t)number;
    return AR_OK;
}

static enum ar_status parse_optional(struct reading *r, char *const *fields, struct buffer *buffer,
                                     struct ar_error *error)
{
    const int *place = r->layout.place;
    enum ar_status status = AR_OK;
    buffer->offset = UINT64_MAX;
    if (place[ALIGNMENT] >= 0 &&
        (status = ar_count_parse(fields[place[ALIGNMENT]], &buffer->alignment, error)))
        return ar_error_prefix(error, status, "alignment");
    if (place[OFFSET] >= 0 &&
        (status = ar_count_parse(fields[place[OFFSET]], &buffer->offset, error)))
        return ar_error_prefix(error, status, "offset");
    if (buffer->alignment > 1 && !ar_size_is_power_of_two(buffer->alignment))
        r->odd_alignments++;
    if (buffer->alignment == 1 || !ar_size_is_power_of_two(buffer->alignment))
        buffer->alignment = 0;
    int64_t hint = -1;
    if (place[HINT] >= 0 && (status = parse_moment(fields[place[HINT]], "hint", &hint, error)))
        return status;
    r->with_hints += hint >= 0;
    if (place[GAPS] >= 0)
        r->with_gaps += fields[place[GAPS]][strspn(fields[place[GAPS]], " ")] != 0;
    return AR_OK;
}

static enum ar_status parse_row(struct reading *r, char *line, struct buffer *buffer,
                                struct ar_error *error)
{
    char *fields[COLUMNS];
    const int *place = r->layout.place;
    size_t count = fields_split(line, ',', fields, COLUMNS);
    if (count != (size_t)r->layout.count)
        return ar_error_set(error, AR_INVALID,
                            "there are %zu columns where the first line names %d", count,
                            r->layout.count);
    enum ar_status status = parse_moment(fields[place[LOWER]], "lower", &buffer->lower, error);
    if (!status)
        status = parse_moment(fields[place[UPPER]], "upper", &buffer->upper, error);
    if (status)
        return status;
    if ((status = ar_count_parse(fields[place[SIZE]], &buffer->size, error)))
        return ar_error_prefix(error, status, "size");
    buffer->upper += r->layout.end_inclusive;
    if (buffer->upper < buffer->lower)
        return ar_error_set(error, AR_INVALID,
                            "the buffer ends (%" PRId64 ") before it begins (%" PRId64 ")",
                            buffer->upper, buffer->lower);
    if (buffer->size >= TRACE_BYTES_LIMIT)
        return ar_error_set(error, AR_INVALID, "a buffer of %" PRIu64 " bytes cannot be",
                            buffer->size);
    status = parse_optional(r, fields, buffer, error);
    char id[256];
    field_text(fields[place[ID]], id, sizeof id);
    return status ? status : texts_intern(&r->ids, id, strlen(id), &buffer->text, error);
}

static enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error)
{
    struct reading *r = self;
    struct buffer buffer = {.line = number};
    if (!r->layout.count)
        return layout_read(line, &r->layout)
                   ? AR_OK
                   : ar_error_set(error, AR_FORMAT,
                                  "the columns id, lower, upper, size are wanted");
    enum ar_status status = parse_row(r, line, &buffer, error);
    if (status)
        return status;
    struct buffer *buffers = ar_array_grow(r->buffers, r->count, &r->capacity, sizeof *buffers);
    if (!buffers)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a file");
    r->buffers = buffers;
    r->buffers[r->count++] = buffer;
    return AR_OK;
}

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->phase != b->phase)
        return a->phase - b->phase;
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

static enum ar_status append_request(const struct reading *r, struct trace_memory *memory,
                                     size_t at, uint64_t id, struct ar_error *error)
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
    enum ar_status status = trace_memory_append(memory, &event, &keys, NULL, error);
    if (!status && buffer->offset != UINT64_MAX) {
        snprintf(number, sizeof number, "alloc,%" PRIu64, buffer->offset);
        event = (struct trace_event){.kind = TRACE_NOTE};
        status = trace_memory_append(memory, &event, NULL, number, error);
    }
    event = (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = id};
    if (!status && buffer->lower == buffer->upper)
        status = trace_memory_append(memory, &event, NULL, NULL, error);
    return status;
}

static enum ar_status append_all(const struct reading *r, struct trace_memory *memory,
                                 const struct moment *moments, size_t count, struct ar_error *error)
{
    uint64_t next_id = 0;
    uint64_t *ids = calloc(r->count + 1, sizeof *ids);
    enum ar_status status =
        ids ? AR_OK : ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a file");
    for (size_t i = 0; i < count && !status; i++) {
        size_t at = moments[i].buffer;
        status = trace_memory_line(memory, r->buffers[at].line, error);
        if (!status && moments[i].phase) {
            ids[at] = next_id++;
            status = append_request(r, memory, at, ids[at], error);
        } else if (!status) {
            struct trace_event event = {.kind = TRACE_FREE_COMPLETED, .id = ids[at]};
            status = trace_memory_append(memory, &event, NULL, NULL, error);
        }
        if (status)
            ar_error_prefix(error, status, "%s:%" PRIu64, r->path, r->buffers[at].line);
    }
    free(ids);
    return status;
}

static enum ar_status make_trace(struct reading *r, struct trace_source **out,
                                 struct ar_error *error)
{
    struct trace_info info = {.complete = true, .format = "minimalloc"};
    trace_name_from_path(r->path, info.name, sizeof info.name);
    size_t count;
    struct trace_source *source = NULL;
    struct moment *moments = sort_moments(r, &count);
    struct trace_memory *memory = trace_memory_create(&info);
    enum ar_status status = moments && memory
                                ? append_all(r, memory, moments, count, error)
                                : ar_error_set(error, AR_HOST_MEMORY, "no host memory for a trace");
    free(moments);
    if (status) {
        trace_memory_discard(memory);
        return status;
    }
    status = trace_memory_open(memory, &source, error);
    return status ? status : rows_report(source, &r->report, out, error);
}

static void say_guesses(struct reading *r)
{
    r->report.records = r->count;
    if (r->layout.end_inclusive)
        import_guess(&r->report, "the column is called end: a buffer lives through that moment");
    if (r->with_gaps)
        import_guess(&r->report,
                     "%" PRIu64 " buffers have gaps: they are taken to be live all through",
                     r->with_gaps);
    if (r->with_hints)
        import_guess(&r->report,
                     "%" PRIu64 " buffers have hints, offsets to be tried first: left out",
                     r->with_hints);
    if (r->odd_alignments)
        import_guess(&r->report, "%" PRIu64 " alignments are no powers of two: left out",
                     r->odd_alignments);
}

static enum ar_status open_minimalloc(struct trace_input *input, bool lenient,
                                      struct trace_source **out, struct ar_error *error)
{
    struct reading r = {.path = trace_input_path(input)};
    (void)lenient;
    enum ar_status status = fields_lines(input, take_line, &r, error);
    if (!status && !r.count)
        status = ar_error_set(error, AR_FORMAT, "%s: the file holds no buffers", r.path);
    say_guesses(&r);
    if (!status)
        status = make_trace(&r, out, error);
    free(r.buffers);
    texts_close(&r.ids);
    trace_input_close(input);
    return status;
}

const struct format_reader format_minimalloc = {
    .name = "minimalloc",
    .summary = "MiniMalloc's lifetimes of buffers as CSV, read",
    .matches = matches_minimalloc,
    .open = open_minimalloc,
};

/* MiniMalloc's lifetimes, `id,lower,upper,size`: half-open, in requests and completions of the trace,
 * of which each is one moment. A block that is never complete lives to the end. What has no bytes of
 * device memory, or failed, has no row; a column of alignments is there where one is asked for. */

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
    struct lifetime *items = ar_array_grow(self->items, self->count, &self->room, sizeof *items);
    if (!items)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for lifetimes");
    self->items = items;
    uint64_t align = 0;
    if (moment->event->attributes)
        align = trace_attributes_of(self->source, moment->event->attributes)->align;
    self->aligned |= align != 0;
    self->items[self->count++] = (struct lifetime){.id = block->id,
                                                   .lower = self->now++,
                                                   .upper = UINT64_MAX,
                                                   .bytes = block->bytes,
                                                   .align = align ? align : 1};
    block->user = (uint32_t)self->count;
    return AR_OK;
}

static enum ar_status take(void *argument, struct request_moment *moment, struct ar_error *error)
{
    struct lifetimes *self = argument;
    const struct request_block *block = moment->block;
    if (moment->kind == REQUEST_SERVED && block->bytes && !block->pinned) {
        if (self->count == UINT32_MAX)
            return ar_error_set(error, AR_INVALID, "there are more than 2^32 - 1 requests");
        return add(self, moment, error);
    }
    if (moment->kind == REQUEST_COMPLETE && block->user)
        self->items[block->user - 1].upper = self->now++;
    return AR_OK;
}

static enum ar_status write_items(const struct lifetimes *self, struct trace_output *output,
                                  struct ar_error *error)
{
    char line[128];
    int length =
        snprintf(line, sizeof line, "id,lower,upper,size%s\n", self->aligned ? ",alignment" : "");
    enum ar_status status = trace_output_write(output, line, (size_t)length, error);
    for (size_t i = 0; i < self->count && !status; i++) {
        const struct lifetime *item = &self->items[i];
        uint64_t upper = item->upper < self->now ? item->upper : self->now;
        length = snprintf(line, sizeof line, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                          item->id, item->lower, upper, item->bytes);
        if (self->aligned)
            length +=
                snprintf(line + length, sizeof line - (size_t)length, ",%" PRIu64, item->align);
        line[length++] = '\n';
        status = trace_output_write(output, line, (size_t)length, error);
    }
    return status;
}

static enum ar_status write_minimalloc(struct trace_source *source, const char *path, bool compress,
                                       struct ar_error *error)
{
    struct lifetimes self = {.source = source};
    struct trace_output *output = NULL;
    enum ar_status status = requests_read(source, take, &self, error);
    if (!status)
        status = trace_output_open(path, compress, &output, error);
    if (!status)
        status = write_items(&self, output, error);
    free(self.items);
    if (!status)
        return trace_output_commit(output, error);
    trace_output_discard(output);
    return status;
}

const struct format_writer format_writer_minimalloc = {
    .name = "minimalloc",
    .ending = ".minimalloc.csv",
    .summary = "lifetimes id,lower,upper,size for offline planners, MiniMalloc's form, written "
               "(.minimalloc.csv)",
    .write = write_minimalloc,
};
