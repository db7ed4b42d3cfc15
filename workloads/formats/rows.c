/* Rows of a log that names blocks by address, as a trace.
 *
 * 1. Streams become ordinals: the default stream is 0, the others are numbered by first appearance.
 * 2. A free belongs to the last request at its address that is not freed yet. It is an `f`. If it
 *    comes from another stream than the block's, it is an `r` on that stream: the log does not say
 *    when the free is completed.
 * 3. If the first row of an address is a free, the block was there before. It comes first, with
 *    initial=yes. Any other free without a block is a double free, and omitted.
 * 4. A request at an address in use: the free in between is missing, and inserted. If one of the
 *    two blocks has no bytes, both may be live.
 * 5. A request that failed is `p` if requests follow, else `a` (the program ended), then a note,
 *    and an `r`.
 * 6. If the time of a row is before that of the previous one, the time does not advance. */
#include "workloads/formats/rows.h"

#include "allocators/base/array.h"
#include "workloads/trace/check.h"

#define NO_BLOCK UINT64_MAX

struct block {
    uint64_t bytes, below; /* below: the block under it at the same address, or NO_BLOCK */
    uint32_t stream;
};

struct conversion {
    struct rows *rows;
    struct format_reading *reading;
    struct ar_map streams;   /* from name to ordinal */
    struct ar_map addresses; /* to the block on top, or NO_BLOCK */
    struct block *blocks;    /* by id */
    size_t block_count, block_capacity;
    size_t last_request; /* the row of the last request, failed or not */
    uint64_t begun_ns, now_ns;
    uint64_t late_rows, missing_frees, other_sizes, unknown_sizes;
};

enum ar_status rows_add(struct rows *rows, const struct row *row, struct ar_error *error)
{
    return AR_APPEND(rows->items, rows->count, rows->capacity, *row, error, "the file");
}

void rows_close(struct rows *rows)
{
    free(rows->items);
    texts_close(&rows->texts);
}

static enum ar_status append(struct conversion *c, struct trace_event event, const char *text,
                             struct ar_error *error)
{
    return format_event(c->reading, event, NULL, text, error);
}

/* ---- streams, time ----------------------------------------------------------------------- */

static enum ar_status find_streams(struct conversion *c, struct ar_error *error)
{
    const struct rows *rows = c->rows;
    enum ar_status status = ar_map_put(&c->streams, 0, 0);
    for (size_t i = 0; i < rows->count && !status; i++) {
        const struct row *row = &rows->items[i];
        uint64_t ordinal;
        if (row->action > ROW_KERNEL || ar_map_get(&c->streams, row->stream, &ordinal))
            continue;
        if (c->streams.count == TRACE_STREAM_LIMIT)
            return ar_invalid(error, "%s%s%" PRIu64 ": more than %u streams",
                              trace_input_path(c->reading->input), rows->unit, row->position,
                              TRACE_STREAM_LIMIT);
        status = ar_map_put(&c->streams, row->stream, c->streams.count);
    }
    return status ? format_no_memory(error) : AR_OK;
}

static uint32_t stream_ordinal(const struct conversion *c, uint64_t name)
{
    uint64_t ordinal;
    return ar_map_get(&c->streams, name, &ordinal) ? (uint32_t)ordinal : 0;
}

