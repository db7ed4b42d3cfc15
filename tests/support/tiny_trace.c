#include "tests/support/tiny_trace.h"

#include "tests/support/test.h"

static uint64_t number(char **rest)
{
    char *end;
    uint64_t value = strtoull(*rest, &end, 10);
    assert_ptr_not_equal(end, *rest);
    *rest = *end == ',' ? end + 1 : end;
    return value;
}

static bool more(const char *rest)
{
    return *rest >= '0' && *rest <= '9';
}

/* The keys at the end of a line; returns whether there are any. */
static bool keys(char *rest, struct trace_attributes *attributes)
{
    bool any = false;
    while (*rest) {
        char *value = strchr(rest, '=');
        assert_non_null(value);
        if (!strncmp(rest, "op=", 3) || !strncmp(rest, "x=", 2) || !strncmp(rest, "at=", 3) ||
            !strncmp(rest, "plans=", 6)) {
            attributes->rest = rest;
            return true;
        }
        *value++ = '\0';
        char *end = value + strcspn(value, ",");
        if (!strcmp(rest, "tag"))
            attributes->tag = value;
        else if (!strcmp(rest, "space"))
            attributes->space = !strncmp(value, "pinned", 6) ? TRACE_SPACE_PINNED : 0;
        else if (!strcmp(rest, "align"))
            attributes->align = strtoull(value, NULL, 10);
        else if (!strcmp(rest, "pool"))
            attributes->pool = (uint32_t)strtoull(value, NULL, 10);
        else
            fail_msg("key %s", rest);
        rest = *end ? end + 1 : end;
        *end = '\0';
        any = true;
    }
    return any;
}

static void fields(struct trace_event *event, char letter, char **rest)
{
    static const char letters[] = TRACE_LETTERS;
    event->kind = (uint8_t)(strchr(letters, letter) - letters + 1);
    event->stream = 0;
    switch (letter) {
    case 'a':
    case 'p':
        event->id = number(rest);
        event->value = number(rest);
        event->stream = more(*rest) ? (uint32_t)number(rest) : 0;
        break;
    case 'r':
        event->id = number(rest);
        event->stream = more(*rest) ? (uint32_t)number(rest) : TRACE_NO_STREAM;
        break;
    case 'f':
        event->id = number(rest);
        break;
    case 'u':
        event->id = number(rest);
        event->stream = (uint32_t)number(rest);
        break;
    case 'k':
    case 'w':
        event->stream = (uint32_t)number(rest);
        event->value = number(rest);
        break;
    case 'e':
        event->value = number(rest);
        event->stream = (uint32_t)number(rest);
        break;
    case 's':
        event->stream = more(*rest) ? (uint32_t)number(rest) : TRACE_NO_STREAM;
        break;
    case 'o':
    case 't':
        event->value = number(rest);
        break;
    default:
        break;
    }
}

static void append(struct trace_memory *memory, char *line)
{
    struct trace_event event = {0};
    struct trace_attributes attributes = {0};
    char *rest = line[1] == ',' ? line + 2 : line + 1;
    const char *text = *line == 'm' || *line == '!' ? rest : NULL;
    fields(&event, *line, &rest);
    bool any = !text && keys(rest, &attributes);
    assert_ok(trace_memory_append(memory, &event, any ? &attributes : NULL, text, &test_error));
}

enum ar_status tiny_trace_open(const char *events, struct trace_source **out,
                               struct ar_error *error)
{
    const struct trace_info info = {.name = "tiny", .format = "text", .complete = true};
    struct trace_memory *memory = trace_memory_create(&info);
    char *copy = strdup(events), *save = NULL;
    for (char *line = strtok_r(copy, " \n", &save); line; line = strtok_r(NULL, " \n", &save))
        append(memory, line);
    free(copy);
    return trace_memory_open(memory, out, error);
}

struct trace_source *tiny_trace(const char *events)
{
    struct trace_source *source;
    assert_ok(tiny_trace_open(events, &source, &test_error));
    return source;
}
