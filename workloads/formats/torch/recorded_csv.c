/* Recorded CSVs: what PyTorch's memory history saw, with kernels and marks, as a trace.
 *
 * What: rows name blocks by address; a trace names them by id. How:
 * 1. Streams become ordinals: the default stream 0 first, the others by first appearance among
 *    the allocator's rows; a kernel's stream is the profiler's and is mapped back by the .json,
 *    or gets an ordinal of its own.
 * 2. A free that is completed with no other step of the allocator in between is one `f` at the
 *    place of the request; else `r` there and `f` at the completion.
 * 3. A request that failed (oom) is `a`, or `p` where requests follow it (the program lived
 *    on), a note, and an `r`: nothing of it stays.
 * 4. Blocks that are freed and were never made were there before the recording began: they
 *    are made first, with the key initial=yes.
 * 5. The first row is at `t,0`, so that no note of what was done stands where the state at the
 *    start would.
 * 6. Rows that contradict each other are refused, or noted where the reader is to be lenient.
 * 7. Everything that the allocator did is kept in notes; FORMAT.md lists them. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/io/input.h"
#include "workloads/io/lines.h"
#include "workloads/trace/header.h"
#include "workloads/trace/source.h"
#include "workloads/trace/trace.h"

/* The rows of a recorded CSV, as they stand in the file. */

enum csv_action {
    CSV_ALLOC,
    CSV_FREE_REQUESTED,
    CSV_FREE_COMPLETED,
    CSV_SEGMENT_ALLOC,
    CSV_SEGMENT_FREE,
    CSV_SEGMENT_MAP,
    CSV_SEGMENT_UNMAP,
    CSV_OOM,
    CSV_SNAPSHOT,
    CSV_KERNEL,
    CSV_MARK,
    CSV_ACTION_COUNT
};

struct csv_row {
    uint64_t address, size, stream, time_us;
    enum csv_action action;
};

struct csv_rows {
    struct csv_row *items; /* row i stands in line i + 2 */
    size_t count, capacity;
};

const char *csv_action_name(enum csv_action action);

/* Reads all rows after the first line. The caller closes `out`, also after a failure. */
enum ar_status csv_rows_read(struct trace_input *input, struct csv_rows *out,
                             struct ar_error *error) AR_STATUS_CHECKED;
void csv_rows_close(struct csv_rows *rows);

/* The rows of a recorded CSV: action,addr,size,stream,time_us. */

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

static enum ar_status append_line(struct csv_rows *rows, char *line, struct ar_error *error)
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
        status = length ? append_line(out, line, error)
                        : ar_error_set(error, AR_INVALID, "the line is empty");
        if (status)
            ar_error_prefix(error, status, "%s:%llu", trace_input_path(input),
                            (unsigned long long)lines->number);
    }
    free(lines);
    return status;
}

#define NO_ID UINT64_MAX

struct place {
    uint64_t address, id; /* id NO_ID: free */
    bool free_requested;  /* its free was requested */
};

struct segment {
    uint64_t begin, end;
    uint32_t pool;
};

struct conversion {
    const char *path;
    struct csv_rows rows;
    size_t at; /* the row in hand */
    struct sidecar sidecar;
    bool lenient;
    struct trace_memory *memory;
    uint64_t next_id, time_ns;
    struct place *places; /* blocks in use by address, open addressing */
    size_t place_count, place_capacity;
    uint64_t *streams; /* allocator's name by ordinal */
    size_t stream_count;
    uint64_t *kernel_streams; /* profiler's number by ordinal - stream_count */
    size_t kernel_stream_count;
    struct segment *segments; /* alive, where pools are known */
    size_t segment_count, segments_made;
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a recording");
}

/* Blocks by address. */

static size_t place_of(const struct conversion *c, uint64_t address)
{
    size_t mask = c->place_capacity - 1;
    size_t at = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (c->places[at].id != NO_ID && c->places[at].address != address)
        at = (at + 1) & mask;
    return at;
}

