/* Runs over time for ui.perfetto.dev (`run --chrome`). Times are the device's clock as the host
 * sees it, in microseconds. If nothing advances that clock, as between two requests without a
 * driver call, an event of the trace takes a nanosecond, so that events stay apart and in order.
 *
 * Too many values are thinned: of several consecutive counter values the greatest of each
 * counter remains, so no peak is lost; of driver calls the longest remain. The file states the
 * full numbers. */
#include "bench/report/run_output.h"

#include "allocators/base/array.h"
#include "bench/report/data_writer.h"

enum { TRACK_CALLS = 1, TRACK_MARKS = 2 };

void chrome_trace_open(struct chrome_trace *self, const char *name, uint64_t most)
{
    *self = (struct chrome_trace){.most = most};
    (void)snprintf(self->name, sizeof self->name, "%s", name);
}

void chrome_trace_close(struct chrome_trace *self)
{
    free(self->points);
    free(self->slices);
    free(self->instants);
    texts_close(&self->labels);
    *self = (struct chrome_trace){0};
}

static enum ar_status add_point(struct chrome_trace *self, const struct observer_event *event,
                                struct ar_error *error)
{
    const struct chrome_point point = {
        .at_ns = self->at_ns,
        .bytes = {event->totals->live_bytes, event->totals->granted_bytes,
                  event->totals->reserved_bytes, event->physical_bytes},
    };
    if (self->point_count) {
        struct chrome_point *last = &self->points[self->point_count - 1];
        if (memcmp(last->bytes, point.bytes, sizeof point.bytes) == 0)
            return AR_OK;
        if (last->at_ns == point.at_ns) {
            *last = point;
            return AR_OK;
        }
    }
    return AR_APPEND(self->points, self->point_count, self->point_room, point, error, "a timeline");
}

static enum ar_status add_slice(struct chrome_trace *self, const struct observer_event *event,
                                struct ar_error *error)
{
    const struct chrome_slice slice = {
        .at_ns = self->at_ns,
        .length_ns = event->now_ns - event->begun_ns,
        .address = event->address,
        .bytes = event->bytes,
        .call = event->call,
        .refused = event->refused,
    };
    AR_TRY(
        AR_APPEND(self->slices, self->slice_count, self->slice_room, slice, error, "a timeline"));
    self->at_ns += slice.length_ns;
    return AR_OK;
}

static enum ar_status add_instant(struct chrome_trace *self, const struct observer_event *event,
                                  struct ar_error *error)
{
    const char *name = event->kind == OBSERVER_MARK ? event->tag : "request failed";
    char step[40];
    if (event->kind == OBSERVER_MARK && strcmp(name, "step") == 0) {
        (void)snprintf(step, sizeof step, "step %" PRIu64, ++self->steps);
        name = step;
    }
    struct chrome_instant instant = {.at_ns = self->at_ns,
                                     .bytes = event->kind == OBSERVER_MARK ? 0 : event->bytes};
    AR_TRY(texts_intern(&self->labels, name, strlen(name), &instant.label, error));
    return AR_APPEND(self->instants, self->instant_count, self->instant_room, instant, error,
                     "a timeline");
}

enum ar_status chrome_trace_observe(void *argument, const struct observer_event *event,
                                    struct ar_error *error)
{
    struct chrome_trace *self = argument;
    uint64_t seen_ns = event->kind == OBSERVER_CALL ? event->begun_ns : event->now_ns;
    self->at_ns += event->event != self->event;
    self->event = event->event;
    AR_RAISE(self->at_ns, seen_ns);
    if (event->kind == OBSERVER_CALL)
        AR_TRY(add_slice(self, event, error));
    else if (event->kind == OBSERVER_MARK || event->kind == OBSERVER_FAILED)
        AR_TRY(add_instant(self, event, error));
    return add_point(self, event, error);
}

/* The writer of the events of a run. */
struct timeline {
    struct json_writer *json;
    size_t process;
};

/* Begins an event with the keys that all events have. */
static void begin(const struct timeline *line, const char *phase, const char *name, unsigned track)
{
    struct json_writer *json = line->json;
    json_begin_object(json, NULL);
    json_put_text(json, "ph", phase);
    json_put_text(json, "name", name);
    json_put_integer(json, "pid", line->process);
    json_put_integer(json, "tid", track);
}

static void put_time(struct json_writer *json, const char *key, uint64_t ns)
{
    json_put_real(json, key, (double)ns / 1000);
}

static void write_name(const struct timeline *line, const char *what, unsigned track,
                       const char *name)
{
    struct json_writer *json = line->json;
    begin(line, "M", what, track);
    json_begin_object(json, "args");
    json_put_text(json, "name", name);
    json_end_object(json);
    json_end_object(json);
}

