/* What `twin` does around its runs: policies with a key, the changes of a scenario, trials with a
 * journal, comparisons with reported figures, and the search for the largest cache. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/suite/twin_study.h"
#include "tests/support/scarce.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

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
    assert_ok(scenario_set(&bad, "kv", "where", "there", &test_error));
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

TEST(changes_come_from_what_is_there)
{
    CLOSED(scenario_close) struct scenario text = read_scenario(SMALL);
    struct twin_study study;
    assert_ok(twin_study_run(&text, true, NULL, &study, &test_error));
    const struct twin_page *page = &study.page;
    assert_int_equal(page->cache_count, 0);
    assert_string_equal(page->whatifs[0].text, "rl.empty_cache before kv.load");
    assert_true(fabs(page->whatifs[0].peak_saved - 3340 * (double)AR_MIB) < 0.5);
    for (size_t i = 0; i < page->whatif_count; i++) {
        assert_true(page->whatifs[i].passes);
        /* the pool is empty before kv.load's end of the first cycle only */
        assert_null(strstr(page->whatifs[i].text, "sleep"));
    }
    twin_study_close(&study, false);

    /* A policy without these options offers none of them. */
    assert_ok(scenario_set(&text, "rl", "policy", "greedy", &test_error));
    assert_ok(twin_study_run(&text, true, NULL, &study, &test_error));
    for (size_t i = 0; i < study.page.whatif_count; i++)
        assert_null(strstr(study.page.whatifs[i].text, "policy"));
    twin_study_close(&study, false);
}

TEST(reported_figures_are_compared)
{
    CLOSED(scenario_close) struct scenario text = read_scenario(SMALL);
    struct twin_study study;
    assert_ok(scenario_set(&text, "kv", "bytes", "5.5GiB", &test_error));
    assert_ok(twin_study_run(&text, false, NULL, &study, &test_error));
    assert_false(study.page.has_whatifs);
    const struct twin_page_reported *at = study.page.reported;
    assert_true(at[0].agrees);
    assert_true(at[1].known && at[1].agrees); /* 13.28 for 12.8 GiB: 3.8 % */
    assert_true(fabs(at[1].part - 0.0376) < 0.001);
    assert_true(at[3].agrees && at[5].agrees && at[6].agrees && at[7].agrees);
    twin_study_close(&study, false);

    text.tolerance = 0.01;
    assert_ok(twin_study_run(&text, false, NULL, &study, &test_error));
    assert_true(study.page.reported[1].known && !study.page.reported[1].agrees);
    twin_study_close(&study, false);

    /* Figures of a step that fails are those at the failure; of later ones there are none. */
    assert_ok(scenario_set(&text, "kv", "bytes", "14GiB", &test_error));
    assert_ok(twin_study_run(&text, false, NULL, &study, &test_error));
    assert_true(study.page.reported[1].known && !study.page.reported[1].agrees);
    assert_false(study.page.reported[2].known);
    assert_string_equal(study.page.reported[7].ours, "out of memory");
    assert_false(study.page.reported[7].agrees);
    twin_study_close(&study, false);
}

static bool has_change(const struct twin_page *page, const char *words, double *peak_saved)
{
    for (size_t i = 0; i < page->whatif_count; i++)
        if (strstr(page->whatifs[i].text, words)) {
            *peak_saved = page->whatifs[i].peak_saved;
            return true;
        }
    return false;
}

/* The scenario of a text, run with changes. */
static void study_text(const char *text, struct scenario *scenario, struct twin_study *study)
{
    struct temporary_file file = temporary_file(text);
    *scenario = read_scenario(file.path);
    unlink(file.path);
    assert_ok(twin_study_run(scenario, true, NULL, study, &test_error));
}

TEST(orders_are_changed)
{
    CLOSED(scenario_close) struct scenario scenario;
    struct twin_study study;
    double saved = 0;
    study_text("[machine]\ncard = sim:profile=h100\n[process p]\n[buffer a]\nbytes = 4GiB\n"
               "[buffer b]\nbytes = 4GiB\n[buffer driver]\nbytes = 1GiB\nwhere = outside\n"
               "[schedule]\nstart = driver.load\ncycle = a.load, b.load, a.free, b.free\n"
               "cycles = 2\n",
               &scenario, &study);
    assert_true(has_change(&study.page, "a.free before b.load", &saved));
    assert_true(fabs(saved - 4 * (double)AR_GIB) < 0.5);
    assert_true(has_change(&study.page, "a.free before b.load, a.load before a.free", &saved));
    /* Two releases keep their order, and the driver's memory stays. */
    assert_false(has_change(&study.page, "b.free before a.free", &saved));
    assert_false(has_change(&study.page, "driver.free", &saved));
    twin_study_close(&study, false);
}

/* Pinning blocks share a row if all that it says is true of each: owner, bytes, phase and tag. */
TEST(pinning_blocks_that_differ_have_a_row_each)
{
    struct temporary_file trace =
        temporary_file("# allocrig-trace 1\na,0,2097152\na,1,4194304\na,2,2097152\na,3,4194304\n"
                       "f,0\nm,t.train\nf,1\na,4,2097152\nm,t.train\n");
    struct scenario scenario;
    struct twin_study study;
    struct capture capture;
    char text[400];
    snprintf(text, sizeof text,
             "[machine]\ncard = sim:capacity=8GiB\n[process p]\n[program t]\nworkload = %s\n"
             "[buffer b]\nbytes = 8GiB\n[schedule]\ncycles = 2\ncycle = t.play train\n"
             "end = b.load\n",
             trace.path);
    study_text(text, &scenario, &study);
    assert_ok(twin_page_print(capture_begin(&capture), &study.page, &test_error));
    FREED char *page = capture_end(&capture);
    if (!strstr(page, "\n 4.0       1  2.000  t/train  cycle 2, t.play train  -"
                      "\n 4.0       1  2.000  t/train  cycle 1, t.play train  -"
                      "\n 4.0       1  4.000  t/train  cycle 1, t.play train  -\n"))
        fail_msg("%s", page);
    twin_study_close(&study, false);
    scenario_close(&scenario);
    unlink(trace.path);
}

