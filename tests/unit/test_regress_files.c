/* The files that `compare` and `history` read: a small good one, and each way to damage it with the
 * sentence that refuses it. */
#include <unistd.h>

#include "bench/regress/history.h"
#include "bench/regress/result_set.h"
#include "bench/regress/verdict.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

#define LINE                                                                                       \
    "{\"schema\": \"allocrig.history/1\", \"commit\": \"abc\", \"time\": "                         \
    "\"2027-01-31T12:00:00Z\", "                                                                   \
    "\"machine\": \"rig\", \"flags\": \"-O2\", \"metrics\": {\"exact\": [\"driver_calls\"], "      \
    "\"timed\": [\"alloc_ns_p50\"]}, \"workloads\": {\"w\": {\"name\": \"w\", \"sha256\": "        \
    "\"0\"}}, "                                                                                    \
    "\"runs\": [{\"policy\": \"torch\", \"workload\": \"w\", \"device\": \"sim\", \"frees\": "     \
    "\"ordered\", \"host\": \"none\", \"seed\": 1, \"passed\": true, \"first_failed_event\": "     \
    "null, "                                                                                       \
    "\"cause\": null, \"exact\": [7], \"timed\": [50]}], \"instructions\": [{\"policy\": "         \
    "\"vmm\", "                                                                                    \
    "\"trace\": \"w\", \"kind\": \"alloc\", \"measure\": \"median\", \"instructions\": 90, "       \
    "\"compiler\": \"gcc\"}]}\n"

#define RESULT                                                                                     \
    "{\"schema\": \"allocrig.result/1\", \"context\": {\"host\": \"h\", \"cpu\": \"c\", "          \
    "\"commit\": "                                                                                 \
    "\"abc\", \"time\": \"2027-01-31T12:00:00Z\", \"flags\": \"-O2\"}, \"runs\": [{\"policy\": "   \
    "{\"spec\": \"torch\"}, \"workload\": {\"spec\": \"w\", \"name\": \"w\", \"sha256\": \"0\"}, " \
    "\"device\": {\"spec\": \"sim\", \"kind\": \"sim\"}, \"frees\": \"ordered\", \"host\": "       \
    "\"none\", "                                                                                   \
    "\"seed\": 1, \"outcome\": {\"passed\": true, \"first_failed_event\": null, \"cause\": "       \
    "null}, "                                                                                      \
    "\"metrics\": {\"driver_calls\": 7}}]}\n"

#define COUNTS                                                                                     \
    "{\"schema\": \"allocrig.instructions/1\", \"compiler\": \"gcc\", \"rows\": [{\"policy\": "    \
    "\"vmm\", \"trace\": \"w\", \"kind\": \"alloc\", \"measure\": \"median\", \"instructions\": "  \
    "90}]}\n"

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

struct damage {
    const char *old, *new, *says;
};

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

static void damaged(const char *text, enum ar_status (*read)(const char *, struct ar_error *),
                    const struct damage *cases, size_t count)
{
    struct ar_error error = {""};
    if (read(text, &error))
        fail_msg("%s", error.text);
    for (size_t i = 0; i < count; i++) {
        char *bad = with(text, cases[i].old, cases[i].new);
        error.text[0] = '\0';
        if (!read(bad, &error))
            fail_msg("%s is taken", cases[i].new);
        if (!strstr(error.text, cases[i].says))
            fail_msg("%s: \"%s\" says not \"%s\"", cases[i].new, error.text, cases[i].says);
        free(bad);
    }
}

#define WAIVERS "[waiver w]\nmetric = m\nreason = r\nuntil = 2027-12-31\n"

static enum ar_status read_waivers(const char *text, struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    struct waivers waivers = {0};
    enum ar_status status = waivers_read(&waivers, file.path, "2027-01-31", error);
    if (!status)
        waivers_close(&waivers);
    unlink(file.path);
    return status;
}