static enum ar_status put_place(struct conversion *c, uint64_t address, uint64_t id,
                                struct ar_error *error)
{
    if (2 * (c->place_count + 1) > c->place_capacity) {
        size_t old_capacity = c->place_capacity;
        struct place *old = c->places;
        size_t capacity = old_capacity ? 2 * old_capacity : 1024;
        struct place *places = malloc(capacity * sizeof *places);
        if (!places)
            return no_memory(error);
        for (size_t i = 0; i < capacity; i++)
            places[i].id = NO_ID;
        c->places = places;
        c->place_capacity = capacity;
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i].id != NO_ID)
                places[place_of(c, old[i].address)] = old[i];
        free(old);
    }
    struct place *place = &c->places[place_of(c, address)];
    c->place_count += place->id == NO_ID;
    *place = (struct place){address, id, false};
    return AR_OK;
}

static uint64_t find_place(const struct conversion *c, uint64_t address)
{
    return c->place_capacity ? c->places[place_of(c, address)].id : NO_ID;
}

static void take_place(struct conversion *c, uint64_t address)
{
    size_t mask = c->place_capacity - 1;
    size_t free_block = place_of(c, address);
    for (size_t at = (free_block + 1) & mask; c->places[at].id != NO_ID; at = (at + 1) & mask) {
        size_t home = (size_t)((c->places[at].address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
        if (((at - home) & mask) >= ((at - free_block) & mask)) {
            c->places[free_block] = c->places[at];
            free_block = at;
        }
    }
    c->places[free_block].id = NO_ID;
    c->place_count--;
}

/* Streams. */

static enum ar_status add_stream(uint64_t **list, size_t *count, uint64_t stream,
                                 struct ar_error *error)
{
    for (size_t i = 0; i < *count; i++)
        if ((*list)[i] == stream)
            return AR_OK;
    if (*count >= 4096)
        return ar_error_set(error, AR_INVALID, "more than 4096 streams in one recording");
    uint64_t *longer = realloc(*list, (*count + 1) * sizeof *longer);
    if (!longer)
        return no_memory(error);
    *list = longer;
    longer[(*count)++] = stream;
    return AR_OK;
}

static enum ar_status find_streams(struct conversion *c, struct ar_error *error)
{
    enum ar_status status = add_stream(&c->streams, &c->stream_count, 0, error);
    for (size_t i = 0; i < c->rows.count && !status; i++) {
        enum csv_action action = c->rows.items[i].action;
        if (action != CSV_KERNEL && action != CSV_MARK && action != CSV_SNAPSHOT)
            status = add_stream(&c->streams, &c->stream_count, c->rows.items[i].stream, error);
    }
    return status;
}

static uint32_t stream_ordinal(const struct conversion *c, uint64_t stream)
{
    uint32_t ordinal = 0;
    while (ordinal < c->stream_count && c->streams[ordinal] != stream)
        ordinal++;
    return ordinal;
}

static enum ar_status kernel_ordinal(struct conversion *c, uint64_t profiler, uint32_t *ordinal,
                                     struct ar_error *error)
{
    for (size_t i = 0; i < c->sidecar.stream_count; i++) {
        *ordinal = stream_ordinal(c, c->sidecar.streams[i].allocator);
        if (c->sidecar.streams[i].profiler == profiler && *ordinal < c->stream_count)
            return AR_OK;
    }
    enum ar_status status =
        add_stream(&c->kernel_streams, &c->kernel_stream_count, profiler, error);
    *ordinal = (uint32_t)c->stream_count;
    for (size_t i = 0; i < c->kernel_stream_count && c->kernel_streams[i] != profiler; i++)
        ++*ordinal;
    return status;
}

static enum ar_status append(struct conversion *c, struct trace_event event, const char *text,
                             struct ar_error *error)
{
    return trace_memory_append(c->memory, &event, NULL, text, error);
}

/* The row in hand cannot be. */
static enum ar_status contradiction(struct conversion *c, enum ar_status status, const char *text,
                                    struct ar_error *error)
{
    char note[192];
    if (!c->lenient)
        return ar_error_set(error, status, "%s", text);
    snprintf(note, sizeof note, "contradiction,%s", text);
    return append(c, (struct trace_event){.kind = TRACE_NOTE}, note, error);
}

static enum ar_status contradiction_at(struct conversion *c, const char *what,
                                       struct ar_error *error)
{
    char text[128];
    snprintf(text, sizeof text, "address %" PRIu64 " %s", c->rows.items[c->at].address, what);
    return contradiction(c, AR_INVALID, text, error);
}

/* Segments and the pools they belong to. */

static enum ar_status follow_segment(struct conversion *c, const struct csv_row *row,
                                     struct ar_error *error)
{
    if (!c->sidecar.segment_count)
        return AR_OK;
    if (row->action == CSV_SEGMENT_ALLOC) {
        if (c->segments_made >= c->sidecar.segment_count ||
            c->sidecar.segments[c->segments_made].address != row->address) {
            char text[128];
            snprintf(text, sizeof text,
                     "segment %zu made here is not that of the .json beside the file; do the two "
                     "belong together?",
                     c->segments_made);
            c->sidecar.segment_count = 0; /* nothing more can be known of pools */
            return contradiction(c, AR_FORMAT, text, error);
        }
        c->segments[c->segment_count++] = (struct segment){
            row->address, row->address + row->size, c->sidecar.segments[c->segments_made].pool};
        c->segments_made++;
    } else if (row->action == CSV_SEGMENT_FREE) {
        for (size_t i = 0; i < c->segment_count; i++)
            if (c->segments[i].begin == row->address) {
                c->segments[i] = c->segments[--c->segment_count];
                break;
            }
    }
    return AR_OK;
}

static uint32_t pool_at(const struct conversion *c, uint64_t address)
{
    for (size_t i = 0; i < c->segment_count; i++)
        if (address >= c->segments[i].begin && address < c->segments[i].end)
            return c->segments[i].pool;
    return 0;
}

/* Events. */

static enum ar_status append_time(struct conversion *c, struct ar_error *error)
{
    uint64_t begin = c->rows.items[0].time_us, now = c->rows.items[c->at].time_us;
    if (now < begin || now - begin > UINT64_C(1) << 50)
        return ar_error_set(error, AR_INVALID,
                            "time_us %" PRIu64 " lies before the first row's "
                            "or far after it",
                            now);
    uint64_t time_ns = (now - begin) * 1000;
    if (time_ns == c->time_ns && c->at)
        return AR_OK;
    c->time_ns = time_ns;
    return append(c, (struct trace_event){.kind = TRACE_TIME, .value = time_ns}, NULL, error);
}

static enum ar_status append_note(struct conversion *c, const char *what, const uint64_t *numbers,
                                  size_t count, struct ar_error *error)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s", what);
    for (size_t i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, numbers[i]);
    return append(c, (struct trace_event){.kind = TRACE_NOTE}, text, error);
}

/* A request and where it was placed. */
static enum ar_status append_block(struct conversion *c, const struct csv_row *row, bool initial,
                                   struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (find_place(c, row->address) != NO_ID)
        status = contradiction_at(c, "is given out while it is in use", error);
    if (status)
        return status;
    if (row->size >= TRACE_BYTES_LIMIT)
        return ar_error_set(error, AR_INVALID, "a block of %" PRIu64 " bytes cannot be", row->size);
    struct trace_attributes keys = {.pool = pool_at(c, row->address),
                                    .rest = initial ? "initial=yes" : NULL};
    struct trace_event event = {.kind = TRACE_ALLOC,
                                .id = c->next_id,
                                .value = row->size,
                                .stream = stream_ordinal(c, row->stream)};
    status = trace_memory_append(c->memory, &event, &keys, NULL, error);
    if (!status)
        status = put_place(c, row->address, c->next_id++, error);
    return status ? status : append_note(c, "alloc", &row->address, 1, error);
}

static bool is_allocators(enum csv_action action)
{
    return action != CSV_KERNEL && action != CSV_MARK && action != CSV_SNAPSHOT;
}

/* Whether the free requested in the row in hand is completed in the allocator's next row. */
static bool completes_at_once(const struct conversion *c)
{
    for (size_t i = c->at + 1; i < c->rows.count; i++)
        if (is_allocators(c->rows.items[i].action))
            return c->rows.items[i].action == CSV_FREE_COMPLETED &&
                   c->rows.items[i].address == c->rows.items[c->at].address;
    return false;
}

static bool more_requests_follow(const struct conversion *c)
{
    for (size_t i = c->at + 1; i < c->rows.count; i++)
        if (c->rows.items[i].action == CSV_ALLOC || c->rows.items[i].action == CSV_OOM)
            return true;
    return false;
}

static enum ar_status append_free(struct conversion *c, const struct csv_row *row,
                                  struct ar_error *error)
{
    uint64_t id = find_place(c, row->address);
    if (id == NO_ID)
        return contradiction_at(c, "is freed while it is not in use", error);
    struct place *place = &c->places[place_of(c, row->address)];
    if (row->action == CSV_FREE_REQUESTED && place->free_requested)
        return contradiction_at(c, "is freed twice", error);
    if (c->lenient && row->action == CSV_FREE_COMPLETED && !place->free_requested)
        return contradiction_at(c, "is completed and its free was not requested", error);
    place->free_requested = true;
    if (row->action == CSV_FREE_REQUESTED && completes_at_once(c))
        return append(c, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = id}, NULL, error);
    if (row->action == CSV_FREE_REQUESTED)
        return append(
            c,
            (struct trace_event){.kind = TRACE_FREE_REQUESTED, .id = id, .stream = TRACE_NO_STREAM},
            NULL, error);
    size_t before = c->at;
    while (before > 0 && !is_allocators(c->rows.items[before - 1].action))
        before--;
    take_place(c, row->address);
    if (before && c->rows.items[before - 1].action == CSV_FREE_REQUESTED &&
        c->rows.items[before - 1].address == row->address)
        return AR_OK;
    return append(c, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = id}, NULL, error);
}

