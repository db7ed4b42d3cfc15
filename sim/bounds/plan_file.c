/* Reading and writing plans.
 *
 * The columns' names are those of google/minimalloc: what its solver writes can be read here, and
 * the other way round. */
#include "sim/bounds/plan_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "workloads/io/lines.h"

enum column { ID, LOWER, UPPER, SIZE, OFFSET, COLUMNS };

static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

#define PLACES_MOST 32 /* columns of a file */

struct reading {
    struct plan_file *plan;
    const char *path;
    enum column columns[PLACES_MOST]; /* COLUMNS: skipped */
    unsigned places;
    struct trace_lines *lines;
};

static enum ar_status read_head(struct reading *r, char *line, struct ar_error *error)
{
    unsigned seen = 0;
    for (char *word = line; word; r->places++) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = '\0';
        if (r->places == PLACES_MOST)
            return ar_error_set(error, AR_FORMAT, "%s:1: more than %u columns", r->path,
                                PLACES_MOST);
        r->columns[r->places] = COLUMNS;
        for (enum column column = 0; column < COLUMNS; column++)
            if (strcmp(word, column_names[column]) == 0 && !(seen & 1u << column)) {
                r->columns[r->places] = column;
                seen |= 1u << column;
            }
        word = comma ? comma + 1 : NULL;
    }
    for (enum column column = 0; column < COLUMNS; column++)
        if (!(seen & 1u << column))
            return ar_error_set(error, AR_FORMAT,
                                "%s:1: no column \"%s\": a plan's first line is "
                                "id,lower,upper,size,offset",
                                r->path, column_names[column]);
    return AR_OK;
}

static enum ar_status read_number(const struct reading *r, const char *word, enum column column,
                                  int64_t *number, struct ar_error *error)
{
    char *end;
    errno = 0;
    *number = strtoll(word, &end, 10);
    if (errno || end == word || *end || *word == ' ' || *word == '+')
        return ar_error_set(error, AR_FORMAT,
                            "%s:%" PRIu64 ": %s \"%.40s\" is no whole number below 2^63", r->path,
                            r->lines->number, column_names[column], word);
    return AR_OK;
}

static enum ar_status read_field(const struct reading *r, struct plan_row *row, enum column column,
                                 const char *word, struct ar_error *error)
{
    switch (column) {
    case ID:
        row->name = strdup(word);
        return row->name ? AR_OK
                         : ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a plan");
    case LOWER:
        return read_number(r, word, column, &row->lower, error);
    case UPPER:
        return read_number(r, word, column, &row->upper, error);
    case SIZE:
        return read_number(r, word, column, &row->size, error);
    case OFFSET:
        return read_number(r, word, column, &row->offset, error);
    default:
        return AR_OK;
    }
}

static enum ar_status read_row(struct reading *r, char *line, struct ar_error *error)
{
    struct plan_file *plan = r->plan;
    struct plan_row *rows = ar_array_grow(plan->rows, plan->count, &plan->room, sizeof *rows);
    if (!rows)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a plan");
    plan->rows = rows;
    struct plan_row *row = &plan->rows[plan->count++];
    *row = (struct plan_row){.line = r->lines->number};
    unsigned place = 0;
    for (char *word = line; word; place++) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = '\0';
        if (place < r->places) {
            enum ar_status status = read_field(r, row, r->columns[place], word, error);
            if (status)
                return status;
        }
        word = comma ? comma + 1 : NULL;
    }
    if (place != r->places)
        return ar_error_set(error, AR_FORMAT, "%s:%" PRIu64 ": %u fields, wanted %u", r->path,
                            r->lines->number, place, r->places);
    return AR_OK;
}

static enum ar_status read_lines(struct reading *r, struct ar_error *error)
{
    char *line;
    size_t length;
    enum ar_status status = trace_lines_next(r->lines, &line, &length, error);
    if (!status && !line)
        return ar_error_set(error, AR_FORMAT, "%s: the file is empty", r->path);
    if (!status)
        status = read_head(r, line, error);
    while (!status) {
        status = trace_lines_next(r->lines, &line, &length, error);
        if (status || !line)
            break;
        if (length)
            status = read_row(r, line, error);
    }
    return status;
}

enum ar_status plan_file_read(struct plan_file *self, const char *path, struct ar_error *error)
{
    struct trace_input *input = NULL;
    struct reading r = {.plan = self, .path = path, .lines = malloc(sizeof *r.lines)};
    *self = (struct plan_file){.rows = NULL};
    if (!r.lines)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a plan");
    enum ar_status status = trace_input_open(path, &input, error);
    if (!status) {
        trace_lines_start(r.lines, input);
        status = read_lines(&r, error);
        trace_input_close(input);
    }
    free(r.lines);
    if (status)
        plan_file_close(self);
    return status;
}

void plan_file_close(struct plan_file *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->rows[i].name);
    free(self->rows);
    *self = (struct plan_file){.rows = NULL};
}

void plan_file_write(FILE *stream, const struct bound_blocks *blocks, const uint64_t *offsets)
{
    fputs("id,lower,upper,size,offset\n", stream);
    for (size_t i = 0; i < blocks->count; i++) {
        const struct bound_request *request = &blocks->requests[i];
        char number[32];
        fprintf(stream, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n",
                request->tag ? request->tag : bound_request_name(request, number, sizeof number),
                request->lower, request->upper, request->bytes, offsets[i]);
    }
}
