/* Umpire's replay logs: one JSON object a line, in both layouts that Umpire has had.
 *
 *     { "kind":"replay", "uid":7, "timestamp":15, "event": "allocate",
 *       "payload": { "allocator_ref": "0x10", "size": 134 }, "result": { "memory_ptr": "0x20" } }
 *     {"category":"operation","name":"allocate","numeric_args":{"size":134},
 *      "string_args":{"allocator_ref":"0x10","pointer":"0x20"},"timestamp":15}
 *
 * 1. The first layout has `event`, `payload` and `result`. It writes a request twice: before it is
 *    served, without a result, and after. One without the second failed. The second layout has
 *    `name`, `numeric_args`, `string_args` and `tags`, and writes a request once.
 * 2. The name of a memory resource says where its memory is; an allocator has the memory of the one
 *    that its arguments name. Device memory is kept, pinned memory with `space=pinned`; managed and
 *    host memory are omitted. A log without device memory is a test on the host: then host memory
 *    is taken for it.
 * 3. A reallocation is a free and a request. It writes two records in both layouts: before, with
 *    the old address and the size, and after, with the new address; that of the second layout has
 *    no size. What the allocator does for it may be logged between the two, and is then not
 *    repeated. One without a second record failed, and the old block stays.
 * 4. The experimental store of Umpire is a SQLite database: table EVENTS, whose rows are objects of
 *    the second layout.
 * 5. Of several processes in one log the first is taken, as Umpire's own tool does.
 *
 * Source of the format: LLNL/Umpire, tools/replay (ReplayInterpreter::compile_reallocate) and
 * src/umpire/event (json_file_store, sqlite_database), ResourceManager::reallocate, versions 0.3 to
 * 2025. */
#include <jansson.h>

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "workloads/io/sqlite_file.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"

/* ---- one line ---------------------------------------------------------------------------- */

enum umpire_event {
    UMPIRE_OTHER,
    UMPIRE_VERSION, /* name: "2023.6.0" */
    UMPIRE_RESOURCE,
    UMPIRE_ALLOCATOR,
    UMPIRE_ALLOCATE,
    UMPIRE_DEALLOCATE,
    UMPIRE_REALLOCATE,
    UMPIRE_RELEASE,
};

#define UMPIRE_ARGUMENTS 16

struct umpire_line {
    enum umpire_event event;
    uint64_t number; /* of the line; set by the caller */
    int64_t process;
    uint64_t time_ns;
    uint64_t allocator, address, old_address, bytes;
    bool has_allocator, has_result, has_bytes;
    bool final;            /* no later line has the result */
    const char *name;      /* of a resource or allocator; never NULL */
    size_t argument_count; /* of a new allocator: the texts among its arguments */
    const char *arguments[UMPIRE_ARGUMENTS];
    char version[32];
    json_t *json; /* holds the texts */
};

/* Whether the line is of such a log. */
static bool line_matches(const char *line, size_t length)
{
    static const char *const layouts[2][3] = {{"\"kind\"", "\"replay\"", "\"event\""},
                                              {"\"category\"", "\"name\"", "\"timestamp\""}};
    bool found[2] = {true, !head_holds(line, length, "\"traceEvents\"")};
    for (size_t i = 0; i < 6; i++)
        found[i / 3] &= head_holds(line, length, layouts[i / 3][i % 3]);
    return found[0] || found[1];
}

