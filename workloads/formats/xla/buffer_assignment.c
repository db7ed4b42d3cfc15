/* XLA's buffer assignment of one compiled module as text (--xla_dump_to=FOLDER, the file
 * *-buffer-assignment.txt):
 *
 *     BufferAssignment:
 *     allocation 0: size 4194304, parameter 0, shape |f32[1024,1024]| at ShapeIndex {}:
 *      value: <3 Arg_0.1 @0> (size=4194304,offset=0): f32[1024,1024]{1,0}
 *     allocation 1: size 4, output shape is |f32[]|, maybe-live-out:
 *     allocation 2: size 8388608, preallocated-temp:
 *      value: <5 dot.4 @0> (size=4194304,offset=0): f32[1024,1024]{1,0}
 *      value: <6 exp.5 @0> (size=4194304,offset=4194304): f32[1024,1024]{1,0}
 *
 * 1. The trace is one execution of the module, as its runtime asks for memory: parameters and
 *    constants were there before (initial=yes); outputs and the temporary memory are requested in
 *    the order of their numbers; the temporary memory is freed at the end, where the step ends, and
 *    outputs stay. Thread-local memory is the host's: omitted.
 * 2. Logical buffers lie within an allocation, at offsets that XLA planned: the notes
 *    `!,value,ALLOCATION,OFFSET,BYTES,NAME[,BEGIN,END]`. Their lifetimes are positions in the
 *    schedule. The text does not have them; the file *-live-range.txt of the same dump does, and is
 *    read if it lies beside this one.
 * 3. Memory space 5 ("color 5") is pinned memory of the host.
 * 4. Older versions print an address before the size, and no sizes of logical buffers.
 *
 * Source of the format: openxla/xla, xla/service/buffer_assignment.cc (BufferAllocation::ToString,
 * BufferAssignment::ToString) and xla/hlo/utils/hlo_live_range.cc (HloLiveRange::ToString),
 * versions of 2017 to 2025. */
#include <unistd.h>

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/io/fields.h"
#include "workloads/trace/tables.h"

#define FIRST_LINE    "BufferAssignment:"
#define ENDING        "-buffer-assignment.txt"
#define RANGES_ENDING "-live-range.txt"
#define HOST_COLOR    5
#define ITEMS_MOST    (UINT32_C(1) << 22) /* allocations or logical buffers */

enum kind { PARAMETER, CONSTANT, OUTPUT, TEMP, OTHER, THREAD_LOCAL };

struct allocation {
    uint64_t number, bytes, parameter, color, line;
    enum kind kind;
};

struct value {
    size_t allocation; /* its index */
    uint64_t offset, bytes;
    uint32_t name; /* its index in `names` */
};

struct lifetime {
    uint64_t begin, end;
};

struct reading {
    struct format_reading *reading;
    struct allocation *allocations;
    size_t allocation_count, allocation_room;
    struct value *values;
    size_t value_count, value_room;
    struct texts names;
    struct lifetime *lifetimes;
    size_t lifetime_count, lifetime_room;
    struct ar_map lifetime_of; /* from the index of a name to that of its lifetime */
    uint64_t total_bytes, host_bytes, other_lines;
    bool has_total, has_ranges, in_values;
};

/* ---- lines -------------------------------------------------------------------------------- */

/* Reads a number at `*at` and moves behind it. False: there is none below 2^60. */
static bool take_number(const char **at, uint64_t *number)
{
    char text[24];
    size_t length = strspn(*at, "0123456789");
    if (!length || length >= sizeof text)
        return false;
    memcpy(text, *at, length);
    text[length] = 0;
    *at += length;
    return ar_count_parse(text, number, NULL) == AR_OK && *number < TRACE_BYTES_LIMIT;
}

static bool take_text(const char **at, const char *text)
{
    if (!field_begins_with(*at, text))
        return false;
    *at += strlen(text);
    return true;
}

/* The number after a word of the attributes; 0 if the word is not there. */
static uint64_t number_after(const char *attributes, const char *word)
{
    const char *at = strstr(attributes, word);
    uint64_t number = 0;
    if (at) {
        at += strlen(word);
        (void)take_number(&at, &number);
    }
    return number;
}

