/* What the reports are made of: JSON and CSV texts, series made thin, tables, files that appear
 * whole or not at all, and the texts of specs. */
#include <sys/stat.h>
#include <unistd.h>

#include "bench/report/data_writer.h"
#include "bench/report/output_file.h"
#include "bench/report/result_writers.h"
#include "bench/suite/progress.h"
#include "bench/suite/suite.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

TEST(json_has_order_and_exact_numbers)
{
    struct capture capture;
    capture_begin(&capture);
    struct json_writer json = {.stream = capture.stream};
    json_begin_object(&json, NULL);
    json_put_integer(&json, "most", UINT64_MAX);
    json_put_real(&json, "tenth", 0.1);
    json_put_real(&json, "third", 1.0 / 3.0);
    json_put_real(&json, "none", 0.0 / 0.0);
    json_begin_array(&json, "empty");
    json_end_array(&json);
    json_begin_array(&json, "list");
    json_put_bool(&json, NULL, true);
    json_put_null(&json, NULL);
    json_end_array(&json);
    json_end_object(&json);
    capture_is(&capture, "{\n"
                         "  \"most\": 18446744073709551615,\n"
                         "  \"tenth\": 0.1,\n"
                         "  \"third\": 0.3333333333333333,\n"
                         "  \"none\": null,\n"
                         "  \"empty\": [],\n"
                         "  \"list\": [\n"
                         "    true,\n"
                         "    null\n"
                         "  ]\n"
                         "}\n");
}

TEST(json_texts_are_escaped)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"\n"},
        {"tab\tand\nline", "\"tab\\u0009and\\u000aline\"\n"},
        {"\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"\n"},
        {"\xff-\xc3-\xed\xa0\x80", "\"\\ufffd-\\ufffd-\\ufffd\\ufffd\\ufffd\"\n"},
        {"\xc0\x80", "\"\\ufffd\\ufffd\"\n"}, /* overlong */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct capture capture;
        capture_begin(&capture);
        struct json_writer json = {.stream = capture.stream};
        json_put_text(&json, NULL, cases[i].text);
        fputc('\n', capture.stream);
        capture_is(&capture, cases[i].wanted);
    }
}

TEST(reals_read_back)
{
    static const double reals[] = {0, 1, 0.1, 1e300, 5e-324, 2.0 / 3, 1e15 + 0.5, 123456.789, -1.5};
    for (size_t i = 0; i < COUNT(reals); i++) {
        char text[REAL_TEXT_BYTES];
        assert_true(strtod(real_print(reals[i], text), NULL) == reals[i]);
    }
}

TEST(csv_quotes_where_it_must)
{
    struct capture capture;
    capture_begin(&capture);
    csv_text(capture.stream, "plain:x=1");
    fputc('|', capture.stream);
    csv_text(capture.stream, "a,b=\"c\"");
    capture_is(&capture, "plain:x=1|\"a,b=\"\"c\"\"\"");
}

TEST(csv_rows_read_back)
{
    struct capture capture;
    char *fields[8];
    capture_begin(&capture);
    struct csv_writer csv = {.stream = capture.stream};
    csv_put_text(&csv, "a,\"b\"");
    csv_put_integer(&csv, UINT64_MAX);
    csv_put_empty(&csv);
    csv_put_real(&csv, 0.1);
    csv_put_metric(&csv, &(struct metric_value){.kind = METRIC_NULL});
    csv_end_row(&csv);
    csv_put_real(&csv, -1);
    csv_end_row(&csv);
    fclose(capture.stream);
    assert_string_equal(capture.text, "\"a,\"\"b\"\"\",18446744073709551615,,0.1,\n-1\n");
    *strrchr(capture.text, '-') = '\0';
    assert_int_equal(csv_split(capture.text, fields, 8), 5);
    assert_string_equal(fields[0], "a,\"b\"");
    assert_string_equal(fields[2], "");
    assert_string_equal(fields[3], "0.1");
    assert_string_equal(fields[4], "");
    free(capture.text);
}

struct taken {
    uint64_t count, before, most_live, least_live, most_physical, last;
};

static void take(void *argument, const struct replay_sample *sample)
{
    struct taken *taken = argument;
    assert_true(taken->count == 0 || sample->event > taken->before);
    taken->before = sample->event;
    taken->last = sample->event;
    taken->count++;
    if (sample->live_bytes > taken->most_live)
        taken->most_live = sample->live_bytes;
    if (sample->live_bytes < taken->least_live)
        taken->least_live = sample->live_bytes;
    if (sample->physical_bytes > taken->most_physical)
        taken->most_physical = sample->physical_bytes;
}