TEST(lines_of_a_history)
{
    static const struct damage cases[] = {
        {"allocrig.history/1", "other/1", "its schema is other/1"},
        {"\"schema\": \"allocrig.history/1\"", "\"schema\": 1", "its schema is not given"},
        {"\"commit\": \"abc\"", "\"commit\": 5", "\"commit\" is not a text"},
        {"\"time\": \"2027", "\"time\": \"27", "\"time\" is not YYYY"},
        {"\"time\": \"2027-01-31T12:00:00Z\"", "\"time\": 7", "\"time\" is not a text"},
        {"\"machine\": \"rig\"", "\"machine\": 5", "\"machine\" is not a text"},
        {"\"flags\": \"-O2\"", "\"flags\": 5", "\"flags\" is not a text"},
        {"\"exact\": [\"driver_calls\"]", "\"exact\": 3", "\"exact\" is not a list of metrics"},
        {"\"exact\": [\"driver_calls\"]", "\"exact\": [3]", "\"exact\" is not a list of metrics"},
        {"[\"driver_calls\"]", "[\"driver_calls\", \"driver_calls\"]",
         "\"driver_calls\" is not unique"},
        {"\"timed\": [\"alloc_ns_p50\"]", "\"timed\": {}", "\"timed\" is not a list of metrics"},
        {"\"runs\": [{", "\"runs\": 1, \"x\": [{", "\"runs\" is not a list"},
        {"\"instructions\": [{", "\"instructions\": 1, \"x\": [{",
         "\"instructions\" is not a list"},
        {"\"policy\": \"torch\"", "\"policy\": 5", "\"policy\" is not a text"},
        {"\"workload\": \"w\"", "\"workload\": 5", "run 1: \"workload\" is not a text"},
        {"\"workload\": \"w\"", "\"workload\": \"v\"", "\"name\" is not a text"},
        {"\"device\": \"sim\"", "\"device\": 5", "\"device\" is not a text"},
        {"\"frees\": \"ordered\"", "\"frees\": 5", "\"frees\" is not a text"},
        {"\"host\": \"none\"", "\"host\": 5", "\"host\" is not a text"},
        {"\"seed\": 1", "\"seed\": -1", "\"seed\" is not a whole number"},
        {"\"seed\": 1", "\"seed\": \"1\"", "\"seed\" is not a whole number"},
        {"\"name\": \"w\"", "\"name\": 5", "\"name\" is not a text"},
        {"\"sha256\": \"0\"", "\"sha256\": 5", "\"sha256\" is not a text"},
        {"\"passed\": true", "\"passed\": 1", "\"passed\" is not true or false"},
        {"\"first_failed_event\": null", "\"first_failed_event\": 1.5",
         "\"first_failed_event\" is not a whole"},
        {"\"cause\": null", "\"cause\": 5", "\"cause\" is not a text"},
        {"\"exact\": [7]", "\"exact\": [7, 8]", "\"exact\" is not a list with a value"},
        {"\"exact\": [7]", "\"exact\": []", "\"exact\" is not a list with a value"},
        {"\"exact\": [7]", "\"exact\": 7", "\"exact\" is not a list with a value"},
        {"\"exact\": [7]", "\"exact\": [\"7\"]", "\"driver_calls\" is not a number or null"},
        {"\"timed\": [50]", "\"timed\": []", "\"timed\" is not a list with a value"},
        {"\"instructions\": 90", "\"instructions\": 0", "\"instructions\" is not a number above 0"},
        {"\"instructions\": 90", "\"instructions\": \"90\"",
         "\"instructions\" is not a number above 0"},
        {"\"policy\": \"vmm\"", "\"policy\": 5", "\"policy\" is not a text"},
        {"\"trace\": \"w\"", "\"trace\": 5", "\"trace\" is not a text"},
        {"\"kind\": \"alloc\"", "\"kind\": 5", "\"kind\" is not a text"},
        {"\"measure\": \"median\"", "\"measure\": 5", "\"measure\" is not a text"},
        {"\"compiler\": \"gcc\"", "\"compiler\": 5", "\"compiler\" is not a text"},
        {"{\"schema\"", "{\"commit\": \"b\", \"schema\"", "not JSON: duplicate"},
    };
    damaged(LINE, read_history, cases, sizeof cases / sizeof *cases);
}

