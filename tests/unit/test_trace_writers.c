/* Traces written as files of other programs, compared as whole texts. */
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"

/* A served and a failed request on two streams, a pending block, one of 0 bytes, one in pinned
 * memory, one that is never freed. */
static const char trace[] = "# allocrig-trace 1\n"
                            "t,1000000\n"
                            "a,0,1000,thread=7\n"
                            "!,alloc,4096\n"
                            "a,1,2000,1,align=4096\n"
                            "p,2,5000\n"
                            "!,oom,100\n"
                            "r,2\n"
                            "t,86400000002000\n"
                            "a,3,0\n"
                            "a,4,600,space=pinned\n"
                            "k,1,1000\n"
                            "r,1,2\n"
                            "a,5,300\n"
                            "f,0\n"
                            "f,1\n"
                            "f,3\n"
                            "f,4\n";

static void becomes(const struct format_writer *writer, const char *wanted)
{
    struct trace_rig rig;
    struct trace_source *source;
    struct ar_error error;
    size_t count;
    trace_rig_open(&rig);
    assert_int_equal(trace_rig_text(&rig, trace, &source, &error), AR_OK);
    assert_int_equal(format_write(writer, source, rig.path[1], false, &error), AR_OK);
    char *text = trace_rig_read(rig.path[1], &count);
    assert_string_equal(text, wanted);
    free(text);

    /* The error has the path that cannot be written, and no file is left there. */
    assert_int_equal(format_write(writer, source, "/nowhere/at/all", false, &error), AR_IO);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
    trace_close(source);
    trace_rig_close(&rig);
}

TEST(rmm_has_recorded_addresses_or_generated_ones)
{
    becomes(&format_writer_rmm, "Thread,Time,Action,Pointer,Size,Stream\n"
                                "7,00:00:00.001000,allocate,0x1000,1000,0x0\n"
                                "0,00:00:00.001000,allocate,0x100000000,2000,0x3\n"
                                "0,00:00:00.001000,allocate failure,(nil),5000,0x0\n"
                                "0,00:00:00.000002,allocate,0x100000800,0,0x0\n"
                                "0,00:00:00.000002,free,0x100000000,2000,0x4\n"
                                "0,00:00:00.000002,allocate,0x100000e00,300,0x0\n"
                                "7,00:00:00.000002,free,0x1000,1000,0x0\n"
                                "0,00:00:00.000002,free,0x100000800,0,0x0\n");
}

TEST(lifetimes_end_where_blocks_are_complete)
{
    becomes(&format_writer_minimalloc, "id,lower,upper,size,alignment\n"
                                       "0,0,3,1000,1\n"
                                       "1,1,4,2000,4096\n"
                                       "5,2,5,300,1\n");
}

TEST(an_oracle_trace_has_requests_and_completions)
{
    becomes(&format_writer_oracle, "a,0,1000\n"
                                   "a,1,2000,1\n"
                                   "a,2,5000\n"
                                   "f,2\n"
                                   "a,3,0\n"
                                   "a,4,600\n"
                                   "a,5,300\n"
                                   "f,0\n"
                                   "f,1\n"
                                   "f,3\n"
                                   "f,4\n");
}

/* All names and endings are different. */
TEST(a_trace_without_requests_is_refused)
{
    struct trace_rig rig;
    struct trace_source *source;
    trace_rig_open(&rig);
    assert_ok(
        trace_rig_text(&rig, "# allocrig-trace 1\nm,step\n!,oom,100\n", &source, &test_error));
    for (size_t i = 0; format_writer_at(i); i++) {
        assert_says(format_write(format_writer_at(i), source, rig.path[1], false, &test_error),
                    AR_INVALID, "it has no requests");
        assert_int_not_equal(access(rig.path[1], F_OK), 0);
    }
    trace_close(source);
    trace_rig_close(&rig);
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
