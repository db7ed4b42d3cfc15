/* Logs of requests and frees (RMM, STAlloc, Umpire): their rows as events, the report, errors. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

/* ---- RMM ----------------------------------------------------------------------------- */

FORMAT_CASES("format_logs", rmm_rows_become_events)

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
    for (size_t i = 0; i < COUNT(others); i++) {
        struct trace_source *source;
        struct ar_error error;
        assert_int_not_equal(trace_rig_text(*state, others[i], &source, &error), AR_OK);
        assert_non_null(strstr(error.text, "no trace"));
    }
}

FORMAT_CASES("format_logs", rmm_midnight_passes)
FORMAT_CASES("format_logs", rmm_dates_and_older_times)
FORMAT_CASES("format_logs", rmm_failures_are_kept)
FORMAT_CASES("format_logs", rmm_a_free_meets_the_last_block_there)
FORMAT_CASES("format_logs", rmm_empty_blocks_share_addresses)
FORMAT_CASES("format_logs", rmm_streams_are_told_apart)
FORMAT_CASES("format_logs", rmm_wide_threads_are_counted)
FORMAT_REFUSES("format_logs", rmm_bad_rows_are_refused)

/* ---- STAlloc ------------------------------------------------------------------------- */

FORMAT_CASES("format_logs", stalloc_lines_become_events)
FORMAT_CASES("format_logs", stalloc_a_file_may_begin_with_a_place)
FORMAT_REFUSES("format_logs", stalloc_bad_lines_are_refused)

/* ---- RMM's debug log --------------------------------------------------------------------- */

FORMAT_CASES("format_logs", rmm_debug_rows_become_events)
FORMAT_CASES("format_logs", rmm_debug_requests_that_fail)
FORMAT_CASES("format_logs", rmm_debug_log_among_other_lines)
FORMAT_REFUSES("format_logs", rmm_bad_debug_lines_are_refused)

/* ---- Umpire -------------------------------------------------------------------------- */

FORMAT_CASES("format_logs", umpire_the_first_layout)
FORMAT_CASES("format_logs", umpire_requests_without_result_failed)
FORMAT_CASES("format_logs", umpire_reallocations)

FORMAT_CASES("format_logs", umpire_reallocations_of_the_second_layout)
FORMAT_CASES("format_logs", umpire_reallocations_that_fail_or_are_cut)
FORMAT_CASES("format_logs", umpire_reallocations_within_each_other)
FORMAT_CASES("format_logs", umpire_a_log_of_host_memory_is_a_test)
FORMAT_CASES("format_logs", umpire_the_second_layout)
FORMAT_CASES("format_logs", umpire_what_came_before_has_no_size)
FORMAT_REFUSES("format_logs", umpire_bad_lines_are_refused)
