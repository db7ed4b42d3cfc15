/* JAX's device memory profile (jax.profiler.save_device_memory_profile): a profile in the form of
 * pprof, a protobuf packed with gzip, of what is live at one moment.
 *
 * 1. A sample is a number of equal buffers ("allocations") and their bytes together ("space"), with
 *    the labels `kind` (buffer or executable) and `device`, and the Python frames that made them,
 *    innermost first.
 * 2. It is a state, not a history: each buffer becomes a request with initial=yes, in the order of
 *    the file. Times, frees, temporary memory and addresses are not in it.
 * 3. Executables are the code of compiled programs, outside of the allocator: omitted. Buffers of
 *    the host are omitted, unless there are no others.
 * 4. The tag is the innermost frame that is not JAX's own, as FILE:LINE:FUNCTION.
 * 5. Profiles of the same form that other programs wrote, for example Go, are refused by the names
 *    of their values.
 *
 * Source of the format: google/pprof, proto/profile.proto; openxla/xla and jax-ml/jax,
 * PyClient::HeapProfile. */

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "workloads/formats/formats.h"
#include "workloads/io/fields.h"

#define BLOCKS_MOST  (UINT64_C(1) << 22) /* in all samples */
#define VALUES_MOST  8                   /* of a sample */
#define FRAMES_MOST  256                 /* of a sample; more are omitted */
#define DEVICES_MOST 64

/* ---- protobuf ----------------------------------------------------------------------------- */

/* A part of the file. */
struct part {
    const unsigned char *at, *end;
};

/* One field of a message. */
struct field {
    uint64_t number, value; /* the value of a varint or a fixed number */
    struct part part;       /* of a field with a length; else empty */
    bool has_length;
};

static bool take_varint(struct part *part, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; part->at < part->end && shift < 64; shift += 7) {
        uint64_t byte = *part->at++;
        *value |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_fixed(struct part *part, unsigned bytes, uint64_t *value)
{
    *value = 0;
    if ((size_t)(part->end - part->at) < bytes)
        return false;
    for (unsigned i = 0; i < bytes; i++)
        *value |= (uint64_t)*part->at++ << 8 * i;
    return true;
}

/* The next field of a message that is not at its end. False: it is damaged. */
static bool take_field(struct part *part, struct field *field)
{
    uint64_t tag, length;
    *field = (struct field){0};
    if (!take_varint(part, &tag) || !tag)
        return false;
    field->number = tag >> 3;
    switch (tag & 7) {
    case 0:
        return take_varint(part, &field->value);
    case 1:
        return take_fixed(part, 8, &field->value);
    case 5:
        return take_fixed(part, 4, &field->value);
    case 2:
        if (!take_varint(part, &length) || length > (uint64_t)(part->end - part->at))
            return false;
        field->has_length = true;
        field->part = (struct part){part->at, part->at + length};
        part->at += length;
        return true;
    default:
        return false;
    }
}

/* Adds the numbers of a repeated field, packed or not, up to `room`. False: it is damaged. */
static bool take_numbers(const struct field *field, uint64_t *numbers, size_t room, size_t *count)
{
    struct part part = field->part;
    uint64_t number = field->value;
    if (!field->has_length) {
        if (*count < room)
            numbers[(*count)++] = number;
        return true;
    }
    while (part.at < part.end) {
        if (!take_varint(&part, &number))
            return false;
        if (*count < room)
            numbers[(*count)++] = number;
    }
    return true;
}

/* ---- the profile -------------------------------------------------------------------------- */

/* Numbers of the fields of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION,
    PROFILE_STRING
};
enum { TYPE_NAME = 1 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };

struct frame {
    uint64_t function, line;
};

struct function {
    uint64_t name, file;
};

struct profile {
    struct format_reading *reading;
    unsigned char *bytes;
    size_t count, room;
    struct part *strings;
    size_t string_count, string_room;
    struct frame *frames; /* by location */
    size_t frame_count, frame_room;
    struct function *functions;
    size_t function_count, function_room;
    struct ar_map locations, function_ids; /* from ids to indices */
    uint64_t type_names[VALUES_MOST];
    size_t type_count;
    int allocations, space; /* the indices of these values; -1: there is none */
    bool host;              /* also the buffers of the host */
    uint64_t blocks, executables, executable_bytes, host_blocks, other_devices;
};

static enum ar_status read_bytes(struct profile *p, struct ar_error *error)
{
    size_t got = 1;
    while (got) {
        AR_TRY_MEMORY(ar_array_make_room(&p->bytes, p->count, &p->room, sizeof *p->bytes), error,
                      "the file");
        AR_TRY(trace_input_read(p->reading->input, p->bytes + p->count, p->room - p->count, &got,
                                error));
        p->count += got;
    }
    return AR_OK;
}

