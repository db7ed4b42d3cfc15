/* Reports of runs for other programs, compared as whole texts: LaTeX, JUnit XML, OpenMetrics. */
#include "bench/report/result_writers.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

/* Writes so many records by one of the writers. */
static void write_records(void (*write)(FILE *stream, const struct results *results), FILE *stream,
                          const struct run_record *records, size_t count)
{
    CLOSED(results_close) struct results results;
    assert_ok(results_open(&results, records, count, &test_error));
    write(stream, &results);
}

TEST(latex_sets_any_text_as_it_is)
{
    struct capture capture;
    latex_text(capture_begin(&capture), "a_b\\{50%} $x^2$ #1 & ~/<f>|\"'`");
    capture_is(&capture,
               "a\\_b\\textbackslash{}\\{50\\%\\} \\$x\\textasciicircum{}2\\$ \\#1 \\& "
               "\\textasciitilde{}/\\textless{}f\\textgreater{}\\textbar{}\\textquotedbl{}"
               "\\textquotesingle{}\\textasciigrave{}");
}

TEST(a_table_for_latex_has_a_caption_and_rules)
{
    static const struct table_column columns[] = {
        {"policy", "", true, 0}, {"held", "MiB", false, 0}, {"100%", "", false, 0}};
    struct table *table = table_create(columns, 3);
    struct capture capture;
    assert_non_null(table);
    table_label(table, "held", "100% of it.");
    for (int group = 1; group <= 2; group++) {
        table_heading(table, "work_%d", group);
        table_cell(table, "torch");
        table_cell(table, "%d", group);
        table_cell(table, "-");
        table_cell(table, "torch:expandable");
        table_cell(table, "3");
        table_cell(table, "4");
        table_cell(table, "vmm");
        table_rest(table, "DNF @ %d", group);
    }
    assert_ok(table_print(table, capture_begin(&capture), TABLE_LATEX, &test_error));
#define GROUP(n)                                                                                   \
    "\\begin{table}\n\\centering\n\\caption{work\\_" n                                             \
    ". 100\\% of it.}\n\\label{tab:held-work-" n "}\n"                                             \
    "\\footnotesize\\setlength{\\tabcolsep}{3pt}\n\\begin{tabular}{@{}lrr@{}}\n\\toprule\n"        \
    "policy & held & 100\\% \\\\\n & MiB &  \\\\\n\\midrule\n"                                     \
    "torch & " n " & - \\\\\n\\multicolumn{3}{l}{torch:expandable} \\\\\n & 3 & 4 \\\\\nvmm & "    \
    "\\multicolumn{2}{l}{DNF @ " n "} \\\\\n"                                                      \
    "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    capture_is(&capture, GROUP("1") GROUP("2"));
#undef GROUP
    table_close(table);
}

/* One that passed, one that failed, one that died, one that the device cannot serve. */
static void make_records(struct run_record records[4])
{
    static const char *const policies[] = {"torch", "a<\"b\">&'c'", "vmm", "async"};
    for (int i = 0; i < 4; i++) {
        records[i] = (struct run_record){
            .policy_spec = policies[i],
            .workload_spec = "dir\\file",
            .device_spec = i < 3 ? "sim" : "cuda",
            .passed = i == 0,
            .workload.name = "tape",
            .seed = 1,
        };
        snprintf(records[i].device.kind, sizeof records[i].device.kind, i < 3 ? "sim" : "cuda");
    }
    metric_set(&records[0].metrics, METRIC_peak_physical_bytes, 4096);
    metric_set(&records[0].metrics, METRIC_device_time_ns, 1500000000);
    metric_set_real(&records[0].metrics, METRIC_overhead, 1.25);
    metric_set(&records[1].metrics, METRIC_peak_physical_bytes, 100);
    records[1].first_failed_event = 7;
    records[1].first_failed_bytes = 512;
    records[1].cause = REPLAY_CAUSE_CAPACITY;
    records[2].end = RUN_CRASHED;
    snprintf(records[2].detail, sizeof records[2].detail, "crashed: signal 11");
    records[3].end = RUN_NOT_STARTED;
    records[3].unsupported = true;
    snprintf(records[3].detail, sizeof records[3].detail, "not started: \x01 no pool");
}

