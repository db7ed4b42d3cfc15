/* RMM's CSV: the log of its logging_resource_adaptor, one row for each request, failure and free.
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
 * Source of the format: rapidsai/rmm, logging_resource_adaptor, versions 0.15 to 25. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

#define NS_PER_HOUR (UINT64_C(3600) * 1000000000)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

/* The name of a thread's own default stream; other names are handles. */
#define THREAD_STREAM (UINT64_C(1) << 63)

enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

struct reading {
    struct rows rows;
    struct ar_map threads; /* of more than 32 bits: their count */
    uint64_t time_ns;
    uint64_t headers, thread_streams;
    bool timed; /* a row was read */
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
        return ar_error_set(error, AR_INVALID, "Thread: \"%.40s\" is not a number", text);
    if (number <= UINT32_MAX) {
        *thread = (uint32_t)number;
        return AR_OK;
    }
    if (!ar_map_get(&r->threads, number, &index)) {
        index = r->threads.count + 1;
        if (number == UINT64_MAX || ar_map_put(&r->threads, number, index))
            return ar_error_set(error, AR_INVALID, "Thread: %.40s is too large", text);
    }
    *thread = (uint32_t)index;
    return AR_OK;
}

static enum ar_status parse_action(const char *text, uint8_t *action, struct ar_error *error)
{
    for (size_t i = 0; i < sizeof action_names / sizeof action_names[0]; i++)
        if (strcmp(action_names[i].name, text) == 0) {
            *action = action_names[i].action;
            return AR_OK;
        }
    return ar_error_set(
        error, AR_INVALID,
        "Action: \"%.40s\" is not known; there are allocate, allocate failure and free", text);
}

static enum ar_status parse_time(struct reading *r, const char *text, uint64_t *time_ns,
                                 struct ar_error *error)
{
    bool dated;
    enum ar_status status = field_time(text, time_ns, &dated, error);
    if (status)
        return ar_error_prefix(error, status, "Time");
    if (!dated)
        *time_ns = passed_ns(r, *time_ns);
    r->time_ns = r->timed && *time_ns < r->time_ns ? r->time_ns : *time_ns;
    r->timed = true;
    return AR_OK;
}

static enum ar_status parse_row(struct reading *r, char *line, struct row *row,
                                struct ar_error *error)
{
    char *fields[COLUMNS];
    size_t count = fields_split(line, ',', fields, COLUMNS);
    if (count != COLUMNS)
        return ar_error_set(error, AR_INVALID, "there are %zu columns instead of %d: %s", count,
                            COLUMNS, HEADER);
    enum ar_status status = parse_thread(r, fields[THREAD], &row->thread, error);
    if (!status)
        status = parse_time(r, fields[TIME], &row->time_ns, error);
    if (!status)
        status = parse_action(fields[ACTION], &row->action, error);
    if (status)
        return status;
    if ((status = field_pointer(fields[POINTER], &row->address, error)))
        return ar_error_prefix(error, status, "Pointer");
    if ((status = ar_count_parse(fields[SIZE], &row->bytes, error)))
        return ar_error_prefix(error, status, "Size");
    if ((status = field_pointer(fields[STREAM], &row->stream, error)))
        return ar_error_prefix(error, status, "Stream");
    if (row->stream == 2) {
        row->stream = THREAD_STREAM | row->thread;
        r->thread_streams++;
    } else if (row->stream == 1) {
        row->stream = 0;
    }
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
    enum ar_status status = parse_row(r, line, &row, error);
    return status ? status : rows_add(&r->rows, &row, error);
}

static void say_guesses(struct reading *r)
{
    struct import_report *report = r->rows.reading->report;
    report->records = r->rows.count;
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
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "rmm");
    enum ar_status status = fields_lines(reading->input, take_line, &r, error);
    if (!status && !r.rows.count)
        status = ar_error_set(error, AR_FORMAT, "%s: the log holds no rows",
                              trace_input_path(reading->input));
    say_guesses(&r);
    if (!status)
        status = rows_convert(&r.rows, error);
    rows_close(&r.rows);
    ar_map_close(&r.threads);
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
    return begins_with_row(head, count);
}

const struct format_reader format_rmm = {
    .name = "rmm",
    .summary = "RMM's log of requests, failures and frees as CSV, read",
    .matches = matches_rmm,
    .read = read_rmm,
};