static enum umpire_event event_of(const char *name)
{
    static const struct {
        const char *name;
        enum umpire_event event;
    } names[] = {
        {"version", UMPIRE_VERSION},
        {"makeMemoryResource", UMPIRE_RESOURCE},
        {"make_memory_resource", UMPIRE_RESOURCE},
        {"makeAllocator", UMPIRE_ALLOCATOR},
        {"make_allocator", UMPIRE_ALLOCATOR},
        {"allocate", UMPIRE_ALLOCATE},
        {"named_allocate", UMPIRE_ALLOCATE},
        {"deallocate", UMPIRE_DEALLOCATE},
        {"reallocate", UMPIRE_REALLOCATE},
        {"reallocate_ex", UMPIRE_REALLOCATE},
        {"release", UMPIRE_RELEASE},
    };
    for (size_t i = 0; i < AR_COUNT(names); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].event;
    return UMPIRE_OTHER;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The handle under the first of the keys that exists; 0 if none does. */
static enum ar_status handle_of(const json_t *object, const char *const *keys, uint64_t *handle,
                                bool *found, struct ar_error *error)
{
    *handle = 0;
    *found = false;
    for (; *keys; keys++) {
        const char *text = text_of(object, *keys);
        if (!text)
            continue;
        enum ar_status status = field_pointer(text, handle, error);
        *found = true;
        return ar_error_prefix(error, status, "%s", *keys);
    }
    return AR_OK;
}

static enum ar_status size_of(const json_t *value, struct umpire_line *line, struct ar_error *error)
{
    if (!value && line->event == UMPIRE_REALLOCATE && line->has_result)
        return AR_OK; /* the record before has it */
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return ar_invalid(error, "size: an integer of bytes is expected");
    line->bytes = (uint64_t)json_integer_value(value);
    line->has_bytes = true;
    return AR_OK;
}

static void take_arguments(const json_t *list, struct umpire_line *line)
{
    size_t index;
    const json_t *value;
    json_array_foreach(list, index,
                       value) if (json_is_string(value) && line->argument_count < UMPIRE_ARGUMENTS)
        line->arguments[line->argument_count++] = json_string_value(value);
}

static void take_version(const json_t *numbers, struct umpire_line *line)
{
    snprintf(line->version, sizeof line->version, "%d.%d.%d",
             (int)json_integer_value(json_object_get(numbers, "major")),
             (int)json_integer_value(json_object_get(numbers, "minor")),
             (int)json_integer_value(json_object_get(numbers, "patch")));
    line->name = line->version;
}

static enum ar_status take_first(const json_t *object, struct umpire_line *line,
                                 struct ar_error *error)
{
    static const char *const allocator[] = {"allocator_ref", NULL};
    static const char *const pointer[] = {"memory_ptr", NULL};
    static const char *const old[] = {"ptr", "src_ptr", "memory_ptr", NULL};
    const json_t *payload = json_object_get(object, "payload");
    const json_t *result = json_object_get(object, "result");
    const char *name = text_of(payload, line->event == UMPIRE_RESOURCE ? "name" : "allocator_name");
    bool found;
    line->name = name ? name : "";
    line->has_result = json_is_object(result);
    if (line->event == UMPIRE_VERSION)
        take_version(payload, line);
    if (line->event == UMPIRE_RESOURCE) {
        if (!json_is_string(result))
            return AR_OK;
        line->has_allocator = true;
        return field_pointer(json_string_value(result), &line->allocator, error);
    }
    take_arguments(json_object_get(payload, "args"), line);
    AR_TRY(handle_of(line->event == UMPIRE_ALLOCATOR ? result : payload, allocator,
                     &line->allocator, &line->has_allocator, error));
    if (line->event == UMPIRE_REALLOCATE)
        AR_TRY(handle_of(payload, old, &line->old_address, &found, error));
    AR_TRY(handle_of(line->event == UMPIRE_DEALLOCATE ? payload : result, pointer, &line->address,
                     &found, error));
    if (line->event == UMPIRE_ALLOCATE || line->event == UMPIRE_REALLOCATE)
        AR_TRY(size_of(json_object_get(payload, "size"), line, error));
    return AR_OK;
}

static enum ar_status take_second(const json_t *object, struct umpire_line *line,
                                  struct ar_error *error)
{
    static const char *const allocator[] = {"allocator_ref", NULL};
    static const char *const pointer[] = {"pointer", "new_ptr", "ptr", NULL};
    static const char *const old[] = {"current_ptr", "old_ptr", "src", "ptr", NULL};
    json_t *texts = json_object_get(object, "string_args");
    const json_t *numbers = json_object_get(object, "numeric_args");
    const char *name = text_of(json_object_get(object, "tags"), "allocator_name");
    const char *key;
    json_t *value;
    bool found;
    if (!name)
        name = text_of(texts, "name");
    line->name = name ? name : "";
    line->final = true;
    if (line->event == UMPIRE_VERSION)
        take_version(numbers, line);
    json_object_foreach(texts, key, value) if (json_is_string(value) &&
                                               strncmp(key, "arg", 3) == 0 &&
                                               line->argument_count < UMPIRE_ARGUMENTS)
        line->arguments[line->argument_count++] = json_string_value(value);
    enum ar_status status =
        handle_of(texts, allocator, &line->allocator, &line->has_allocator, error);
    AR_THEN(status, handle_of(texts, pointer, &line->address, &found, error));
    if (!status && line->event == UMPIRE_REALLOCATE)
        status = handle_of(texts, old, &line->old_address, &found, error);
    line->has_result = line->event != UMPIRE_REALLOCATE || text_of(texts, "new_ptr");
    if (!status && (line->event == UMPIRE_ALLOCATE || line->event == UMPIRE_REALLOCATE))
        status = size_of(json_object_get(numbers, "size"), line, error);
    /* A request that was not served has no address. */
    if (line->event == UMPIRE_ALLOCATE)
        line->has_result = line->address || !line->bytes;
    return status;
}

/* INVALID or FORMAT with a sentence. The caller closes `line`, also after a failure. */
static enum ar_status parse_line(const char *text, struct umpire_line *line, struct ar_error *error)
{
    json_error_t why;
    json_t *object = json_loads(text, 0, &why);
    line->json = object;
    line->name = "";
    if (!object)
        return ar_error_set(error, AR_FORMAT, "this is not JSON: %s (column %d)", why.text,
                            why.column);
    const char *event = text_of(object, "event");
    const char *name = event ? event : text_of(object, "name");
    if (!json_is_object(object) || !name)
        return ar_error_set(error, AR_FORMAT, "there is neither an event nor a name");
    const json_t *time = json_object_get(object, "timestamp");
    if (json_is_integer(time) && json_integer_value(time) > 0)
        line->time_ns = (uint64_t)json_integer_value(time);
    line->process = (int64_t)json_integer_value(json_object_get(object, "uid"));
    line->event = event_of(name);
    if (line->event == UMPIRE_OTHER)
        return AR_OK;
    return event ? take_first(object, line, error) : take_second(object, line, error);
}

#define INTENTS_MOST 4096 /* requests without a result so far; a result comes soon after */

enum place { PLACE_DEVICE, PLACE_PINNED, PLACE_MANAGED, PLACE_HOST, PLACE_COUNT };

struct allocator {
    uint32_t text; /* 1 + index of its name */
    uint32_t device;
    uint8_t place;
};

/* A reallocation whose second record has not come yet. */
struct reallocation {
    uint64_t allocator, old_address, bytes;
    size_t row; /* it counts as a failure until then */
};

struct reading {
    struct rows rows;
    struct ar_map refs; /* from an allocator's handle to its number */
    struct ar_map open; /* from a block's address to its last request's row */
    struct allocator *allocators;
    size_t allocator_count, allocator_room;
    size_t *intents; /* rows of requests without a result so far */
    size_t intent_count, intent_capacity;
    struct reallocation *reallocations;
    size_t reallocation_count, reallocation_room;
    uint64_t half_reallocations; /* second records without a first */
    uint64_t unknown_allocators, other_processes, at_place[PLACE_COUNT];
    int64_t process;
    bool has_process;
    char version[32];
};

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
    for (size_t i = 0; i < AR_COUNT(names); i++)
        if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0)
            out.place = (uint8_t)names[i].place;
    if (strncmp(name + length, "::", 2) == 0)
        out.device = (uint32_t)strtoul(name + length + 2, NULL, 10) & 0xffff;
    return out;
}