TEST(junit_tells_failures_errors_and_skips_apart)
{
    struct cases block = {0};
    const char *wanted =
        cases_text(&block, "run_reports", "junit_tells_failures_errors_and_skips_apart");
    FREED struct run_record *records = calloc(4, sizeof *records);
    struct capture capture;
    assert_non_null(records);
    make_records(records);
    write_records(junit_xml_write, capture_begin(&capture), records, 4);
    capture_is(&capture, wanted);
}

#define LABELS(policy, device)                                                                     \
    "{policy=\"" policy "\",workload=\"dir\\\\file\",device=\"" device                             \
    "\",frees=\"ordered\",host=\"none\",repetition=\"0\",seed=\"1\"}"
#define TORCH LABELS("torch", "sim")
#define ODD   LABELS("a<\\\"b\\\">&'c'", "sim")
#define VMM   LABELS("vmm", "sim")
#define ASYNC LABELS("async", "cuda")

TEST(openmetrics_has_families_units_and_an_end)
{
    struct cases block = {0};
    const char *wanted =
        cases_text(&block, "run_reports", "openmetrics_has_families_units_and_an_end");
    FREED struct run_record *records = calloc(4, sizeof *records);
    struct capture capture;
    assert_non_null(records);
    make_records(records);
    write_records(openmetrics_write, capture_begin(&capture), records, 4);
    capture_is(&capture, wanted);
    write_records(openmetrics_write, capture_begin(&capture), records, 0);
    capture_is(&capture, "# EOF\n");
}

/* Of all metrics there are: none has the name of another, each ends with its unit. */
TEST(names_end_with_their_units_and_differ)
{
    static char names[METRIC_COUNT][OPENMETRICS_NAME_BYTES];
    for (int i = 0; i < METRIC_COUNT; i++) {
        const char *unit;
        double divisor;
        openmetrics_name(metric_info((enum metric)i), names[i], &unit, &divisor);
        size_t length = strlen(names[i]), end = strlen(unit);
        assert_string_equal(names[i] + length - end, unit);
        assert_int_equal(strspn(names[i], "abcdefghijklmnopqrstuvwxyz0123456789_"), length);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(names[i], names[j]);
    }
}

/* Two runs with the same labels would make the whole text unusable: the second gets one more. */
TEST(the_same_run_twice_is_told_apart)
{
    FREED struct run_record *records = calloc(4, sizeof *records);
    struct capture capture;
    assert_non_null(records);
    make_records(records);
    records[1] = records[0];
    write_records(openmetrics_write, capture_begin(&capture), records, 2);
    assert_int_equal(fclose(capture.stream), 0);
    assert_non_null(strstr(capture.text, ",seed=\"1\"} 1\n"));
    assert_non_null(strstr(capture.text, ",seed=\"1\",copy=\"1\"} 1\n"));
    free(capture.text);
}

/* What the driver does not say is null; a clock or a temperature of 0 is none of that. */
TEST(a_card_has_zeros_and_unknown_figures)
{
    const struct environment environment = {
        .build = build_info(),
        .card = {.present = true, .numa_node = -1, .before = {.temperature_c = 0, .power_mw = -1}}};
    struct capture capture;
    struct json_writer writer = {.stream = capture_begin(&capture)};
    json_begin_object(&writer, NULL);
    context_json_write(&writer, &environment);
    json_end_object(&writer);
    FREED char *text = capture_end(&capture);
    assert_non_null(strstr(text, "\"numa_node\": null"));
    assert_non_null(strstr(text, "\"power_mw\": null"));
    assert_non_null(strstr(text, "\"temperature_c\": 0,"));
}
