/* Kineto traces: the GPU memory that PyTorch's profiler saw, as a trace. `[memory]` events name
 * blocks by address; a trace names them by id.
 *
 * 1. Memory events, kernels and steps are sorted by time, events of one time in the order of the
 *    file. A kernel is placed where the program launched it, as in recorded CSVs; if the file does
 *    not have its launch, at its begin.
 * 2. A free belongs to the last block at its address. Older profilers write no address: then it
 *    belongs to the last block of its size, because a framework frees most blocks in reverse order.
 * 3. A free at an address without any block before: the block was there at the start. Such blocks
 *    come first, with the key initial=yes. A free at an address whose block is free already is
 *    omitted. Without an address the two look the same, and count as the first.
 * 4. A block at an address whose block was never freed: the old one is freed there.
 * 5. A free is one `f`: the event is the program's free, and the completion is not in the file.
 * 6. Memory events name no stream: blocks are on stream 0, which is taken to be the stream on which
 *    most kernels run. The other streams of kernels get ordinals by first appearance.
 * 7. "[OutOfMemory]" is `a`, or `p` if requests follow it, a note, and an `r`.
 * 8. The profiler's own count of bytes is compared with the running total of the trace; differences
 *    are reported. What it counts before the first event is one block of each device, which comes
 *    first and stays: its parts are not in the file. */

#include "allocators/base/array.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/kineto/kineto_events.h"
#include "workloads/io/fields.h"

/* ---- frees and their blocks -------------------------------------------------------------- */

/* The role of a memory row. */
enum kineto_mark {
    KINETO_PLAIN,   /* a block; a free: of the block of row `pair` */
    KINETO_INITIAL, /* a free of a block that was there before the first row */
    KINETO_TWICE,   /* a free of a block that is free: omitted */
    KINETO_AGAIN,   /* a block where another one, of row `pair`, was never freed */
};

struct kineto_pairs {
    uint64_t initial, twice, again;
    uint64_t by_size;     /* frees without an address that found a block */
    uint64_t other_sizes; /* frees that name another size than their block */
};

#define FREED (UINT64_C(1) << 63) /* in the map of addresses: the block of the row is free again */

struct pairing {
    struct kineto_row *rows;
    struct kineto_pairs *out;
    struct ar_map by_address; /* address and device -> row, FREED */
    struct ar_map by_size;    /* size and device -> the last row; its `pair` is the one before it */
};

static uint64_t key_of(uint64_t value, uint32_t device)
{
    uint64_t key = value ^ (uint64_t)device << 56;
    return key == AR_MAP_NO_KEY ? 0 : key;
}

static enum ar_status make_at(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of(row->address, row->device), found;
    if (ar_map_get(&pairing->by_address, key, &found) && !(found & FREED)) {
        row->mark = KINETO_AGAIN;
        row->pair = (uint32_t)found;
        pairing->out->again++;
    }
    return ar_map_put(&pairing->by_address, key, at);
}

static enum ar_status free_at(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of(row->address, row->device), found;
    if (!ar_map_get(&pairing->by_address, key, &found)) {
        row->mark = KINETO_INITIAL;
        pairing->out->initial++;
        return ar_map_put(&pairing->by_address, key, at | FREED);
    }
    if (found & FREED) {
        row->mark = KINETO_TWICE;
        pairing->out->twice++;
        return AR_OK;
    }
    row->pair = (uint32_t)found;
    pairing->out->other_sizes += pairing->rows[found].bytes != -row->bytes;
    return ar_map_put(&pairing->by_address, key, found | FREED);
}

static enum ar_status make_of_size(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of((uint64_t)row->bytes, row->device), found;
    row->pair = ar_map_get(&pairing->by_size, key, &found) ? (uint32_t)found : KINETO_NONE;
    return ar_map_put(&pairing->by_size, key, at);
}

