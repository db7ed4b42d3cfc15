/* The files that `compare` and `history` read: a small good one, and each way to damage it with the
 * sentence that refuses it. */
#include <unistd.h>

#include "bench/regress/history.h"
#include "bench/regress/result_set.h"
#include "bench/regress/verdict.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

/* The text with the first `old` replaced; the caller frees it. */
static char *with(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    char *out = malloc(strlen(text) + strlen(new) + 1);
    assert_non_null(out);
    if (!at)
        fail_msg("there is no %s", old);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    return out;
}

static enum ar_status read_history(const char *text, struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    struct history history = {0};
    enum ar_status status = history_read(&history, file.path, error);
    history_close(&history);
    unlink(file.path);
    return status;
}

static enum ar_status read_results(const char *text, struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    struct result_set results = {0};
    enum ar_status status = result_set_read(&results, file.path, error);
    result_set_close(&results);
    unlink(file.path);
    return status;
}

/* The head of a section is a file that is read; with the first field replaced by the second it is
 * refused with the third. */
static void damaged(const char *section, case_read *read)
{
    for (struct cases row = {0}; cases_next(&row, "regress_files", section, 3);) {
        FREED char *bad = with(row.head, row.field[0], row.field[1]);
        if (row.count == 1)
            assert_ok(read(row.head, &test_error));
        test_error.text[0] = '\0';
        if (!read(bad, &test_error))
            fail_msg("%s is taken", row.field[1]);
        if (!strstr(test_error.text, row.field[2]))
            fail_msg("%s: \"%s\" says not \"%s\"", row.field[1], test_error.text, row.field[2]);
    }
}

static enum ar_status read_waivers(const char *text, struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    struct waivers waivers = {0};
    enum ar_status status = waivers_read(&waivers, file.path, error);
    waivers_close(&waivers);
    unlink(file.path);
    return status;
}

TEST(lines_of_a_history)
{
    damaged("lines_of_a_history", read_history);
}

/* The time of 40 commits doubles at the 21st: its level is the new one from that commit on. */
TEST(a_change_begins_the_new_level)
{
    FREED char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    struct cases base = {0};
    (void)cases_next(&base, "regress_files", "lines_of_a_history", 3);
    fclose(base.file);
    for (int i = 0; i < 40; i++) {
        char time[32], value[32];
        snprintf(time, sizeof time, "T12:%02d:00Z", i);
        snprintf(value, sizeof value, "[%g]", (i < 20 ? 50 : 100) * (1 + 0.001 * (i * 7 % 5)));
        char *dated = with(base.head, "T12:00:00Z", time), *line = with(dated, "[50]", value);
        fputs(line, stream);
        free(dated);
        free(line);
    }
    assert_int_equal(fclose(stream), 0);
    struct temporary_file file = temporary_file(text);
    struct history history;
    struct history_judged judged;
    struct waivers none = {0};
    const struct history_rules rules = {.effect = 0.05, .alpha = 0.05};
    assert_ok(history_read(&history, file.path, &test_error));
    assert_ok(history_judge(&judged, &history, &rules, &none, &test_error));
    assert_int_equal(judged.change_count, 1);
    assert_int_equal(judged.changes[0].point, 20);
    const struct history_point *points = judged.series[judged.changes[0].series].points;
    assert_true(points[19].level < 51 && points[20].level > 99 && points[39].level > 99);
    history_judged_close(&judged);
    history_close(&history);
    unlink(file.path);
}

/* Appends a result and a count of instructions, each with a text replaced unless that is NULL. */
static bool append(const char *path, const char *old, const char *new)
{
    struct history_added added;
    struct result_set results = {0};
    const char *const sections[] = {"results_of_runs", "counts_of_instructions"};
    char folder[] = "/tmp/allocrig-XXXXXX", name[2][64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        struct cases base = {0};
        (void)cases_next(&base, "regress_files", sections[i], 3);
        bool there = old && strstr(base.head, old);
        FREED char *text = with(base.head, there ? old : "", there ? new : "");
        fclose(base.file);
        snprintf(name[i], sizeof name[i], "%s/%d.json", folder, i);
        FILE *file = fopen(name[i], "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
    }
    assert_ok(result_set_read(&results, folder, &test_error));
    assert_true(!unlink(name[0]) && !unlink(name[1]) && !rmdir(folder));
    assert_ok(history_append(path, &results, &(struct history_stamp){0}, &added, &test_error));
    result_set_close(&results);
    return added.added;
}

/* A commit has a line for each set of figures: what was measured again and is the same is not
 * added, and a change of any of them is. */
TEST(only_other_figures_are_added_to_a_commit)
{
    struct temporary_file history = temporary_file("");
    assert_true(append(history.path, "\"runs\": [{", "\"runs\": [], \"x\": [{"));
    assert_true(append(history.path, "\"rows\": [{", "\"rows\": [], \"x\": [{"));
    assert_true(append(history.path, NULL, NULL));
    assert_false(append(history.path, NULL, NULL));
    EACH_ROW (row, 2) {
        if (!append(history.path, row.field[0], row.field[1]))
            fail_msg("%s is not added", row.field[1]);
        assert_false(append(history.path, row.field[0], row.field[1]));
    }
    unlink(history.path);
}

/* Runs on "sim" are of one series if its profile is the same. An earlier version did not tell the
 * profile: there the spec decides. */
TEST(a_device_is_known_by_its_profile)
{
    const char *const kind = "\"kind\": \"sim\"";
    struct temporary_file history = temporary_file("");
    assert_true(append(history.path, kind, "\"kind\": \"sim\", \"profile\": \"h100\""));
    assert_true(append(history.path, kind, "\"kind\": \"sim\", \"profile\": \"a100\""));
    assert_false(append(history.path, NULL, NULL));
    unlink(history.path);
}

TEST(results_of_runs)
{
    damaged("results_of_runs", read_results);
}

TEST(counts_of_instructions)
{
    damaged("counts_of_instructions", read_results);
}

TEST(accepted_changes)
{
    damaged("accepted_changes", read_waivers);
}

/* A waiver covers a change up to its size, and one without a size only if it has no limit. */
TEST(a_waiver_covers_up_to_its_size)
{
    struct waiver items[] = {{.metric = (char[]){"m*"}, .at_most = 0.1},
                             {.at_most = -1, .commit = (char[]){"ab*"}}};
    struct waivers waivers = {.items = items, .count = 1};
    struct waiver_case change = {"metric", "p", "w", "w", NULL, 0.1};
    assert_ptr_equal(waivers_find(&waivers, &change), &items[0]);
    assert_true(items[0].used);
    change.change = 0.11;
    assert_null(waivers_find(&waivers, &change));
    change.change = -1;
    assert_null(waivers_find(&waivers, &change));
    change.change = 0;
    assert_ptr_equal(waivers_find(&waivers, &change), &items[0]);
    change.metric = "other";
    assert_null(waivers_find(&waivers, &change));
    waivers.count = 2;
    assert_null(waivers_find(&waivers, &change));
    change.commit = "abc";
    assert_ptr_equal(waivers_find(&waivers, &change), &items[1]);
    change.metric = "m";
    items[0].expired = true; /* one that counts comes before one that has expired */
    assert_ptr_equal(waivers_find(&waivers, &change), &items[1]);
    items[1].expired = true;
    assert_ptr_equal(waivers_find(&waivers, &change), &items[0]);
}