/* Whatever the length, the peaks, their order and the last sample stay, and it is short. */
TEST(thin_series_keep_their_peaks)
{
    static const uint64_t lengths[] = {1, 2, 659, 660, 661, 1320, 1321, 100000, 1234567};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        FREED struct thin_series *series = calloc(1, sizeof *series);
        struct taken taken = {.least_live = UINT64_MAX};
        assert_non_null(series);
        uint64_t peak = lengths[i] * 2 / 3;
        uint64_t free_block = lengths[i] / 3;
        for (uint64_t event = 0; event < lengths[i]; event++) {
            struct replay_sample sample = {
                .event = event, .live_bytes = 1000 + event % 7, .physical_bytes = 2000 + event % 5};
            if (event == free_block)
                sample.live_bytes = 1;
            if (event == peak) {
                sample.live_bytes = 5000;
                sample.physical_bytes = 6000;
            }
            assert_int_equal(thin_series_add(series, &sample, NULL), AR_OK);
        }
        thin_series_each(series, take, &taken);
        assert_int_equal(taken.most_live, 5000);
        assert_int_equal(taken.most_physical, 6000);
        assert_int_equal(taken.least_live, free_block == peak ? 5000 : 1);
        assert_int_equal(taken.last, lengths[i] - 1);
        assert_in_range(taken.count, lengths[i] < 660 ? lengths[i] : 660, 2000);
    }
}

/* What follows the first failed request is no part of the series. */
TEST(a_thin_series_ends_with_the_first_failure)
{
    FREED struct thin_series *series = calloc(1, sizeof *series);
    struct taken taken = {.least_live = UINT64_MAX};
    assert_non_null(series);
    for (uint64_t event = 0; event < 5000; event++) {
        const struct replay_sample sample = {
            .event = event, .physical_bytes = event, .failed_allocs = event / 3001};
        assert_int_equal(thin_series_add(series, &sample, NULL), AR_OK);
    }
    thin_series_each(series, take, &taken);
    assert_int_equal(taken.last, 3001);
    assert_int_equal(taken.most_physical, 3001);
}

/* Of equal values the first stays. */
TEST(a_thin_series_keeps_the_first_of_equal_peaks)
{
    FREED struct thin_series *series = calloc(1, sizeof *series);
    assert_non_null(series);
    for (uint64_t event = 0; event < 100000; event++) {
        const struct replay_sample sample = {
            .event = event, .live_bytes = 5 + event % 2, .physical_bytes = 7 + event % 2};
        assert_int_equal(thin_series_add(series, &sample, NULL), AR_OK);
    }
    assert_int_equal(series->buckets[0].least_live.event, 0);
    assert_int_equal(series->buckets[0].most_live.event, 1);
    assert_int_equal(series->buckets[0].most_physical.event, 1);
}

TEST(progress_says_the_time_left)
{
    struct progress progress = {.done = 10, .total = 30, .began_ns = 5};
    char text[80];
    progress_text(&progress, UINT64_C(61000000005), "a run", text, sizeof text);
    assert_string_equal(text, "10 of 30, 2:02 left: a run");
    progress.total = 0;
    progress_text(&progress, UINT64_C(61000000005), "steps", text, sizeof text);
    assert_string_equal(text, "10: steps");
}

TEST(tables_line_up)
{
    static const struct table_column columns[] = {{"name", "", true, 6}, {"size", "MiB", false, 0}};
    struct capture capture;
    struct table *table = table_create(columns, 2);
    assert_non_null(table);
    table_heading(table, "group %d", 1);
    table_cell(table, "a");
    table_cell(table, "%.1f", 12.5);
    table_cell(table, "too long");
    table_cell(table, "1");
    table_cell(table, "b");
    table_rest(table, "DNF @ 5");
    table_cell(table, "c|d");
    table_cell(table, "2");
    capture_begin(&capture);
    assert_ok(table_print(table, capture.stream, TABLE_TEXT, &test_error));
    capture_is(&capture, "name      size\n"
                         "           MiB\n"
                         "\ngroup 1\n"
                         "a         12.5\n"
                         "too long     1\n"
                         "b         DNF @ 5\n"
                         "c|d          2\n");
    capture_begin(&capture);
    assert_ok(table_print(table, capture.stream, TABLE_MARKDOWN, &test_error));
    capture_is(&capture, "**group 1**\n\n"
                         "| name | size (MiB) |\n"
                         "| --- | ---: |\n"
                         "| a | 12.5 |\n"
                         "| too long | 1 |\n"
                         "| b | DNF @ 5 |\n"
                         "| c\\|d | 2 |\n");
    table_close(table);
}

TEST(long_texts_are_broken)
{
    static const struct table_column columns[] = {{"name", "", true, 0}, {"text", "", true, 0}};
    struct capture capture;
    struct table *table = table_create(columns, 2);
    assert_non_null(table);
    table_cell(table, "a");
    table_cell(table, "%035d %035d %035d", 1, 2, 3);
    table_cell(table, "b");
    table_cell(table, "%0120d", 1); /* no place to break it */
    capture_begin(&capture);
    assert_ok(table_print(table, capture.stream, TABLE_TEXT, &test_error));
    fclose(capture.stream);
    char wanted[512];
    snprintf(wanted, sizeof wanted, "name  text\na     %035d %035d\n      %035d\nb     %0120d\n", 1,
             2, 3, 1);
    assert_string_equal(capture.text, wanted);
    free(capture.text);
    table_close(table);
}

