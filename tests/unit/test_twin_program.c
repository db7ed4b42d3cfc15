/* The part program of a twin: sections of a trace in another order, owners, MemPools that sleep,
 * refusals. */
#include <unistd.h>

#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "tests/support/twin_rig.h"

#define HEAD "# allocrig-trace 1\n"
/* Blocks 0 and 4 (a MemPool, entered twice) and 1 stay; 2 and 3 are freed by other sections. */
#define TRACE                                                                                      \
    HEAD "a,0,67108864,0,pool=1,mempool=plain\nm,e.load\n"                                         \
         "a,1,4194304\na,2,33554432\na,3,2097152\nf,3\nm,t.train\n"                                \
         "f,2\nm,t.drop\n"                                                                         \
         "a,4,67108864,0,pool=1,mempool=plain\nm,step\nm,e.load\n"                                 \
         "a,5,2097152\nm,t.train\nf,5\nm,other.end\n"

static void run(const char *trace, const char *schedule, const char *regions,
                struct twin_result *result)
{
    struct temporary_file file = temporary_file(trace);
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = schedule};
    const struct part_text parts[] = {
        {"program", "t", "p", {{"workload", file.path, false}}},
        {"program",
         "e",
         "p",
         {{"workload", file.path, false}, {"regions", regions, false}, {"backup", regions, false}}},
    };
    twin_rig_run(&scenario, parts, 2, result);
    assert_int_equal(result->outcome, TWIN_PASSED);
    twin_rig_check(result);
    unlink(file.path);
}

TEST(sections_are_played_in_any_order)
{
    CLOSED(twin_result_close) struct twin_result result;
    run(TRACE, "t.play train, t.play train, e.play load, t.play drop, e.play load", "", &result);
    const struct twin_rank_state *rank = twin_rank_at(&result, 0, 0);
    assert_int_equal(rank->allocated_bytes, 36 * AR_MIB);
    assert_int_equal(rank->peak_allocated_bytes, 38 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "t/train"), 36 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/train"), 38 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 2, 0, "e/load"), 64 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 3, 0, "t/train"), 6 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 4, 0, "e/load"), 128 * AR_MIB);
}

TEST(mempools_sleep)
{
    CLOSED(twin_result_close) struct twin_result result;
    run(TRACE,
        "e.play load, t.play train, e.play load, e.sleep weights, t.play drop, p.empty_cache, "
        "e.wake",
        "weights", &result);
    assert_int_equal(twin_card_at(&result, 2, 0)->used_bytes, (500 + 128 + 20 + 32) * AR_MIB);
    const struct twin_rank_state *rank = twin_rank_at(&result, 3, 0);
    assert_int_equal(rank->asleep_bytes, 128 * AR_MIB);
    assert_int_equal(rank->pinned_bytes, 128 * AR_MIB);
    assert_int_equal(rank->reserved_bytes, (128 + 20 + 32) * AR_MIB);
    assert_int_equal(twin_card_at(&result, 5, 0)->used_bytes, (500 + 20) * AR_MIB);
    assert_int_equal(twin_card_at(&result, 6, 0)->used_bytes, (500 + 128 + 20) * AR_MIB);
}

TEST(wrong_programs_are_refused)
{
    static const struct {
        const char *trace, *regions, *backup, *schedule, *part_of_the_sentence;
    } cases[] = {
        {HEAD "a,0,8\nm,x.load\n", "", "", "e.play load", "no mark that begins with \"e.\""},
        {TRACE, "a b", "", "e.play load", "2 tags, but the workload has 1 MemPools"},
        {TRACE, "a b c d e f g h i", "", "e.play load", "at most 8 tags"},
        {TRACE, "a", "b", "e.play load", "backup: \"b\" is not a tag"},
        {TRACE, "a", "a", "e.sleep b", "sleep: \"b\" is not a tag"},
        {TRACE, "", "", "e.play nothing", "the workload has no section \"e.nothing\""},
        {TRACE, "", "", "e.play load, e.play load, e.play load", "no more than 2 sections"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct temporary_file file = temporary_file(cases[i].trace);
        struct ar_spec_pair pairs[] = {{"workload", file.path, false},
                                       {"regions", cases[i].regions, false},
                                       {"backup", cases[i].backup, false}};
        const struct twin_part_setup part = {.name = "e",
                                             .ops = twin_part_find("program"),
                                             .process = "p",
                                             .options = {.pairs = pairs, .pair_count = 3}};
        struct twin_scenario scenario = {.processes = &twin_rig_process,
                                         .process_count = 1,
                                         .parts = &part,
                                         .part_count = 1,
                                         .device = "sim:capacity=8GiB",
                                         .start = cases[i].schedule};
        struct twin_result result;
        struct ar_error error = {0};
        assert_int_equal(twin_run(&scenario, &result, &error), AR_INVALID);
        if (!strstr(error.text, cases[i].part_of_the_sentence))
            fail_msg("case %zu: %s", i, error.text);
        unlink(file.path);
    }
}