static enum ar_status damaged(const struct profile *p, const void *at, struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "byte %zu: the profile is damaged or cut off",
                        (size_t)((const unsigned char *)at - p->bytes));
}

/* The string of an index, as a text of at most `room` bytes; "" if there is none. */
static const char *string_of(const struct profile *p, uint64_t index, char *out, size_t room)
{
    out[0] = 0;
    if (index >= p->string_count)
        return out;
    size_t length = (size_t)(p->strings[index].end - p->strings[index].at);
    length = length < room ? length : room - 1;
    memcpy(out, p->strings[index].at, length);
    out[length] = 0;
    return out;
}

static enum ar_status add_type(struct profile *p, struct part part, struct ar_error *error)
{
    struct field field;
    uint64_t name = 0;
    while (part.at < part.end) {
        if (!take_field(&part, &field))
            return damaged(p, part.at, error);
        if (field.number == TYPE_NAME)
            name = field.value;
    }
    if (p->type_count < VALUES_MOST)
        p->type_names[p->type_count++] = name;
    return AR_OK;
}

static enum ar_status add_location(struct profile *p, struct part part, struct ar_error *error)
{
    struct field field, inner;
    struct frame frame = {0};
    uint64_t id = 0;
    bool has_line = false;
    while (part.at < part.end) {
        if (!take_field(&part, &field))
            return damaged(p, part.at, error);
        if (field.number == LOCATION_ID)
            id = field.value;
        bool is_line = field.number == LOCATION_LINE && !has_line;
        has_line |= is_line;
        while (is_line && field.part.at < field.part.end) {
            if (!take_field(&field.part, &inner))
                return damaged(p, field.part.at, error);
            if (inner.number == LINE_FUNCTION)
                frame.function = inner.value;
            if (inner.number == LINE_NUMBER)
                frame.line = inner.value;
        }
    }
    if (id == UINT64_MAX)
        return damaged(p, part.at, error);
    if (ar_map_put(&p->locations, id, p->frame_count) ||
        !AR_ARRAY_ADD(p->frames, p->frame_count, p->frame_room, frame))
        return format_no_memory(error);
    return AR_OK;
}

static enum ar_status add_function(struct profile *p, struct part part, struct ar_error *error)
{
    struct field field;
    struct function function = {0};
    uint64_t id = 0;
    while (part.at < part.end) {
        if (!take_field(&part, &field))
            return damaged(p, part.at, error);
        if (field.number == FUNCTION_ID)
            id = field.value;
        if (field.number == FUNCTION_NAME)
            function.name = field.value;
        if (field.number == FUNCTION_FILE)
            function.file = field.value;
    }
    if (id == UINT64_MAX)
        return damaged(p, part.at, error);
    if (ar_map_put(&p->function_ids, id, p->function_count) ||
        !AR_ARRAY_ADD(p->functions, p->function_count, p->function_room, function))
        return format_no_memory(error);
    return AR_OK;
}

/* The first pass: everything that samples refer to. */
static enum ar_status read_tables(struct profile *p, struct ar_error *error)
{
    struct part part = {p->bytes, p->bytes + p->count};
    struct field field;
    while (part.at < part.end) {
        if (!take_field(&part, &field))
            return damaged(p, part.at, error);
        if (!field.has_length)
            continue;
        if (field.number == PROFILE_SAMPLE_TYPE)
            AR_TRY(add_type(p, field.part, error));
        else if (field.number == PROFILE_LOCATION)
            AR_TRY(add_location(p, field.part, error));
        else if (field.number == PROFILE_FUNCTION)
            AR_TRY(add_function(p, field.part, error));
        else if (field.number == PROFILE_STRING &&
                 !AR_ARRAY_ADD(p->strings, p->string_count, p->string_room, field.part))
            return format_no_memory(error);
    }
    return AR_OK;
}

static enum ar_status find_values(struct profile *p, struct ar_error *error)
{
    char name[32], names[160] = "";
    p->allocations = p->space = -1;
    for (size_t i = 0; i < p->type_count; i++) {
        string_of(p, p->type_names[i], name, sizeof name);
        if (strcmp(name, "allocations") == 0)
            p->allocations = (int)i;
        if (strcmp(name, "space") == 0)
            p->space = (int)i;
        size_t used = strlen(names);
        char plain[32];
        field_text(name, plain, sizeof plain);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", plain);
    }
    if (p->allocations >= 0 && p->space >= 0)
        return AR_OK;
    return ar_error_set(error, AR_FORMAT,
                        "a pprof profile of \"%s\", and not JAX's device memory profile, which "
                        "has \"allocations\" and \"space\"; only that one is read",
                        names);
}

/* ---- samples ------------------------------------------------------------------------------ */

struct sample {
    uint64_t values[VALUES_MOST], locations[FRAMES_MOST];
    size_t value_count, location_count;
    char kind[32], device[128];
};

