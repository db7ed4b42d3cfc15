/* Scenarios of a twin: figures that can be derived by hand, pinning blocks, cards, refusals. */
#include "bench/report/twin_page.h"
#include "tests/support/test.h"
#include "tests/support/twin_rig.h"

TEST(a_buffer_has_its_owner)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_int_equal(result.phase_count, 2 + 9);
    twin_rig_check(&result);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "a/buffer"), 100 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "b/buffer"), 3 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "p/context"), 500 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "p/pages"), AR_MIB); /* outside: whole pages */
    for (size_t i = 0; i < result.owner_count; i++)
        if (strcmp(result.owners[i].name, "b/buffer") == 0)
            assert_int_equal(result.owners[i].kind, TWIN_OWNER_OUTSIDE);
    assert_int_equal(twin_card_at(&result, 1, 0)->used_bytes, 604 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 2, 0, "p/cached"), 100 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes, 504 * AR_MIB);
    double drift;
    assert_true(twin_drift(&result, 2, 0, 0, &drift));
    assert_true(drift == 0);
}

TEST(memory_runs_out)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_int_equal(result.failure.phase, 1);
    assert_int_equal(result.failure.bytes, 2 * AR_GIB);
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_CAPACITY);
    assert_string_equal(result.owners[result.failure.owner].name, "b/buffer");
    assert_string_equal(result.failure.why,
                        "b.load: 2.000 GiB of b/buffer do not fit on card 0, 524.0 MiB are free");
    twin_rig_check(&result);
}

/* A block at the address of one that was freed is the one that pins. */
TEST(pinning_blocks_are_the_present_ones)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    size_t found = 0;
    for (size_t i = 0; i < result.pin_count; i++) {
        const char *owner = result.owners[result.pins[i].owner].name;
        assert_string_not_equal(owner, result.pins[i].phase > 2 ? "a/buffer" : "");
        if (result.pins[i].phase + 1 < result.phase_count)
            continue;
        found++;
        /* The segment of 20 MiB has 13 free bytes for two blocks; that of d has none. */
        assert_int_equal(result.pins[i].keeps_bytes, 13 * AR_MIB / 2);
    }
    assert_int_equal(found, 2);
}

/* Segments that grow by pages have no free bytes; the most kept bytes come first. */
TEST(pinning_blocks_are_in_order)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    size_t last = result.pin_count - 4;
    static const char *const order[] = {"b/buffer", "c/buffer", "d/buffer", "a/buffer"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(result.owners[result.pins[last + i].owner].name, order[i]);
}

TEST(a_process_ends)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_string_equal(result.phases[1].text, "p.end");
    assert_string_equal(result.phases[2].text, "b.load");
    assert_int_equal(twin_card_at(&result, 1, 0)->used_bytes, 0);
    assert_int_equal(twin_card_at(&result, 2, 0)->used_bytes, 6 * AR_GIB + 500 * AR_MIB);
}

/* A request that the card could serve without the context of the process: the card is too small. */
/* The rest in pieces would serve this request alone: who holds the card is said first. */
TEST(other_processes_before_pieces)
{
    char text[256];
    const struct twin_owner owner = {.name = "job/activations"};
    struct twin_result result = {.outcome = TWIN_OUT_OF_MEMORY, .owners = &owner, .owner_count = 1};
    result.failure = (struct twin_failure){.bytes = 24 * AR_MIB,
                                           .unused_bytes = 26 * AR_MIB,
                                           .others_bytes = 22 * AR_GIB,
                                           .cause = REPLAY_CAUSE_FRAGMENTATION};
    twin_answer_failure(NULL, &result, text, sizeof text);
    assert_string_equal(text, "a request of 24.00 MiB for job/activations fails: other processes "
                              "hold 22.00 GiB of the card, and the 26.00 MiB that are left are in "
                              "pieces that are too small");
    result.failure.others_bytes = 25 * AR_MIB;
    twin_answer_failure(NULL, &result, text, sizeof text);
    assert_non_null(strstr(text, "fails: free memory is in pieces that are too small"));
}