/* Appends a result and a count of instructions, each with a text replaced unless that is NULL. */
static bool append(const char *path, const char *old, const char *new)
{
    struct history_added added;
    struct result_set results = {0};
    const char *const texts[] = {RESULT, COUNTS};
    char folder[] = "/tmp/allocrig-XXXXXX", name[2][64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        bool there = old && strstr(texts[i], old);
        char *text = with(texts[i], there ? old : "", there ? new : "");
        snprintf(name[i], sizeof name[i], "%s/%d.json", folder, i);
        FILE *file = fopen(name[i], "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        free(text);
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
    static const struct {
        const char *old, *new;
    } changes[] = {
        {"\"host\": \"h\"", "\"host\": \"i\""},
        {"\"spec\": \"torch\"", "\"spec\": \"growth\""},
        {"\"spec\": \"w\"", "\"spec\": \"v\""},
        {"\"spec\": \"sim\"", "\"spec\": \"sim:seed=2\""},
        {"\"ordered\"", "\"recorded\""},
        {"\"none\"", "\"recorded\""},
        {"\"seed\": 1", "\"seed\": 2"},
        {"\"sha256\": \"0\"", "\"sha256\": \"1\""},
        {"\"passed\": true", "\"passed\": false"},
        {"\"driver_calls\": 7", "\"driver_calls\": 8"},
        {"\"vmm\"", "\"slab\""},
        {"\"trace\": \"w\"", "\"trace\": \"v\""},
        {"\"alloc\"", "\"free\""},
        {"\"median\"", "\"p99\""},
        {"\"gcc\"", "\"clang\""},
        {"\"instructions\": 90", "\"instructions\": 91"},
    };
    struct temporary_file history = temporary_file("");
    assert_true(append(history.path, "\"runs\": [{", "\"runs\": [], \"x\": [{"));
    assert_true(append(history.path, "\"rows\": [{", "\"rows\": [], \"x\": [{"));
    assert_true(append(history.path, NULL, NULL));
    assert_false(append(history.path, NULL, NULL));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (!append(history.path, changes[i].old, changes[i].new))
            fail_msg("%s is not added", changes[i].new);
        assert_false(append(history.path, changes[i].old, changes[i].new));
    }
    unlink(history.path);
}

TEST(results_of_runs)
{
    static const struct damage cases[] = {
        {"allocrig.result/1", "other/1", "its schema is other/1"},
        {"\"host\": \"h\"", "\"host\": 5", "\"host\" is not a text"},
        {"\"cpu\": \"c\"", "\"cpu\": 5", "\"cpu\" is not a text"},
        {"\"commit\": \"abc\"", "\"commit\": 5", "\"commit\" is not a text"},
        {"\"time\": \"2027-01-31T12:00:00Z\"", "\"time\": 7", "\"time\" is not a text"},
        {"\"flags\": \"-O2\"", "\"flags\": 5", "\"flags\" is not a text"},
        {"\"context\"", "\"contest\"", "is not a text"},
        {"\"runs\": [{", "\"runs\": 1, \"x\": [{", "\"runs\" is not a list"},
        {"{\"spec\": \"torch\"}", "{\"spec\": 5}", "run 1: \"spec\" is not a text"},
        {"\"workload\": {\"spec\": \"w\"", "\"workload\": {\"spec\": 5", "\"spec\" is not a text"},
        {"\"name\": \"w\"", "\"name\": 5", "is not a text"},
        {"\"sha256\": \"0\"", "\"sha256\": 5", "\"sha256\" is not a text"},
        {"\"device\": {\"spec\": \"sim\"", "\"device\": {\"spec\": 5", "\"spec\" is not a text"},
        {"\"kind\": \"sim\"", "\"kind\": 5", "\"kind\" is not a text"},
        {"\"frees\": \"ordered\"", "\"frees\": 5", "\"frees\" is not a text"},
        {"\"host\": \"none\"", "\"host\": 5", "\"host\" is not a text"},
        {"\"seed\": 1", "\"seed\": -1", "\"seed\" is not a whole number"},
        {"\"passed\": true", "\"passed\": \"true\"", "\"passed\" is not true or false"},
        {"\"first_failed_event\": null", "\"first_failed_event\": \"x\"",
         "\"first_failed_event\" is not a number or null"},
        {"\"first_failed_event\": null", "\"first_failed_event\": -1",
         "\"first_failed_event\" is not"},
        {"\"metrics\": {", "\"metrics\": 1, \"x\": {", "\"metrics\" is not an object"},
        {"\"driver_calls\": 7", "\"driver_calls\": \"7\"",
         "\"driver_calls\" is not a number or null"},
        {"{\"schema\"", "{\"schema\": \"b\", \"schema\"", "duplicate"},
    };
    damaged(RESULT, read_results, cases, sizeof cases / sizeof *cases);
}

TEST(counts_of_instructions)
{
    static const struct damage cases[] = {
        {"\"rows\": [{", "\"rows\": 1, \"x\": [{", "\"rows\" is not a list"},
        {"\"compiler\": \"gcc\"", "\"compiler\": 5", "\"compiler\" is not a text"},
        {"\"policy\": \"vmm\"", "\"policy\": 5", "\"policy\" is not a text"},
        {"\"trace\": \"w\"", "\"trace\": 5", "\"trace\" is not a text"},
        {"\"kind\": \"alloc\"", "\"kind\": 5", "\"kind\" is not a text"},
        {"\"measure\": \"median\"", "\"measure\": 5", "\"measure\" is not a text"},
        {"\"instructions\": 90", "\"instructions\": 0", "\"instructions\" is not a number above 0"},
        {"\"instructions\": 90", "\"instructions\": null",
         "\"instructions\" is not a number above 0"},
    };
    damaged(COUNTS, read_results, cases, sizeof cases / sizeof *cases);
}

TEST(accepted_changes)
{
    static const struct damage cases[] = {
        {"reason = r", "", "waiver w has no reason"},
        {"until = 2027-12-31", "", "waiver w has no date (until)"},
        {"until = 2027-12-31", "until = 2027-13-31", "\"2027-13-31\""},
        {"metric = m", "metric =", "the key \"metric\" is empty"},
        {"metric = m", "metric = m\nmetric = n", "the key \"metric\" is given twice"},
        {"metric = m", "metrics = m", "there is no key \"metrics\" here"},
        {"metric = m", "at-most = x", "at-most is \"x\""},
        {"metric = m", "at-most = -5 %", "at-most is \"-5 %\""},
        {"[waiver w]", "[other w]", "no section [other"},
    };
    damaged(WAIVERS, read_waivers, cases, sizeof cases / sizeof *cases);
}

/* A waiver covers a change up to its size, and one without a size only if it has no limit. */
TEST(a_waiver_covers_up_to_its_size)
{
    struct waiver items[] = {{.metric = (char[]){"m*"}, .at_most = 0.1},
                             {.at_most = -1, .commit = (char[]){"ab*"}}};
    struct waivers waivers = {items, 1};
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