static enum ar_status parse_label(const struct profile *p, struct part part, struct sample *sample,
                                  struct ar_error *error)
{
    struct field field;
    uint64_t key = 0, text = 0;
    char name[16];
    while (part.at < part.end) {
        if (!take_field(&part, &field))
            return damaged(p, part.at, error);
        if (field.number == LABEL_KEY)
            key = field.value;
        if (field.number == LABEL_TEXT)
            text = field.value;
    }
    string_of(p, key, name, sizeof name);
    if (strcmp(name, "kind") == 0)
        string_of(p, text, sample->kind, sizeof sample->kind);
    if (strcmp(name, "device") == 0)
        string_of(p, text, sample->device, sizeof sample->device);
    return AR_OK;
}

static enum ar_status parse_sample(const struct profile *p, struct part part, struct sample *sample,
                                   struct ar_error *error)
{
    struct field field;
    sample->value_count = sample->location_count = 0;
    sample->kind[0] = sample->device[0] = 0;
    while (part.at < part.end) {
        bool good = take_field(&part, &field);
        if (good && field.number == SAMPLE_LOCATION)
            good = take_numbers(&field, sample->locations, FRAMES_MOST, &sample->location_count);
        else if (good && field.number == SAMPLE_VALUE)
            good = take_numbers(&field, sample->values, VALUES_MOST, &sample->value_count);
        else if (good && field.number == SAMPLE_LABEL)
            AR_TRY(parse_label(p, field.part, sample, error));
        if (!good)
            return damaged(p, part.at, error);
    }
    return AR_OK;
}

static bool is_host(const char *device)
{
    return strstr(device, "CPU") || strstr(device, "cpu") || strstr(device, "host");
}

/* The first number in the name of a device, "cuda:1", "TPU_0(process=0,(0,0,0,0))". */
static uint32_t number_of(const char *device)
{
    const char *digits = device + strcspn(device, "0123456789");
    unsigned long number = *digits ? strtoul(digits, NULL, 10) : 0;
    return number < DEVICES_MOST ? (uint32_t)number : DEVICES_MOST;
}

/* The text of a frame; false if it is JAX's own or not known. */
static bool frame_text(const struct profile *p, uint64_t location, bool any, char *out, size_t room)
{
    uint64_t frame, function;
    char file[512], name[256], text[640];
    if (location == UINT64_MAX || !ar_map_get(&p->locations, location, &frame) ||
        p->frames[frame].function == UINT64_MAX ||
        !ar_map_get(&p->function_ids, p->frames[frame].function, &function))
        return false;
    string_of(p, p->functions[function].file, file, sizeof file);
    string_of(p, p->functions[function].name, name, sizeof name);
    if (!any && (strstr(file, "/jax/") || strstr(file, "/jaxlib/") || strstr(file, "<frozen")))
        return false;
    int length = snprintf(text, sizeof text, "%s:%" PRIu64 ":%s", field_file_name(file),
                          p->frames[frame].line, name);
    field_word(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1, ",=", out,
               room);
    return true;
}

static const char *tag_of(const struct profile *p, const struct sample *sample, char *out,
                          size_t room)
{
    for (int any = 0; any < 2; any++)
        for (size_t i = 0; i < sample->location_count; i++)
            if (frame_text(p, sample->locations[i], any, out, room))
                return out;
    return NULL;
}

static enum ar_status append_blocks(struct profile *p, const struct sample *sample, uint64_t count,
                                    uint64_t bytes, struct ar_error *error)
{
    char tag[256];
    uint32_t device = number_of(sample->device);
    struct trace_attributes keys = {
        .tag = tag_of(p, sample, tag, sizeof tag),
        .device = device < DEVICES_MOST ? device : 0,
        .rest = "initial=yes",
    };
    p->other_devices += device == DEVICES_MOST ? count : 0;
    if (count > BLOCKS_MOST - p->blocks)
        return ar_invalid(error, "the profile has more than %" PRIu64 " buffers", BLOCKS_MOST);
    for (uint64_t i = 0; i < count; i++)
        AR_TRY(format_event(
            p->reading,
            (struct trace_event){.kind = TRACE_ALLOC, .id = p->blocks++, .value = bytes}, &keys,
            NULL, error));
    return AR_OK;
}

