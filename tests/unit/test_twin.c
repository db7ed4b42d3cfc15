/* What scenarios of a twin (tests/steps/twin*) cannot say: structs that no file makes, a part of
 * the test, what a part offers, the sentence of a failure. */
#include "bench/report/twin_page.h"
#include "sim/twin/twin.h"
#include "tests/support/test.h"

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
        struct twin_fault wrong;
        enum ar_status status = twin_check(&scenario, &wrong, &error);
        assert_int_equal(status, cases[i].error ? AR_INVALID : AR_OK);
        assert_int_equal(wrong.part, cases[i].part);
        assert_string_equal(error.text, cases[i].error ? cases[i].error : "");
    }
}

/* A part of the test: 30 MiB are cached, then empty_cache is called while a region is open. */
static enum ar_status trims_act(struct twin_part *self, const struct twin_call *call, bool *more,
                                struct ar_error *error)
{
    const struct twin_region region = {.kind = TWIN_REGION_POOL, .tag = "weights"};
    struct twin_block block, inside;
    (void)call, (void)more;
    twin_alloc_for(self, 30 * AR_MIB, "cached", &block);
    twin_free(self, &block);
    enum ar_status status = twin_region_begin(self, &region, error);
    if (status != AR_OK)
        return status;
    twin_alloc_for(self, 40 * AR_MIB, "inside", &inside);
    twin_trim(self);
    twin_region_end(self);
    twin_figure(self, "reserved", (double)twin_pool_state(self).reserved_bytes / AR_MIB);
    return AR_OK;
}

static void check_trim(const char *policy, double mib)
{
    static const struct ar_option options[] = {{0}};
    static const struct twin_action actions[] = {{"go", NULL, "runs the test", 0, 0}, {0}};
    static const struct twin_part_ops trims = {.kind = "trims",
                                               .summary = "test",
                                               .options = options,
                                               .values_bytes = 1,
                                               .part_bytes = sizeof(struct twin_part),
                                               .actions = actions,
                                               .act = trims_act};
    const struct twin_process_setup process = {.name = "p", .policy = policy};
    const struct twin_part_setup part = {.name = "t", .ops = &trims, .process = "p"};
    struct twin_scenario scenario = {.device = "sim:profile=h100",
                                     .processes = &process,
                                     .process_count = 1,
                                     .parts = &part,
                                     .part_count = 1,
                                     .start = "t.go"};
    CLOSED(twin_result_close) struct twin_result result;
    assert_ok(twin_run(&scenario, &result, &test_error));
    assert_int_equal(result.figure_count, 1);
    assert_true(result.figures[0].value == mib);
}

/* pytorch/pytorch#158152: empty_cache does nothing inside of use_mem_pool; from 2.13 on it does. */
TEST(release_inside_of_a_pool)
{
    check_trim("torch:version=2.11", 30 + 40);
    check_trim("torch:version=2.13", 40);
    check_trim("torch", 40);
}

TEST(the_page_knows_the_option_of_the_cache)
{
    const struct twin_part_ops *ops = twin_part_find("engine");
    EACH_ROW (row, 3) {
        CLOSED(ar_spec_close) struct ar_spec spec = spec_of(row.field[0]);
        void *values = calloc(1, ops->values_bytes);
        assert_non_null(values);
        assert_int_equal(
            ar_options_read(ops->options, &spec.links[0], "engine", values, &test_error), AR_OK);
        assert_string_equal(ops->cache_option(values), row.field[1]);
        struct twin_what_if what;
        size_t changes = 0;
        while (ops->what_if(values, changes, &what)) {
            assert_true(what.option || what.action);
            changes++;
        }
        assert_int_equal(changes, cases_number(&row, 2));
        free(values);
    }
}