static void write_points(const struct chrome_trace *self, const struct timeline *line)
{
    struct json_writer *json = line->json;
    static const char *const names[CHROME_COUNTERS] = {"live", "granted", "reserved", "physical"};
    uint64_t written[CHROME_COUNTERS];
    size_t most = self->most ? (size_t)(self->most / CHROME_COUNTERS) : self->point_count;
    size_t each = most ? (self->point_count + most - 1) / most : self->point_count;
    memset(written, 0xff, sizeof written);
    for (size_t first = 0; first < self->point_count; first += each) {
        struct chrome_point point = self->points[first];
        for (size_t i = first + 1; i < self->point_count && i < first + each; i++)
            for (unsigned counter = 0; counter < CHROME_COUNTERS; counter++)
                AR_RAISE(point.bytes[counter], self->points[i].bytes[counter]);
        for (unsigned counter = 0; counter < CHROME_COUNTERS; counter++) {
            if (point.bytes[counter] == written[counter])
                continue;
            written[counter] = point.bytes[counter];
            begin(line, "C", names[counter], 0);
            put_time(json, "ts", point.at_ns);
            json_begin_object(json, "args");
            json_put_integer(json, "bytes", point.bytes[counter]);
            json_end_object(json);
            json_end_object(json);
        }
    }
}

static int by_length(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a < b) - (a > b);
}

/* The least length that is written, and the number of calls of exactly that length; false: no host
 * memory. */
static bool choose(const struct chrome_trace *self, uint64_t *least_ns, size_t *at_least)
{
    size_t count = self->slice_count;
    *least_ns = 0;
    *at_least = count;
    if (!self->most || count <= self->most)
        return true;
    uint64_t *lengths = malloc(count * sizeof *lengths);
    if (!lengths)
        return false;
    for (size_t i = 0; i < count; i++)
        lengths[i] = self->slices[i].length_ns;
    qsort(lengths, count, sizeof *lengths, by_length);
    *least_ns = lengths[self->most - 1];
    *at_least = 0;
    for (size_t i = 0; i < self->most; i++)
        *at_least += lengths[i] == *least_ns;
    free(lengths);
    return true;
}

static enum ar_status write_slices(const struct chrome_trace *self, const struct timeline *line,
                                   struct ar_error *error)
{
    struct json_writer *json = line->json;
    uint64_t least_ns;
    size_t left;
    AR_TRY_MEMORY(choose(self, &least_ns, &left), error, "a timeline");
    for (size_t i = 0; i < self->slice_count; i++) {
        const struct chrome_slice *slice = &self->slices[i];
        if (slice->length_ns < least_ns || (slice->length_ns == least_ns && !left))
            continue;
        left -= slice->length_ns == least_ns;
        begin(line, "X", slice->call, TRACK_CALLS);
        json_put_text(json, "cat", "driver");
        put_time(json, "ts", slice->at_ns);
        put_time(json, "dur", slice->length_ns);
        json_begin_object(json, "args");
        if (slice->address) {
            char address[24];
            (void)snprintf(address, sizeof address, "0x%" PRIx64, slice->address);
            json_put_text(json, "address", address);
        }
        if (slice->bytes)
            json_put_integer(json, "bytes", slice->bytes);
        if (slice->refused)
            json_put_bool(json, "refused", true);
        json_end_object(json);
        json_end_object(json);
    }
    return AR_OK;
}

static void write_instants(const struct chrome_trace *self, const struct timeline *line)
{
    struct json_writer *json = line->json;
    for (size_t i = 0; i < self->instant_count; i++) {
        const struct chrome_instant *instant = &self->instants[i];
        begin(line, "i", self->labels.items[instant->label], TRACK_MARKS);
        put_time(json, "ts", instant->at_ns);
        json_put_text(json, "s", "t");
        if (instant->bytes) {
            json_begin_object(json, "args");
            json_put_integer(json, "bytes", instant->bytes);
            json_end_object(json);
        }
        json_end_object(json);
    }
}

static enum ar_status write_run(const struct chrome_trace *self, const struct timeline *line,
                                struct ar_error *error)
{
    write_name(line, "process_name", 0, self->name);
    write_name(line, "thread_name", TRACK_CALLS, "driver calls");
    write_name(line, "thread_name", TRACK_MARKS, "marks");
    write_points(self, line);
    enum ar_status status = write_slices(self, line, error);
    write_instants(self, line);
    return status;
}

enum ar_status chrome_trace_write(const struct chrome_trace *traces, size_t count, FILE *stream,
                                  struct ar_error *error)
{
    struct json_writer json = {.stream = stream, .lean_from = 2};
    enum ar_status status = AR_OK;
    uint64_t points = 0, slices = 0;
    for (size_t i = 0; i < count; i++) {
        points += traces[i].point_count;
        slices += traces[i].slice_count;
    }
    json_begin_object(&json, NULL);
    json_put_text(&json, "displayTimeUnit", "ns");
    json_begin_object(&json, "otherData");
    json_put_integer(&json, "runs", count);
    json_put_integer(&json, "states", points);
    json_put_integer(&json, "driver_calls", slices);
    json_end_object(&json);
    json_begin_array(&json, "traceEvents");
    for (size_t i = 0; i < count && !status; i++) {
        const struct timeline line = {&json, i + 1};
        status = write_run(&traces[i], &line, error);
    }
    json_end_array(&json);
    json_end_object(&json);
    return status;
}