/* Streams can be merged only if there are several. */
TEST(streams_are_merged)
{
    static const char *const workloads[] = {"workloads/data/side_streams.default.csv.gz",
                                            "linear_ramp"};
    for (int i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "[machine]\ncard = sim:profile=h100\n[process p]\n[trainer t]\nworkload = %s\n"
                 "[schedule]\ncycle = t.train\ncycles = 2\n",
                 workloads[i]);
        CLOSED(scenario_close) struct scenario scenario;
        struct twin_study study;
        double saved = 0;
        study_text(text, &scenario, &study);
        assert_int_equal(has_change(&study.page, "its streams merged into one", &saved), !i);
        twin_study_close(&study, false);
    }
}

static enum twin_outcome outcome_with(const struct scenario *text, double fraction)
{
    struct scenario edited;
    struct twin_study study;
    char value[16];
    snprintf(value, sizeof value, "%.2f", fraction);
    assert_ok(scenario_copy(text, &edited, &test_error));
    assert_ok(scenario_set(&edited, "rollout", "gpu_memory_utilization", value, &test_error));
    assert_ok(twin_study_run(&edited, false, NULL, &study, &test_error));
    enum twin_outcome outcome = study.result.outcome;
    twin_study_close(&study, false);
    scenario_close(&edited);
    return outcome;
}

/* What the search says is so: the value passes and the next one does not. From below, and from
 * above. */
TEST(the_largest_cache_is_found)
{
    static const char *const begins[] = {"0.6", "0.99"};
    CLOSED(scenario_close)
    struct scenario text = read_scenario("workloads/scenarios/colocated.ini");
    double safe[2];
    for (int i = 0; i < 2; i++) {
        struct twin_study study;
        assert_ok(scenario_set(&text, "rollout", "gpu_memory_utilization", begins[i], &test_error));
        assert_ok(twin_study_run(&text, true, NULL, &study, &test_error));
        assert_int_equal(study.page.cache_count, 1);
        const struct twin_page_cache *cache = &study.page.caches[0];
        assert_string_equal(cache->option, "gpu_memory_utilization");
        safe[i] = cache->safe;
        assert_true(cache->blocks > 0 && fabs(cache->tokens - 16 * cache->blocks) < 0.5);
        assert_true(fabs(cache->tried - cache->safe - 0.01) < 1e-9);
        assert_true(cache->why[0] != '\0');
        twin_study_close(&study, false);
    }
    assert_true(fabs(safe[0] - safe[1]) < 1e-9);
    assert_int_equal(outcome_with(&text, safe[0]), TWIN_PASSED);
    assert_int_not_equal(outcome_with(&text, safe[0] + 0.01), TWIN_PASSED);

    /* By bytes. */
    struct twin_study study;
    assert_ok(scenario_set(&text, "rollout", "kv_cache_memory", "10GiB", &test_error));
    assert_ok(twin_study_run(&text, true, NULL, &study, &test_error));
    assert_string_equal(study.page.caches[0].option, "kv_cache_memory");
    assert_true(study.page.caches[0].is_bytes);
    assert_true(study.page.caches[0].safe > 60 * (double)AR_GIB);
    double step = floor((double)study.result.total_bytes / 200 / (double)AR_MIB) * (double)AR_MIB;
    assert_true(study.page.caches[0].tried - study.page.caches[0].safe == step);
    twin_study_close(&study, false);

    /* By number: in steps of a hundredth, up to four times as many and one step. */
    assert_ok(scenario_set(&text, "rollout", "kv_cache_memory", "0", &test_error));
    assert_ok(scenario_set(&text, "rollout", "num_gpu_blocks_override", "2399", &test_error));
    assert_ok(twin_study_run(&text, true, NULL, &study, &test_error));
    assert_string_equal(study.page.caches[0].option, "num_gpu_blocks_override");
    assert_false(study.page.caches[0].is_bytes);
    assert_true(study.page.caches[0].safe == (4 * 2399 / 23 + 1) * 23);
    assert_true(study.page.caches[0].blocks == study.page.caches[0].safe);
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

/* The tags of a trainer's blocks outlive its workload, which ends with the run. */
TEST(tags_of_pinning_blocks_stay)
{
    CLOSED(scenario_close) struct scenario scenario;
    struct twin_study study;
    size_t tags = 0;
    study_text("[machine]\ncard = sim:profile=h100\n[process p]\n[trainer t]\nlayers = 4\n"
               "weights = 1000MiB\noptimizer = 300MiB\nactivations = 3GiB\n"
               "[schedule]\nstart = t.load\ncycle = t.train, t.offload weights, t.onload\n",
               &scenario, &study);
    for (size_t i = 0; i < study.result.pin_count; i++)
        tags += study.result.pins[i].tag && strlen(study.result.pins[i].tag) < 100;
    assert_true(tags > 0);
    twin_study_close(&study, false);
}
