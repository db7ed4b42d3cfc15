/* Reading a Kineto trace: the fields that matter of each event in "traceEvents", or in the one
 * array of the file.
 *
 * 1. The category and the name of an event decide its kind. As soon as both are known and the event
 *    is not kept, the rest of it is skipped, which is most of any file.
 * 2. Fields may come in any order: those before the name are kept until the name is known.
 * 3. Times are read as decimals, from numbers or strings, to the nanosecond.
 * 4. Launches are kept by correlation, so that a kernel can be placed where the program launched
 *    it. */
#include "workloads/formats/kineto/kineto_events.h"

#include "allocators/base/array.h"
#include "workloads/io/fields.h"

/* The types of devices with memory of a GPU or another accelerator, as bits, in the numbers of
 * PyTorch's c10/core/DeviceType.h (2.9): CUDA 1, HIP 6, XPU 12, MPS 13, HPU 15, MTIA 19, and 20 for
 * those of other makers, such as Ascend. */
#define DEVICE_TYPES (1u << 1 | 1u << 6 | 1u << 12 | 1u << 13 | 1u << 15 | 1u << 19 | 1u << 20)
#define TO_NS        3                  /* digits from microseconds */
#define TIME_LIMIT   (INT64_C(1) << 61) /* so that differences fit a trace */

enum category {
    CATEGORY_UNKNOWN, /* not read yet, or missing */
    CATEGORY_KERNEL,
    CATEGORY_LAUNCH, /* calls of the CUDA runtime and driver */
    CATEGORY_HOST,   /* may be memory, a step, or nothing */
    CATEGORY_NOTHING,
};

enum name { NAME_UNKNOWN, NAME_OTHER, NAME_MEMORY, NAME_FAILURE, NAME_STEP, NAME_LAUNCH };

/* Integers of an event. */
enum field {
    FIELD_ADDRESS,
    FIELD_BYTES,
    FIELD_DEVICE_TYPE,
    FIELD_DEVICE,
    FIELD_TOTAL,
    FIELD_STREAM,
    FIELD_KERNEL_DEVICE,
    FIELD_CORRELATION,
    FIELD_TIME,
    FIELD_DURATION,
    FIELD_COUNT
};

struct event {
    enum category category;
    enum name name;
    unsigned has; /* a bit for each field that was read */
    struct json_number fields[FIELD_COUNT];
    uint64_t line;
};

struct reading {
    struct json_pull *pull;
    struct kineto_rows *rows;
    struct trace_info *info;
    struct ar_error *error;
};

static enum ar_status next(struct reading *reading, struct json_token *token)
{
    return json_pull_next(reading->pull, token, reading->error);
}

void kineto_rows_close(struct kineto_rows *rows)
{
    free(rows->items);
    ar_map_close(&rows->launches);
    *rows = (struct kineto_rows){0};
}

/* ---- kinds of events --------------------------------------------------------------------- */

static enum category category_of(const struct json_token *token)
{
    static const struct {
        const char *text;
        enum category category;
    } known[] = {
        {"cpu_op", CATEGORY_HOST},        {"kernel", CATEGORY_KERNEL},
        {"Kernel", CATEGORY_KERNEL},      {"cuda_runtime", CATEGORY_LAUNCH},
        {"Runtime", CATEGORY_LAUNCH},     {"cuda_driver", CATEGORY_LAUNCH},
        {"ac2g", CATEGORY_NOTHING},       {"fwdbwd", CATEGORY_NOTHING},
        {"async_gpu", CATEGORY_NOTHING},  {"async_cpu_to_gpu", CATEGORY_NOTHING},
        {"overhead", CATEGORY_NOTHING},   {"python_function", CATEGORY_NOTHING},
        {"gpu_memcpy", CATEGORY_NOTHING}, {"gpu_memset", CATEGORY_NOTHING},
        {"Memcpy", CATEGORY_NOTHING},     {"Memset", CATEGORY_NOTHING},
    };
    for (size_t i = 0; i < AR_COUNT(known); i++)
        if (json_is(token, known[i].text))
            return known[i].category;
    return field_begins_with(token->text, "gpu_") ? CATEGORY_NOTHING : CATEGORY_HOST;
}

static enum name name_of(const struct json_token *token)
{
    if (token->text[0] == '[')
        return json_is(token, "[memory]")        ? NAME_MEMORY
               : json_is(token, "[OutOfMemory]") ? NAME_FAILURE
                                                 : NAME_OTHER;
    if (field_begins_with(token->text, "ProfilerStep#"))
        return NAME_STEP;
    return strstr(token->text, "Launch") ? NAME_LAUNCH : NAME_OTHER;
}

