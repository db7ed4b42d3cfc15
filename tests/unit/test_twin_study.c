/* What `twin` does around its runs: policies with a key, trials with a journal, changes without
 * host memory. Its answers are in tests/steps/twin_study. */
#include <sys/stat.h>
#include <unistd.h>

#include "bench/suite/twin_study.h"
#include "tests/support/scarce.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

#define SMALL "tests/golden/data/twin/small.ini"

static struct scenario read_scenario(const char *path)
{
    const char *kinds[TWIN_KINDS_MOST];
    struct scenario text;
    assert_ok(
        scenario_read(path, kinds, twin_setup_kinds(kinds, TWIN_KINDS_MOST), &text, &test_error));
    return text;
}

TEST(policies_get_a_key)
{
    EACH_ROW (row, 2) {
        FREED char *text = twin_policy_with(row.field[0], "k", "v");
        assert_string_equal(text, row.field[1]);
    }
    assert_null(twin_policy_with("torch:'", "k", "v"));
}

static struct twin_trial trial_of(const struct scenario *text)
{
    return (struct twin_trial){.text = text, .cache_part = SIZE_MAX};
}

TEST(trials_are_taken_from_the_journal)
{
    struct temporary_file journal = temporary_file("");
    struct scenario text = read_scenario(SMALL), bad, other;
    struct twin_trials trials;
    struct stat before, after;
    assert_ok(scenario_copy(&text, &bad, &test_error));
    assert_ok(scenario_set(&bad, "kv", "where", "there", 0, &test_error));
    struct twin_trial at[] = {trial_of(&text), trial_of(&bad), trial_of(&text)};
    assert_ok(twin_trials_open(&trials, &text, journal.path, &test_error));
    assert_ok(twin_trials_run(&trials, at, 3, &test_error));
    assert_int_equal(at[0].summary.peak_bytes, 13088 * AR_MIB);
    assert_true(at[0].summary.has_residue);
    assert_int_equal(at[0].summary.residue_bytes, 12557 * AR_MIB);
    assert_true(at[1].cannot_run);
    assert_non_null(strstr(at[1].why, "there"));
    assert_memory_equal(&at[0].summary, &at[2].summary, sizeof at[0].summary);
    twin_trials_close(&trials, false);
    assert_int_equal(stat(journal.path, &before), 0);

    struct twin_trial again[] = {trial_of(&text), trial_of(&bad)};
    assert_ok(twin_trials_open(&trials, &text, journal.path, &test_error));
    assert_true(trials.done_count >= 2);
    assert_ok(twin_trials_run(&trials, again, 2, &test_error));
    assert_memory_equal(&again[0].summary, &at[0].summary, sizeof at[0].summary);
    assert_string_equal(again[1].why, at[1].why);
    twin_trials_close(&trials, false);
    assert_int_equal(stat(journal.path, &after), 0);
    assert_true(after.st_size == before.st_size); /* nothing ran again */

    assert_ok(scenario_copy(&text, &other, &test_error));
    other.cycles = 2;
    assert_int_equal(twin_trials_open(&trials, &other, journal.path, &test_error), AR_INVALID);
    scenario_close(&other);
    scenario_close(&bad);
    scenario_close(&text);
    unlink(journal.path);
}

/* Each allocation fails once: no change is left out, or called impossible. */
TEST(changes_need_host_memory)
{
    CLOSED(scenario_close) struct scenario text = read_scenario(SMALL);
    struct twin_study study;
    assert_ok(twin_study_run(&text, false, NULL, &study, &test_error));
    bool reached = true;
    for (unsigned long number = 1; reached; number += 1 + number / 16) {
        struct twin_changes changes = {0};
        scarce_begin(number, 1);
        enum ar_status status =
            twin_changes_find(&text, &study.setup, &study.result, &changes, &test_error);
        reached = scarce_end();
        twin_changes_close(&changes);
        assert_int_equal(status, reached ? AR_HOST_MEMORY : AR_OK);
    }
    twin_study_close(&study, false);
}

static uint64_t key_after(const char *workload, const char *content)
{
    char text[400];
    struct twin_trials trials;
    FILE *file = fopen(workload, "w");
    fputs(content, file);
    fclose(file);
    snprintf(text, sizeof text,
             "[machine]\ncard = sim:profile=h100\n[process p]\n[trainer t]\nworkload = %s\n"
             "[schedule]\nstart = t.load\n",
             workload);
    struct temporary_file path = temporary_file(text), journal = temporary_file("");
    struct scenario scenario = read_scenario(path.path);
    uint64_t head[2] = {0, 0};
    assert_ok(twin_trials_open(&trials, &scenario, journal.path, &test_error));
    twin_trials_close(&trials, false);
    file = fopen(journal.path, "r");
    assert_int_equal(fread(head, sizeof head, 1, file), 1);
    fclose(file);
    scenario_close(&scenario);
    unlink(path.path);
    unlink(journal.path);
    return head[1];
}

/* A journal belongs to the contents of the files that the scenario names. */
TEST(files_are_part_of_the_journal)
{
    struct temporary_file workload = temporary_file("");
    uint64_t first = key_after(workload.path, "# allocrig-trace 1\na,0,1048576\n");
    assert_true(key_after(workload.path, "# allocrig-trace 1\na,0,1048576\n") == first);
    assert_true(key_after(workload.path, "# allocrig-trace 1\na,0,2097152\n") != first);
    unlink(workload.path);
}
