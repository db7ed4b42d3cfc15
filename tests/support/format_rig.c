#include "tests/support/format_rig.h"

#include "tests/support/test.h"
#include "workloads/formats/formats.h"

void format_rig_converts(void *rig, const char *text, const char *events,
                         struct import_report *report)
{
    format_rig_converts_bytes(rig, text, strlen(text), events, report);
}

void format_rig_converts_bytes(void *rig, const void *bytes, size_t count, const char *events,
                               struct import_report *report)
{
    static const char head[] = "# allocrig-trace 1\n# name: 0\n";
    struct trace_source *source;
    struct ar_error error;
    const char *path = ((struct trace_rig *)rig)->path[0];
    trace_rig_write(path, bytes, count);
    if (trace_open(path, &source, &error) != AR_OK)
        fail_msg("%s", error.text);
    char *printed = trace_rig_print(rig, source);
    assert_non_null(source->report);
    if (report)
        *report = *source->report;
    trace_close(source);
    assert_int_equal(strncmp(printed, head, sizeof head - 1), 0);
    assert_string_equal(printed + sizeof head - 1, events);
    free(printed);
}

void format_rig_refuses(void *rig, const struct format_rig_refusal *cases, size_t count)
{
    const char *path = ((struct trace_rig *)rig)->path[0];
    for (size_t i = 0; i < count; i++) {
        struct trace_source *source;
        struct ar_error error;
        if (trace_rig_text(rig, cases[i].text, &source, &error) == AR_OK)
            fail_msg("\"%s\" is taken", cases[i].text);
        size_t length = strlen(path);
        assert_int_equal(strncmp(error.text, path, length), 0);
        if (strncmp(error.text + length, cases[i].part, strlen(cases[i].part)) != 0)
            fail_msg("\"%s\" says not \"%s\"", error.text + length, cases[i].part);
    }
}
