/* RMM's two logs.
 *
 * The CSV of its logging_resource_adaptor, one row for each request, failure and free:
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     1979932,14:21:19.998533,allocate,0x30a000000,256,0x2
 *
 * 1. Time is the time of day. If it goes back, it passed midnight; if it goes back by less than an
 *    hour, the row of a thread came late.
 * 2. The streams 0x0 and 0x1 are the default stream; 0x2 is that of the calling thread, so each
 *    thread has its own.
 * 3. The first line may be missing, because the log went to the standard error or was cut.
 * 4. Threads keep their number as `thread=` if it has at most 32 bits; else they are numbered from
 *    1.
 *
 * The debug log (RMM_DEBUG_LOG_FILE) of a pool, if RMM was compiled for the level trace and logs at
 * it:
 *
 *     [ 19932][14:21:19:998533][trace ] [A][stream 0x2][100B]
 *     [ 19932][14:21:19:998540][trace ] [A][stream 0x2][256B][0x30a000000]
 *     [ 19932][14:21:20:000100][trace ] [D][stream 0x2][100B][0x30a000000]
 *
 * 5. The pool writes a request when it comes, and when it is served, with the size rounded to 256
 *    bytes. One that is not served failed.
 * 6. At other levels the log has only the memory that a pool took from its upstream, without
 *    addresses: no workload follows from that.
 * 7. The log may be among other lines of the standard error. They are left out.
 *
 * Source of the formats: rapidsai/rmm, logging_resource_adaptor, versions 0.15 to 25;
 * src/logger.cpp (default_pattern) and mr/detail/stream_ordered_memory_resource.hpp of 25.12. */

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

#define NS_PER_HOUR (UINT64_C(3600) * 1000000000)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

/* The name of a thread's own default stream; other names are handles. */
#define THREAD_STREAM (UINT64_C(1) << 63)

enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

/* A request of the debug log that is not served yet. */
struct debug_request {
    uint64_t bytes;
    uint32_t thread;
    size_t row; /* it counts as a failure until then */
};

struct reading {
    struct rows rows;
    struct ar_map threads; /* of more than 32 bits: their count */
    uint64_t time_ns;
    uint64_t headers, thread_streams;
    bool timed; /* a row was read */
    struct debug_request *requests;
    size_t request_count, request_room;
    uint64_t growths, grown_bytes, refusals, no_bytes; /* of the debug log */
};

static const struct {
    const char *name;
    uint8_t action;
} action_names[] = {
    {"allocate", ROW_ALLOC},
    {"free", ROW_FREE},
    {"allocate failure", ROW_FAILURE},
    {"deallocate", ROW_FREE},
};

/* The time of day as time since the first day began. */
static uint64_t passed_ns(struct reading *r, uint64_t time_ns)
{
    uint64_t last_ns = r->time_ns % NS_PER_DAY;
    uint64_t ahead_ns = (time_ns + NS_PER_DAY - last_ns) % NS_PER_DAY;
    uint64_t behind_ns = NS_PER_DAY - ahead_ns;
    if (!r->timed)
        return NS_PER_DAY + time_ns; /* a day later, so that a late row fits in front */
    if (ahead_ns && behind_ns < NS_PER_HOUR)
        return r->time_ns - behind_ns;
    return r->time_ns + ahead_ns;
}

static enum ar_status parse_thread(struct reading *r, const char *text, uint32_t *thread,
                                   struct ar_error *error)
{
    uint64_t number, index;
    struct ar_error ignored;
    if (ar_count_parse(text, &number, &ignored) && field_pointer(text, &number, &ignored))
        return ar_invalid(error, "Thread: \"%.40s\" is not a number", text);
    if (number <= UINT32_MAX) {
        *thread = (uint32_t)number;
        return AR_OK;
    }
    if (!ar_map_get(&r->threads, number, &index)) {
        index = r->threads.count + 1;
        if (number == UINT64_MAX || ar_map_put(&r->threads, number, index))
            return ar_invalid(error, "Thread: %.40s is too large", text);
    }
    *thread = (uint32_t)index;
    return AR_OK;
}