/* A module returns memory that it got as a parameter ("maybe-live-out"): it stays a
 * parameter. */
static enum kind kind_of(const char *attributes)
{
    return strstr(attributes, ", thread-local")        ? THREAD_LOCAL
           : strstr(attributes, ", parameter ")        ? PARAMETER
           : strstr(attributes, ", constant")          ? CONSTANT
           : strstr(attributes, ", preallocated-temp") ? TEMP
           : strstr(attributes, ", maybe-live-out") || strstr(attributes, ", output shape") ? OUTPUT
                                                                                            : OTHER;
}

/* "allocation 0: size 16, parameter 0, shape |f32[4]| at ShapeIndex {}:" */
static enum ar_status take_allocation(struct reading *r, const char *line, uint64_t number,
                                      struct ar_error *error)
{
    const char *at = line;
    struct allocation new = {.line = number};
    bool good =
        take_text(&at, "allocation ") && take_number(&at, &new.number) && take_text(&at, ": ");
    if (good && field_begins_with(at, "0x")) { /* an address of the compiler's host */
        at += strcspn(at, ",");
        good = take_text(&at, ", ");
    }
    good = good && take_text(&at, "size ") && take_number(&at, &new.bytes);
    if (!good || (*at != ',' && *at != ':'))
        return ar_invalid(
            error, "\"allocation NUMBER: size BYTES\" is expected, with a size below 2^60 bytes");
    new.kind = kind_of(at);
    new.parameter = number_after(at, ", parameter ");
    new.color = number_after(at, ", color ");
    if (r->allocation_count == ITEMS_MOST)
        return ar_invalid(error, "there are more than %u allocations", ITEMS_MOST);
    return AR_APPEND(r->allocations, r->allocation_count, r->allocation_room, new, error,
                     "the file");
}

/* The index of a value's name, "dot.4" or "tuple.2{1}". Live ranges always have the braces. */
static enum ar_status intern_name(struct reading *r, const char *name, size_t length,
                                  uint32_t *index, struct ar_error *error)
{
    char word[256];
    if (length >= 2 && !memcmp(name + length - 2, "{}", 2))
        length -= 2;
    field_word(name, length, ",=", word, sizeof word);
    return texts_intern(&r->names, word, strlen(word), index, error);
}

/* " value: <5 dot.4 @0> (size=4194304,offset=0): f32[1024,1024]{1,0}" */
static enum ar_status take_value(struct reading *r, const char *line, struct ar_error *error)
{
    const char *at = line + strspn(line, " ");
    struct value value = {.allocation = r->allocation_count - 1};
    uint64_t id;
    bool good = take_text(&at, "value: <") && take_number(&at, &id) && take_text(&at, " ");
    const char *name = at;
    const char *end = good ? strstr(at, " @") : NULL;
    at = end ? strstr(end, "> (size=") : NULL;
    good = at && take_text(&at, "> (size=") && take_number(&at, &value.bytes) &&
           take_text(&at, ",offset=") && take_number(&at, &value.offset) && take_text(&at, ")");
    if (!good)
        return ar_invalid(error,
                          "\"value: <ID NAME @COLOR> (size=BYTES,offset=BYTES)\" is expected");
    const struct allocation *allocation = &r->allocations[value.allocation];
    if (value.offset + value.bytes > allocation->bytes)
        return ar_invalid(error,
                          "the value ends at byte %" PRIu64 " of allocation %" PRIu64
                          ", which has %" PRIu64,
                          value.offset + value.bytes, allocation->number, allocation->bytes);
    if (r->value_count == ITEMS_MOST)
        return ar_invalid(error, "there are more than %u values", ITEMS_MOST);
    AR_TRY(intern_name(r, name, (size_t)(end - name), &value.name, error));
    return AR_APPEND(r->values, r->value_count, r->value_room, value, error, "the file");
}

static enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error)
{
    static const char total[] = "Total bytes used: ";
    struct reading *r = self;
    r->reading->report->records++;
    if (field_begins_with(line, "Used values:"))
        r->in_values = true; /* positions and uses: the rest of the text */
    if (!r->in_values && field_begins_with(line, "allocation "))
        return take_allocation(r, line, number, error);
    if (!r->in_values && r->allocation_count && field_begins_with(line, " value: <"))
        return take_value(r, line, error);
    if (!r->in_values && field_begins_with(line, total)) {
        const char *at = line + sizeof total - 1;
        r->has_total = take_number(&at, &r->total_bytes);
    }
    r->other_lines++;
    return AR_OK;
}

/* ---- lifetimes ---------------------------------------------------------------------------- */

/* "    dot.4{}:3-7" below "  BufferLiveRange:"; other lines of the file say other things. */
static enum ar_status take_range(void *self, char *line, uint64_t number AR_UNUSED,
                                 struct ar_error *error)
{
    struct reading *r = self;
    const char *at = line + strspn(line, " ");
    const char *colon = strrchr(at, ':'), *from = colon ? colon + 1 : at;
    struct lifetime lifetime;
    uint32_t name;
    if (!colon || !take_number(&from, &lifetime.begin) || !take_text(&from, "-") ||
        !take_number(&from, &lifetime.end) || *from || r->lifetime_count == ITEMS_MOST)
        return AR_OK;
    AR_TRY(intern_name(r, at, (size_t)(colon - at), &name, error));
    if ((ar_map_put(&r->lifetime_of, name, r->lifetime_count) ||
         !AR_ARRAY_ADD(r->lifetimes, r->lifetime_count, r->lifetime_room, lifetime)))
        return format_no_memory(error);
    return AR_OK;
}

/* Reads the file of lifetimes beside the assignment, if there is one. */
static enum ar_status read_ranges(struct reading *r, struct ar_error *error)
{
    const char *path = trace_input_path(r->reading->input);
    AR_CLOSED(trace_input_close_at) struct trace_input *input = NULL;
    AR_FREED char *beside = NULL;
    if (!field_ends_with(path, ENDING))
        return AR_OK;
    if (asprintf(&beside, "%.*s%s", (int)(strlen(path) - strlen(ENDING)), path, RANGES_ENDING) < 0)
        return format_no_memory(error);
    if (access(beside, F_OK) != 0)
        return AR_OK;
    AR_TRY(trace_input_open(beside, &input, error));
    AR_TRY(fields_log_lines(input, take_range, r, error));
    r->has_ranges = r->lifetime_count;
    return AR_OK;
}

/* ---- the trace ---------------------------------------------------------------------------- */

static enum ar_status append_allocation(struct reading *r, const struct allocation *allocation,
                                        uint64_t id, struct ar_error *error)
{
    static const char *const names[] = {"parameter", "constant", "output", "temp", "other"};
    char tag[48];
    const enum kind kind = allocation->kind;
    struct trace_attributes keys = {.tag = tag};
    snprintf(tag, sizeof tag, "%s", names[kind]);
    if (kind == PARAMETER)
        snprintf(tag, sizeof tag, "parameter %" PRIu64, allocation->parameter);
    if (kind == PARAMETER || kind == CONSTANT)
        keys.rest = "initial=yes";
    if (allocation->color == HOST_COLOR)
        keys.space = TRACE_SPACE_PINNED;
    AR_TRY(trace_memory_line(r->reading->memory, allocation->line, error));
    return format_event(
        r->reading, (struct trace_event){.kind = TRACE_ALLOC, .id = id, .value = allocation->bytes},
        &keys, NULL, error);
}

static enum ar_status append_value(struct reading *r, const struct value *value,
                                   struct ar_error *error)
{
    const char *name = r->names.items[value->name];
    uint64_t number = r->allocations[value->allocation].number, index;
    if (ar_map_get(&r->lifetime_of, value->name, &index))
        return format_note(r->reading, error,
                           "value,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.100s,%" PRIu64 ",%" PRIu64,
                           number, value->offset, value->bytes, name, r->lifetimes[index].begin,
                           r->lifetimes[index].end);
    return format_note(r->reading, error, "value,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.100s",
                       number, value->offset, value->bytes, name);
}

