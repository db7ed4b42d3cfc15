/* Umpire's replay logs: one JSON object a line, in both layouts that Umpire has had.
 *
 *     { "kind":"replay", "uid":7, "timestamp":15, "event": "allocate",
 *       "payload": { "allocator_ref": "0x10", "size": 134 }, "result": { "memory_ptr": "0x20" } }
 *     {"category":"operation","name":"allocate","numeric_args":{"size":134},
 *      "string_args":{"allocator_ref":"0x10","pointer":"0x20"},"timestamp":15}
 *
 * 1. The first layout writes a request twice: before, without a result, and after. One without
 *    the second is a request that failed.
 * 2. A memory resource says by its name where its memory is; an allocator is where the one is
 *    that its arguments name. Memory of the device is kept, pinned memory with `space=pinned`;
 *    managed and host memory are left out. A log without memory of the device is a test on
 *    the host: then the host's is taken for it.
 * 3. A reallocation is a free and a request, unless the log has these two besides.
 * 4. Of several processes in one log the first is taken, as Umpire's own tool does.
 *
 * Source of the format: LLNL/Umpire, tools/replay and src/umpire/event, versions 0.3 to 2025. */
#include "workloads/formats/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "workloads/io/fields.h"
#include "workloads/formats/rows.h"
#include "workloads/formats/logs/umpire_line.h"
#include "workloads/trace/reader.h"

#define INTENTS_MOST 4096

enum place { PLACE_DEVICE, PLACE_PINNED, PLACE_MANAGED, PLACE_HOST, PLACE_COUNT };

struct allocator {
    uint32_t text; /* 1 + index of its name */
    uint32_t device;
    uint8_t place;
};

struct reading {
    struct rows rows;
    struct ar_map refs; /* from an allocator's handle to its number */
    struct ar_map open; /* from a block's address to its last request's row */
    struct allocator *allocators;
    size_t allocator_count;
    size_t *intents; /* rows of requests without a result so far */
    size_t intent_count, intent_capacity;
    uint64_t unknown_allocators, other_processes, at_place[PLACE_COUNT];
    int64_t process;
    bool has_process;
    char version[32];
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a log");
}

/* ---- allocators -------------------------------------------------------------------------- */

static struct allocator resource_of(const char *name)
{
    static const struct {
        const char *name;
        enum place place;
    } names[] = {{"DEVICE", PLACE_DEVICE},
                 {"DEVICE_CONST", PLACE_DEVICE},
                 {"PINNED", PLACE_PINNED},
                 {"UM", PLACE_MANAGED}};
    size_t length = strcspn(name, ":");
    struct allocator out = {.place = PLACE_HOST};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0)
            out.place = (uint8_t)names[i].place;
    if (strncmp(name + length, "::", 2) == 0)
        out.device = (uint32_t)strtoul(name + length + 2, NULL, 10) & 0xffff;
    return out;
}

/* A name without the "_base" that wrapped allocators have. */
static size_t plain_length(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, "_base") == 0 ? length - 5 : length;
}

static const struct allocator *allocator_named(const struct reading *r, const char *name)
{
    size_t length = plain_length(name);
    for (size_t i = r->allocator_count; i-- > 0;) {
        const char *known = r->rows.texts.items[r->allocators[i].text - 1];
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return &r->allocators[i];
    }
    return NULL;
}

/* The name as a tag: without commas and control bytes. */
static enum ar_status intern_name(struct reading *r, const char *name, uint32_t *text,
                                  struct ar_error *error)
{
    char tag[128];
    size_t length = plain_length(name);
    length = length < sizeof tag ? length : sizeof tag - 1;
    for (size_t i = 0; i < length; i++)
        tag[i] = (unsigned char)name[i] < ' ' || name[i] == ',' || name[i] == 0x7f ? '_' : name[i];
    return texts_intern(&r->rows.texts, tag, length, text, error);
}

static enum ar_status add_allocator(struct reading *r, const struct umpire_line *line,
                                    struct ar_error *error)
{
    const struct allocator *parent = NULL;
    struct allocator new = resource_of(line->name);
    if (line->event == UMPIRE_ALLOCATOR) {
        for (size_t i = 0; i < line->argument_count && !parent; i++)
            parent = allocator_named(r, line->arguments[i]);
        new = parent ? *parent : line->argument_count ? resource_of(line->arguments[0]) : new;
    }
    if (!line->has_allocator)
        return AR_OK; /* the intent */
    if (r->allocator_count >= 65536)
        return ar_error_set(error, AR_INVALID, "there are more than 65536 allocators");
    enum ar_status status = intern_name(r, line->name, &new.text, error);
    if (status)
        return status;
    new.text++;
    struct allocator *longer = realloc(r->allocators, (r->allocator_count + 1) * sizeof *longer);
    if (!longer)
        return no_memory(error);
    r->allocators = longer;
    if (ar_map_put(&r->refs, line->allocator, r->allocator_count))
        return no_memory(error);
    r->allocators[r->allocator_count++] = new;
    return AR_OK;
}