/* OTHER if the event is not kept; `*decided`: further fields do not change the answer. */
static enum kineto_kind kind_of(const struct event *event, bool *decided)
{
    *decided = event->category && event->name;
    if (event->category == CATEGORY_NOTHING) {
        *decided = true;
        return KINETO_OTHER;
    }
    if (event->category == CATEGORY_KERNEL) {
        *decided = true;
        return KINETO_KERNEL;
    }
    if (event->category == CATEGORY_LAUNCH)
        return event->name == NAME_LAUNCH ? KINETO_LAUNCH : KINETO_OTHER;
    return event->name == NAME_MEMORY    ? KINETO_MEMORY
           : event->name == NAME_FAILURE ? KINETO_FAILURE
           : event->name == NAME_STEP    ? KINETO_STEP
                                         : KINETO_OTHER;
}

/* ---- fields ------------------------------------------------------------------------------ */

/* The value of a wanted field: kept if it is a number. */
static enum ar_status take_number(struct reading *reading, struct event *event, enum field field,
                                  int digits)
{
    struct json_token token;
    AR_TRY(json_pull_scalar(reading->pull, &token, reading->error));
    if (json_number_of(&token, digits, &event->fields[field]))
        event->has |= 1u << field;
    return AR_OK;
}

static enum ar_status read_arguments(struct reading *reading, struct event *event)
{
    static const struct {
        const char *key;
        enum field field;
    } wanted[] = {
        {"Addr", FIELD_ADDRESS},
        {"Bytes", FIELD_BYTES},
        {"Device Type", FIELD_DEVICE_TYPE},
        {"Device Id", FIELD_DEVICE},
        {"Total Allocated", FIELD_TOTAL},
        {"stream", FIELD_STREAM},
        {"device", FIELD_KERNEL_DEVICE},
        {"correlation", FIELD_CORRELATION},
    };
    enum { COUNT = AR_COUNT(wanted) };
    struct json_token token;
    enum ar_status status = next(reading, &token);
    if (status || token.kind == JSON_ARRAY)
        return status ? status : json_pull_leave(reading->pull, reading->error);
    if (token.kind != JSON_OBJECT)
        return AR_OK;
    while (!(status = next(reading, &token)) && token.kind == JSON_KEY) {
        size_t i = 0;
        while (i < COUNT && !json_is(&token, wanted[i].key))
            i++;
        status = i < COUNT ? take_number(reading, event, wanted[i].field, 0)
                           : json_pull_skip(reading->pull, reading->error);
        if (status)
            break;
    }
    return status;
}

/* The category or the name; a value that is no string counts as another's. */
static enum ar_status take_word(struct reading *reading, struct event *event, bool is_name)
{
    struct json_token token;
    enum ar_status status = json_pull_scalar(reading->pull, &token, reading->error);
    if (is_name)
        event->name = name_of(&token);
    else
        event->category = category_of(&token);
    return status;
}

static enum ar_status take_field(struct reading *reading, struct event *event,
                                 const struct json_token *key)
{
    if (json_is(key, "cat"))
        return take_word(reading, event, false);
    if (json_is(key, "name"))
        return take_word(reading, event, true);
    if (json_is(key, "ts"))
        return take_number(reading, event, FIELD_TIME, TO_NS);
    if (json_is(key, "dur"))
        return take_number(reading, event, FIELD_DURATION, TO_NS);
    if (json_is(key, "args"))
        return read_arguments(reading, event);
    return json_pull_skip(reading->pull, reading->error);
}

/* ---- rows -------------------------------------------------------------------------------- */

static bool has(const struct event *event, unsigned fields)
{
    return (event->has & fields) == fields;
}

static int64_t number(const struct event *event, enum field field)
{
    const struct json_number *value = &event->fields[field];
    int64_t magnitude =
        value->magnitude < UINT64_C(1) << 62 ? (int64_t)value->magnitude : INT64_C(1) << 62;
    return value->negative ? -magnitude : magnitude;
}

