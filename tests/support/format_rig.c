#include "tests/support/format_rig.h"

#include "tests/support/test.h"
#include "workloads/formats/formats.h"

/* The file in path[0] becomes the trace `events`. */
static void convert(void *rig, const char *events, struct import_report *report,
                    struct trace_info *info)
{
    static const char head[] = "# allocrig-trace 1\n# name: 0\n";
    const char *path = ((struct trace_rig *)rig)->path[0];
    struct trace_source *source = trace_rig_source(path);
    FREED char *printed = trace_rig_print(rig, source);
    assert_int_equal(!source->report, strcmp(source->info.format, "csv") == 0);
    if (report)
        *report = source->report ? *source->report : (struct import_report){0};
    if (info)
        *info = source->info;
    trace_close(source);
    assert_int_equal(strncmp(printed, head, sizeof head - 1), 0);
    assert_string_equal(printed + sizeof head - 1, events);
}

void format_rig_converts(void *rig, const char *text, const char *events,
                         struct import_report *report)
{
    format_rig_converts_bytes(rig, text, strlen(text), events, report);
}

void format_rig_converts_bytes(void *rig, const void *bytes, size_t count, const char *events,
                               struct import_report *report)
{
    trace_rig_write(((struct trace_rig *)rig)->path[0], bytes, count);
    convert(rig, events, report, NULL);
}

static bool guessed(const struct import_report *report, const char *words)
{
    for (unsigned i = 0; i < report->guess_count; i++)
        if (strstr(report->guesses[i], words))
            return true;
    return false;
}

/* KEY=NUMBER, "guess WORDS", "no guess WORDS", or "guess@N WORDS" of the one with that index,
 * or "guess@N=SENTENCE". */
static bool has(const struct import_report *report, const struct trace_info *info, const char *fact)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"records", report->records},
        {"unmatched_frees", report->unmatched_frees},
        {"double_frees", report->double_frees},
        {"left_out", report->left_out},
        {"failures", report->failures},
        {"ends_in_failure", report->ends_in_failure},
        {"begins_in_the_middle", report->begins_in_the_middle},
        {"guesses", report->guess_count},
        {"peak_live_bytes", info->peak_live_bytes},
    };
    size_t length = strcspn(fact, "=");
    if (strncmp(fact, "format=", 7) == 0)
        return strcmp(info->format, fact + 7) == 0;
    if (strncmp(fact, "guess@", 6) == 0) {
        unsigned at = (unsigned)(fact[6] - '0');
        return at < report->guess_count &&
               (fact[7] == '=' ? strcmp(report->guesses[at], fact + 8) == 0
                               : strstr(report->guesses[at], fact + 8) != NULL);
    }
    if (strncmp(fact, "guess ", 6) == 0)
        return guessed(report, fact + 6);
    if (strncmp(fact, "no guess ", 9) == 0)
        return !guessed(report, fact + 9);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strncmp(numbers[i].key, fact, length) == 0 && !numbers[i].key[length])
            return numbers[i].value == strtoull(fact + length + 1, NULL, 10);
    fail_msg("no fact is named %s", fact);
    return false;
}

static void write_text(const char *path, const char *text)
{
    trace_rig_write(path, text, strlen(text));
}

void format_rig_cases(void *rig, const char *file, const char *section, format_rig_make *make)
{
    for (struct cases block = {0}; cases_block(&block, file, section);) {
        struct import_report report;
        struct trace_info info;
        char *save;
        (make ? make : write_text)(((struct trace_rig *)rig)->path[0], block.field[0]);
        convert(rig, block.field[1], &report, &info);
        if (block.field[2])
            for (char *fact = strtok_r(block.field[2], "\n", &save); fact;
                 fact = strtok_r(NULL, "\n", &save))
                if (!has(&report, &info, fact))
                    fail_msg("%s, before line %u: not %s", file, block.line, fact);
    }
}

void format_rig_refuses(void *rig, const char *file, const char *section, format_rig_make *make)
{
    const char *path = ((struct trace_rig *)rig)->path[0];
    for (struct cases row = {0}; cases_next(&row, file, section, 2);) {
        struct trace_source *source;
        (make ? make : write_text)(path, row.field[0]);
        if (trace_open(path, &source, &test_error) == AR_OK)
            fail_msg("%s, line %u: \"%s\" is taken", file, row.line, row.field[0]);
        size_t length = strlen(path);
        assert_int_equal(strncmp(test_error.text, path, length), 0);
        const char *text = test_error.text + length, *part = row.field[1];
        if (*part == '@' ? !strstr(text, part + 1) : strncmp(text, part, strlen(part)) != 0)
            fail_msg("%s, line %u: \"%s\" says not \"%s\"", file, row.line,
                     test_error.text + length, row.field[1]);
    }
}