static struct allocator allocator_at(struct reading *r, const struct umpire_line *line)
{
    uint64_t index;
    if (line->has_allocator && ar_map_get(&r->refs, line->allocator, &index))
        return r->allocators[index];
    r->unknown_allocators++;
    return (struct allocator){0};
}

/* ---- requests and frees ------------------------------------------------------------------ */

static enum ar_status add_row(struct reading *r, const struct umpire_line *line, uint8_t action,
                              uint64_t address, const struct allocator *allocator,
                              struct ar_error *error)
{
    struct row row = {.action = action,
                      .address = address,
                      .bytes = action == ROW_FREE ? ROW_BYTES_UNKNOWN : line->bytes,
                      .time_ns = line->time_ns,
                      .place = line->number,
                      .device = allocator->device,
                      .text = action == ROW_FREE ? 0 : allocator->text,
                      .space = allocator->place};
    r->at_place[allocator->place] += action == ROW_ALLOC || action == ROW_FAILURE;
    if (action == ROW_ALLOC && ar_map_put(&r->open, address, r->rows.count))
        return no_memory(error);
    if (action == ROW_FREE)
        ar_map_remove(&r->open, address);
    return rows_add(&r->rows, &row, error);
}

/* A request without its result: a failure until that comes. Of very many the earliest will not
 * get theirs any more. */
static enum ar_status add_intent(struct reading *r, const struct umpire_line *line,
                                 const struct allocator *allocator, struct ar_error *error)
{
    if (line->final)
        return add_row(r, line, ROW_FAILURE, 0, allocator, error);
    if (r->intent_count == INTENTS_MOST)
        memmove(r->intents, r->intents + 1, --r->intent_count * sizeof *r->intents);
    size_t *intents =
        ar_array_grow(r->intents, r->intent_count, &r->intent_capacity, sizeof *intents);
    if (!intents)
        return no_memory(error);
    r->intents = intents;
    r->intents[r->intent_count++] = r->rows.count;
    return add_row(r, line, ROW_FAILURE, 0, allocator, error);
}

/* The result of the earliest such request that has none. */
static void settle_intent(struct reading *r, const struct umpire_line *line,
                          const struct allocator *allocator)
{
    for (size_t i = 0; i < r->intent_count; i++) {
        struct row *row = &r->rows.items[r->intents[i]];
        if (row->bytes != line->bytes || row->text != allocator->text)
            continue;
        row->action = ROW_NOTHING;
        r->at_place[row->space]--;
        r->intent_count--;
        memmove(&r->intents[i], &r->intents[i + 1], (r->intent_count - i) * sizeof *r->intents);
        return;
    }
}

static enum ar_status take_reallocation(struct reading *r, const struct umpire_line *line,
                                        struct ar_error *error)
{
    uint64_t old = 0, new = 0;
    if (!line->has_result)
        return AR_OK; /* the intent; a failure leaves the old block as it was */
    if (ar_map_get(&r->open, line->address, &new) && r->rows.items[new].bytes == line->bytes &&
        line->address != line->old_address)
        return AR_OK; /* the log has the request besides, and the free */
    struct allocator allocator = {0};
    bool known = line->old_address && ar_map_get(&r->open, line->old_address, &old);
    if (known)
        allocator = (struct allocator){r->rows.items[old].text, r->rows.items[old].device,
                                       r->rows.items[old].space};
    else
        allocator = allocator_at(r, line);
    enum ar_status status = AR_OK;
    if (known)
        status = add_row(r, line, ROW_FREE, line->old_address, &allocator, error);
    return status ? status : add_row(r, line, ROW_ALLOC, line->address, &allocator, error);
}