TEST(a_context_is_no_cause)
{
    const struct part_text parts[] = {
        {"buffer", "a", "p", {{"bytes", "7700MiB", false}}},
        {"buffer", "b", "p", {{"bytes", "200MiB", false}, {"where", "outside", false}}},
    };
    const struct {
        const char *start;
        enum replay_cause cause;
    } cases[] = {{"a.load", REPLAY_CAUSE_CAPACITY}, {"b.load, a.load", REPLAY_CAUSE_CAPACITY}};
    for (size_t i = 0; i < 2; i++) {
        struct twin_scenario scenario = {.processes = &twin_rig_process,
                                         .process_count = 1,
                                         .device = "sim:capacity=8GiB",
                                         .start = cases[i].start};
        CLOSED(twin_result_close) struct twin_result result;
        twin_rig_run(&scenario, parts, 2, &result);
        assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
        assert_int_equal(result.failure.cause, cases[i].cause);
    }
}

TEST(blocks_pin_their_segments)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    /* Both are in one segment of 20 MiB. */
    const struct twin_pin *pin = &result.pins[result.pin_count - 1];
    assert_int_equal(pin->phase, 3);
    assert_int_equal(pin->segment_bytes, 20 * AR_MIB);
    assert_int_equal(pin->keeps_bytes, 16 * AR_MIB);
    assert_int_equal(pin->bytes, 4 * AR_MIB);
    assert_int_equal(twin_phase_find(&result, pin->born.stage, pin->born.cycle, pin->born.place),
                     1);
    assert_string_equal(result.owners[pin->owner].name, "b/buffer");
    assert_int_equal(twin_residue(twin_rank_at(&result, 3, 0)), 20 * AR_MIB);
}

TEST(cards_with_the_same_processes_are_the_same)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    assert_int_equal(result.card_count, 8);
    assert_int_equal(result.rank_count, 9);
    assert_int_equal(result.ranks[7].rank, 7);
    assert_int_equal(result.ranks[8].process, 1);
    for (unsigned card = 0; card < 8; card++)
        assert_int_equal(twin_card_at(&result, 1, card)->used_bytes,
                         AR_GIB + 100 * AR_MIB + (card ? 0 : 114 * AR_MIB));
}

TEST(wrong_scenarios_are_refused)
{
    const struct ar_spec_pair bytes = {"bytes", "64MiB", false},
                              weights = {"weights", "1GiB", false};
    const struct twin_part_setup parts[] = {
        {.name = "a",
         .ops = twin_part_find("buffer"),
         .process = "p",
         .options = {.pairs = &bytes, .pair_count = 1}},
        {.name = "t",
         .ops = twin_part_find("trainer"),
         .process = "p",
         .options = {.pairs = &weights, .pair_count = 1}},
    };
    EACH_ROW (row, 1) {
        const struct twin_scenario scenario = {.processes = &twin_rig_process,
                                               .process_count = 1,
                                               .parts = parts,
                                               .part_count = 2,
                                               .start = row.field[0]};
        CLOSED(twin_result_close) struct twin_result result;
        struct ar_error error = {""};
        enum ar_status status = twin_run(&scenario, &result, &error);
        assert_int_equal(status, row.field[1] ? AR_INVALID : AR_OK);
        if (row.field[1])
            assert_string_equal(error.text, row.field[1]);
    }
}