/* The length of a name without the "_base" that wrapped allocators have. */
static size_t plain_length(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && field_ends_with(name, "_base") ? length - 5 : length;
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

/* The name as a tag: without commas, and as text. */
static enum ar_status intern_name(struct reading *r, const char *name, uint32_t *text,
                                  struct ar_error *error)
{
    char tag[128];
    AR_FREED char *plain = strndup(name, plain_length(name));
    AR_TRY_MEMORY(plain, error, "a name");
    field_text(plain, tag, sizeof tag);
    for (char *at = tag; (at = strchr(at, ','));)
        *at = '_';
    return texts_intern(&r->rows.texts, tag, strlen(tag), text, error);
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
        return ar_invalid(error, "there are more than 65536 allocators");
    AR_TRY(intern_name(r, line->name, &new.text, error));
    new.text++;
    if (ar_map_put(&r->refs, line->allocator, r->allocator_count) ||
        !AR_ARRAY_ADD(r->allocators, r->allocator_count, r->allocator_room, new))
        return format_no_memory(error);
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
                      .position = line->number,
                      .device = allocator->device,
                      .text = action == ROW_FREE ? 0 : allocator->text,
                      .space = allocator->place};
    r->at_place[allocator->place] += action == ROW_ALLOC || action == ROW_FAILURE;
    if (action == ROW_ALLOC && ar_map_put(&r->open, address, r->rows.count))
        return format_no_memory(error);
    if (action == ROW_FREE)
        ar_map_remove(&r->open, address);
    return rows_add(&r->rows, &row, error);
}

