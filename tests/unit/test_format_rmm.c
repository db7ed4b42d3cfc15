/* RMM's CSV: its rows as events, what the report says, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/format_rig.h"

#define HEAD "Thread,Time,Action,Pointer,Size,Stream\n"

static void rows_become_events(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        HEAD "11,14:21:19.998533,allocate,0x30a000000,256,0x0\n"
                             "12,14:21:19.998533,allocate,0x30a000100,512,0x5581\n"
                             "11,14:21:20.000533,free,0x30a000000,256,0x0\n"
                             "12,14:21:20.000533,free,0x30a000100,512,0x5581\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,256,thread=11\n!,alloc,13052674048\na,1,512,1,thread=12\n"
                        "!,alloc,13052674304\nt,2000000\nf,0,thread=11\nf,1,thread=12\n",
                        &report);
    assert_int_equal(report.records, 4);
    assert_int_equal(report.guess_count, 0);
    assert_false(report.begins_in_the_middle || report.ends_in_failure);
}

static void first_line_may_be_missing(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        "11,14:21:19.998533,allocate,0x30a000000,256,0x0\r\n"
                        "11,14:21:19.998535,free,0x30a000000,256,0x0\r\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,256,thread=11\n!,alloc,13052674048\nt,2000\nf,0,thread=11\n",
                        &report);
    assert_int_equal(report.records, 2);
    const char *const others[] = {"11,14:21:19.998533,mislay,0x30a000000,256,0x0\n",
                                  "11,14:21:19.998533,free,0x30a000000,256\n"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct trace_source *source;
        struct ar_error error;
        assert_int_not_equal(trace_rig_text(*state, others[i], &source, &error), AR_OK);
        assert_non_null(strstr(error.text, "no trace"));
    }
}

static void midnight_passes(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        HEAD "0,23:59:59.999999,allocate,0x1000,1,0x0\n"
                             "0,00:00:00.000001,allocate,0x2000,2,0x0\n"
                             "0,23:59:59.999998,allocate,0x3000,3,0x0\n" /* came late */
                             "0,13:00:00.000001,free,0x1000,1,0x0\n"
                             "0,00:00:00.000001,free,0x2000,2,0x0\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,1\n!,alloc,4096\nt,2000\na,1,2\n!,alloc,8192\na,2,3\n"
                        "!,alloc,12288\nt,46800000002000\nf,0\nt,86400000002000\nf,1\n",
                        &report);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "1 rows are earlier than the row before"));
}

static void dates_and_older_times(void **state)
{
    static const char *const times[][2] = {
        {"2025-12-31 23:59:59.5", "2026-01-01 00:00:01"},
        {"2024-02-28T23:59:59:500000", "2024-02-29T00:00:01:000000"},
        {"2023-03-01T10:00:00.000000Z", "2023-03-01T10:00:01.500000Z"},
        {"10:00:00:000001", "10:00:01:500001"},
        {"1634567890.123456", "1634567891.623456"},
    };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       HEAD "0,%s,allocate,0x1000,1,0x0\n0,%s,free,0x1000,1,0x0\n", times[i][0],
                       times[i][1]);
        format_rig_converts(*state, text,
                            "# recorder: rmm\nt,0\na,0,1\n!,alloc,4096\nt,1500000000\nf,0\n", NULL);
    }
}

static void failures_are_kept(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        HEAD "0,1:00:00.0,allocate failure,(nil),99999999999,0x0\n"
                             "0,1:00:00.0,allocate,0x1000,5,0x0\n"
                             "0,1:00:00.0,allocate failure,0x0,88888888888,0x7\n"
                             "0,1:00:00.0,free,0x1000,5,0x0\n",
                        "# recorder: rmm\n# complete: no\n# let-go: final\n"
                        "t,0\np,0,99999999999\n!,oom\nr,0\na,1,5\n!,alloc,4096\n"
                        "a,2,88888888888,1\n!,oom\nr,2\nf,1\n",
                        &report);
    assert_int_equal(report.failures, 2);
    assert_true(report.ends_in_failure);
}

static void a_free_meets_the_last_block_there(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        HEAD "0,1:00:00.0,allocate,0x1000,5,0x0\n"
                             "0,1:00:00.0,allocate,0x1000,6,0x0\n" /* a free is missing */
                             "0,1:00:00.0,free,0x1000,6,0x0\n"
                             "0,1:00:00.0,free,0x1000,6,0x0\n" /* a double free */
                             "0,1:00:00.0,free,0x2000,7,0x0\n" /* made before */
                             "0,1:00:00.0,allocate,0x2000,8,0x0\n"
                             "0,1:00:00.0,allocate,(nil),0,0x0\n"
                             "0,1:00:00.0,free,(nil),0,0x0\n"
                             "0,1:00:00.0,free,(nil),0,0x0\n"   /* of nothing */
                             "0,1:00:00.0,free,0x2000,9,0x0\n", /* another size */
                        "# recorder: rmm\n"
                        "a,0,7,initial=yes\n!,alloc,8192\n"
                        "t,0\na,1,5\n!,alloc,4096\nf,1\na,2,6\n!,alloc,4096\nf,2\nf,0\na,3,8\n"
                        "!,alloc,8192\na,4,0\nf,4\nf,3\n",
                        &report);
    assert_int_equal(report.double_frees, 1);
    assert_int_equal(report.unmatched_frees, 1);
    assert_int_equal(report.left_out, 1);
    assert_true(report.begins_in_the_middle);
    assert_int_equal(report.guess_count, 2);
    assert_string_equal(report.guesses[0], "1 blocks were given out again and never freed: taken "
                                           "for freed at that moment");
    assert_string_equal(report.guesses[1], "1 frees name another size than their request: the "
                                           "request's is taken");
}

