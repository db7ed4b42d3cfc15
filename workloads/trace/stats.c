#include "workloads/trace/stats.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

enum ar_status trace_stats_add(struct trace_stats *self, const char *name, size_t length,
                               uint64_t value, struct ar_error *error)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= 0x20 || name[i] == 0x7f)
            length = 0;
    if (!length)
        return ar_error_set(error, AR_INVALID,
                            "a statistic's name is empty, or holds blanks or control bytes");
    struct trace_stat *items = ar_array_grow(self->items, self->count, &self->room, sizeof *items);
    if (!items)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for statistics");
    self->items = items;
    char *copy = strndup(name, length);
    if (!copy)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for statistics");
    self->items[self->count++] = (struct trace_stat){copy, value};
    return AR_OK;
}

void trace_stats_close(struct trace_stats *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->items[i].name);
    free(self->items);
    *self = (struct trace_stats){0};
}

enum ar_status trace_stats_parse(struct trace_stats *self, const char *text, struct ar_error *error)
{
    uint64_t value;
    const char *blank = strchr(text, ' ');
    if (!blank || ar_count_parse(blank + 1, &value, error))
        return ar_error_set(error, AR_INVALID,
                            "stat: \"%.80s\": a name, a blank and a whole number are wanted", text);
    return trace_stats_add(self, text, (size_t)(blank - text), value, error);
}