/* Whether the event has a usable time, and if `duration` a usable duration. */
static bool has_time(const struct event *event, bool duration)
{
    int64_t time = number(event, FIELD_TIME), length = number(event, FIELD_DURATION);
    if (!has(event, 1u << FIELD_TIME) || time <= -TIME_LIMIT || time >= TIME_LIMIT)
        return false;
    return !duration || (has(event, 1u << FIELD_DURATION) && length >= 0 && length < TIME_LIMIT &&
                         time + length < TIME_LIMIT);
}

/* A device or stream; 0 if it is missing, or `limit` or more. */
static uint32_t small_number(const struct event *event, enum field field, uint32_t limit)
{
    int64_t value = has(event, 1u << field) ? number(event, field) : 0;
    return value > 0 && value < limit ? (uint32_t)value : 0;
}

static enum ar_status append(struct kineto_rows *rows, const struct kineto_row *row,
                             struct ar_error *error)
{
    if (rows->count < KINETO_NONE && AR_ARRAY_ADD(rows->items, rows->count, rows->capacity, *row))
        return AR_OK;
    return ar_no_memory(error, "the events of a Kineto trace");
}

static enum ar_status unusable(struct kineto_rows *rows, const struct event *event)
{
    rows->first_unusable = rows->unusable++ ? rows->first_unusable : event->line;
    return AR_OK;
}

static enum ar_status keep_memory(struct reading *reading, const struct event *event,
                                  struct kineto_row *row)
{
    struct kineto_rows *rows = reading->rows;
    int64_t type = number(event, FIELD_DEVICE_TYPE);
    if (has(event, 1u << FIELD_DEVICE_TYPE) &&
        (type < 0 || type > 20 || !(DEVICE_TYPES >> type & 1))) {
        rows->other_devices++;
        return AR_OK;
    }
    if (!has_time(event, false) || !has(event, 1u << FIELD_BYTES) || !number(event, FIELD_BYTES))
        return unusable(rows, event);
    row->bytes = number(event, FIELD_BYTES);
    if (row->kind == KINETO_FAILURE && row->bytes < 0)
        row->bytes = -row->bytes;
    if (row->bytes >= (int64_t)TRACE_BYTES_LIMIT || row->bytes <= -(int64_t)TRACE_BYTES_LIMIT)
        return json_pull_refuse(reading->pull, reading->error,
                                "a block of 2^60 bytes or more cannot be");
    const struct json_number *address = &event->fields[FIELD_ADDRESS];
    if (has(event, 1u << FIELD_ADDRESS))
        row->address = address->negative ? 0 - address->magnitude : address->magnitude;
    if (has(event, 1u << FIELD_TOTAL))
        row->total_bytes = number(event, FIELD_TOTAL);
    row->device = (uint16_t)small_number(event, FIELD_DEVICE, UINT16_MAX);
    return append(rows, row, reading->error);
}

static enum ar_status keep_kernel(struct reading *reading, const struct event *event,
                                  struct kineto_row *row)
{
    if (!has_time(event, true))
        return unusable(reading->rows, event);
    row->bytes = number(event, FIELD_DURATION);
    row->address = has(event, 1u << FIELD_CORRELATION) ? (uint64_t)number(event, FIELD_CORRELATION)
                                                       : UINT64_MAX;
    row->stream = small_number(event, FIELD_STREAM, UINT32_MAX);
    row->device = (uint16_t)small_number(event, FIELD_KERNEL_DEVICE, UINT16_MAX);
    return append(reading->rows, row, reading->error);
}

static enum ar_status keep_launch(struct reading *reading, const struct event *event)
{
    if (!has_time(event, false) || !has(event, 1u << FIELD_CORRELATION))
        return AR_OK;
    uint64_t correlation = (uint64_t)number(event, FIELD_CORRELATION);
    if (correlation == UINT64_MAX)
        return AR_OK;
    enum ar_status status =
        ar_map_put(&reading->rows->launches, correlation, (uint64_t)number(event, FIELD_TIME));
    return status ? ar_error_set(reading->error, status, "no host memory for a Kineto trace")
                  : status;
}

static enum ar_status keep(struct reading *reading, const struct event *event,
                           enum kineto_kind kind)
{
    struct kineto_row row = {
        .time_ns = number(event, FIELD_TIME),
        .order = (uint32_t)reading->rows->count,
        .line = event->line < UINT32_MAX ? (uint32_t)event->line : UINT32_MAX,
        .total_bytes = KINETO_UNKNOWN,
        .pair = KINETO_NONE,
        .kind = (uint8_t)kind,
    };
    switch (kind) {
    case KINETO_MEMORY:
    case KINETO_FAILURE:
        return keep_memory(reading, event, &row);
    case KINETO_KERNEL:
        return keep_kernel(reading, event, &row);
    case KINETO_LAUNCH:
        return keep_launch(reading, event);
    case KINETO_STEP:
        if (!has_time(event, true))
            return AR_OK; /* the first of a pair, or a counter */
        row.time_ns += number(event, FIELD_DURATION);
        return append(reading->rows, &row, reading->error);
    default:
        return AR_OK;
    }
}