/* A request without its result counts as a failure until the result comes. If there are very many,
 * the earliest is no longer expected to get one. */
static enum ar_status add_intent(struct reading *r, const struct umpire_line *line,
                                 const struct allocator *allocator, struct ar_error *error)
{
    if (line->final)
        return add_row(r, line, ROW_FAILURE, 0, allocator, error);
    if (r->intent_count == INTENTS_MOST)
        AR_ARRAY_REMOVE(r->intents, r->intent_count, 0);
    AR_TRY(AR_APPEND(r->intents, r->intent_count, r->intent_capacity, r->rows.count, error,
                     "the file"));
    return add_row(r, line, ROW_FAILURE, 0, allocator, error);
}

/* Gives the result to the earliest such request. */
static void settle_intent(struct reading *r, const struct umpire_line *line,
                          const struct allocator *allocator)
{
    for (size_t i = 0; i < r->intent_count; i++) {
        struct row *row = &r->rows.items[r->intents[i]];
        if (row->bytes != line->bytes || row->text != allocator->text)
            continue;
        row->action = ROW_NOTHING;
        r->at_place[row->space]--;
        AR_ARRAY_REMOVE(r->intents, r->intent_count, i);
        return;
    }
}

static enum ar_status begin_reallocation(struct reading *r, const struct umpire_line *line,
                                         struct ar_error *error)
{
    const struct reallocation begun = {line->allocator, line->old_address, line->bytes,
                                       r->rows.count};
    uint64_t old;
    struct allocator allocator;
    if (line->old_address && ar_map_get(&r->open, line->old_address, &old))
        allocator = (struct allocator){r->rows.items[old].text, r->rows.items[old].device,
                                       r->rows.items[old].space};
    else
        allocator = allocator_at(r, line);
    if (r->reallocation_count == INTENTS_MOST)
        AR_ARRAY_REMOVE(r->reallocations, r->reallocation_count, 0);
    AR_TRY(AR_APPEND(r->reallocations, r->reallocation_count, r->reallocation_room, begun, error,
                     "the file"));
    return add_row(r, line, ROW_FAILURE, 0, &allocator, error);
}

/* Takes the first record of a reallocation from the list. The first layout repeats the old address,
 * the second one the allocator; without either it belongs to the last one. */
static bool take_first_record(struct reading *r, const struct umpire_line *line,
                              struct reallocation *out)
{
    for (size_t i = r->reallocation_count; i-- > 0;) {
        *out = r->reallocations[i];
        if (line->has_bytes ? out->old_address != line->old_address || out->bytes != line->bytes
                            : line->has_allocator && out->allocator != line->allocator)
            continue;
        AR_ARRAY_REMOVE(r->reallocations, r->reallocation_count, i);
        struct row *row = &r->rows.items[out->row];
        row->action = ROW_NOTHING;
        r->at_place[row->space]--;
        return true;
    }
    return false;
}