static enum ar_status append_oom(struct conversion *c, const struct csv_row *row,
                                 struct ar_error *error)
{
    bool lives_on = more_requests_follow(c);
    struct trace_event event = {.kind = lives_on ? TRACE_PROBE : TRACE_ALLOC,
                                .id = c->next_id++,
                                .value = row->size,
                                .stream = stream_ordinal(c, row->stream)};
    enum ar_status status = append(c, event, NULL, error);
    if (!status)
        status = append_note(c, "oom", &row->address, 1, error);
    event.kind = TRACE_FREE_REQUESTED;
    return status ? status : append(c, event, NULL, error);
}

static enum ar_status append_row(struct conversion *c, struct ar_error *error)
{
    const struct csv_row *row = &c->rows.items[c->at];
    struct trace_event kernel = {.kind = TRACE_KERNEL, .value = row->size};
    const uint64_t numbers[] = {row->address, row->size, stream_ordinal(c, row->stream)};
    enum ar_status status = trace_memory_line(c->memory, c->at + 2, error);
    if (!status)
        status = append_time(c, error);
    if (status)
        return status;
    switch (row->action) {
    case CSV_ALLOC:
        return append_block(c, row, false, error);
    case CSV_FREE_REQUESTED:
    case CSV_FREE_COMPLETED:
        return append_free(c, row, error);
    case CSV_OOM:
        return append_oom(c, row, error);
    case CSV_KERNEL:
        status = kernel_ordinal(c, row->stream, &kernel.stream, error);
        return status ? status : append(c, kernel, NULL, error);
    case CSV_MARK:
        return append(c, (struct trace_event){.kind = TRACE_MARK}, "step", error);
    case CSV_SNAPSHOT:
        return append_note(c, csv_action_name(row->action), NULL, 0, error);
    default:
        status = follow_segment(c, row, error);
        return status ? status : append_note(c, csv_action_name(row->action), numbers, 3, error);
    }
}

