/* MiniMalloc's lifetimes: columns, order, the offsets of a solution, errors. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"

#define HEAD "id,lower,upper,size\n"

TRACE_TEST(lifetimes_become_events)
{
    struct import_report report;
    format_rig_converts(*state,
                        HEAD "0,0,10,100\n"
                             "1,3,9,40\n"
                             "2,9,12,50\n"       /* begins when 1 ends */
                             "\x01\xff,5,5,7\n", /* empty; its id is no text */
                        "a,0,100,lower=0,upper=10\na,1,40,lower=3,upper=9\n"
                        "a,2,7,tag=__,lower=5,upper=5\nf,2\nf,1\n"
                        "a,3,50,tag=2,lower=9,upper=12\nf,0\nf,3\n",
                        &report);
    assert_int_equal(report.records, 4);
    assert_int_equal(report.guess_count, 0);
}

FORMAT_CASES("format_minimalloc", columns_stand_in_any_order)
FORMAT_CASES("format_minimalloc", hints_are_left_out_and_said)

/* The peak of the shipped problem equals the sum of its rows, moment by moment. */
TRACE_TEST(a_published_problem_has_its_peak)
{
    CLOSED(close_trace)
    struct trace_source *source = trace_rig_source("tests/golden/data/minimalloc/A.1048576.csv");
    assert_string_equal(source->info.format, "minimalloc");
    assert_string_equal(source->info.name, "A.1048576");
    assert_int_equal(source->info.allocs, 154);
    assert_int_equal(source->info.frees, 154);
    assert_int_equal(source->info.peak_live_bytes, 1048576);
}

FORMAT_REFUSES("format_minimalloc", bad_rows_are_refused)

/* Columns of other formats are not read as lifetimes. */
TRACE_TEST(other_columns_are_no_lifetimes)
{
    static const char *const heads[] = {
        "id,lower,upper\n",
        "id,lower,upper,size,size\n",
        "id,lower,upper,size,name\n",
        "id,lower,start,upper,size\n",
        "action,addr,size,stream,time\n",
    };
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct trace_source *source;
        struct ar_error error;
        assert_int_not_equal(trace_rig_text(*state, heads[i], &source, &error), AR_OK);
        assert_null(strstr(error.text, "buffer"));
    }
}
