/* Traces written as files of other programs, compared as whole texts. */
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"

static void becomes(const struct format_writer *writer, const char *section)
{
    struct cases trace = {0}, block = {0};
    const char *wanted = cases_text(&block, "trace_writers", section);
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(close_trace) struct trace_source *source;
    struct ar_error error;
    size_t count;
    assert_int_equal(
        trace_rig_text(&rig, cases_text(&trace, "trace_writers", "trace"), &source, &error), AR_OK);
    assert_int_equal(format_write(writer, source, rig.path[1], false, &error), AR_OK);
    char *text = trace_rig_read(rig.path[1], &count);
    assert_string_equal(text, wanted);
    free(text);

    /* The error has the path that cannot be written, and no file is left there. */
    assert_int_equal(format_write(writer, source, "/nowhere/at/all", false, &error), AR_IO);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
}

TEST(rmm_has_recorded_addresses_or_generated_ones)
{
    becomes(&format_writer_rmm, "rmm_has_recorded_addresses_or_generated_ones");
}

TEST(lifetimes_end_where_blocks_are_complete)
{
    becomes(&format_writer_minimalloc, "lifetimes_end_where_blocks_are_complete");
}

TEST(an_oracle_trace_has_requests_and_completions)
{
    becomes(&format_writer_oracle, "an_oracle_trace_has_requests_and_completions");
}

/* What no file that can be read again would hold. */
TEST(a_recorded_address_that_no_device_has_is_refused)
{
    static const char *const notes[] = {"a,0,512\n!,alloc,9223372036854775807\n",
                                        "!,block,9223372036854775807,512,0\na,0,512,initial=yes\n"};
    for (size_t i = 0; i < COUNT(notes); i++) {
        CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
        CLOSED(close_trace) struct trace_source *source;
        char text[200];
        snprintf(text, sizeof text, "# allocrig-trace 1\n%s", notes[i]);
        assert_ok(trace_rig_text(&rig, text, &source, &test_error));
        assert_says(format_write(&format_writer_snapshot, source, rig.path[1], false, &test_error),
                    AR_INVALID, "9223372036854775807");
        if (i == 0)
            assert_says(format_write(&format_writer_rmm, source, rig.path[1], false, &test_error),
                        AR_INVALID, "has an address that no device has");
    }
}

TEST(segments_that_overlap_are_refused)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(close_trace) struct trace_source *source;
    assert_ok(trace_rig_text(
        &rig, "# allocrig-trace 1\n!,segment,4096,2097152,0\na,0,512\n!,alloc,4000\n", &source,
        &test_error));
    assert_says(format_write(&format_writer_snapshot, source, rig.path[1], false, &test_error),
                AR_INVALID, "the segments at 4000 and 4096 overlap");
}

/* All names and endings are different. */
TEST(a_trace_without_requests_is_refused)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(close_trace) struct trace_source *source;
    assert_ok(
        trace_rig_text(&rig, "# allocrig-trace 1\nm,step\n!,oom,100\n", &source, &test_error));
    for (size_t i = 0; format_writer_at(i); i++) {
        assert_says(format_write(format_writer_at(i), source, rig.path[1], false, &test_error),
                    AR_INVALID, "it has no requests");
        assert_int_not_equal(access(rig.path[1], F_OK), 0);
    }
}

TEST(writers_are_different)
{
    const struct format_writer *writer, *other;
    for (size_t i = 0; (writer = format_writer_at(i)); i++) {
        assert_true(writer->ending[0] == '.' && writer->summary[0]);
        for (size_t j = i + 1; (other = format_writer_at(j)); j++) {
            assert_string_not_equal(writer->name, other->name);
            assert_string_not_equal(writer->ending, other->ending);
        }
    }
}