/* The blocks that were there before the recording began: where the first row of an address
 * frees it. */
static enum ar_status append_initial(struct conversion *c, struct ar_error *error)
{
    struct conversion seen = {0}; /* only its places are used */
    enum ar_status status = AR_OK;
    for (c->at = 0; c->at < c->rows.count && !status; c->at++) {
        const struct csv_row *row = &c->rows.items[c->at];
        bool frees = row->action == CSV_FREE_REQUESTED || row->action == CSV_FREE_COMPLETED;
        if ((row->action != CSV_ALLOC && !frees) || find_place(&seen, row->address) != NO_ID)
            continue;
        status = put_place(&seen, row->address, 0, error);
        if (!status && frees)
            status = trace_memory_line(c->memory, c->at + 2, error);
        if (!status && frees)
            status = append_block(c, row, true, error);
        if (!status && row->action == CSV_FREE_COMPLETED)
            status = append(c,
                            (struct trace_event){.kind = TRACE_FREE_REQUESTED,
                                                 .id = c->next_id - 1,
                                                 .stream = TRACE_NO_STREAM},
                            NULL, error);
    }
    free(seen.places);
    return status;
}

static enum ar_status convert(struct conversion *c, struct ar_error *error)
{
    enum ar_status status = find_streams(c, error);
    if (!status && c->sidecar.segment_count) {
        c->segments = calloc(c->sidecar.segment_count, sizeof *c->segments);
        if (!c->segments)
            status = no_memory(error);
    }
    if (status)
        return ar_error_prefix(error, status, "%s", c->path);
    c->at = 0;
    status = append_initial(c, error);
    if (!status)
        for (c->at = 0; c->at < c->rows.count; c->at++) {
            status = append_row(c, error);
            if (status)
                break;
        }
    return status ? ar_error_prefix(error, status, "%s:%zu", c->path, c->at + 2) : AR_OK;
}