static enum ar_status free_of_size(struct pairing *pairing, uint32_t at)
{
    struct kineto_row *row = &pairing->rows[at];
    uint64_t key = key_of((uint64_t)-row->bytes, row->device), found;
    if (!ar_map_get(&pairing->by_size, key, &found) || pairing->rows[found].bytes != -row->bytes) {
        row->mark = KINETO_INITIAL;
        pairing->out->initial++;
        return AR_OK;
    }
    row->pair = (uint32_t)found;
    pairing->out->by_size++;
    if (pairing->rows[found].pair != KINETO_NONE)
        return ar_map_put(&pairing->by_size, key, pairing->rows[found].pair);
    ar_map_remove(&pairing->by_size, key);
    return AR_OK;
}

/* Sets `mark` and `pair` of all memory rows, which are in the order of time. HOST_MEMORY. */
static enum ar_status pair_frees(struct kineto_rows *rows, struct kineto_pairs *out,
                                 struct ar_error *error)
{
    struct pairing pairing = {.rows = rows->items, .out = out};
    enum ar_status status = AR_OK;
    for (uint32_t at = 0; at < rows->count && !status; at++) {
        const struct kineto_row *row = &rows->items[at];
        if (row->kind != KINETO_MEMORY)
            continue;
        if (row->bytes > 0)
            status = row->address ? make_at(&pairing, at) : make_of_size(&pairing, at);
        else
            status = row->address ? free_at(&pairing, at) : free_of_size(&pairing, at);
    }
    ar_map_close(&pairing.by_address);
    ar_map_close(&pairing.by_size);
    return status ? ar_error_set(error, status, "no host memory to pair frees with blocks")
                  : status;
}

#define STREAM_LIMIT 4096
#define DEVICE_LIMIT 64

struct conversion {
    struct kineto_rows rows;
    struct kineto_pairs pairs;
    struct format_reading *reading;
    struct ar_error *error;
    uint64_t next_id, time_ns;
    size_t last_request;          /* row of the last one, or SIZE_MAX */
    uint64_t memory_rows;         /* failures are of them */
    uint64_t out_of_order;        /* rows that follow a later one in the file */
    uint64_t kernels, unlaunched; /* kernels without a launch in the file */
    struct ar_map streams;        /* the profiler's name -> number by first appearance */
    uint64_t busiest;             /* number of the stream with most kernels */
    uint32_t busiest_name;
    uint64_t before[DEVICE_LIMIT]; /* bytes live before the first event and never freed */
};

static enum ar_status append(struct conversion *c, struct trace_event event,
                             const struct trace_attributes *keys, const char *text)
{
    return format_event(c->reading, event, keys, text, c->error);
}

/* ---- order ------------------------------------------------------------------------------- */

static int by_time(const void *left, const void *right)
{
    const struct kineto_row *a = left, *b = right;
    AR_ORDER(a->time_ns, b->time_ns);
    return (a->order > b->order) - (a->order < b->order);
}

static void sort_rows(struct conversion *c)
{
    struct kineto_rows *rows = &c->rows;
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < rows->count; i++) {
        struct kineto_row *row = &rows->items[i];
        uint64_t launched;
        if (row->kind == KINETO_KERNEL) {
            bool told =
                row->address != UINT64_MAX && ar_map_get(&rows->launches, row->address, &launched);
            row->time_ns = told ? (int64_t)launched : row->time_ns;
            c->kernels++;
            c->unlaunched += !told;
        } else {
            c->out_of_order += row->time_ns < latest;
            AR_RAISE(latest, row->time_ns);
        }
    }
    ar_map_close(&rows->launches);
    if (rows->count)
        qsort(rows->items, rows->count, sizeof *rows->items, by_time);
    c->last_request = SIZE_MAX;
    for (size_t i = 0; i < rows->count; i++) {
        const struct kineto_row *row = &rows->items[i];
        c->memory_rows += row->kind == KINETO_MEMORY || row->kind == KINETO_FAILURE;
        if (row->kind == KINETO_FAILURE || (row->kind == KINETO_MEMORY && row->bytes > 0))
            c->last_request = i;
    }
}

/* ---- streams ----------------------------------------------------------------------------- */