/* A line of 80 columns is the longest. Past it the columns stand closer, and if this does not do,
 * the widest column of texts gives way. */
TEST(wide_columns_give_way)
{
    static const struct table_column columns[] = {
        {"name", "", true, 0}, {"kind", "", true, 0}, {"size", "", false, 0}};
    struct capture capture;
    for (int size = 40; size <= 43; size++) {
        struct table *table = table_create(columns, 3);
        assert_non_null(table);
        table_cell(table, "%030d", 1);
        table_cell(table, "kind 1");
        table_cell(table, "%0*d", size, 1);
        table_cell(table, "b");
        table_cell(table, "kind 2");
        table_cell(table, "2");
        capture_begin(&capture);
        assert_ok(table_print(table, capture.stream, TABLE_TEXT, &test_error));
        const bool narrow = size == 43;
        const char *gap = size == 40 || narrow ? "  " : " ";
        int name = narrow ? 4 : 30;
        char wanted[512];
        snprintf(wanted, sizeof wanted,
                 "%-*s%skind  %s%*s\n%030d%s%skind 1%s%0*d\n%-*s%skind 2%s%*d\n", name, "name", gap,
                 gap, size, "size", 1, narrow ? "\n    " : "", gap, gap, size, 1, name, "b", gap,
                 gap, size, 2);
        capture_is(&capture, wanted);
        table_close(table);
    }
}

/* If no column of texts can give way, the columns stand closer together. */
TEST(columns_stand_closer)
{
    static const struct table_column columns[] = {
        {"name", "", true, 0}, {"a", "", false, 0}, {"b", "", false, 0}, {"c", "", false, 0}};
    for (size_t length = 23; length <= 24; length++) {
        struct table *table = table_create(columns, 4);
        table_cell(table, "x");
        for (int i = 0; i < 3; i++)
            table_cell(table, "%.*s", (int)length, "12345678901234567890123456");
        struct capture capture;
        assert_ok(table_print(table, capture_begin(&capture), TABLE_TEXT, &test_error));
        FREED char *text = capture_end(&capture);
        table_close(table);
        /* The title of the first column has 4 bytes. */
        assert_int_equal(strcspn(text, "\n"), 4 + 3 * length + (length == 23 ? 6 : 3));
    }
}

TEST(file_names_are_safe)
{
    char text[16];
    assert_string_equal(figure_file_name("random:seed=3", text, sizeof text), "random-seed-3");
    assert_string_equal(figure_file_name("a/b/c d.csv", text, sizeof text), "c-d.csv");
    assert_string_equal(figure_file_name("0123456789abcdefgh", text, sizeof text),
                        "0123456789abcde");
}

TEST(specs_take_a_key)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"sim", "sim:capacity=1GiB"},
        {"sim:profile=h100", "sim:profile=h100,capacity=1GiB"},
        {"sim:capacity=2GiB,profile=h100", "sim:capacity=1GiB,profile=h100"},
        {"sim:addresses='a,b.csv'", "sim:addresses='a,b.csv',capacity=1GiB"},
        {"checked+fault(n=3)+growth", "checked+fault(n=3)+growth:capacity=1GiB"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        FREED char *out = NULL;
        assert_ok(spec_text_with(cases[i].text, "capacity", "1GiB", &out, &test_error));
        assert_string_equal(out, cases[i].wanted);
    }
}

/* A set of which one file cannot be finished leaves none; an old file stays as it was. */
TEST(sets_appear_together)
{
    char folder[] = "/tmp/allocrig-report-XXXXXX";
    char path[64];
    struct stat info;
    struct output_set set = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/one", folder);
    FILE *one, *full;
    assert_ok(output_set_add(&set, path, &one, &test_error));
    assert_ok(output_set_add(&set, "/dev/full", &full, &test_error));
    fputs("text", one);
    fputs("text", full);
    assert_says(output_set_commit(&set, &test_error), AR_IO, "/dev/full: cannot be written");
    assert_int_equal(stat(path, &info), -1);
    assert_ok(output_set_add(&set, path, &one, &test_error));
    assert_int_equal(stat(path, &info), -1);
    fputs("text", one);
    assert_ok(output_set_commit(&set, &test_error));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 4);
    assert_ok(output_set_add(&set, path, &one, &test_error));
    fputs("a longer text", one);
    output_set_abandon(&set);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 4);
    remove(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left in it */
}

TEST(outputs_have_names)
{
    struct output_file file;
    assert_says(output_open(&file, "", &test_error), AR_INVALID, "an output has an empty name");
    assert_says(output_folder_check("", &test_error), AR_INVALID, "an output has an empty name");
    assert_says(output_folder("", &test_error), AR_INVALID, "an output has an empty name");
}

/* The cause of a write that failed before the end. */
TEST(early_failures_keep_their_cause)
{
    struct output_set set = {0};
    FILE *full;
    assert_ok(output_set_add(&set, "/dev/full", &full, &test_error));
    fputs("text", full);
    assert_int_not_equal(fflush(full), 0);
    assert_says(output_set_commit(&set, &test_error), AR_IO, "No space left on device");
}
