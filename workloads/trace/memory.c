/* A trace in memory. First events and texts are appended; opening checks all of them and makes a
 * source that gives all events as one span. Memory: 32 bytes per event, the texts, and 16 bytes for
 * each line of a file if lines are recorded. */
#include "workloads/trace/trace.h"

#include "allocators/base/array.h"
#include "workloads/trace/check.h"

struct line { /* of the events from `first` to the `first` of the next */
    uint64_t first, number;
};

struct trace_memory {
    struct trace_source base;
    struct trace_tables tables;
    struct trace_event *events;
    size_t count, capacity;
    struct line *lines;
    size_t line_count, line_capacity;
    bool given; /* the span was given out */
};

static enum ar_status memory_next(struct trace_source *self, const struct trace_event **events,
                                  size_t *count, struct ar_error *error AR_UNUSED)
{
    struct trace_memory *memory = (struct trace_memory *)self;
    *events = memory->events;
    *count = memory->given ? 0 : memory->count;
    memory->given = true;
    return AR_OK;
}

static enum ar_status memory_rewind(struct trace_source *self, struct ar_error *error AR_UNUSED)
{
    ((struct trace_memory *)self)->given = false;
    return AR_OK;
}

static void memory_close(struct trace_source *self)
{
    struct trace_memory *memory = (struct trace_memory *)self;
    trace_tables_close(&memory->tables);
    free(memory->events);
    free(memory->lines);
    free(memory);
}

static uint64_t memory_line(struct trace_source *self, uint64_t event)
{
    const struct trace_memory *memory = (const struct trace_memory *)self;
    size_t above = ar_array_above(memory->lines, memory->line_count, sizeof *memory->lines,
                                  offsetof(struct line, first), event);
    return above ? memory->lines[above - 1].number : 0;
}

static const struct trace_source_ops memory_ops = {
    .next = memory_next,
    .rewind = memory_rewind,
    .close = memory_close,
    .line = memory_line,
};

struct trace_memory *trace_memory_create(const struct trace_info *info)
{
    struct trace_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->base.ops = &memory_ops;
    memory->base.tables = &memory->tables;
    if (info)
        memory->base.info = *info;
    else
        memory->base.info.complete = true;
    memory->base.info.adaptive = false;
    return memory;
}

void trace_memory_discard(struct trace_memory *memory)
{
    if (memory)
        memory_close(&memory->base);
}

/* A copy of the event at the end; NULL: no memory. */
static struct trace_event *append(struct trace_memory *memory, const struct trace_event *event,
                                  struct ar_error *error)
{
    if (AR_ARRAY_ADD(memory->events, memory->count, memory->capacity, *event))
        return &memory->events[memory->count - 1];
    (void)ar_no_memory(error, "a trace of %zu events", memory->count);
    return NULL;
}

enum ar_status trace_memory_append(struct trace_memory *memory, const struct trace_event *event,
                                   const struct trace_attributes *attributes, const char *text,
                                   struct ar_error *error)
{
    struct trace_event *copy = append(memory, event, error);
    AR_TRY_HOST(copy);
    enum ar_status status =
        trace_tables_attributes(&memory->tables, attributes, &copy->attributes, error);
    if (!status && (event->kind == TRACE_MARK || event->kind == TRACE_NOTE))
        status = trace_tables_add_text(&memory->tables, text ? text : "", text ? strlen(text) : 0,
                                       &copy->value, error);
    return status ? ar_error_prefix(error, status, "event %zu", --memory->count) : AR_OK;
}

enum ar_status trace_memory_take(struct trace_memory *memory, struct trace_source *source,
                                 const struct trace_event *event, struct ar_error *error)
{
    struct trace_event *copy = append(memory, event, error);
    return copy ? trace_tables_take(&memory->tables, source, copy, NULL, error) : AR_HOST_MEMORY;
}

enum ar_status trace_memory_line(struct trace_memory *memory, uint64_t line, struct ar_error *error)
{
    if (memory->line_count && memory->lines[memory->line_count - 1].first == memory->count)
        memory->line_count--; /* no event came from that line */
    const struct line from = {memory->count, line};
    return AR_APPEND(memory->lines, memory->line_count, memory->line_capacity, from, error,
                     "the lines of a trace");
}

/* One pass over all events, which sets their slots. */
static enum ar_status check_all(struct trace_memory *memory, bool free_requested_final,
                                bool *is_final, struct ar_error *error)
{
    AR_CLOSED(trace_check_close) struct trace_check check;
    enum ar_status status = AR_OK;
    trace_check_start(&check, &memory->tables, false, free_requested_final);
    size_t at = 0;
    for (; at < memory->count && !status; at++)
        status = trace_check_event(&check, &memory->events[at], error);
    if (status)
        (void)ar_error_prefix(error, status, "%s: event %zu", memory->base.info.name, at - 1);
    else
        trace_check_finish(&check, &memory->base.info);
    *is_final = trace_check_is_final(&check);
    return status;
}

enum ar_status trace_memory_open(struct trace_memory *memory, struct trace_source **out,
                                 struct ar_error *error)
{
    bool is_final = false;
    enum ar_status status = check_all(memory, false, &is_final, error);
    if (!status && is_final)
        status = check_all(memory, true, &is_final, error);
    if (status) {
        memory_close(&memory->base);
        return status;
    }
    if (memory->count) {
        struct trace_event *fit = realloc(memory->events, memory->count * sizeof *memory->events);
        memory->events = fit ? fit : memory->events;
    }
    *out = &memory->base;
    return AR_OK;
}

bool trace_in_memory(const struct trace_source *source)
{
    return source->ops == &memory_ops;
}

enum ar_status trace_memory_copy(struct trace_source *source, struct trace_source **out,
                                 struct ar_error *error)
{
    struct trace_memory *memory = trace_memory_create(&source->info);
    AR_TRY_MEMORY(memory, error, "a trace");
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    while ((event = trace_read(&cursor, &status, error)) != NULL)
        status = trace_memory_take(memory, source, event, error);
    return trace_memory_finish(memory, status, out, error);
}