/* An event, after its opening bracket. */
static enum ar_status read_event(struct reading *reading)
{
    struct event event = {.line = json_pull_line(reading->pull)};
    struct json_token key;
    enum ar_status status;
    bool decided;
    reading->rows->events++;
    while (!(status = next(reading, &key)) && key.kind == JSON_KEY) {
        AR_TRY(take_field(reading, &event, &key));
        if (kind_of(&event, &decided) == KINETO_OTHER && decided)
            return json_pull_leave(reading->pull, reading->error);
    }
    return status ? status : keep(reading, &event, kind_of(&event, &decided));
}

/* ---- the file ---------------------------------------------------------------------------- */

/* The objects of an array, after its opening bracket. */
static enum ar_status each_object(struct reading *reading,
                                  enum ar_status (*read)(struct reading *reading))
{
    struct json_token token;
    enum ar_status status;
    while (!(status = next(reading, &token)) && token.kind != JSON_ARRAY_END) {
        if (token.kind == JSON_OBJECT)
            status = read(reading);
        else if (token.kind == JSON_ARRAY)
            status = json_pull_leave(reading->pull, reading->error);
        if (status)
            break;
    }
    return status;
}

/* One of "deviceProperties", after its bracket: the first one has the name and size of the card. */
static enum ar_status read_device(struct reading *reading)
{
    struct json_token token;
    enum ar_status status;
    while (!(status = next(reading, &token)) && token.kind == JSON_KEY) {
        bool is_name = json_is(&token, "name");
        bool is_memory = json_is(&token, "totalGlobalMem");
        if (!is_name && !is_memory) {
            status = json_pull_skip(reading->pull, reading->error);
        } else if (!(status = json_pull_scalar(reading->pull, &token, reading->error))) {
            struct json_number bytes;
            if (is_name && token.kind == JSON_STRING && !reading->info->card[0])
                field_text(token.text, reading->info->card, sizeof reading->info->card);
            else if (is_memory && !reading->info->capacity_bytes &&
                     json_number_of(&token, 0, &bytes) && !bytes.negative)
                reading->info->capacity_bytes = bytes.magnitude;
        }
        if (status)
            break;
    }
    return status;
}

static enum ar_status read_devices(struct reading *reading)
{
    struct json_token token;
    enum ar_status status = next(reading, &token);
    if (status || token.kind != JSON_ARRAY)
        return status || token.kind != JSON_OBJECT ? status
                                                   : json_pull_leave(reading->pull, reading->error);
    return each_object(reading, read_device);
}

/* The object of the file, after its opening bracket. */
static enum ar_status read_object(struct reading *reading)
{
    struct json_token token;
    for (;;) {
        AR_TRY(next(reading, &token));
        if (token.kind != JSON_KEY)
            return AR_OK;
        if (json_is(&token, "deviceProperties")) {
            AR_TRY(read_devices(reading));
        } else if (json_is(&token, "traceEvents")) {
            AR_TRY(next(reading, &token));
            if (token.kind != JSON_ARRAY)
                return json_pull_refuse(reading->pull, reading->error,
                                        "\"traceEvents\" is not an array");
            AR_TRY(each_object(reading, read_event));
        } else {
            AR_TRY(json_pull_skip(reading->pull, reading->error));
        }
    }
}

enum ar_status kineto_rows_read(struct trace_input *input, struct kineto_rows *out,
                                struct trace_info *info, struct ar_error *error)
{
    struct reading reading = {.rows = out, .info = info, .error = error};
    struct json_token token;
    AR_CLOSED(json_pull_close_at) struct json_pull *pull = NULL;
    AR_TRY(json_pull_open(input, &pull, error));
    reading.pull = pull;
    AR_TRY(next(&reading, &token));
    if (token.kind == JSON_OBJECT)
        AR_TRY(read_object(&reading));
    else if (token.kind == JSON_ARRAY)
        AR_TRY(each_object(&reading, read_event));
    return next(&reading, &token); /* nothing may follow */
}
