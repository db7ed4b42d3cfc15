/* Names of traces: short ones are kept, long ones are cut and stay different. */
#include "tests/support/test.h"
#include "workloads/gen/gen.h"
#include "workloads/trace/filter.h"
#include "workloads/trace/header.h"
#include "workloads/trace/source.h"
#include "workloads/workload.h"

#define ROOM sizeof(((struct trace_info *)0)->name)

TEST(a_name_that_fits_stays)
{
    char name[17];
    memset(name, 'x', sizeof name);
    trace_name_put(name, 17, "0123456789abcdefrest", 16);
    assert_string_equal(name, "0123456789abcdef");
    trace_name_put(name, 17, "short", 5);
    static const char rest[12];
    assert_memory_equal(name + 5, rest, sizeof rest);
}

/* FNV-1a of "0123456789abcdefg" in 32 bits, computed without this program. */
TEST(a_long_name_ends_in_its_digits)
{
    char name[17], other[17];
    trace_name_put(name, sizeof name, "0123456789abcdefg", 17);
    assert_string_equal(name, "0123456~0744d6ae");
    trace_name_put(other, sizeof other, "0123456789abcdefh", 17);
    assert_memory_equal(name, other, 8);
    assert_string_not_equal(name, other);
    /* a character of two bytes is dropped if only one byte is left */
    trace_name_put(name, sizeof name,
                   "012345\xc3\xa4"
                   "89abcdefg",
                   17);
    assert_memory_equal(name, "012345~", 7);
    assert_int_equal(strlen(name), 15);
}

TEST(names_of_files_lose_their_endings)
{
    char path[2][300], name[2][ROOM];
    trace_name_from_path("a/b.c/gpt2_train.default.csv.gz", name[0], ROOM);
    assert_string_equal(name[0], "gpt2_train");
    trace_name_from_path("x/\x01y\xff.bin.zst", name[0], ROOM);
    assert_string_equal(name[0], "_y_");
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "folder/%0200d.default.csv.gz", i + 1);
        trace_name_from_path(path[i], name[i], ROOM);
        assert_int_equal(strlen(name[i]), ROOM - 1);
    }
    assert_string_not_equal(name[0], name[1]);
}

/* Two specs that differ in their last letter only, and both merged with themselves. */
TEST(long_specs_stay_different)
{
    char names[4][ROOM];
    for (int i = 0; i < 4; i++) {
        char spec[300];
        struct trace_source *source, *parts[2], *merged;
        snprintf(spec, sizeof spec, "random:events=%0150d,seed=%d", 20, i % 2 + 1);
        if (i < 2) {
            assert_ok(workload_open(spec, &source, &test_error));
            memcpy(names[i], source->info.name, ROOM);
            trace_close(source);
            continue;
        }
        assert_ok(workload_open("random:events=20", &parts[0], &test_error));
        assert_ok(workload_open(spec, &parts[1], &test_error));
        assert_ok(trace_merge(parts, 2, &merged, &test_error));
        memcpy(names[i], merged->info.name, ROOM);
        assert_memory_equal(names[i], "random:events=20+random:events=0", 32);
        trace_close(merged);
    }
    assert_string_not_equal(names[0], names[1]);
    assert_string_not_equal(names[2], names[3]);
    assert_int_equal(strlen(names[2]), ROOM - 1);
}