/* The allocations that are there before the execution, or those that it asks for. */
static enum ar_status append_all(struct reading *r, bool before, uint64_t *ids, uint64_t *id,
                                 struct ar_error *error)
{
    size_t value = 0;
    for (size_t i = 0; i < r->allocation_count; i++) {
        const struct allocation *allocation = &r->allocations[i];
        bool is_before = allocation->kind == PARAMETER || allocation->kind == CONSTANT;
        bool is_here = allocation->kind != THREAD_LOCAL && is_before == before;
        if (is_here) {
            ids[i] = (*id)++;
            AR_TRY(append_allocation(r, allocation, ids[i], error));
        }
        for (; value < r->value_count && r->values[value].allocation == i; value++)
            if (is_here)
                AR_TRY(append_value(r, &r->values[value], error));
    }
    return AR_OK;
}

static enum ar_status append_end(struct reading *r, const uint64_t *ids, struct ar_error *error)
{
    for (size_t i = 0; i < r->allocation_count; i++)
        if (r->allocations[i].kind == TEMP || r->allocations[i].kind == OTHER)
            AR_TRY(format_event(r->reading,
                                (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = ids[i]},
                                NULL, NULL, error));
    return format_event(r->reading, (struct trace_event){.kind = TRACE_MARK}, NULL, "step", error);
}

static void say_guesses(struct reading *r)
{
    struct import_report *report = r->reading->report;
    uint64_t sum = 0, spaces = 0;
    for (size_t i = 0; i < r->allocation_count; i++) {
        sum += r->allocations[i].bytes;
        spaces += r->allocations[i].color && r->allocations[i].color != HOST_COLOR;
        if (r->allocations[i].kind == THREAD_LOCAL)
            r->host_bytes += r->allocations[i].bytes;
    }
    report->left_out = r->other_lines;
    import_guess(
        report,
        "one execution of one module: times, addresses and what other modules hold are not in it");
    if (r->has_total && r->total_bytes != sum)
        import_guess(report,
                     "the allocations are %" PRIu64 " bytes, the text says %" PRIu64
                     ": something is missing",
                     sum, r->total_bytes);
    if (r->value_count)
        import_guess(report, "%zu logical buffers are notes, %s", r->value_count,
                     r->has_ranges ? "with their lifetimes from the file of live ranges"
                                   : "without lifetimes: *-live-range.txt is not beside the file");
    else
        import_guess(report, "logical buffers and their offsets are not in the text");
    if (r->host_bytes)
        import_guess(report, "%" PRIu64 " bytes of thread-local memory are left out",
                     r->host_bytes);
    import_guess_count(report, spaces,
                       "allocations are of other memory spaces: taken for device memory");
}

static enum ar_status convert(struct reading *r, struct ar_error *error)
{
    uint64_t id = 0;
    AR_TRY(fields_log_lines(r->reading->input, take_line, r, error));
    if (!r->allocation_count)
        return ar_error_set(error, AR_FORMAT, "the buffer assignment has no allocations");
    AR_TRY(read_ranges(r, error));
    AR_TRY(format_start(r->reading, error));
    AR_FREED uint64_t *ids = calloc(r->allocation_count, sizeof *ids);
    AR_TRY_MEMORY(ids, error, "the file");
    AR_TRY(append_all(r, true, ids, &id, error));
    AR_TRY(append_all(r, false, ids, &id, error));
    return append_end(r, ids, error);
}

static enum ar_status read_assignment(struct format_reading *reading, struct ar_error *error)
{
    struct reading r = {.reading = reading};
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "xla");
    enum ar_status status = convert(&r, error);
    say_guesses(&r);
    free(r.allocations);
    free(r.values);
    free(r.lifetimes);
    texts_close(&r.names);
    ar_map_close(&r.lifetime_of);
    return status;
}

static bool matches_assignment(const char *head, size_t count)
{
    size_t at = head_blanks(head, count, 0), length = strlen(FIRST_LINE);
    return count - at > length && !memcmp(head + at, FIRST_LINE, length) &&
           (head[at + length] == '\n' || head[at + length] == '\r');
}

const struct format_reader format_xla_assignment = {
    .name = "xla_assignment",
    .summary = "XLA's buffer assignment of a module as text: its allocations, read",
    .matches = matches_assignment,
    .read = read_assignment,
};