TEST(parts_and_processes_are_checked)
{
    static const struct ar_spec_pair bytes = {"bytes", "1MiB", false},
                                     bits = {"byte", "1MiB", false};
    static const struct twin_process_setup processes[] = {
        {.name = "p"}, {.name = "q", .cards = 2}, {.name = "p"}};
    static const struct {
        size_t processes;
        unsigned cards;
        const char *process;
        const struct ar_spec_pair *pair;
        size_t part;
        const char *error;
    } cases[] = {
        {1, 1, NULL, &bytes, SIZE_MAX, NULL},
        {2, 2, "q", &bytes, SIZE_MAX, NULL},
        {0, 1, NULL, &bytes, SIZE_MAX, "a scenario needs a process; add [process NAME]"},
        {2, 1, "p", &bytes, SIZE_MAX,
         "process q is on a card that the machine does not have: it has 1; set cards in [machine]"},
        {1, 65, "p", &bytes, SIZE_MAX, "a machine has at most 64 cards"},
        {2, 2, NULL, &bytes, 0, "buffer a needs its process; write process = NAME"},
        {2, 2, "r", &bytes, 0, "buffer a: there is no process \"r\"; add a section [process r]"},
        {1, 1, "p", &bits, 0, "buffer a has no option \"byte\"; did you mean \"bytes\"?"},
        {3, 2, "p", &bytes, SIZE_MAX,
         "two processes or parts have the name \"p\"; the schedule could not tell them apart"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct twin_part_setup part = {.name = "a",
                                             .ops = twin_part_find("buffer"),
                                             .process = cases[i].process,
                                             .options = {.pairs = cases[i].pair, .pair_count = 1}};
        const struct twin_scenario scenario = {.processes = processes,
                                               .process_count = cases[i].processes,
                                               .cards = cases[i].cards,
                                               .parts = &part,
                                               .part_count = 1,
                                               .start = "a.load"};
        struct ar_error error = {""};
        size_t wrong;
        enum ar_status status = twin_check(&scenario, &wrong, &error);
        assert_int_equal(status, cases[i].error ? AR_INVALID : AR_OK);
        assert_int_equal(wrong, cases[i].part);
        assert_string_equal(error.text, cases[i].error ? cases[i].error : "");
    }
}

TEST(pinned_memory_of_the_host_ends)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_PINNED);
    assert_true(result.failure.pinned);
    assert_string_equal(result.failure.why,
                        "b.load: 600.0 MiB of b/buffer do not fit into the host "
                        "memory that can be pinned, 1.500 GiB");
    assert_int_equal(twin_rank_at(&result, 0, 0)->pinned_bytes, AR_GIB);
}

TEST(long_schedules_keep_some_cycles)
{
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "a.load",
                                     .cycle = "b.load, b.free",
                                     .cycles = 1000,
                                     .cycles_kept = 100};
    const struct part_text parts[] = {
        {"buffer", "a", "p", {{"bytes", "4MiB", false}}},
        {"buffer", "b", "p", {{"bytes", "40MiB", false}}},
    };
    CLOSED(twin_result_close) struct twin_result result;
    double drift;
    twin_rig_run(&scenario, parts, 2, &result);
    twin_rig_check(&result);
    /* The first ten cycles, and every tenth. */
    assert_int_equal(result.phase_count, 1 + 2 * (10 + 99));
    assert_int_not_equal(twin_phase_find(&result, TWIN_CYCLE, 9, 1), SIZE_MAX);
    assert_int_equal(twin_phase_find(&result, TWIN_CYCLE, 11, 1), SIZE_MAX);
    assert_int_not_equal(twin_phase_find(&result, TWIN_CYCLE, 1000, 1), SIZE_MAX);
    assert_true(twin_drift(&result, 1, 0, 10, &drift));
    assert_true(drift == 0);
}

/* The block of `s` is born in cycle 29, which the result leaves out. */
TEST(a_pinning_block_knows_a_phase_that_was_left_out)
{
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "s.load",
                                     .cycle = "x.load, x.free, s.free, s.load, x.load, x.free",
                                     .cycles = 30,
                                     .cycles_kept = 10};
    const struct part_text parts[] = {
        {"buffer", "s", "p", {{"bytes", "2MiB", false}}},
        {"buffer", "x", "p", {{"bytes", "4MiB", false}}},
    };
    CLOSED(twin_result_close) struct twin_result result;
    twin_rig_run(&scenario, parts, 2, &result);
    assert_int_equal(twin_phase_find(&result, TWIN_CYCLE, 29, 3), SIZE_MAX);
    size_t found = 0;
    for (size_t i = 0; i < result.pin_count; i++) {
        const struct twin_pin *pin = &result.pins[i];
        if (result.phases[pin->phase].place == 0 && pin->bytes == 2 * AR_MIB) {
            assert_string_equal(pin->born.text, "s.load");
            assert_int_equal(pin->born.stage, TWIN_CYCLE);
            assert_int_equal(pin->born.cycle, 29);
            assert_int_equal(pin->born.place, 3);
            found++;
        }
    }
    assert_true(found > 0);
}
