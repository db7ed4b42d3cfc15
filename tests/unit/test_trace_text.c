/* Traces as text, and those of the oracles: the grammar, what is refused, canonical form. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/tables.h"

TRACE_TEST(every_event_is_read_and_written)
{
    struct trace_rig *rig = *state;
    CLOSED(close_trace) struct trace_source *source;
    struct cases block = {0};
    const char *every_event = cases_text(&block, "trace_text", "every_event");
    assert_ok(trace_rig_text(rig, every_event, &source, &test_error));
    const struct trace_info *info = &source->info;
    assert_string_equal(info->name, "all");
    assert_string_equal(info->recorder, "torch 2.11.0");
    assert_string_equal(info->conf, "roundup_power2_divisions:[256:1,512:2]");
    assert_string_equal(info->format, "text");
    assert_int_equal(info->limit_bytes, 2147483648);
    assert_int_equal(info->capacity_bytes, 85899345920);
    assert_false(info->complete);
    assert_int_equal(info->events, 23);
    assert_int_equal(info->allocs, 3);
    assert_int_equal(info->probes, 1);
    assert_int_equal(info->frees, 3);
    assert_int_equal(info->kernels, 2);
    assert_int_equal(info->steps, 1);
    assert_int_equal(info->streams, 2);
    assert_int_equal(info->slots, 4);
    assert_true(info->has_uses && info->has_split_frees && info->has_times);
    const struct trace_event *events;
    size_t count;
    assert_ok(trace_next(source, &events, &count, &test_error));
    const struct trace_attributes *keys = trace_attributes_of(source, events[4].attributes);
    assert_string_equal(keys->tag, "weights");
    assert_int_equal(keys->align, 256);
    assert_int_equal(keys->pool, 2);
    assert_int_equal(keys->device, 1);
    assert_int_equal(keys->thread, 7);
    assert_int_equal(keys->tenant, 3);
    assert_int_equal(keys->space, TRACE_SPACE_PINNED);
    assert_int_equal(keys->end, TRACE_END_UPPER);
    assert_string_equal(trace_attributes_of(source, events[6].attributes)->rest, "later=1,x=");
    FREED char *again = trace_rig_print(rig, source);
    assert_string_equal(again, every_event);
}

TEST(names_of_statistics_are_words)
{
    static const char *const bad[] = {"", "a b", "a\nb", "a\xff"};
    CLOSED(trace_stats_close) struct trace_stats stats = {0};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_says(trace_stats_add(&stats, bad[i], strlen(bad[i]), 1, &test_error), AR_INVALID,
                    "the name of a statistic is empty, or contains blanks or control bytes");
    assert_ok(trace_stats_add(&stats, "reserved_bytes.all.peak", 23, 1, &test_error));
    assert_int_equal(stats.count, 1);
}

/* Any valid text becomes the canonical text. */
TRACE_TEST(text_is_made_canonical)
{
    struct trace_rig *rig = *state;
    CLOSED(close_trace) struct trace_source *source;
    assert_ok(trace_rig_text(rig,
                             "# allocrig-trace 1\r\n# made by hand\n# name:x\n# limit: 2K\n"
                             "a,0,007,0,end=lower,z=9,pool=1\r\n\nr,0,0\na,1,8,2\nr,1",
                             &source, &test_error));
    char *again = trace_rig_print(rig, source);
    assert_string_equal(again, "# allocrig-trace 1\n# name: x\n# limit: 2048\n# let-go: final\n"
                               "a,0,7,pool=1,end=lower,z=9\nr,0\na,1,8,2\nr,1\n");
    free(again);
    assert_int_equal(source->info.slots, 1);
}

TRACE_TEST(oracle_traces_are_read)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    assert_ok(trace_rig_text(rig, "a,0,1,0\nf,0\na,1,2,0\n", &source, &test_error));
    assert_string_equal(source->info.format, "oracle");
    assert_string_equal(source->info.name, "0");
    assert_int_equal(source->info.events, 3);
    trace_close(source);
    assert_says(trace_rig_text(rig, "a,0,1,0\nm,step\n", &source, &test_error), AR_INVALID,
                ":2: a file without the line");
}

struct refusal {
    const char *lines, *part;
};

TRACE_TEST(bad_lines_are_refused)
{
    struct trace_rig *rig = *state;
    EACH_ROW (row, 2) {
        char text[256];
        struct trace_source *source;
        (void)snprintf(text, sizeof text, "# allocrig-trace 1\n%s\n", row.field[0]);
        assert_int_equal(trace_rig_text(rig, text, &source, &test_error), AR_INVALID);
        size_t length = strlen(rig->path[0]);
        if (strncmp(test_error.text, rig->path[0], length) != 0 ||
            strncmp(test_error.text + length, row.field[1], strlen(row.field[1])) != 0)
            fail_msg("\"%s\" begins not with \"%s\"", test_error.text, row.field[1]);
    }
}

TRACE_TEST(no_traces_are_refused)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    assert_says(trace_open(rig->path[1], &source, &test_error), AR_IO, "No such file");
    assert_says(trace_open(rig->folder, &source, &test_error), AR_INVALID, "is a directory");
    assert_says(trace_rig_text(rig, "", &source, &test_error), AR_FORMAT, "the file is empty");
    assert_says(trace_rig_text(rig, "hello\n", &source, &test_error), AR_FORMAT, "no trace");
    assert_says(trace_rig_text(rig, "# allocrig-trace 2\n", &source, &test_error), AR_FORMAT,
                "version \"2\"");
    trace_rig_write(rig->path[0], "# allocrig-trace 1\nc\n\0", 22);
    assert_says(trace_open(rig->path[0], &source, &test_error), AR_INVALID,
                ":3: the line holds a NUL byte");
}

TRACE_TEST(long_lines_are_read_or_refused)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    enum { LONGEST = 65535 };
    FREED char *text = malloc(LONGEST + 64);
    assert_non_null(text);
    int used = snprintf(text, 64, "# allocrig-trace 1\nc,tag=");
    memset(text + used, 'x', TRACE_TEXT_LIMIT - 4);
    strcpy(text + used + TRACE_TEXT_LIMIT - 4, "\nc\n");
    assert_ok(trace_rig_text(rig, text, &source, &test_error));
    assert_int_equal(source->info.events, 2);
    trace_close(source);
    memset(text + used, 'x', TRACE_TEXT_LIMIT - 3);
    strcpy(text + used + TRACE_TEXT_LIMIT - 3, "\nc\n");
    assert_says(trace_rig_text(rig, text, &source, &test_error), AR_INVALID,
                ":2: the set of keys has more than 65000 bytes");
    memset(text + used, 'x', LONGEST - 5);
    strcpy(text + used + LONGEST - 5, "\nc\n");
    assert_says(trace_rig_text(rig, text, &source, &test_error), AR_INVALID,
                ":2: the line has more than");
}