static enum ar_status append_sample(struct profile *p, struct part part, struct sample *sample,
                                    struct ar_error *error)
{
    AR_TRY(parse_sample(p, part, sample, error));
    if (sample->value_count <= (size_t)p->allocations || sample->value_count <= (size_t)p->space)
        return damaged(p, part.at, error);
    uint64_t count = sample->values[p->allocations], bytes = sample->values[p->space];
    if (strcmp(sample->kind, "executable") == 0) {
        p->executables += count;
        p->executable_bytes += bytes <= INT64_MAX ? bytes : 0; /* -1 on a TPU: not known */
        return AR_OK;
    }
    bool host = is_host(sample->device);
    if (host && !p->host)
        p->host_blocks += count;
    if (!count || host != p->host)
        return AR_OK;
    if (count > INT64_MAX || bytes >= TRACE_BYTES_LIMIT || bytes % count)
        return ar_invalid(error,
                          "byte %zu: a sample of %" PRIu64 " buffers with %" PRIu64
                          " bytes, which are not of equal size",
                          (size_t)(part.at - p->bytes), count, bytes);
    return append_blocks(p, sample, count, bytes / count, error);
}

static enum ar_status append_samples(struct profile *p, struct ar_error *error)
{
    struct part part = {p->bytes, p->bytes + p->count};
    struct field field;
    AR_FREED struct sample *sample = malloc(sizeof *sample);
    AR_TRY(sample ? AR_OK : format_no_memory(error));
    while (part.at < part.end) {
        if (!take_field(&part, &field))
            return damaged(p, part.at, error);
        if (field.number == PROFILE_SAMPLE && field.has_length)
            AR_TRY(append_sample(p, field.part, sample, error));
        p->reading->report->records += !p->host && field.number == PROFILE_SAMPLE;
    }
    return AR_OK;
}

static void say_guesses(const struct profile *p)
{
    struct import_report *report = p->reading->report;
    import_guess(
        report,
        "a state at one moment: order, frees and temporary memory of programs are not in it");
    if (p->executables && !p->executable_bytes)
        import_guess(report, "code of %" PRIu64 " executables, of unknown size: left out",
                     p->executables);
    else if (p->executables)
        import_guess(report, "code of %" PRIu64 " executables, %" PRIu64 " bytes: left out",
                     p->executables, p->executable_bytes);
    import_guess_count(
        report, p->host_blocks,
        p->host ? "buffers of the host are taken for device memory, because there are no others"
                : "buffers of the host are left out");
    import_guess_count(report, p->other_devices,
                       "buffers are of devices with numbers from 64 up: taken for device 0");
}

static enum ar_status convert(struct profile *p, struct ar_error *error)
{
    AR_TRY(read_bytes(p, error));
    AR_TRY(read_tables(p, error));
    AR_TRY(find_values(p, error));
    AR_TRY(format_start(p->reading, error));
    AR_TRY(append_samples(p, error));
    if (!p->blocks && p->host_blocks) {
        p->host = true;
        p->executables = p->executable_bytes = 0; /* they are counted again */
        AR_TRY(append_samples(p, error));
    }
    return p->blocks ? AR_OK : ar_error_set(error, AR_FORMAT, "the profile has no buffers");
}

static enum ar_status read_pprof(struct format_reading *reading, struct ar_error *error)
{
    struct profile p = {.reading = reading};
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "xla");
    enum ar_status status = convert(&p, error);
    say_guesses(&p);
    free(p.bytes);
    free(p.strings);
    free(p.frames);
    free(p.functions);
    ar_map_close(&p.locations);
    ar_map_close(&p.function_ids);
    return status;
}

/* Whether a field of a profile has the form that profile.proto says. */
static bool fits_profile(const struct field *field)
{
    enum { MESSAGES = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 11, LAST = 15 };
    if (!field->number || field->number > LAST)
        return false;
    /* comments are a list of numbers: packed or not */
    return field->number == 13 || field->has_length == (MESSAGES >> field->number & 1);
}

static bool is_type(const struct field *field)
{
    struct part part = field->part;
    struct field inner;
    bool any = part.at < part.end;
    while (part.at < part.end)
        if (!take_field(&part, &inner) || inner.has_length || inner.number > 2)
            return false;
    return any;
}

/* The types of the values come first, messages of two small numbers, or the strings, of which the
 * first is empty; Go writes the times before them. All other fields in the first bytes must fit. */
static bool matches_pprof(const char *head, size_t count)
{
    struct part part = {(const unsigned char *)head, (const unsigned char *)head + count};
    struct field field;
    size_t fields = 0;
    while (part.at < part.end) {
        bool whole = take_field(&part, &field);
        if (whole && !fits_profile(&field))
            return false;
        if (fields == 0 && whole && !field.has_length)
            continue;
        if (fields == 0 && !(whole && ((field.number == PROFILE_SAMPLE_TYPE && is_type(&field)) ||
                                       (field.number == PROFILE_STRING && field.has_length &&
                                        field.part.at == field.part.end))))
            return false;
        if (!whole) /* damaged, or cut by the end of the first bytes */
            break;
        fields++;
    }
    return fields >= 2;
}

const struct format_reader format_jax_pprof = {
    .name = "jax_pprof",
    .summary = "JAX's device memory profile (pprof): buffers live at one moment, read",
    .matches = matches_pprof,
    .read = read_pprof,
};