static enum ar_status take_event(struct reading *r, const struct umpire_line *line,
                                 struct ar_error *error)
{
    struct allocator allocator;
    switch (line->event) {
    case UMPIRE_VERSION:
        snprintf(r->version, sizeof r->version, "%s", line->name);
        return AR_OK;
    case UMPIRE_RESOURCE:
    case UMPIRE_ALLOCATOR:
        return add_allocator(r, line, error);
    case UMPIRE_ALLOCATE:
        allocator = allocator_at(r, line);
        if (!line->has_result)
            return add_intent(r, line, &allocator, error);
        settle_intent(r, line, &allocator);
        return add_row(r, line, ROW_ALLOC, line->address, &allocator, error);
    case UMPIRE_DEALLOCATE:
        allocator = allocator_at(r, line);
        return add_row(r, line, ROW_FREE, line->address, &allocator, error);
    case UMPIRE_REALLOCATE:
        return take_reallocation(r, line, error);
    case UMPIRE_RELEASE:
        allocator = allocator_at(r, line);
        return add_row(r, line, ROW_TRIM, 0, &allocator, error);
    case UMPIRE_OTHER:
        break;
    }
    r->rows.report.left_out++;
    return AR_OK;
}

static enum ar_status take_line(void *self, char *text, uint64_t number, struct ar_error *error)
{
    struct reading *r = self;
    struct umpire_line line = {.number = number};
    if (*text == '#')
        return AR_OK;
    enum ar_status status = umpire_line_parse(text, &line, error);
    if (!status) {
        r->rows.report.records++;
        if (!r->has_process)
            r->process = line.process;
        r->has_process = true;
        if (line.process == r->process)
            status = take_event(r, &line, error);
        else
            r->other_processes++;
    }
    umpire_line_close(&line);
    return status;
}

/* ---- the whole --------------------------------------------------------------------------- */

/* Which rows are of the memory that the trace is of. */
static void choose_places(struct reading *r)
{
    static const char *const names[] = {"device", "pinned host", "managed", "host"};
    struct import_report *report = &r->rows.report;
    bool any = r->at_place[PLACE_DEVICE] || r->at_place[PLACE_PINNED];
    for (size_t i = 0; i < r->rows.count; i++) {
        struct row *row = &r->rows.items[i];
        if (row->space <= PLACE_PINNED)
            continue;
        if (any && row->action != ROW_NOTHING) {
            row->action = ROW_NOTHING;
            report->left_out++;
        }
        row->space = TRACE_SPACE_DEVICE;
    }
    for (int place = PLACE_MANAGED; place < PLACE_COUNT; place++)
        if (r->at_place[place])
            import_guess(report, "%" PRIu64 " requests of %s memory are %s", r->at_place[place],
                         names[place],
                         any ? "left out" : "taken for device memory, since there are no others");
    if (r->unknown_allocators)
        import_guess(report,
                     "%" PRIu64 " lines name an allocator that the log does not make: taken for "
                     "one of device memory",
                     r->unknown_allocators);
    if (r->other_processes)
        import_guess(report, "%" PRIu64 " lines are of other processes than the first: left out",
                     r->other_processes);
    report->left_out += r->other_processes;
}

static bool matches_umpire(const char *head, size_t count)
{
    const char *end;
    while (count && (end = memchr(head, '\n', count)) && (*head == '#' || end == head)) {
        count -= (size_t)(end + 1 - head);
        head = end + 1;
    }
    end = count ? memchr(head, '\n', count) : NULL;
    return end && *head == '{' && umpire_line_looks(head, (size_t)(end - head));
}

static enum ar_status open_umpire(struct trace_input *input, bool lenient,
                                  struct trace_source **out, struct ar_error *error)
{
    struct trace_info info = {.complete = true, .format = "umpire"};
    struct reading r = {0};
    (void)lenient; /* rows that contradict each other are told in the report */
    rows_start(&r.rows, trace_input_path(input), ":");
    r.rows.has_times = true;
    trace_name_from_path(r.rows.path, info.name, sizeof info.name);
    enum ar_status status = fields_lines(input, take_line, &r, error);
    choose_places(&r);
    snprintf(info.recorder, sizeof info.recorder, "umpire%s%s", *r.version ? " " : "", r.version);
    if (!status)
        status = rows_open(&r.rows, &info, out, error);
    rows_close(&r.rows);
    ar_map_close(&r.refs);
    ar_map_close(&r.open);
    free(r.allocators);
    free(r.intents);
    trace_input_close(input);
    return status;
}

const struct format_reader format_umpire = {
    .name = "umpire",
    .summary = "Umpire's replay log, JSON lines of both layouts, read",
    .matches = matches_umpire,
    .open = open_umpire,
};
