#include "bench/report/calls_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"

static const char header[] = "event,call,bytes,ns,waited_ns,refused\n";

void calls_csv_header(FILE *stream)
{
    fputs(header, stream);
}

void calls_csv_row(FILE *stream, const struct driver_call *call)
{
    fprintf(stream, "%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", call->event,
            ar_device_call_name(call->call), call->bytes, call->ns, call->waited_ns, call->refused);
}

static bool find_call(const char *name, enum ar_device_call *out)
{
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++) {
        *out = (enum ar_device_call)i;
        if (strcmp(ar_device_call_name(*out), name) == 0)
            return true;
    }
    return false;
}

/* A row is exactly what calls_csv_row makes of it. */
static bool read_row(const char *line, struct driver_call *row)
{
    char name[32];
    char again[160];
    int refused = 0;
    if (sscanf(line, "%" SCNu64 ",%31[a-z_],%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%d", &row->event,
               name, &row->bytes, &row->ns, &row->waited_ns, &refused) != 6 ||
        !find_call(name, &row->call))
        return false;
    row->refused = refused == 1;
    snprintf(again, sizeof again, "%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n",
             row->event, name, row->bytes, row->ns, row->waited_ns, row->refused);
    return strcmp(line, again) == 0;
}

bool call_list_add(struct call_list *self, const struct driver_call *call)
{
    struct driver_call *items = ar_array_grow(self->items, self->count, &self->room, sizeof *items);
    if (!items)
        return false;
    self->items = items;
    self->items[self->count++] = *call;
    return true;
}

bool call_list_ready(struct call_list *self, size_t room)
{
    struct driver_call *items = malloc(room * sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < room; i++)
        items[i] = (struct driver_call){.event = UINT64_MAX}; /* zeros alone may stay untouched */
    free(self->items);
    *self = (struct call_list){.items = items, .room = room};
    return true;
}

enum ar_status calls_csv_read(const char *path, struct call_list *out, struct ar_error *error)
{
    *out = (struct call_list){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    char line[192];
    enum ar_status status = AR_OK;
    if (!fgets(line, sizeof line, file) || strcmp(line, header) != 0)
        status = ar_error_set(error, AR_FORMAT, "%s:1: is not a file of --calls: wanted %.*s", path,
                              (int)sizeof header - 2, header);
    for (size_t number = 2; !status && fgets(line, sizeof line, file); number++) {
        struct driver_call row;
        if (read_row(line, &row))
            status =
                call_list_add(out, &row)
                    ? AR_OK
                    : ar_error_set(error, AR_HOST_MEMORY, "no host memory left for driver calls");
        else
            status = ar_error_set(error, AR_FORMAT, "%s:%zu: \"%.*s\" is no driver call", path,
                                  number, (int)strcspn(line, "\n"), line);
    }
    if (!status && ferror(file))
        status = ar_error_set(error, AR_IO, "%s: cannot be read to its end", path);
    fclose(file);
    return status;
}

void call_list_close(struct call_list *self)
{
    free(self->items);
    *self = (struct call_list){0};
}