static enum ar_status parse_action(const char *text, uint8_t *action, struct ar_error *error)
{
    for (size_t i = 0; i < AR_COUNT(action_names); i++)
        if (strcmp(action_names[i].name, text) == 0) {
            *action = action_names[i].action;
            return AR_OK;
        }
    return ar_invalid(
        error, "Action: \"%.40s\" is not known; there are allocate, allocate failure and free",
        text);
}

static enum ar_status parse_time(struct reading *r, const char *text, uint64_t *time_ns,
                                 struct ar_error *error)
{
    bool dated;
    AR_TRY(ar_error_prefix(error, field_time(text, time_ns, &dated, error), "Time"));
    if (!dated)
        *time_ns = passed_ns(r, *time_ns);
    r->time_ns = r->timed && *time_ns < r->time_ns ? r->time_ns : *time_ns;
    r->timed = true;
    return AR_OK;
}

/* Gives the stream of a row the name that the trace needs: rule 2. */
static void take_stream(struct reading *r, struct row *row)
{
    if (row->stream == 2) {
        row->stream = THREAD_STREAM | row->thread;
        r->thread_streams++;
    } else if (row->stream == 1) {
        row->stream = 0;
    }
}

static enum ar_status parse_row(struct reading *r, char *line, struct row *row,
                                struct ar_error *error)
{
    char *fields[COLUMNS];
    size_t count = fields_split(line, ',', fields, COLUMNS);
    if (count != COLUMNS)
        return ar_invalid(error, "there are %zu columns instead of %d: %s", count, COLUMNS, HEADER);
    AR_TRY(parse_thread(r, fields[THREAD], &row->thread, error));
    AR_TRY(parse_time(r, fields[TIME], &row->time_ns, error));
    AR_TRY(parse_action(fields[ACTION], &row->action, error));
    AR_TRY(ar_error_prefix(error, field_pointer(fields[POINTER], &row->address, error), "Pointer"));
    AR_TRY(ar_error_prefix(error, ar_count_parse(fields[SIZE], &row->bytes, error), "Size"));
    AR_TRY(ar_error_prefix(error, field_pointer(fields[STREAM], &row->stream, error), "Stream"));
    take_stream(r, row);
    return AR_OK;
}

static enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error)
{
    struct reading *r = self;
    struct row row = {.position = number};
    if (strcmp(line, HEADER) == 0) {
        r->headers++;
        return AR_OK;
    }
    AR_TRY(parse_row(r, line, &row, error));
    return rows_add(&r->rows, &row, error);
}

/* ---- the debug log ------------------------------------------------------------------------ */

#define DEBUG_ROUND_BYTES 256u
#define DEBUG_OPEN_MOST   4096 /* requests that are not served yet; they are served soon */

/* Copies the text in the brackets at `*at`, without blanks around it, and moves behind them. False:
 * there are none, or the text does not fit. */
static bool take_brackets(const char **at, char *out, size_t room)
{
    const char *end = **at == '[' ? strchr(*at, ']') : NULL;
    if (!end)
        return false;
    const char *text = *at + 1 + strspn(*at + 1, " ");
    size_t length = text < end ? (size_t)(end - text) : 0;
    while (length && text[length - 1] == ' ')
        length--;
    if (length >= room)
        return false;
    memcpy(out, text, length);
    out[length] = 0;
    *at = end + 1;
    return true;
}

/* A line of the debug log; `message` is what follows the level. */
struct debug_line {
    char thread[32], time[40], level[16];
    const char *message;
};

static bool is_debug_line(const char *line, struct debug_line *out)
{
    struct ar_error ignored;
    uint64_t number;
    bool dated;
    if (!take_brackets(&line, out->thread, sizeof out->thread) ||
        !take_brackets(&line, out->time, sizeof out->time) ||
        !take_brackets(&line, out->level, sizeof out->level))
        return false;
    out->message = line + strspn(line, " ");
    return !ar_count_parse(out->thread, &number, &ignored) &&
           !field_time(out->time, &number, &dated, &ignored);
}

/* "256B" */
static enum ar_status parse_debug_bytes(char *text, uint64_t *bytes, struct ar_error *error)
{
    size_t length = strlen(text);
    if (!length || text[length - 1] != 'B')
        return ar_invalid(error, "\"%.40s\" is not a number of bytes, as 256B", text);
    text[length - 1] = 0;
    return ar_count_parse(text, bytes, error);
}