static enum ar_status take_reallocation(struct reading *r, const struct umpire_line *line,
                                        struct ar_error *error)
{
    struct reallocation first = {0};
    struct umpire_line request = *line;
    uint64_t old = 0, new = 0;
    if (!line->has_result)
        return begin_reallocation(r, line, error);
    bool has_first = take_first_record(r, line, &first);
    bool is_open = ar_map_get(&r->open, line->address, &new);
    if (!has_first && !line->has_bytes) {
        r->half_reallocations += !is_open;
        return AR_OK; /* the block is there, or nothing is known of it */
    }
    if (has_first) {
        request.bytes = first.bytes;
        request.old_address = first.old_address;
    }
    /* The log may have the request and the free in addition. */
    bool is_logged = is_open && r->rows.items[new].bytes == request.bytes &&
                     (has_first ? new > first.row : request.address != request.old_address);
    struct allocator allocator = {0};
    bool known = request.old_address && ar_map_get(&r->open, request.old_address, &old) &&
                 !(is_logged && old == new);
    if (known)
        allocator = (struct allocator){r->rows.items[old].text, r->rows.items[old].device,
                                       r->rows.items[old].space};
    else if (!is_logged)
        allocator = allocator_at(r, line);
    enum ar_status status = AR_OK;
    if (known && (has_first || !is_logged))
        status = add_row(r, &request, ROW_FREE, request.old_address, &allocator, error);
    return status || is_logged
               ? status
               : add_row(r, &request, ROW_ALLOC, request.address, &allocator, error);
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
    r->rows.reading->report->left_out++;
    return AR_OK;
}

static enum ar_status take_object(struct reading *r, const char *text, uint64_t number,
                                  struct ar_error *error)
{
    struct umpire_line line = {.number = number};
    if (*text == '#')
        return AR_OK;
    enum ar_status status = parse_line(text, &line, error);
    if (!status) {
        r->rows.reading->report->records++;
        if (!r->has_process)
            r->process = line.process;
        r->has_process = true;
        if (line.process == r->process)
            status = take_event(r, &line, error);
        else
            r->other_processes++;
    }
    json_decref(line.json);
    return status;
}

static enum ar_status take_line(void *self, char *text, uint64_t number, struct ar_error *error)
{
    return take_object(self, text, number, error);
}

static enum ar_status take_event_row(void *self, const struct sqlite_value *values, uint64_t row,
                                     struct ar_error *error)
{
    if (!*values->text)
        return ar_invalid(error, "EVENT: a JSON object as text is expected");
    return take_object(self, values->text, row, error);
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Omits the rows of memory that the trace does not cover. */
static void choose_places(struct reading *r)
{
    static const char *const names[] = {"device", "pinned host", "managed", "host"};
    struct import_report *report = r->rows.reading->report;
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
                         any ? "left out" : "taken for device memory, because there are no others");
    import_guess_count(
        report, r->unknown_allocators,
        "lines name an allocator that the log does not make: taken for one of device memory");
    import_guess_count(report, r->half_reallocations,
                       "reallocations have no first record, which has their size: left out");
    import_guess_count(report, r->other_processes,
                       "lines are of other processes than the first: left out");
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
    return end && *head == '{' && line_matches(head, (size_t)(end - head));
}

static enum ar_status finish(struct reading *r, enum ar_status status, struct ar_error *error)
{
    struct trace_info *info = &r->rows.reading->info;
    choose_places(r);
    snprintf(info->recorder, sizeof info->recorder, "umpire%s%s", *r->version ? " " : "",
             r->version);
    AR_THEN(status, rows_convert(&r->rows, error));
    rows_close(&r->rows);
    ar_map_close(&r->refs);
    ar_map_close(&r->open);
    free(r->allocators);
    free(r->intents);
    free(r->reallocations);
    return status;
}

static enum ar_status read_umpire(struct format_reading *reading, struct ar_error *error)
{
    struct reading r = {.rows = {.reading = reading, .unit = ":", .has_times = true}};
    return finish(&r, fields_lines(reading->input, take_line, &r, error), error);
}

enum ar_status umpire_read_database(struct format_reading *reading, struct sqlite_file *file,
                                    struct ar_error *error)
{
    static const char *const columns[] = {"EVENT", NULL};
    struct reading r = {.rows = {.reading = reading, .unit = ": row ", .has_times = true}};
    snprintf(reading->info.format, sizeof reading->info.format, "%s", format_umpire.name);
    return finish(&r, sqlite_file_rows(file, "EVENTS", columns, take_event_row, &r, error), error);
}

const struct format_reader format_umpire = {
    .name = "umpire",
    .summary = "Umpire's replay log, JSON lines of both layouts or SQLite, read",
    .matches = matches_umpire,
    .read = read_umpire,
};