/* Numbers the streams of kernels by first appearance, and finds the busiest. */
static enum ar_status find_streams(struct conversion *c)
{
    uint64_t kernels[STREAM_LIMIT] = {0}, number;
    for (size_t i = 0; i < c->rows.count; i++) {
        const struct kineto_row *row = &c->rows.items[i];
        if (row->kind != KINETO_KERNEL)
            continue;
        if (!ar_map_get(&c->streams, row->stream, &number)) {
            number = c->streams.count;
            if (number == STREAM_LIMIT)
                return ar_invalid(c->error, "more than %d streams in one trace", STREAM_LIMIT);
            if (ar_map_put(&c->streams, row->stream, number))
                return ar_no_memory(c->error, "streams");
        }
        if (++kernels[number] > kernels[c->busiest] || number == c->busiest) {
            c->busiest = number;
            c->busiest_name = row->stream;
        }
    }
    return AR_OK;
}

/* The busiest first, the others in the order of their numbers. */
static uint32_t ordinal_of(const struct conversion *c, uint32_t stream)
{
    uint64_t number = 0;
    (void)ar_map_get(&c->streams, stream, &number);
    return (uint32_t)(number == c->busiest ? 0 : number + (number < c->busiest));
}

/* ---- events ------------------------------------------------------------------------------ */

static enum ar_status append_time(struct conversion *c, size_t at)
{
    uint64_t now = (uint64_t)(c->rows.items[at].time_ns - c->rows.items[0].time_ns);
    if (at && now == c->time_ns)
        return AR_OK;
    c->time_ns = now;
    return append(c, (struct trace_event){.kind = TRACE_TIME, .value = now}, NULL, NULL);
}

/* A request, and its address if that is known. */
static enum ar_status append_block(struct conversion *c, struct kineto_row *row, uint64_t bytes,
                                   bool initial)
{
    struct trace_attributes keys = {.device = row->device, .rest = initial ? "initial=yes" : NULL};
    struct trace_event event = {.kind = TRACE_ALLOC, .id = c->next_id, .value = bytes};
    row->id = c->next_id++;
    AR_TRY(append(c, event, &keys, NULL));
    if (!row->address)
        return AR_OK;
    return format_note(c->reading, c->error, "alloc,%" PRIu64, row->address);
}

static enum ar_status append_free(struct conversion *c, const struct kineto_row *row)
{
    uint64_t id = row->mark == KINETO_INITIAL ? row->id : c->rows.items[row->pair].id;
    return append(c, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = id}, NULL, NULL);
}

static enum ar_status append_failure(struct conversion *c, const struct kineto_row *row,
                                     bool more_follow)
{
    const struct trace_attributes keys = {.device = row->device};
    const struct trace_event request = {.id = c->next_id++, .value = (uint64_t)row->bytes};
    return format_failure(c->reading, request, &keys, more_follow, "oom", c->error);
}

static enum ar_status append_memory(struct conversion *c, struct kineto_row *row)
{
    if (row->mark == KINETO_TWICE)
        return AR_OK;
    if (row->bytes < 0)
        return append_free(c, row);
    if (row->mark == KINETO_AGAIN)
        AR_TRY(append_free(c, row));
    return append_block(c, row, (uint64_t)row->bytes, false);
}

static enum ar_status append_row(struct conversion *c, size_t at)
{
    struct kineto_row *row = &c->rows.items[at];
    struct trace_attributes keys = {.device = row->device};
    if (row->kind != KINETO_KERNEL) /* no error names one of these */
        AR_TRY(trace_memory_line(c->reading->memory, row->line, c->error));
    AR_TRY(append_time(c, at));
    switch (row->kind) {
    case KINETO_MEMORY:
        return append_memory(c, row);
    case KINETO_FAILURE:
        return append_failure(c, row, at < c->last_request);
    case KINETO_KERNEL:
        return append(c,
                      (struct trace_event){.kind = TRACE_KERNEL,
                                           .stream = ordinal_of(c, row->stream),
                                           .value = (uint64_t)row->bytes},
                      &keys, NULL);
    default:
        return append(c, (struct trace_event){.kind = TRACE_MARK}, NULL, "step");
    }
}

/* What the profiler counted before the first event. */
static enum ar_status append_before(struct conversion *c)
{
    for (uint16_t device = 0; device < DEVICE_LIMIT; device++) {
        struct kineto_row row = {.device = device};
        if (c->before[device])
            AR_TRY(append_block(c, &row, c->before[device], true));
    }
    return AR_OK;
}