static enum ar_status begin_debug_request(struct reading *r, struct row *row,
                                          struct ar_error *error)
{
    const struct debug_request request = {row->bytes, row->thread, r->rows.count};
    if (!row->bytes) { /* it is served with a null pointer, and nothing more is written */
        r->no_bytes++;
        return AR_OK;
    }
    row->action = ROW_FAILURE;
    if (r->request_count == DEBUG_OPEN_MOST)
        AR_ARRAY_REMOVE(r->requests, r->request_count, 0);
    AR_TRY(AR_APPEND(r->requests, r->request_count, r->request_room, request, error, "the file"));
    return rows_add(&r->rows, row, error);
}

/* The size asked for is in the record before. */
static enum ar_status serve_debug_request(struct reading *r, struct row *row,
                                          struct ar_error *error)
{
    row->action = ROW_ALLOC;
    for (size_t i = r->request_count; i-- > 0;) {
        const struct debug_request request = r->requests[i];
        if (request.thread != row->thread || request.bytes > row->bytes ||
            row->bytes - request.bytes >= DEBUG_ROUND_BYTES)
            continue;
        row->bytes = request.bytes;
        r->rows.items[request.row].action = ROW_NOTHING;
        AR_ARRAY_REMOVE(r->requests, r->request_count, i);
        break;
    }
    return rows_add(&r->rows, row, error);
}

/* A request or a free of a pool: what follows "[A]" or "[D]". */
static enum ar_status take_debug_request(struct reading *r, const struct debug_line *line,
                                         const char *at, bool frees, struct row *row,
                                         struct ar_error *error)
{
    char stream[64], bytes[64], pointer[64];
    if (!take_brackets(&at, stream, sizeof stream) || !take_brackets(&at, bytes, sizeof bytes))
        return ar_invalid(error,
                          "a stream and a size in brackets are expected: [A][stream 0x2][256B]");
    AR_TRY(parse_thread(r, line->thread, &row->thread, error));
    AR_TRY(parse_time(r, line->time, &row->time_ns, error));
    AR_TRY(ar_error_prefix(error, field_pointer(stream + strlen("stream "), &row->stream, error),
                           "stream"));
    AR_TRY(ar_error_prefix(error, parse_debug_bytes(bytes, &row->bytes, error), "size"));
    take_stream(r, row);
    bool has_pointer = take_brackets(&at, pointer, sizeof pointer);
    if (has_pointer)
        AR_TRY(ar_error_prefix(error, field_pointer(pointer, &row->address, error), "pointer"));
    if (!has_pointer && frees)
        return ar_invalid(error, "a free has no pointer: [D][stream 0x2][256B][0x7f00]");
    if (!has_pointer)
        return begin_debug_request(r, row, error);
    if (!frees)
        return serve_debug_request(r, row, error);
    row->action = ROW_FREE;
    if (row->bytes && row->address)
        return rows_add(&r->rows, row, error);
    r->rows.reading->report->left_out++;
    return AR_OK;
}

/* "[A][Stream 0x2][Upstream 1073741824B]", and after it "[FAILURE ..]" */
static bool is_growth(struct reading *r, const char *at)
{
    static const char upstream[] = "Upstream ";
    char stream[64], bytes[64], why[512];
    struct ar_error ignored;
    uint64_t number;
    if (!take_brackets(&at, stream, sizeof stream) || !take_brackets(&at, bytes, sizeof bytes) ||
        !field_begins_with(bytes, upstream) ||
        parse_debug_bytes(bytes + sizeof upstream - 1, &number, &ignored))
        return false;
    bool refused = take_brackets(&at, why, sizeof why) || *at == '[';
    r->refusals += refused;
    r->growths += !refused;
    r->grown_bytes += refused ? 0 : number;
    return true;
}

static enum ar_status take_debug_line(void *self, char *text, uint64_t number,
                                      struct ar_error *error)
{
    struct reading *r = self;
    struct debug_line line;
    struct row row = {.position = number};
    struct import_report *report = r->rows.reading->report;
    report->records++;
    if (is_debug_line(text, &line)) {
        bool frees = field_begins_with(line.message, "[D][");
        if (field_begins_with(line.message, "[A][stream ") ||
            field_begins_with(line.message, "[D][stream "))
            return take_debug_request(r, &line, line.message + 3, frees, &row, error);
        if (field_begins_with(line.message, "[A][") && is_growth(r, line.message + 3))
            return AR_OK;
    }
    report->left_out++;
    return AR_OK;
}

