/* Logs of requests and frees (RMM, STAlloc, Umpire): their rows as events, the report, errors. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

/* ---- RMM ----------------------------------------------------------------------------- */

#define RMM_HEAD "Thread,Time,Action,Pointer,Size,Stream\n"

TRACE_TEST(rmm_rows_become_events)
{
    struct import_report report;
    format_rig_converts(*state,
                        RMM_HEAD "11,14:21:19.998533,allocate,0x30a000000,256,0x0\n"
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

TRACE_TEST(rmm_first_line_may_be_missing)
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

TRACE_TEST(rmm_midnight_passes)
{
    struct import_report report;
    format_rig_converts(*state,
                        RMM_HEAD "0,23:59:59.999999,allocate,0x1000,1,0x0\n"
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

TRACE_TEST(rmm_dates_and_older_times)
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
                       RMM_HEAD "0,%s,allocate,0x1000,1,0x0\n0,%s,free,0x1000,1,0x0\n", times[i][0],
                       times[i][1]);
        format_rig_converts(*state, text,
                            "# recorder: rmm\nt,0\na,0,1\n!,alloc,4096\nt,1500000000\nf,0\n", NULL);
    }
}

TRACE_TEST(rmm_failures_are_kept)
{
    struct import_report report;
    format_rig_converts(*state,
                        RMM_HEAD "0,1:00:00.0,allocate failure,(nil),99999999999,0x0\n"
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

TRACE_TEST(rmm_a_free_meets_the_last_block_there)
{
    struct import_report report;
    format_rig_converts(*state,
                        RMM_HEAD "0,1:00:00.0,allocate,0x1000,5,0x0\n"
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

TRACE_TEST(rmm_empty_blocks_share_addresses)
{
    format_rig_converts(*state,
                        RMM_HEAD "0,1:00:00.0,allocate,0x1000,0,0x0\n"
                                 "0,1:00:00.0,allocate,0x1000,6,0x0\n"
                                 "0,1:00:00.0,free,0x1000,6,0x0\n"
                                 "0,1:00:00.0,free,0x1000,0,0x0\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,0\n!,alloc,4096\na,1,6\n!,alloc,4096\nf,1\nf,0\n",
                        NULL);
}

TRACE_TEST(rmm_streams_are_told_apart)
{
    struct import_report report;
    format_rig_converts(*state,
                        RMM_HEAD "3,1:00:00.0,allocate,0x1000,1,0x1\n" /* the default stream */
                                 "3,1:00:00.0,allocate,0x2000,2,0x2\n" /* that of thread 3 */
                                 "4,1:00:00.0,allocate,0x3000,3,0x2\n" /* that of thread 4 */
                                 "3,1:00:00.0,free,0x3000,3,0x2\n" /* another stream than its own */
                                 "3,1:00:00.0,free,0x1000,1,0x0\n",
                        "# recorder: rmm\n# let-go: final\n"
                        "t,0\na,0,1,thread=3\n!,alloc,4096\na,1,2,1,thread=3\n!,alloc,8192\n"
                        "a,2,3,2,thread=4\n!,alloc,12288\nr,2,1,thread=3\nf,0,thread=3\n",
                        &report);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "3 rows are on the per-thread default stream 0x2"));
}

TRACE_TEST(rmm_wide_threads_are_counted)
{
    format_rig_converts(*state,
                        RMM_HEAD "140573312345856,1:00:00.0,allocate,0x1000,1,0x0\n"
                                 "0x7fd9b0ff9701,1:00:00.0,allocate,0x2000,1,0x0\n"
                                 "140573312345856,1:00:00.0,free,0x1000,1,0x0\n",
                        "# recorder: rmm\n"
                        "t,0\na,0,1,thread=1\n!,alloc,4096\na,1,1,thread=2\n!,alloc,8192\n"
                        "f,0,thread=1\n",
                        NULL);
}

TRACE_TEST(rmm_bad_rows_are_refused)
{
    static const struct format_rig_refusal cases[] = {
        {RMM_HEAD, ": the log holds no rows"},
        {RMM_HEAD "0,1:00:00,allocate,0x1,1\n", ":2: there are 5 columns instead of 6"},
        {RMM_HEAD "0,1:00:00,allocate,0x1,1,0x0,\n", ":2: there are 7 columns"},
        {RMM_HEAD "0,1:00:00,allocate,0x1,1,0x0\nx,1:00:00,allocate,0x1,1,0x0\n",
         ":3: Thread: \"x\""},
        {RMM_HEAD "0,25:00:00,allocate,0x1,1,0x0\n", ":2: Time: \"25:00:00\" is not a time"},
        {RMM_HEAD "0,noon,allocate,0x1,1,0x0\n", ":2: Time"},
        {RMM_HEAD "0,2025-13-01 1:00:00,allocate,0x1,1,0x0\n", ":2: Time"},
        {RMM_HEAD "0,1:00:00,reserve,0x1,1,0x0\n", ":2: Action: \"reserve\" is not known"},
        {RMM_HEAD "0,1:00:00,allocate,1x,1,0x0\n", ":2: Pointer: \"1x\" is not an address"},
        {RMM_HEAD "0,1:00:00,allocate,0xffffffffffffffffff,1,0x0\n", ":2: Pointer"},
        {RMM_HEAD "0,1:00:00,allocate,0x1,-1,0x0\n", ":2: Size"},
        {RMM_HEAD "0,1:00:00,allocate,0x1,1,\n", ":2: Stream"},
        {RMM_HEAD "0,1:00:00,allocate,0x1,1152921504606846976,0x0\n",
         ":2: a block of 11529215046068"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

/* ---- STAlloc ------------------------------------------------------------------------- */

TRACE_TEST(stalloc_lines_become_events)
{
    struct import_report report;
    format_rig_converts(*state,
                        "1 0x1000 1024 0\n"
                        "Iteration Index : 0\n"
                        "micro-batch : F\n"
                        "decoder.layers.0.mlp->ParallelMLP Layer : F-start\n"
                        "1 0x2000 512 0x5581\n"
                        "0 0x2000 512 0x5581\n"
                        "Iteration Index : 1\n"
                        "1 0x2000 256 0\n"
                        "Iteration Index : end\n"
                        "0 0x2000 256 0\n"
                        "0 0x1000 1024 0\n",
                        "# recorder: stalloc\n"
                        "a,0,1024\n!,alloc,4096\nm,micro-batch:F\n"
                        "m,decoder.layers.0.mlp->ParallelMLP_Layer:F-start\n"
                        "a,1,512,1\n!,alloc,8192\nf,1\nm,step\na,2,256\n!,alloc,8192\nm,step\n"
                        "f,2\nf,0\n",
                        &report);
    assert_int_equal(report.records, 6);
    assert_int_equal(report.guess_count, 0);
}

/* The first line may be of either kind; a mark holds no comma and no equals sign. */
TRACE_TEST(stalloc_a_file_may_begin_with_a_place)
{
    format_rig_converts(*state,
                        "token_dispatcher preprocess: F-start, n=2\r\n"
                        "1 0x1000 8 0\r\n",
                        "# recorder: stalloc\n"
                        "m,token_dispatcher_preprocess:F-start_n_2\na,0,8\n!,alloc,4096\n",
                        NULL);
}

TRACE_TEST(stalloc_bad_lines_are_refused)
{
    static const struct format_rig_refusal cases[] = {
        {"1 0x1000 8 0\n1 0x1000 8\n", ":2: there are 3 words instead of 4"},
        {"1 0x1000 8 0\n1 0x1000 8 0 0\n", ":2: there are 5 words"},
        {"1 0x1000 8 0\n2 0x1000 8 0\n", ":2: \"2\" is neither 1 (a request) nor 0 (a free)"},
        {"1 0x1000 8 0\n1 here 8 0\n", ":2: address: \"here\" is not an address"},
        {"1 0x1000 8 0\n1 0x1000 -8 0\n", ":2: size"},
        {"1 0x1000 8 0\n1 0x1000 8 s\n", ":2: stream"},
        {"1 0x1000 8 0\nsomething else\n", ":2: there are 2 words"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

/* ---- RMM's debug log --------------------------------------------------------------------- */

#define DEBUG(thread, time, level, message)                                                        \
    "[" thread "][14:21:19:" time "][" level "] " message "\n"

TRACE_TEST(rmm_debug_rows_become_events)
{
    struct import_report report;
    format_rig_converts(
        *state,
        DEBUG("  7", "000001", "info  ", "----- RMM LOG BEGIN [PTDS DISABLED] -----")
            DEBUG("  7", "000002", "debug ", "[A][Stream 0x1][Upstream 1048576B]")
                DEBUG("  7", "000003", "trace ", "[A][stream 0x1][100B]")
                    DEBUG("  7", "000004", "trace ", "[A][stream 0x1][256B][0x1000]") DEBUG(
                        "  7", "000005", "trace ",
                        "[Summary][Free lists: 1][Blocks: 1][Max Block: 9][Total Free: 9]")
                        DEBUG("  7", "000006", "trace ", "[A][stream 0x55][512B]") DEBUG(
                            "  7", "000007", "debug ", "[A][Stream 0x55][512B][Merged stream 0x1]")
                            DEBUG("  7", "000008", "trace ", "[A][stream 0x55][512B][0x2000]")
                                DEBUG("  7", "000009", "trace ", "[D][stream 0x1][100B][0x1000]"),
        "# recorder: rmm\nt,0\na,0,100,thread=7\n!,alloc,4096\nt,4000\na,1,512,1,thread=7\n"
        "!,alloc,8192\nt,5000\nf,0,thread=7\n",
        &report);
    assert_int_equal(report.records, 9);
    assert_int_equal(report.left_out, 3);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "1 times a pool asked its upstream"));
}

TRACE_TEST(rmm_debug_requests_that_fail)
{
    struct import_report report;
    format_rig_converts(
        *state,
        DEBUG("7", "000001", "trace ", "[A][stream 0][99999999B]")
            DEBUG("7", "000002", "error ",
                  "[A][Stream 0][Upstream 99999999B][FAILURE maximum pool size exceeded: x]")
                DEBUG("7", "000003", "trace ", "[A][stream 0][64B]")
                    DEBUG("8", "000004", "trace ", "[A][stream 0][64B]")
                        DEBUG("8", "000005", "trace ", "[A][stream 0][256B][0x2000]")
                            DEBUG("7", "000006", "trace ", "[A][stream 0][256B][0x1000]")
                                DEBUG("7", "000007", "trace ", "[A][stream 0][8888B]"),
        "# recorder: rmm\n# complete: no\n# let-go: final\nt,0\np,0,99999999,thread=7\n!,oom\nr,0\n"
        "t,4000\na,1,64,thread=8\n!,alloc,8192\nt,5000\na,2,64,thread=7\n!,alloc,4096\nt,6000\n"
        "a,3,8888,thread=7\n!,oom\nr,3\n",
        &report);
    assert_int_equal(report.failures, 2);
    assert_true(report.ends_in_failure);
}

TRACE_TEST(rmm_debug_log_among_other_lines)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "some warning\n[1/3] building\n" DEBUG("7", "000003", "trace ", "[A][stream 0x2][0B]")
            DEBUG("7", "000004", "trace ", "[A][stream 0x2][100B]") "another\n" DEBUG(
                "7", "000005", "trace ", "[A][stream 0x2][256B][0x1000]"),
        "# recorder: rmm\nt,0\na,0,100,1,thread=7\n!,alloc,4096\n", &report);
    assert_int_equal(report.left_out, 3);
    assert_non_null(strstr(report.guesses[0], "1 requests are of 0 bytes"));
}

TRACE_TEST(rmm_bad_debug_lines_are_refused)
{
    static const struct format_rig_refusal cases[] = {
        {DEBUG("7", "000001", "debug ", "[A][Stream 0x1][Upstream 1048576B]")
             DEBUG("7", "000002", "error ",
                   "[A][Stream 0x1][Upstream 9B][FAILURE maximum pool size exceeded: x]"),
         ": this debug log of RMM has no requests"},
        {DEBUG("7", "000001", "trace ", "[A][stream 0][64B]")
             DEBUG("7", "000002", "trace ", "[A][stream 0][64]"),
         ":2: size: \"64\" is not a number of bytes"},
        {DEBUG("7", "000001", "trace ", "[A][stream here][64B]"), ":1: stream: \"here\""},
        {DEBUG("7", "000001", "trace ", "[A][stream 0][64B][there]"), ":1: pointer: \"there\""},
        {DEBUG("7", "000001", "trace ", "[D][stream 0][64B]"), ":1: a free has no pointer"},
        {DEBUG("7", "000001", "trace ", "[A][stream 0][-4B]"), ":1: size: "},
        {DEBUG("7", "000001", "trace ", "[A][stream 0]"), ":1: a stream and a size in brackets"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}

/* ---- Umpire -------------------------------------------------------------------------- */

/* A line of the first layout, and one of the second. */
#define FIRST(time, event, rest)                                                                   \
    "{ \"kind\":\"replay\", \"uid\":7, \"timestamp\":" time ", \"event\": \"" event "\", " rest    \
    " }\n"
#define SECOND(time, name, rest)                                                                   \
    "{\"category\":\"operation\",\"name\":\"" name "\"," rest ",\"timestamp\":" time "}\n"

#define RESOURCE(name, ref)                                                                        \
    FIRST("1", "makeMemoryResource",                                                               \
          "\"payload\": { \"name\": \"" name "\" }, \"result\": \"" ref "\"")
#define ALLOCATE(time, ref, size)                                                                  \
    FIRST(time, "allocate", "\"payload\": { \"allocator_ref\": \"" ref "\", \"size\": " size " }")
#define ALLOCATED(time, ref, size, address)                                                        \
    FIRST(time, "allocate",                                                                        \
          "\"payload\": { \"allocator_ref\": \"" ref "\", \"size\": " size " }, "                  \
          "\"result\": { \"memory_ptr\": \"" address "\" }")
#define DEALLOCATE(time, ref, address)                                                             \
    FIRST(time, "deallocate",                                                                      \
          "\"payload\": { \"allocator_ref\": \"" ref "\", \"memory_ptr\": \"" address "\" }")
#define REALLOCATED(time, address, size, result)                                                   \
    FIRST(time, "reallocate",                                                                      \
          "\"payload\": { \"ptr\": \"" address "\", \"size\": " size " }" result)
#define POOL(result)                                                                               \
    FIRST("2", "makeAllocator",                                                                    \
          "\"payload\": { \"type\":\"umpire::strategy::DynamicPool\", "                            \
          "\"with_introspection\":true, \"allocator_name\":\"pool\", \"args\": "                   \
          "[ \"DEVICE_base\", 1024 ] }" result)

TRACE_TEST(umpire_the_first_layout)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "# a comment\n" FIRST("1", "version",
                              "\"payload\": { \"major\":0, \"minor\":3, \"patch\":3 }")
            RESOURCE("HOST", "0x1") RESOURCE("DEVICE", "0x2") RESOURCE("PINNED", "0x3") POOL("")
                POOL(", \"result\": { \"allocator_ref\":\"0x9\" }") ALLOCATE("100", "0x9", "64")
                    ALLOCATED("101", "0x9", "64", "0x1000") ALLOCATED("102", "0x1", "7", "0x77")
                        ALLOCATED("103", "0x3", "32", "0x2000") DEALLOCATE("104", "0x1", "0x77")
                            DEALLOCATE("105", "0x9", "0x1000") FIRST(
                                "106", "release", "\"payload\": { \"allocator_ref\": \"0x9\" }"),
        "# recorder: umpire 0.3.3\n"
        "t,0\na,0,64,tag=pool\n!,alloc,4096\nt,2\na,1,32,tag=PINNED,space=pinned\n!,alloc,8192\n"
        "t,4\nf,0\nt,5\nc\n",
        &report);
    assert_int_equal(report.records, 13);
    assert_int_equal(report.left_out, 2);
    assert_int_equal(report.guess_count, 1);
    assert_string_equal(report.guesses[0], "1 requests of host memory are left out");
}

TRACE_TEST(umpire_requests_without_result_failed)
{
    struct import_report report;
    format_rig_converts(*state,
                        RESOURCE("DEVICE", "0x2") ALLOCATE("10", "0x2", "99999")
                            ALLOCATE("11", "0x2", "8") ALLOCATED("12", "0x2", "8", "0x1000")
                                ALLOCATE("13", "0x2", "88888"),
                        "# recorder: umpire\n# complete: no\n# let-go: final\n"
                        "t,0\np,0,99999,tag=DEVICE\n!,oom\nr,0\nt,2\na,1,8,tag=DEVICE\n"
                        "!,alloc,4096\nt,3\na,2,88888,tag=DEVICE\n!,oom\nr,2\n",
                        &report);
    assert_int_equal(report.failures, 2);
    assert_true(report.ends_in_failure);
}

TRACE_TEST(umpire_reallocations)
{
    format_rig_converts(
        *state,
        RESOURCE("DEVICE", "0x2") ALLOCATED("10", "0x2", "8", "0x1000")
            REALLOCATED("11", "0x1000", "16", "")
                REALLOCATED("12", "0x1000", "16", ", \"result\": { \"memory_ptr\": \"0x2000\" }")
        /* this one has its parts besides */
        REALLOCATED("13", "0x2000", "32", "") ALLOCATED("14", "0x2", "32", "0x3000")
            DEALLOCATE("15", "0x2", "0x2000")
                REALLOCATED("16", "0x2000", "32", ", \"result\": { \"memory_ptr\": \"0x3000\" }"),
        "# recorder: umpire\n"
        "t,0\na,0,8,tag=DEVICE\n!,alloc,4096\nt,2\nf,0\na,1,16,tag=DEVICE\n"
        "!,alloc,8192\nt,4\na,2,32,tag=DEVICE\n!,alloc,12288\nt,5\nf,1\n",
        NULL);
}

/* Records of a reallocation in the second layout; the second one has no size. */
#define SECOND_RESOURCE                                                                            \
    SECOND("1", "make_memory_resource",                                                            \
           "\"string_args\":{\"allocator_ref\":\"0x2\"},\"tags\":{\"allocator_name\":\"DEVICE\"}")
#define SECOND_ALLOCATE(time, size, address)                                                       \
    SECOND(time, "allocate",                                                                       \
           "\"numeric_args\":{\"size\":" size "},\"string_args\":{\"allocator_ref\":\"0x2\","      \
           "\"pointer\":\"" address "\"}")
#define SECOND_DEALLOCATE(time, address)                                                           \
    SECOND(time, "deallocate",                                                                     \
           "\"string_args\":{\"allocator_ref\":\"0x2\",\"pointer\":\"" address "\"}")
#define REALLOCATE_FIRST(time, address, size)                                                      \
    SECOND(time, "reallocate",                                                                     \
           "\"numeric_args\":{\"size\":" size "},\"string_args\":{\"allocator_ref\":\"0x2\","      \
           "\"current_ptr\":\"" address "\"}")
#define REALLOCATE_SECOND(time, address)                                                           \
    SECOND(time, "reallocate",                                                                     \
           "\"numeric_args\":{},\"string_args\":{\"allocator_ref\":\"0x2\",\"new_ptr\":\"" address \
           "\"}")

TRACE_TEST(umpire_reallocations_of_the_second_layout)
{
    struct import_report report;
    /* its request and free are logged between the two records */
    format_rig_converts(
        *state,
        SECOND_RESOURCE SECOND_ALLOCATE("2", "128", "0x1000") REALLOCATE_FIRST("3", "0x1000", "256")
            SECOND_ALLOCATE("4", "256", "0x2000") SECOND_DEALLOCATE("5", "0x1000")
                REALLOCATE_SECOND("6", "0x2000") SECOND_DEALLOCATE("7", "0x2000"),
        "# recorder: umpire\nt,0\na,0,128,tag=DEVICE\n!,alloc,4096\nt,2\n"
        "a,1,256,tag=DEVICE\n!,alloc,8192\nt,3\nf,0\nt,5\nf,1\n",
        &report);
    assert_int_equal(report.failures, 0);
    /* they are not, as on the host */
    format_rig_converts(*state,
                        SECOND_RESOURCE SECOND_ALLOCATE("2", "128", "0x1000")
                            REALLOCATE_FIRST("3", "0x1000", "256") REALLOCATE_SECOND("6", "0x2000")
                                REALLOCATE_FIRST("7", "0x2000", "64")
                                    REALLOCATE_SECOND("8", "0x2000"),
                        "# recorder: umpire\nt,0\na,0,128,tag=DEVICE\n!,alloc,4096\nt,4\nf,0\n"
                        "a,1,256,tag=DEVICE\n!,alloc,8192\nt,6\nf,1\na,2,64,tag=DEVICE\n"
                        "!,alloc,8192\n",
                        NULL);
    /* the second record names no allocator */
    format_rig_converts(
        *state,
        SECOND_RESOURCE SECOND_ALLOCATE("2", "128", "0x1000") REALLOCATE_FIRST("3", "0x1000", "256")
            SECOND("4", "reallocate", "\"string_args\":{\"new_ptr\":\"0x2000\"}"),
        "# recorder: umpire\nt,0\na,0,128,tag=DEVICE\n!,alloc,4096\nt,2\nf,0\n"
        "a,1,256,tag=DEVICE\n!,alloc,8192\n",
        NULL);
    /* of no block, and to 0 bytes at the address that all blocks of 0 bytes have */
    format_rig_converts(*state,
                        SECOND_RESOURCE REALLOCATE_FIRST("2", "0", "0")
                            SECOND_ALLOCATE("3", "0", "0x40") REALLOCATE_SECOND("4", "0x40")
                                REALLOCATE_FIRST("5", "0x40", "0") SECOND_DEALLOCATE("6", "0x40")
                                    SECOND_ALLOCATE("7", "0", "0x40") REALLOCATE_SECOND("8", "0x40")
                                        SECOND_DEALLOCATE("9", "0x40"),
                        "# recorder: umpire\nt,0\na,0,0,tag=DEVICE\n!,alloc,64\nt,3\nf,0\nt,4\n"
                        "a,1,0,tag=DEVICE\n!,alloc,64\nt,6\nf,1\n",
                        &report);
    assert_int_equal(report.unmatched_frees + report.double_frees, 0);
}

TRACE_TEST(umpire_reallocations_that_fail_or_are_cut)
{
    struct import_report report;
    format_rig_converts(*state,
                        SECOND_RESOURCE SECOND_ALLOCATE("2", "128", "0x1000")
                            REALLOCATE_FIRST("3", "0x1000", "9999"),
                        "# recorder: umpire\n# complete: no\n# let-go: final\nt,0\n"
                        "a,0,128,tag=DEVICE\n!,alloc,4096\nt,1\na,1,9999,tag=DEVICE\n!,oom\nr,1\n",
                        &report);
    assert_int_equal(report.failures, 1);
    format_rig_converts(*state,
                        SECOND_RESOURCE REALLOCATE_SECOND("2", "0x2000")
                            SECOND_ALLOCATE("3", "8", "0x1000"),
                        "# recorder: umpire\nt,0\na,0,8,tag=DEVICE\n!,alloc,4096\n", &report);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "1 reallocations have no first record"));
}

/* Two reallocations of which the first one is done first: the other keeps its own record. */
TRACE_TEST(umpire_reallocations_within_each_other)
{
    format_rig_converts(
        *state,
        RESOURCE("DEVICE", "0x2") ALLOCATED("10", "0x2", "8", "0x1000") ALLOCATED("11", "0x2", "16",
                                                                                  "0x2000")
            REALLOCATED("12", "0x1000", "32", "") REALLOCATED("13", "0x2000", "64", "") REALLOCATED(
                "14", "0x1000", "32", ", \"result\": { \"memory_ptr\": \"0x3000\" }")
                REALLOCATED("15", "0x2000", "64", ", \"result\": { \"memory_ptr\": \"0x4000\" }"),
        "# recorder: umpire\nt,0\na,0,8,tag=DEVICE\n!,alloc,4096\nt,1\na,1,16,tag=DEVICE\n"
        "!,alloc,8192\nt,4\nf,0\na,2,32,tag=DEVICE\n!,alloc,12288\nt,5\nf,1\n"
        "a,3,64,tag=DEVICE\n!,alloc,16384\n",
        NULL);
}

TRACE_TEST(umpire_a_log_of_host_memory_is_a_test)
{
    struct import_report report;
    format_rig_converts(*state,
                        RESOURCE("HOST", "0x1") ALLOCATED("10", "0x1", "0", "0x1000")
                            ALLOCATED("11", "0x1", "8", "0x1000") DEALLOCATE("12", "0x1", "0x1000")
                                DEALLOCATE("13", "0x1", "0x1000"),
                        "# recorder: umpire\n"
                        "t,0\na,0,0,tag=HOST\n!,alloc,4096\nt,1\na,1,8,tag=HOST\n!,alloc,4096\n"
                        "t,2\nf,1\nt,3\nf,0\n",
                        &report);
    assert_int_equal(report.guess_count, 1);
    assert_string_equal(
        report.guesses[0],
        "2 requests of host memory are taken for device memory, because there are no others");
}

TRACE_TEST(umpire_the_second_layout)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "{\"category\":\"metadata\",\"name\":\"version\",\"numeric_args\":{\"major\":2023,"
        "\"minor\":6,\"patch\":0},\"tags\":{},\"timestamp\":5}\n" SECOND(
            "6", "make_memory_resource",
            "\"string_args\":{\"allocator_ref\":\"0x11\"},\"tags\":{\"allocator_name\":\"UM\"}")
            SECOND("7", "make_allocator",
                   "\"string_args\":{\"allocator_ref\":\"0x12\",\"arg0\":\"DEVICE::1\"},\"tags\":"
                   "{\"allocator_name\":\"quick, pool\"}")
                SECOND("8", "allocate",
                       "\"numeric_args\":{\"size\":64},\"string_args\":{\"allocator_ref\":\"0x12\","
                       "\"pointer\":\"0x2000\"}")
                    SECOND("9", "allocate",
                           "\"numeric_args\":{\"size\":16},\"string_args\":{\"allocator_ref\":"
                           "\"0x11\",\"pointer\":\"0x4000\"}")
                        SECOND("10", "named_allocate",
                               "\"numeric_args\":{\"size\":64},\"string_args\":{\"allocator_ref\":"
                               "\"0x12\",\"pointer\":\"(nil)\"}")
                            SECOND("11", "deallocate",
                                   "\"string_args\":{\"allocator_ref\":\"0x12\",\"pointer\":"
                                   "\"0x2000\"}"),
        "# recorder: umpire 2023.6.0\n# complete: no\n# let-go: final\n"
        "t,0\na,0,64,tag=quick_ pool,device=1\n!,alloc,8192\nt,2\na,1,64,tag=quick_ pool,device=1\n"
        "!,oom\nr,1\nt,3\nf,0\n",
        &report);
    assert_int_equal(report.guess_count, 1);
    assert_string_equal(report.guesses[0], "1 requests of managed memory are left out");
}

TRACE_TEST(umpire_what_came_before_has_no_size)
{
    struct import_report report;
    format_rig_converts(*state, RESOURCE("DEVICE", "0x2") DEALLOCATE("10", "0x2", "0x1000"),
                        "# recorder: umpire\na,0,0,initial=yes\n!,alloc,4096\nt,0\nf,0\n", &report);
    assert_int_equal(report.unmatched_frees, 1);
    assert_int_equal(report.guess_count, 1);
    assert_non_null(strstr(report.guesses[0], "of a size that the file does not say"));
}

TRACE_TEST(umpire_bad_lines_are_refused)
{
    static const struct format_rig_refusal cases[] = {
        {RESOURCE("DEVICE", "0x2") "{ \"kind\":\"replay\"\n", ":2: this is not JSON"},
        {RESOURCE("DEVICE", "0x2") "[]\n", ":2: there is neither an event nor a name"},
        {RESOURCE("DEVICE", "0x2") ALLOCATED("1", "0x2", "-1", "0x1"), ":2: size: an integer"},
        {RESOURCE("DEVICE", "0x2") ALLOCATED("1", "0x2", "\"8\"", "0x1"), ":2: size: an integer"},
        {RESOURCE("DEVICE", "0x2") ALLOCATED("1", "0x2", "8", "there"),
         ":2: memory_ptr: \"there\""},
        {RESOURCE("DEVICE", "2x"), ":1: \"2x\" is not an address"},
        {SECOND_RESOURCE SECOND(
             "2", "reallocate",
             "\"string_args\":{\"allocator_ref\":\"0x2\",\"current_ptr\":\"0\"}"),
         ":2: size: an integer"},
        {SECOND_RESOURCE REALLOCATE_FIRST("2", "here", "8"), ":2: current_ptr: \"here\""},
        {SECOND_RESOURCE REALLOCATE_SECOND("2", "there"), ":2: new_ptr: \"there\""},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
}