static enum ar_status append_all(struct conversion *c)
{
    AR_TRY(append_before(c));
    for (size_t i = 0; i < c->rows.count; i++) {
        struct kineto_row *row = &c->rows.items[i];
        if (row->mark != KINETO_INITIAL)
            continue;
        AR_TRY(trace_memory_line(c->reading->memory, row->line, c->error));
        AR_TRY(append_block(c, row, (uint64_t)-row->bytes, true));
    }
    for (size_t i = 0; i < c->rows.count; i++)
        AR_TRY(append_row(c, i));
    return AR_OK;
}

/* ---- the report -------------------------------------------------------------------------- */

/* The bytes by which the trace grows at a row; modulo 2^64, as all of these sums. */
static uint64_t growth_at(const struct conversion *c, const struct kineto_row *row)
{
    if (row->mark == KINETO_TWICE)
        return 0;
    uint64_t bytes = (uint64_t)row->bytes;
    if (row->bytes < 0 && row->mark != KINETO_INITIAL)
        bytes = 0 - (uint64_t)c->rows.items[row->pair].bytes;
    else if (row->mark == KINETO_AGAIN)
        bytes -= (uint64_t)c->rows.items[row->pair].bytes;
    return bytes;
}

/* The profiler's count of bytes compared with the trace's own. */
struct totals {
    uint64_t running;    /* of the trace */
    uint64_t difference; /* the profiler's count minus it, at the previous row */
    bool known;
};

static void compare_totals(struct conversion *c)
{
    struct totals devices[DEVICE_LIMIT] = {{0}};
    uint64_t first = 0, last = 0, changes = 0;
    bool any = false;
    for (size_t i = 0; i < c->rows.count; i++)
        if (c->rows.items[i].mark == KINETO_INITIAL && c->rows.items[i].device < DEVICE_LIMIT)
            devices[c->rows.items[i].device].running -= (uint64_t)c->rows.items[i].bytes;
    for (size_t i = 0; i < c->rows.count; i++) {
        const struct kineto_row *row = &c->rows.items[i];
        if (row->kind != KINETO_MEMORY || row->device >= DEVICE_LIMIT)
            continue;
        struct totals *totals = &devices[row->device];
        totals->running += growth_at(c, row);
        if (row->total_bytes == KINETO_UNKNOWN)
            continue;
        uint64_t difference = (uint64_t)row->total_bytes - totals->running;
        first += totals->known ? 0 : difference;
        if (!totals->known && difference < TRACE_BYTES_LIMIT)
            c->before[row->device] = difference;
        last += difference - (totals->known ? totals->difference : 0);
        changes += totals->known && difference != totals->difference;
        *totals = (struct totals){totals->running, difference, true};
        any = true;
    }
    if (any && !first && !changes)
        import_guess(c->reading->report,
                     "the running total equals \"Total Allocated\" at every event");
    else if (any)
        import_guess(c->reading->report,
                     "\"Total Allocated\" minus the running total: %" PRId64
                     " bytes at the first event (never freed here), %" PRId64
                     " at the last; changed %" PRIu64 " times",
                     (int64_t)first, (int64_t)last, changes);
    if (any && (int64_t)first > 0)
        import_guess(c->reading->report,
                     "the bytes that were live before the first event are one block at the start");
    c->reading->report->begins_in_the_middle = (int64_t)first > 0 || c->pairs.initial;
}

static void tell_streams(const struct conversion *c)
{
    if (c->kernels)
        import_guess(c->reading->report,
                     "memory events name no stream: blocks are on stream 0, taken to be the "
                     "profiler's stream %" PRIu32 ", on which most kernels run",
                     c->busiest_name);
    else
        import_guess(
            c->reading->report,
            "memory events name no stream, and there are no kernels: blocks are on stream 0");
    if (c->unlaunched)
        import_guess(c->reading->report,
                     "%" PRIu64 " of %" PRIu64
                     " kernels are placed at their begin: the file does not have their launch",
                     c->unlaunched, c->kernels);
}

