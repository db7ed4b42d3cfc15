/* Scenario files as text: sections, steps, reported figures, edits; a sentence with file and line
 * for each bad one. */
#include <unistd.h>

#include "bench/suite/scenario.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

static const char *const kinds[] = {"trainer", "engine"};

static enum ar_status read_text(const char *text, struct scenario *out, struct ar_error *error)
{
    struct temporary_file file = temporary_file(text);
    enum ar_status status = scenario_read(file.path, kinds, 2, out, error);
    unlink(file.path);
    if (!status)
        out->path = "FILE";
    return status;
}

static struct scenario read_good(const char *text)
{
    struct scenario file;
    assert_ok(read_text(text, &file, &test_error));
    return file;
}

#define HEAD                                                                                       \
    "[machine]\ncard = sim:profile=h100\n[process rl]\npolicy = torch\n"                           \
    "[trainer actor]\nworkload = a=b, c\n[engine rollout]\n"

TEST(sections_have_keys_and_lines)
{
    CLOSED(scenario_close) struct scenario file = read_good(HEAD);
    assert_int_equal(file.section_count, 4);
    assert_string_equal(file.sections[2].kind, "trainer");
    assert_string_equal(file.sections[2].name, "actor");
    assert_int_equal(file.sections[2].line, 5);
    assert_int_equal(file.sections[2].keys[0].line, 6);
    assert_string_equal(scenario_value(scenario_find(&file, "actor"), "workload"), "a=b, c");
    assert_int_equal(scenario_find(&file, "rollout")->key_count, 0);
    assert_null(scenario_value(scenario_find(&file, "rollout"), "workload"));
    assert_null(scenario_find(&file, "other"));
    assert_int_equal(file.cycles, 1);
}

TEST(steps_have_calls)
{
    CLOSED(scenario_close)
    struct scenario file = read_good(
        HEAD "[schedule]\nstart = rollout.load ,, actor.load\nstart = rollout.sleep\t 1  x,\n"
             "cycle = actor.train&rollout.generate   2\ncycles = 5\n");
    const struct scenario_steps *start = &file.lists[SCENARIO_START];
    assert_int_equal(start->count, 3);
    assert_string_equal(start->at[2].text, "rollout.sleep 1 x");
    assert_string_equal(start->at[2].calls[0].part, "rollout");
    assert_string_equal(start->at[2].calls[0].action, "sleep");
    assert_string_equal(start->at[2].calls[0].arguments, "1 x");
    assert_int_equal(start->at[2].line, 10);
    const struct scenario_step *both = &file.lists[SCENARIO_CYCLE].at[0];
    assert_int_equal(both->call_count, 2);
    assert_string_equal(both->text, "actor.train & rollout.generate 2");
    assert_string_equal(both->calls[0].arguments, "");
    assert_string_equal(both->calls[1].arguments, "2");
    assert_int_equal(file.cycles, 5);
}

TEST(reported_figures)
{
    CLOSED(scenario_close)
    struct scenario file = read_good(
        "[reported]\nsource = https://example.org/a?b=c\ntolerance = 10%\n"
        "rollout.sleep  1: card used = 5.5 GiB\ncycle 3 a.train & b.run: residue = 512MiB\n"
        "cycle last x.y: owner actor/kv cache = 1024\ndrift actor.train = -12MiB\n"
        "kv blocks = 12345\noutcome = out of memory\nengine.capture seq=8: graphs = 1KiB\n"
        "a.b: figure max concurrency = 12.5\n");
    const struct scenario_reported *at = file.reported;
    assert_string_equal(file.source, "https://example.org/a?b=c");
    assert_float_equal(file.tolerance, 0.1, 1e-12);
    assert_int_equal(file.reported_count, 8);
    assert_string_equal(at[0].step, "rollout.sleep 1");
    assert_int_equal(at[0].quantity, SCENARIO_CARD_USED);
    assert_int_equal(at[0].cycle, 0);
    assert_float_equal(at[0].value, 5.5 * (double)AR_GIB, 0.5);
    assert_string_equal(at[1].step, "a.train & b.run");
    assert_int_equal(at[1].cycle, 3);
    assert_int_equal(at[2].quantity, SCENARIO_OWNER);
    assert_string_equal(at[2].name, "actor/kv cache");
    assert_true(at[2].cycle == SCENARIO_CYCLE_LAST);
    assert_int_equal(at[3].quantity, SCENARIO_DRIFT);
    assert_string_equal(at[3].step, "actor.train");
    assert_float_equal(at[3].value, -12 * (double)AR_MIB, 0.5);
    assert_int_equal(at[4].quantity, SCENARIO_KV_BLOCKS);
    assert_float_equal(at[4].value, 12345, 0.5);
    assert_float_equal(at[5].value, 0, 0);
    assert_string_equal(at[6].step, "engine.capture seq=8");
    assert_int_equal(at[6].line, 10);
    assert_string_equal(at[7].name, "max concurrency");
    assert_float_equal(at[7].value, 12.5, 0);
}

static enum ar_status read_bad(const char *text, struct ar_error *error)
{
    struct scenario file;
    enum ar_status status = read_text(text, &file, error);
    assert_int_equal(status, AR_FORMAT);
    return status;
}

TEST(bad_files)
{
    cases_refused("scenario", "bad_files", read_bad);
}

TEST(edits)
{
    struct scenario file = read_good(HEAD "[schedule]\ncycle = actor.train, rl.empty_cache\n"),
                    copy;
    uint64_t hash = scenario_hash(&file);
    assert_ok(scenario_copy(&file, &copy, &test_error));
    assert_true(scenario_hash(&copy) == hash);
    assert_ok(scenario_set_text(&copy, "rl.policy=torch:a=b.c", &test_error));
    assert_string_equal(scenario_value(scenario_find(&copy, "rl"), "policy"), "torch:a=b.c");
    assert_true(scenario_hash(&copy) != hash);
    assert_string_equal(scenario_value(scenario_find(&file, "rl"), "policy"), "torch");
    assert_ok(scenario_set_text(&copy, "machine.cards=8", &test_error));
    assert_ok(scenario_set(&copy, "actor", "workload", NULL, 0, &test_error));
    assert_null(scenario_value(scenario_find(&copy, "actor"), "workload"));
    assert_ok(scenario_insert(&copy, SCENARIO_CYCLE, 1, "actor.free  logits", &test_error));
    assert_string_equal(copy.lists[SCENARIO_CYCLE].at[1].text, "actor.free logits");
    scenario_remove(&copy, SCENARIO_CYCLE, 0);
    assert_int_equal(copy.lists[SCENARIO_CYCLE].count, 2);
    assert_string_equal(copy.lists[SCENARIO_CYCLE].at[1].text, "rl.empty_cache");
    assert_ok(scenario_set_text(&copy, "schedule.cycle=rl.empty_cache", &test_error));
    assert_int_equal(copy.lists[SCENARIO_CYCLE].count, 1);
    assert_int_equal(file.lists[SCENARIO_CYCLE].count, 2);
    assert_says(scenario_set_text(&copy, "actr.x=1", &test_error), AR_INVALID,
                "there is no process or part \"actr\"; did you mean \"actor\"?");
    assert_int_equal(scenario_set_text(&copy, "actor", &test_error), AR_INVALID);
    assert_int_equal(scenario_set_text(&copy, "schedule.cycles=x", &test_error), AR_INVALID);
    assert_int_equal(scenario_set_text(&copy, "schedule.start=x", &test_error), AR_INVALID);
    scenario_close(&copy);
    assert_true(scenario_hash(&file) == hash);
    scenario_close(&file);
}
