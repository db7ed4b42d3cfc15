/* Scenario files as text: sections, steps, reported figures, edits; a sentence with file and line
 * for each bad one. */
#include <unistd.h>

#include "allocators/base/size.h"
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
    if (read_text(text, &file, &test_error))
        fail_msg("%s", test_error.text);
    return file;
}

#define HEAD                                                                                       \
    "[machine]\ncard = sim:profile=h100\n[process rl]\npolicy = torch\n"                           \
    "[trainer actor]\nworkload = a=b, c\n[engine rollout]\n"

TEST(sections_have_keys_and_lines)
{
    struct scenario file = read_good(HEAD);
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
    scenario_close(&file);
}

TEST(steps_have_calls)
{
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
    scenario_close(&file);
}

TEST(reported_figures)
{
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
    scenario_close(&file);
}

TEST(bad_files)
{
    static const struct {
        const char *text, *line, *says;
    } cases[] = {
        {"[process]\n", ":1:", "there is no section [process]; did you mean [process NAME]?"},
        {"[trainr x]\n", ":1:", "did you mean [trainer NAME]?"},
        {"[process a b]\n", ":1:", "\"a b\" is no name of a process or part"},
        {"[process 1]\n", ":1:", "is no name"},
        {"[trainer a.b]\n", ":1:", "is no name"},
        {"[trainer machine]\n", ":1:", "not machine"},
        {"[engine cycle]\n", ":1:", "is no name"},
        {"[process a]\n\n[trainer a]\n", ":3:", "there is a [process a] already, in line 1"},
        {"[machine]\n[machine]\n", ":2:", "there is a [machine] already"},
        {"card = sim\n", ":1:", "before the first section"},
        {"[machine]\ncard\n", ":2:", "not of the form key = value"},
        {"[machine]\ncard = a\ncard = b\n", ":3:", "card is given a second time, first in line 2"},
        {"[schedule]\nstart = a.b, c\n", ":2:", "\"c\" is no step; write PART.ACTION"},
        {"[schedule]\nstart = .b\n", ":2:", "is no step"},
        {"[schedule]\nstart = a.\n", ":2:", "is no step"},
        {"[schedule]\nstart = a b.c\n", ":2:", "is no step"},
        {"[schedule]\ncycle = a.b & \n", ":2:", "is no step"},
        {"[schedule]\ncycle = a.b&b.b&c.b&d.b&e.b&f.b&g.b&h.b&i.b\n", ":2:", "more than 8 actions"},
        {"[schedule]\ncycle = a.b & c.d & a.e\n", ":2:", "two actions of one part side by side"},
        {"[schedule]\n[machine]\n[schedule]\n", ":3:", "there is a [schedule] already, in line 1"},
        {"[reported]\n[reported]\n", ":2:", "there is a [reported] already, in line 1"},
        {"[schedule]\ncycles = 1\ncycles = 2\n", ":3:", "second time, first in line 2"},
        {"[trainr x]\n[engin y]\n", ":1:", "did you mean [trainer NAME]?"},
        {"[schedule]\ncycels = 3\n", ":2:", "\"cycels\" is no key of [schedule]"},
        {"[schedule]\ncycles = many\n", ":2:", "write 0 to 1000000"},
        {"[schedule]\ncycles = 1000001\n", ":2:", "write 0 to 1000000"},
        {"[schedule]\ncycles = -1\n", ":2:", "write 0 to 1000000"},
        {"[reported]\na.b: card usd = 1GiB\n",
         ":2:", "\"card usd\" is no figure; did you mean card used?"},
        {"[reported]\na.b: bytes of all kinds = 1GiB\n", ":2:", "one of: card used, card free"},
        {"[reported]\na.b: owner = 1GiB\n", ":2:", "is no figure"},
        {"[reported]\na.b: card used = 5.6 GB of it\n", ":2:", "is no size"},
        {"[reported]\na.b: card used = -1GiB\n", ":2:", "is no size"},
        {"[reported]\na.b: figure x = 0x\n", ":2:", "is no number and no size"},
        {"[reported]\nkv blocks = 1.5\n", ":2:", "is no number; write digits alone"},
        {"[reported]\noutcome = crash\n", ":2:", "write fits, out of memory or refused"},
        {"[reported]\ncycle 0 a.b: residue = 1\n", ":2:", "has no cycle"},
        {"[reported]\ncycle 18446744073709551615 a.b: residue = 1\n", ":2:", "has no cycle"},
        {"[reported]\ncycle 3: residue = 1\n", ":2:", "has no cycle"},
        {"[reported]\ntolerance = none\n", ":2:", "write 5% or 0.05"},
        {"[reported]\ntolerance = nan\n", ":2:", "write 5% or 0.05"},
        {"[reported]\ntolerance = 200%\n", ":2:", "write 5% or 0.05"},
        {"[reported]\nresidue\n", ":2:", "write STEP: QUANTITY = VALUE"},
        {"[reported]\n= 5\n", ":2:", "write STEP: QUANTITY = VALUE"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario file;
        struct ar_error error = {""};
        enum ar_status status = read_text(cases[i].text, &file, &error);
        if (status != AR_FORMAT || !strstr(error.text, cases[i].line) ||
            !strstr(error.text, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].text, status, error.text);
    }
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
    assert_ok(scenario_set(&copy, "actor", "workload", NULL, &test_error));
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
                "did you mean actor?");
    assert_int_equal(scenario_set_text(&copy, "actor", &test_error), AR_INVALID);
    assert_int_equal(scenario_set_text(&copy, "schedule.cycles=x", &test_error), AR_INVALID);
    assert_int_equal(scenario_set_text(&copy, "schedule.start=x", &test_error), AR_INVALID);
    scenario_close(&copy);
    assert_true(scenario_hash(&file) == hash);
    scenario_close(&file);
}