static enum ar_status read_all(struct conversion *c, struct trace_input *input,
                               struct ar_error *error)
{
    struct trace_info info = {.complete = true, .recorder = "torch", .format = "csv"};
    trace_name_from_path(c->path, info.name, sizeof info.name);
    enum ar_status status = sidecar_read(c->path, &info, &c->sidecar, error);
    if (!status)
        status = csv_rows_read(input, &c->rows, error);
    if (status)
        return status;
    if (!c->rows.count)
        return ar_error_set(error, AR_FORMAT, "%s: the recording holds no rows", c->path);
    c->memory = trace_memory_create(&info);
    return c->memory ? convert(c, error) : no_memory(error);
}

enum ar_status trace_csv_open(struct trace_input *input, bool lenient, struct trace_source **out,
                              struct ar_error *error)
{
    struct conversion c = {.path = trace_input_path(input), .lenient = lenient};
    enum ar_status status = read_all(&c, input, error);
    if (status)
        trace_memory_discard(c.memory);
    else
        status = trace_memory_open(c.memory, out, error);
    if (!status) {
        status = sidecar_stats_read(c.path, &(*out)->stats, error);
        if (status)
            trace_close(*out);
    }
    csv_rows_close(&c.rows);
    sidecar_close(&c.sidecar);
    free(c.places);
    free(c.streams);
    free(c.kernel_streams);
    free(c.segments);
    trace_input_close(input);
    return status;
}
