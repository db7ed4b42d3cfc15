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

TRACE_TEST(columns_stand_in_any_order)
{
    struct import_report report;
    format_rig_converts(*state,
                        "size,buffer_id,end,begin,alignment,gaps,offset\r\n"
                        "10,a,4,0,64,,128\r\n"
                        "20,b,6,5,3,1-2 3-4@0:5,0\r\n"
                        "30,c,4,-5,1, ,256\r\n",
                        "a,0,30,tag=c,lower=-5,upper=5\n!,alloc,256\n"
                        "a,1,10,tag=a,align=64,lower=0,upper=5\n!,alloc,128\n"
                        "f,1\nf,0\na,2,20,tag=b,lower=5,upper=7\n!,alloc,0\nf,2\n",
                        &report);
    assert_int_equal(report.guess_count, 3);
    assert_non_null(strstr(report.guesses[0], "a buffer lives through that moment"));
    assert_non_null(strstr(report.guesses[1], "1 buffers have gaps"));
    assert_non_null(strstr(report.guesses[2], "1 alignments are not powers of two"));
}

TRACE_TEST(hints_are_left_out_and_said)
{
    struct import_report report;
    format_rig_converts(*state,
                        "id,lower,upper,size,alignment,hint,gaps\n"
                        "0,0,9,15,1,128,\n"
                        "1,6,12,18,2,-1,7-8 9-10@1:17\n",
                        "a,0,15,lower=0,upper=9\na,1,18,align=2,lower=6,upper=12\nf,0\nf,1\n",
                        &report);
    assert_int_equal(report.guess_count, 2);
    assert_non_null(strstr(report.guesses[0], "1 buffers have gaps"));
    assert_non_null(strstr(report.guesses[1], "1 buffers have hints"));
}

/* The peak of the shipped problem equals the sum of its rows, moment by moment. */
TRACE_TEST(a_published_problem_has_its_peak)
{
    struct trace_source *source;
    assert_ok(trace_open("tests/golden/data/minimalloc/A.1048576.csv", &source, &test_error));
    assert_string_equal(source->info.format, "minimalloc");
    assert_string_equal(source->info.name, "A.1048576");
    assert_int_equal(source->info.allocs, 154);
    assert_int_equal(source->info.frees, 154);
    assert_int_equal(source->info.peak_live_bytes, 1048576);
    trace_close(source);
}

TRACE_TEST(bad_rows_are_refused)
{
    static const struct format_rig_refusal cases[] = {
        {HEAD, ": the file holds no buffers"},
        {HEAD "0,1,2\n", ":2: there are 3 columns where the first line names 4"},
        {HEAD "0,1,2,3,4\n", ":2: there are 5 columns where the first line names 4"},
        {HEAD "0,1,2,3\n0,x,2,3\n", ":3: lower"},
        {HEAD "0,1,99999999999999999999,3\n", ":2: upper"},
        {HEAD "0,1,4611686018427387904,3\n", ":2: upper: 4611686018427387904 is too large"},
        {HEAD "0,2,1,3\n", ":2: the buffer ends (1) before it begins (2)"},
        {HEAD "0,1,2,-3\n", ":2: size"},
        {HEAD "0,1,2,1152921504606846976\n", ":2: a buffer of 1152921504606846976 bytes"},
        {"id,lower,upper,size,alignment\n0,1,2,3,x\n", ":2: alignment"},
        {"id,lower,upper,size,offset\n0,1,2,3,\n", ":2: offset"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

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
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct trace_source *source;
        struct ar_error error;
        assert_int_not_equal(trace_rig_text(*state, heads[i], &source, &error), AR_OK);
        assert_null(strstr(error.text, "buffer"));
    }
}
