/* One line of an Umpire replay log.
 *
 * The first layout has `event`, `payload` and, behind what was done, `result`. The second has
 * `name`, `numeric_args`, `string_args` and `tags`, and writes only what was done. */
#include "workloads/formats/logs/umpire_line.h"

#include <stdio.h>
#include <string.h>

#include "workloads/io/fields.h"

#ifndef HAVE_JANSSON
#define HAVE_JANSSON 1
#endif
#if HAVE_JANSSON
#include <jansson.h>
#endif

static bool holds(const char *line, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t at = 0; at + size <= length; at++)
        if (memcmp(line + at, word, size) == 0)
            return true;
    return false;
}

bool umpire_line_looks(const char *line, size_t length)
{
    bool first = holds(line, length, "\"kind\"") && holds(line, length, "\"replay\"") &&
                 holds(line, length, "\"event\"");
    bool second = holds(line, length, "\"category\"") && holds(line, length, "\"name\"") &&
                  holds(line, length, "\"timestamp\"") && !holds(line, length, "\"traceEvents\"");
    return first || second;
}

#if HAVE_JANSSON

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
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].event;
    return UMPIRE_OTHER;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A handle under the first of the keys that is there; 0 where none is. */
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
        return status ? ar_error_prefix(error, status, "%s", *keys) : AR_OK;
    }
    return AR_OK;
}

static enum ar_status size_of(const json_t *value, uint64_t *bytes, struct ar_error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return ar_error_set(error, AR_INVALID, "size: a whole number of bytes is wanted");
    *bytes = (uint64_t)json_integer_value(value);
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
    enum ar_status status = handle_of(line->event == UMPIRE_ALLOCATOR ? result : payload, allocator,
                                      &line->allocator, &line->has_allocator, error);
    if (!status && line->event == UMPIRE_REALLOCATE)
        status = handle_of(payload, old, &line->old_address, &found, error);
    if (!status)
        status = handle_of(line->event == UMPIRE_DEALLOCATE ? payload : result, pointer,
                           &line->address, &found, error);
    if (!status && (line->event == UMPIRE_ALLOCATE || line->event == UMPIRE_REALLOCATE))
        status = size_of(json_object_get(payload, "size"), &line->bytes, error);
    return status;
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
    if (!status)
        status = handle_of(texts, pointer, &line->address, &found, error);
    if (!status && line->event == UMPIRE_REALLOCATE)
        status = handle_of(texts, old, &line->old_address, &found, error);
    if (!status && (line->event == UMPIRE_ALLOCATE || line->event == UMPIRE_REALLOCATE))
        status = size_of(json_object_get(numbers, "size"), &line->bytes, error);
    /* A request that was not served is written with no address. */
    line->has_result = line->event != UMPIRE_ALLOCATE || line->address || !line->bytes;
    return status;
}

enum ar_status umpire_line_parse(const char *text, struct umpire_line *line, struct ar_error *error)
{
    json_error_t why;
    json_t *object = json_loads(text, 0, &why);
    line->json = object;
    line->name = "";
    if (!object)
        return ar_error_set(error, AR_FORMAT, "this is no JSON: %s (column %d)", why.text,
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

void umpire_line_close(struct umpire_line *line)
{
    json_decref(line->json);
    line->json = NULL;
}

#else

enum ar_status umpire_line_parse(const char *text, struct umpire_line *line, struct ar_error *error)
{
    (void)text;
    line->name = "";
    return ar_error_set(error, AR_UNSUPPORTED,
                        "this program was built without jansson, which reads JSON; \"make deps\" "
                        "installs it, then build again");
}

void umpire_line_close(struct umpire_line *line)
{
    line->json = NULL;
}

#endif