static void tell(struct conversion *c)
{
    struct import_report *report = c->reading->report;
    report->records = c->rows.events;
    report->left_out = c->rows.events - c->rows.count;
    report->unmatched_frees = c->pairs.initial;
    report->double_frees = c->pairs.twice;
    report->ends_in_failure =
        c->last_request != SIZE_MAX && c->rows.items[c->last_request].kind == KINETO_FAILURE;
    import_guess(
        report,
        "sizes are those of the blocks given, as the allocator rounded them, not of the requests");
    tell_streams(c);
    compare_totals(c);
    import_guess_count(report, c->pairs.by_size,
                       "frees name no address: each is of the latest block of its size");
    import_guess_count(report, c->pairs.again,
                       "blocks have the address of one that was never freed: it is freed there");
    import_guess_count(report, c->pairs.other_sizes,
                       "frees name another size than their block has: its own is taken");
    import_guess_count(report, c->out_of_order,
                       "events follow later ones in the file: all are sorted by time");
    import_guess_count(report, c->rows.other_devices,
                       "memory events of the host or of other kinds of devices are left out");
    if (c->rows.unusable)
        import_guess(report,
                     "%" PRIu64 " events lack a usable time, size or duration and are left out, "
                     "the first in line %" PRIu64,
                     c->rows.unusable, c->rows.first_unusable);
}

/* ---- the reader -------------------------------------------------------------------------- */

/* Says what the profile has instead. */
static enum ar_status no_memory_events(struct conversion *c)
{
    size_t kernels = 0;
    for (size_t i = 0; i < c->rows.count; i++)
        kernels += c->rows.items[i].kind == KINETO_KERNEL;
    return ar_error_set(c->error, AR_FORMAT,
                        "a Chrome trace of %" PRIu64 " events, with %zu GPU kernels, %" PRIu64
                        " memory events of the host and no events of GPU memory; %s",
                        c->rows.events, kernels, c->rows.other_devices,
                        c->rows.other_devices
                            ? "the program used the processor's memory only"
                            : "with PyTorch's profiler, profile with profile_memory=True");
}

static enum ar_status convert(struct conversion *c)
{
    sort_rows(c);
    if (!c->memory_rows && c->rows.unusable)
        return ar_error_set(c->error, AR_FORMAT,
                            "no event of GPU memory has a time and a size that can be used; the "
                            "first without is in line %" PRIu64,
                            c->rows.first_unusable);
    if (!c->memory_rows)
        return no_memory_events(c);
    AR_TRY(pair_frees(&c->rows, &c->pairs, c->error));
    AR_TRY(find_streams(c));
    tell(c);
    c->reading->info.complete = !c->reading->report->ends_in_failure;
    AR_TRY(format_start(c->reading, c->error));
    return append_all(c);
}

static enum ar_status read_kineto(struct format_reading *reading, struct ar_error *error)
{
    struct conversion c = {.reading = reading, .error = error};
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "kineto");
    enum ar_status status = kineto_rows_read(reading->input, &c.rows, &reading->info, error);
    AR_THEN(status, convert(&c));
    kineto_rows_close(&c.rows);
    ar_map_close(&c.streams);
    return status;
}

/* An object with one of the keys that writers put first, or an array of objects. */
static bool kineto_matches(const char *head, size_t count)
{
    static const char *const keys[] = {"\"traceEvents\"",         "\"schemaVersion\"",
                                       "\"deviceProperties\"",    "\"displayTimeUnit\"",
                                       "\"baseTimeNanoseconds\"", "\"distributedInfo\""};
    size_t at = head_blanks(head, count, 0);
    if (at == count || (head[at] != '{' && head[at] != '['))
        return false;
    if (head[at] == '[') {
        at = head_blanks(head, count, at + 1);
        return at < count &&
               (head[at] == ']' || (head[at] == '{' && head_holds(head, count, "\"ph\"")));
    }
    for (size_t i = 0; i < AR_COUNT(keys); i++)
        if (head_holds(head, count, keys[i]))
            return true;
    return false;
}

const struct format_reader format_kineto = {
    .name = "kineto",
    .summary = "a trace of PyTorch's profiler as Chrome JSON: memory events, kernels, steps, read",
    .matches = kineto_matches,
    .read = read_kineto,
};