static enum ar_status no_requests(const struct reading *r, struct ar_error *error)
{
    return ar_error_set(
        error, AR_FORMAT,
        "this debug log of RMM has no requests, which are written at level trace: a pool asked "
        "its upstream for memory %" PRIu64 " times, for %s in all, and was refused %" PRIu64
        " times; record with rmm.set_logging_level(\"trace\"), or as CSV with RMM_LOG_FILE",
        r->growths, AR_SIZE(r->grown_bytes), r->refusals);
}

/* Whether a line of the first bytes is one that RMM's debug log has. */
static bool is_debug_log(const char *head, size_t count)
{
    static const char *const stems[] = {"[A][stream ", "[D][stream ", "[A][Stream ",
                                        "[Summary][Free lists", "----- RMM LOG BEGIN"};
    struct debug_line line;
    char text[1024];
    const char *end;
    for (; count; count -= (size_t)(end + 1 - head), head = end + 1) {
        bool fits = head_line(head, count, text, sizeof text);
        for (size_t i = 0; fits && i < AR_COUNT(stems); i++)
            if (is_debug_line(text, &line) && field_begins_with(line.message, stems[i]))
                return true;
        if (!(end = memchr(head, '\n', count)))
            return false;
    }
    return false;
}

/* ---- the file ----------------------------------------------------------------------------- */

static void say_guesses(struct reading *r, bool is_debug)
{
    struct import_report *report = r->rows.reading->report;
    if (!is_debug)
        report->records = r->rows.count;
    import_guess_count(report, r->no_bytes, "requests are of 0 bytes: left out");
    import_guess_count(report, r->growths,
                       "times a pool asked its upstream for memory: left out, without addresses");
    if (r->headers > 1)
        import_guess(report, "%" PRIu64 " logs follow each other: taken for one program",
                     r->headers);
    import_guess_count(report, r->thread_streams,
                       "rows are on the per-thread default stream 0x2: one stream for each thread");
    import_guess_count(report, r->threads.count,
                       "threads have numbers of more than 32 bits: counted from 1");
}

static enum ar_status read_rmm(struct format_reading *reading, struct ar_error *error)
{
    struct reading r = {.rows = {.reading = reading, .unit = ":", .has_times = true}};
    char head[FORMAT_HEAD_BYTES];
    size_t count = 0;
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "rmm");
    enum ar_status status = trace_input_head(reading->input, head, sizeof head, &count, error);
    bool is_debug = !status && is_debug_log(head, count);
    AR_THEN(status, is_debug ? fields_log_lines(reading->input, take_debug_line, &r, error)
                             : fields_lines(reading->input, take_line, &r, error));
    if (!status && !r.rows.count)
        status = is_debug ? no_requests(&r, error)
                          : ar_error_set(error, AR_FORMAT, "the log holds no rows");
    say_guesses(&r, is_debug);
    AR_THEN(status, rows_convert(&r.rows, error));
    rows_close(&r.rows);
    ar_map_close(&r.threads);
    free(r.requests);
    return status;
}

/* A log without its first line begins with a row, known by its time and action. */
static bool begins_with_row(const char *head, size_t count)
{
    char line[128], *fields[COLUMNS];
    struct ar_error ignored;
    uint64_t number;
    uint8_t action;
    bool dated;
    if (!head_line(head, count, line, sizeof line))
        return false;
    return fields_split(line, ',', fields, COLUMNS) == COLUMNS &&
           !parse_action(fields[ACTION], &action, &ignored) &&
           !field_time(fields[TIME], &number, &dated, &ignored) &&
           !field_pointer(fields[POINTER], &number, &ignored);
}

static bool matches_rmm(const char *head, size_t count)
{
    size_t header = strlen(HEADER);
    if (count > header && !memcmp(head, HEADER, header))
        return head[header] == '\n' || head[header] == '\r';
    return begins_with_row(head, count) || is_debug_log(head, count);
}

const struct format_reader format_rmm = {
    .name = "rmm",
    .summary = "RMM's log of requests, failures and frees as CSV, or its debug log, read",
    .matches = matches_rmm,
    .read = read_rmm,
};
