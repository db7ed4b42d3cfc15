/* The rows of a recorded CSV: action,addr,size,stream,time_us. */
#include "workloads/formats/torch/csv_rows.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/io/lines.h"

static const char *const names[CSV_ACTION_COUNT] = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot",     "kernel",         "mark",
};

const char *csv_action_name(enum csv_action action)
{
    return names[action];
}

void csv_rows_close(struct csv_rows *rows)
{
    free(rows->items);
    *rows = (struct csv_rows){0};
}

static enum ar_status parse(char *line, struct csv_row *row, struct ar_error *error)
{
    static const char *const columns[] = {"action", "addr", "size", "stream", "time_us"};
    uint64_t *const to[] = {NULL, &row->address, &row->size, &row->stream, &row->time_us};
    char *field = line;
    for (size_t i = 0; i < 5; i++) {
        if (!field)
            return ar_error_set(error, AR_INVALID, "the column %s is missing", columns[i]);
        char *comma = strchr(field, ',');
        if (comma)
            *comma = 0;
        if (i > 0) {
            enum ar_status status = ar_count_parse(field, to[i], error);
            if (status)
                return ar_error_prefix(error, status, "%s", columns[i]);
        } else {
            int action = 0;
            while (action < CSV_ACTION_COUNT && strcmp(names[action], field) != 0)
                action++;
            if (action == CSV_ACTION_COUNT)
                return ar_error_set(error, AR_INVALID, "the action \"%.40s\" is not known", field);
            row->action = (enum csv_action)action;
        }
        field = comma ? comma + 1 : NULL;
    }
    if (field)
        return ar_error_set(error, AR_INVALID, "there are more than five columns");
    return AR_OK;
}

static enum ar_status append(struct csv_rows *rows, char *line, struct ar_error *error)
{
    struct csv_row *items = ar_array_grow(rows->items, rows->count, &rows->capacity, sizeof *items);
    if (!items)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the rows");
    rows->items = items;
    return parse(line, &rows->items[rows->count++], error);
}

enum ar_status csv_rows_read(struct trace_input *input, struct csv_rows *out,
                             struct ar_error *error)
{
    struct trace_lines *lines = malloc(sizeof *lines);
    if (!lines)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a file");
    trace_lines_start(lines, input);
    char *line = NULL;
    size_t length;
    enum ar_status status = trace_lines_next(lines, &line, &length, error);
    while (!status && line) {
        status = trace_lines_next(lines, &line, &length, error);
        if (status || !line)
            break;
        status = length ? append(out, line, error)
                        : ar_error_set(error, AR_INVALID, "the line is empty");
        if (status)
            ar_error_prefix(error, status, "%s:%llu", trace_input_path(input),
                            (unsigned long long)lines->number);
    }
    free(lines);
    return status;
}