static enum ar_status append_time(struct conversion *c, const struct row *row, bool first,
                                  struct ar_error *error)
{
    if (first)
        c->begun_ns = c->now_ns = row->time_ns;
    c->late_rows += row->time_ns < c->now_ns;
    if (row->time_ns <= c->now_ns && !first)
        return AR_OK;
    c->now_ns = row->time_ns;
    return append(c, (struct trace_event){.kind = TRACE_TIME, .value = row->time_ns - c->begun_ns},
                  NULL, error);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static uint64_t top_block(const struct conversion *c, uint64_t address)
{
    uint64_t block;
    return ar_map_get(&c->addresses, address, &block) ? block : NO_BLOCK;
}

static enum ar_status add_block(struct conversion *c, const struct row *row, struct ar_error *error)
{
    const struct block block = {row->bytes, NO_BLOCK, stream_ordinal(c, row->stream)};
    return AR_APPEND(c->blocks, c->block_count, c->block_capacity, block, error, "the file");
}

/* A request, served or not, and its block. */
static enum ar_status make_request(struct conversion *c, const struct row *row,
                                   struct trace_event *event, struct trace_attributes *keys,
                                   struct ar_error *error)
{
    if (row->bytes >= TRACE_BYTES_LIMIT)
        return ar_invalid(error, "a block of %" PRIu64 " bytes cannot be", row->bytes);
    *keys = (struct trace_attributes){
        .thread = row->thread,
        .device = row->device,
        .space = row->space,
        .tag = row->text ? c->rows->texts.items[row->text - 1] : NULL,
    };
    *event = (struct trace_event){.kind = TRACE_ALLOC,
                                  .id = c->block_count,
                                  .value = row->bytes,
                                  .stream = stream_ordinal(c, row->stream)};
    return add_block(c, row, error);
}

static enum ar_status append_free(struct conversion *c, uint64_t id, uint32_t stream,
                                  uint32_t thread, struct ar_error *error)
{
    bool same = stream == c->blocks[id].stream;
    struct trace_attributes keys = {.thread = thread};
    struct trace_event event = {.kind = same ? TRACE_FREE_COMPLETED : TRACE_FREE_REQUESTED,
                                .id = id};
    if (!same)
        event.stream = stream;
    return format_event(c->reading, event, &keys, NULL, error);
}

/* A request that was served, and where. */
static enum ar_status append_block(struct conversion *c, const struct row *row, const char *rest,
                                   struct ar_error *error)
{
    struct trace_attributes keys;
    struct trace_event event;
    uint64_t id = c->block_count, below = top_block(c, row->address);
    if (below != NO_BLOCK && c->blocks[below].bytes && row->bytes && row->address) {
        c->missing_frees++;
        AR_TRY(append_free(c, below, c->blocks[below].stream, 0, error));
        below = c->blocks[below].below;
    }
    AR_TRY(make_request(c, row, &event, &keys, error));
    keys.rest = rest;
    AR_TRY(format_event(c->reading, event, &keys, NULL, error));
    c->blocks[id].below = below;
    if (ar_map_put(&c->addresses, row->address, id))
        return format_no_memory(error);
    return row->address ? format_note(c->reading, error, "alloc,%" PRIu64, row->address) : AR_OK;
}

static enum ar_status append_freed(struct conversion *c, const struct row *row,
                                   struct ar_error *error)
{
    uint64_t id = top_block(c, row->address);
    if (id == NO_BLOCK) { /* to free no address is no mistake */
        *(row->address ? &c->reading->report->double_frees : &c->reading->report->left_out) += 1;
        return AR_OK;
    }
    const struct block *block = &c->blocks[id];
    c->other_sizes += row->bytes != ROW_BYTES_UNKNOWN && row->bytes != block->bytes;
    if (ar_map_put(&c->addresses, row->address, block->below))
        return format_no_memory(error);
    return append_free(c, id, stream_ordinal(c, row->stream), row->thread, error);
}

static enum ar_status append_failure(struct conversion *c, const struct row *row, size_t at,
                                     struct ar_error *error)
{
    struct trace_attributes keys;
    struct trace_event event;
    AR_TRY(make_request(c, row, &event, &keys, error));
    return format_failure(c->reading, event, &keys, at < c->last_request, "oom", error);
}

/* The blocks that were there before the log begins. */
static enum ar_status append_initial(struct conversion *c, size_t *at, struct ar_error *error)
{
    AR_CLOSED(ar_map_close) struct ar_map seen = {0};
    for (*at = 0; *at < c->rows->count; ++*at) {
        struct row row = c->rows->items[*at];
        uint64_t value;
        if ((row.action != ROW_ALLOC && row.action != ROW_FREE) || !row.address ||
            ar_map_get(&seen, row.address, &value))
            continue;
        if (ar_map_put(&seen, row.address, 0))
            return format_no_memory(error);
        if (row.action != ROW_FREE)
            continue;
        c->reading->report->unmatched_frees++;
        c->unknown_sizes += row.bytes == ROW_BYTES_UNKNOWN;
        row.bytes = row.bytes == ROW_BYTES_UNKNOWN ? 0 : row.bytes;
        AR_TRY(trace_memory_line(c->reading->memory, row.position, error));
        AR_TRY(append_block(c, &row, "initial=yes", error));
    }
    return AR_OK;
}

/* ---- all rows ---------------------------------------------------------------------------- */

static enum ar_status append_row(struct conversion *c, size_t at, struct ar_error *error)
{
    const struct row *row = &c->rows->items[at];
    const char *text = row->text ? c->rows->texts.items[row->text - 1] : "";
    switch ((enum row_action)row->action) {
    case ROW_ALLOC:
        return append_block(c, row, NULL, error);
    case ROW_FREE:
        return append_freed(c, row, error);
    case ROW_FAILURE:
        return append_failure(c, row, at, error);
    case ROW_KERNEL:
        return append(c,
                      (struct trace_event){.kind = TRACE_KERNEL,
                                           .stream = stream_ordinal(c, row->stream),
                                           .value = row->bytes},
                      NULL, error);
    case ROW_TRIM:
        return append(c, (struct trace_event){.kind = TRACE_TRIM}, NULL, error);
    case ROW_STEP:
        return append(c, (struct trace_event){.kind = TRACE_MARK}, "step", error);
    case ROW_MARK:
        return append(c, (struct trace_event){.kind = TRACE_MARK}, text, error);
    case ROW_NOTHING:
        break;
    }
    return AR_OK;
}

static enum ar_status convert(struct conversion *c, struct ar_error *error)
{
    const struct rows *rows = c->rows;
    size_t at = 0;
    bool first = true;
    AR_TRY(find_streams(c, error));
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].action == ROW_ALLOC || rows->items[i].action == ROW_FAILURE)
            c->last_request = i;
    enum ar_status status = append_initial(c, &at, error);
    for (at = status ? at : 0; at < rows->count && !status; at++) {
        const struct row *row = &rows->items[at];
        if (row->action == ROW_NOTHING)
            continue;
        status = trace_memory_line(c->reading->memory, row->position, error);
        if (!status && rows->has_times)
            status = append_time(c, row, first, error);
        first = false;
        AR_THEN(status, append_row(c, at, error));
        if (status)
            break;
    }
    return ar_error_prefix(error, status, "%s%s%" PRIu64, trace_input_path(c->reading->input),
                           rows->unit, at < rows->count ? rows->items[at].position : 0);
}

static void say_guesses(const struct conversion *c)
{
    struct import_report *report = c->reading->report;
    report->begins_in_the_middle |= report->unmatched_frees > 0;
    import_guess_count(
        report, c->missing_frees,
        "blocks were given out again and never freed: taken for freed at that moment");
    import_guess_count(report, c->other_sizes,
                       "frees name another size than their request: the request's is taken");
    import_guess_count(
        report, c->unknown_sizes,
        "blocks were there before, of a size that the file does not say: taken for 0 bytes");
    import_guess_count(
        report, c->late_rows,
        "rows are earlier than the row before: their order is kept, the time does not advance");
}

enum ar_status rows_convert(struct rows *rows, struct ar_error *error)
{
    struct conversion c = {.rows = rows, .reading = rows->reading};
    enum ar_status status = format_start(c.reading, error);
    AR_THEN(status, convert(&c, error));
    if (!status)
        say_guesses(&c);
    ar_map_close(&c.streams);
    ar_map_close(&c.addresses);
    free(c.blocks);
    return status;
}