static void empty_blocks_share_addresses(void **state)
{
    format_rig_converts(*state,
                        HEAD "0,1:00:00.0,allocate,0x1000,0,0x0\n"
                             "0,1:00:00.0,allocate,0x1000,6,0x0\n"
                             "0,1:00:00.0,free,0x1000,6,0x0\n"
                             "0,1:00:00.0,free,0x1000,0,0x0\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,0\n!,alloc,4096\na,1,6\n!,alloc,4096\nf,1\nf,0\n",
                        NULL);
}

static void streams_are_told_apart(void **state)
{
    struct import_report report;
    format_rig_converts(*state,
                        HEAD "3,1:00:00.0,allocate,0x1000,1,0x1\n" /* the default stream */
                             "3,1:00:00.0,allocate,0x2000,2,0x2\n" /* that of thread 3 */
                             "4,1:00:00.0,allocate,0x3000,3,0x2\n" /* that of thread 4 */
                             "3,1:00:00.0,free,0x3000,3,0x2\n"     /* another stream than its own */
                             "3,1:00:00.0,free,0x1000,1,0x0\n",
                        "# recorder: rmm\n# let-go: final\n"
                        "t,0\na,0,1,thread=3\n!,alloc,4096\na,1,2,1,thread=3\n!,alloc,8192\n"
                        "a,2,3,2,thread=4\n!,alloc,12288\nr,2,1,thread=3\nf,0,thread=3\n",
                        &report);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "3 rows are on the per-thread default stream 0x2"));
}

static void wide_threads_are_counted(void **state)
{
    format_rig_converts(*state,
                        HEAD "140573312345856,1:00:00.0,allocate,0x1000,1,0x0\n"
                             "0x7fd9b0ff9701,1:00:00.0,allocate,0x2000,1,0x0\n"
                             "140573312345856,1:00:00.0,free,0x1000,1,0x0\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,1,thread=1\n!,alloc,4096\na,1,1,thread=2\n!,alloc,8192\n"
                        "f,0,thread=1\n",
                        NULL);
}

static void bad_rows_are_refused(void **state)
{
    static const struct format_rig_refusal cases[] = {
        {HEAD, ": the log holds no rows"},
        {HEAD "0,1:00:00,allocate,0x1,1\n", ":2: there are 5 columns where 6 are wanted"},
        {HEAD "0,1:00:00,allocate,0x1,1,0x0,\n", ":2: there are 7 columns"},
        {HEAD "0,1:00:00,allocate,0x1,1,0x0\nx,1:00:00,allocate,0x1,1,0x0\n", ":3: Thread: \"x\""},
        {HEAD "0,25:00:00,allocate,0x1,1,0x0\n", ":2: Time: \"25:00:00\" is no time"},
        {HEAD "0,noon,allocate,0x1,1,0x0\n", ":2: Time"},
        {HEAD "0,2025-13-01 1:00:00,allocate,0x1,1,0x0\n", ":2: Time"},
        {HEAD "0,1:00:00,reserve,0x1,1,0x0\n", ":2: Action: \"reserve\" is not known"},
        {HEAD "0,1:00:00,allocate,1x,1,0x0\n", ":2: Pointer: \"1x\" is no address"},
        {HEAD "0,1:00:00,allocate,0xffffffffffffffffff,1,0x0\n", ":2: Pointer"},
        {HEAD "0,1:00:00,allocate,0x1,-1,0x0\n", ":2: Size"},
        {HEAD "0,1:00:00,allocate,0x1,1,\n", ":2: Stream"},
        {HEAD "0,1:00:00,allocate,0x1,1152921504606846976,0x0\n", ":2: a block of 11529215046068"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, format_rig_open, format_rig_close)
    const struct CMUnitTest tests[] = {
        TEST(rows_become_events),
        TEST(first_line_may_be_missing),
        TEST(midnight_passes),
        TEST(dates_and_older_times),
        TEST(failures_are_kept),
        TEST(a_free_meets_the_last_block_there),
        TEST(empty_blocks_share_addresses),
        TEST(streams_are_told_apart),
        TEST(wide_threads_are_counted),
        TEST(bad_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
