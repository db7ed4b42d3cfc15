/* What `twin` does around its runs: policies with a key, the changes of a scenario, trials with a
 * journal, comparisons with reported figures, and the search for the largest cache. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "bench/suite/twin_study.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

#define SMALL "tests/golden/data/twin/small.ini"

static struct scenario read_scenario(const char *path)
{
    const char *kinds[TWIN_KINDS_MOST];
    struct scenario text;
    struct ar_error error = {""};
    if (scenario_read(path, kinds, twin_setup_kinds(kinds, TWIN_KINDS_MOST), &text, &error))
        fail_msg("%s", error.text);
    return text;
}

static void policies_get_a_key(void **state)
{
    static const char *const cases[][2] = {
        {"torch", "torch:k=v"},
        {"torch:", "torch:k=v"},
        {"torch:a=1", "torch:a=1,k=v"},
        {"torch:k=1,a", "torch:k=v,a"},
        {"torch:a='1,2',k=3", "torch:a='1,2',k=v"},
        {"torch:a=\"x'y,z\"", "torch:a=\"x'y,z\",k=v"},
        {"checked+fault(n=3)+torch", "checked+fault(n=3)+torch:k=v"},
        {"fault(n='a:b')+torch:k=1", "fault(n='a:b')+torch:k=v"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = twin_policy_with(cases[i][0], "k", "v");
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
    assert_null(twin_policy_with("torch:'", "k", "v"));
}

static struct twin_trial trial_of(const struct scenario *text)
{
    return (struct twin_trial){.text = text, .cache_part = SIZE_MAX};
}

static void trials_are_taken_from_the_journal(void **state)
{
    struct temporary_file journal = temporary_file("");
    struct scenario text = read_scenario(SMALL), bad, other;
    struct ar_error error;
    struct twin_trials trials;
    struct stat before, after;
    (void)state;
    assert_int_equal(scenario_copy(&text, &bad, &error), AR_OK);
    assert_int_equal(scenario_set(&bad, "kv", "where", "there", &error), AR_OK);
    struct twin_trial at[] = {trial_of(&text), trial_of(&bad), trial_of(&text)};
    assert_int_equal(twin_trials_open(&trials, &text, journal.path, &error), AR_OK);
    assert_int_equal(twin_trials_run(&trials, at, 3, &error), AR_OK);
    assert_int_equal(at[0].summary.peak_bytes, 13088 * AR_MIB);
    assert_true(at[0].summary.has_residue);
    assert_int_equal(at[0].summary.residue_bytes, 12557 * AR_MIB);
    assert_true(at[1].cannot_run);
    assert_non_null(strstr(at[1].why, "there"));
    assert_memory_equal(&at[0].summary, &at[2].summary, sizeof at[0].summary);
    twin_trials_close(&trials, false);
    assert_int_equal(stat(journal.path, &before), 0);

    struct twin_trial again[] = {trial_of(&text), trial_of(&bad)};
    assert_int_equal(twin_trials_open(&trials, &text, journal.path, &error), AR_OK);
    assert_true(trials.done_count >= 2);
    assert_int_equal(twin_trials_run(&trials, again, 2, &error), AR_OK);
    assert_memory_equal(&again[0].summary, &at[0].summary, sizeof at[0].summary);
    assert_string_equal(again[1].why, at[1].why);
    twin_trials_close(&trials, false);
    assert_int_equal(stat(journal.path, &after), 0);
    assert_true(after.st_size == before.st_size); /* nothing ran again */

    assert_int_equal(scenario_copy(&text, &other, &error), AR_OK);
    other.cycles = 2;
    assert_int_equal(twin_trials_open(&trials, &other, journal.path, &error), AR_INVALID);
    scenario_close(&other);
    scenario_close(&bad);
    scenario_close(&text);
    unlink(journal.path);
}

static void changes_come_from_what_is_there(void **state)
{
    struct scenario text = read_scenario(SMALL);
    struct ar_error error;
    struct twin_study study;
    (void)state;
    assert_int_equal(twin_study_run(&text, true, NULL, &study, &error), AR_OK);
    const struct twin_page *page = &study.page;
    assert_int_equal(page->cache_count, 0);
    assert_string_equal(page->whatifs[0].text, "rl.empty_cache before kv.load");
    assert_float_equal(page->whatifs[0].peak_saved, 3340 * (double)AR_MIB, 0.5);
    for (size_t i = 0; i < page->whatif_count; i++) {
        assert_true(page->whatifs[i].passes);
        /* the pool is empty before kv.load's end of the first cycle only */
        assert_null(strstr(page->whatifs[i].text, "sleep"));
    }
    twin_study_close(&study, false);

    /* A policy without these options offers none of them. */
    assert_int_equal(scenario_set(&text, "rl", "policy", "greedy", &error), AR_OK);
    assert_int_equal(twin_study_run(&text, true, NULL, &study, &error), AR_OK);
    for (size_t i = 0; i < study.page.whatif_count; i++)
        assert_null(strstr(study.page.whatifs[i].text, "policy"));
    twin_study_close(&study, false);
    scenario_close(&text);
}

static void reported_figures_are_compared(void **state)
{
    struct scenario text = read_scenario(SMALL);
    struct ar_error error;
    struct twin_study study;
    (void)state;
    assert_int_equal(scenario_set(&text, "kv", "bytes", "5.5GiB", &error), AR_OK);
    assert_int_equal(twin_study_run(&text, false, NULL, &study, &error), AR_OK);
    assert_false(study.page.has_whatifs);
    const struct twin_page_reported *at = study.page.reported;
    assert_true(at[0].agrees);
    assert_true(at[1].known && at[1].agrees); /* 13.28 for 12.8 GiB: 3.8 % */
    assert_true(fabs(at[1].part - 0.0376) < 0.001);
    assert_true(at[3].agrees && at[4].agrees && at[5].agrees);
    twin_study_close(&study, false);

    text.tolerance = 0.01;
    assert_int_equal(twin_study_run(&text, false, NULL, &study, &error), AR_OK);
    assert_true(study.page.reported[1].known && !study.page.reported[1].agrees);
    twin_study_close(&study, false);

    /* What did not happen is not known. */
    assert_int_equal(scenario_set(&text, "kv", "bytes", "14GiB", &error), AR_OK);
    assert_int_equal(twin_study_run(&text, false, NULL, &study, &error), AR_OK);
    assert_false(study.page.reported[1].known);
    assert_string_equal(study.page.reported[5].ours, "out of memory");
    assert_false(study.page.reported[5].agrees);
    twin_study_close(&study, false);
    scenario_close(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_get_a_key),
        cmocka_unit_test(trials_are_taken_from_the_journal),
        cmocka_unit_test(changes_come_from_what_is_there),
        cmocka_unit_test(reported_figures_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
