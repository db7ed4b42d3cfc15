/* The parts nccl and graphs: memory beside the pool and in private pools, in scenarios whose
 * figures follow from the rules (test_twin_rules has those). */
#include "sim/twin/rules/graphs.h"
#include "sim/twin/twin.h"
#include "tests/support/test.h"

static const struct twin_process_setup processes[] = {
    {.name = "p", .policy = "torch", .cards = 0xff, .context_bytes = 500 * AR_MIB}};

struct part_text {
    const char *kind, *name;
    struct ar_spec_pair pairs[9];
};

static enum ar_status try(const struct twin_scenario *given, const struct part_text *text,
                          struct twin_result *result, struct ar_error *error)
{
    struct twin_scenario scenario = *given;
    size_t pairs = 0;
    while (text->pairs[pairs].key)
        pairs++;
    struct twin_part_setup part = {.name = text->name,
                                   .ops = twin_part_find(text->kind),
                                   .process = "p",
                                   .options = {.pairs = text->pairs, .pair_count = pairs}};
    assert_non_null(part.ops);
    scenario.processes = processes;
    scenario.process_count = 1;
    scenario.parts = &part;
    scenario.part_count = 1;
    return twin_run(&scenario, result, error);
}

static void run(const struct twin_scenario *scenario, const struct part_text *text,
                struct twin_result *result)
{
    assert_ok(try(scenario, text, result, &test_error));
    assert_int_equal(result->outcome, TWIN_PASSED);
}

static void expect_refusal(const char *device, const struct part_text *text, const char *start,
                           const char *sentence)
{
    struct twin_scenario scenario = {.device = device, .cards = 8, .start = start};
    struct twin_result result;
    struct ar_error error = {""};
    enum ar_status status = try(&scenario, text, &result, &error);
    if (status == AR_OK) {
        snprintf(error.text, sizeof error.text, "%s", result.failure.why);
        twin_result_close(&result);
    }
    if (!strstr(error.text, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, error.text);
}

static uint64_t bytes_of(const struct twin_result *result, size_t phase, unsigned card,
                         const char *owner)
{
    const struct twin_card_state *state = twin_card_at(result, phase, card);
    uint64_t sum = 0, found = 0;
    for (size_t i = 0; i < state->amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[state->amounts.first + i];
        sum += amount->bytes;
        if (strcmp(result->owners[amount->owner].name, owner) == 0)
            found = amount->bytes;
    }
    assert_int_equal(sum, state->used_bytes);
    return found;
}

/* NVIDIA/nccl#964 on 8 cards: ranks at the end of the trees take less. */
TEST(communicators)
{
    struct twin_scenario scenario = {.device = "sim:profile=a100-80",
                                     .cards = 8,
                                     .start = "n.use, n.use all_to_all, n.finalize"};
    struct part_text text = {"nccl", "n", {{"version", "2.18", false}, {"groups", "8", false}}};
    struct twin_result result;
    run(&scenario, &text, &result);
    assert_int_equal(bytes_of(&result, 0, 0, "n/communicators"), 688 * AR_MIB);
    assert_int_equal(bytes_of(&result, 0, 1, "n/communicators"), 832 * AR_MIB);
    /* 32 channels to each of 7 ranks; an A100 reads: 6 MiB in both directions. */
    assert_int_equal(bytes_of(&result, 1, 0, "n/communicators"), (688 + 7 * 32 * 12) * AR_MIB);
    /* What the driver loaded stays: 100 MiB, 186 at the first operation, 58 at the all-to-all. */
    assert_int_equal(bytes_of(&result, 0, 0, "n/kernels"), 286 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 2, 0)->used_bytes, 844 * AR_MIB);
    twin_result_close(&result);
}

TEST(groups_and_buffers_of_the_program)
{
    struct twin_scenario scenario = {.device = "sim:profile=h100",
                                     .cards = 8,
                                     .start = "n.init, n.use all_gather 1MiB, n.capture 10",
                                     .end = "n.finalize"};
    struct part_text text = {"nccl",
                             "n",
                             {{"groups", "2, 2", false},
                              {"rank", "0", false},
                              {"nvls", "false", false},
                              {"mem_alloc", "5MiB", false},
                              {"kernels", "20MiB", false},
                              {"operation", "6MiB", false},
                              {"version", "2.22.3", false}}};
    struct twin_result result;
    run(&scenario, &text, &result);
    uint64_t arrays = 2 * (3 * 32 + 2) * 2 * AR_MIB; /* 32 channels for sends and receives */
    assert_int_equal(bytes_of(&result, 0, 0, "n/communicators"), arrays);
    assert_int_equal(bytes_of(&result, 0, 0, "n/buffers"), 6 * AR_MIB);
    assert_int_equal(bytes_of(&result, 0, 0, "n/kernels"), 20 * AR_MIB);
    assert_int_equal(bytes_of(&result, 1, 7, "n/communicators"),
                     arrays + 2 * 24 * (2 + 10) * AR_MIB);
    assert_int_equal(bytes_of(&result, 2, 0, "n/captured operations"), 0);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes, 526 * AR_MIB);
    twin_result_close(&result);
}

/* An H200 with PyTorch 2.11: outside of the pool 526.8 MiB, 618.8 after the first kernel, 692.8
 * after a step of a decoder, 762.8 with a stream. */
TEST(libraries_of_torch)
{
    struct twin_scenario scenario = {
        .device = "sim:profile=h200",
        .cards = 8,
        .start =
            "l.load kernels, l.load products attention, l.load streams, l.load products, l.load"};
    struct part_text text = {"libraries", "l", {{"others", "5MiB", false}}};
    static const uint64_t mib[] = {92, 92 + 74, 92 + 74 + 70, 92 + 74 + 70, 92 + 74 + 70 + 8 + 5};
    struct twin_result result;
    run(&scenario, &text, &result);
    for (size_t i = 0; i < 5; i++) {
        uint64_t pages = bytes_of(&result, i, 0, "p/pages");
        assert_int_equal((twin_card_at(&result, i, 0)->used_bytes - pages) / AR_MIB, 500 + mib[i]);
    }
    assert_int_equal(bytes_of(&result, 4, 7, "l/streams"), 70 * AR_MIB);
    twin_result_close(&result);
}

static double figure(const struct twin_result *result, const char *name)
{
    double value = -1;
    for (size_t i = 0; i < result->figure_count; i++)
        if (strcmp(result->figures[i].name, name) == 0 && result->figures[i].rank == 0 &&
            result->figures[i].value > value)
            value = result->figures[i].value;
    return value;
}

/* Sizes 1, 2, 4 with 16 MiB a token and 1 MiB kept of each. */
static void captures(const char *pool, uint64_t pool_mib, uint64_t after_mib)
{
    struct twin_scenario scenario = {.device = "sim:profile=h100",
                                     .cards = 8,
                                     .start = "g.capture, g.replay 3, g.release, p.empty_cache"};
    struct part_text text = {"graphs",
                             "g",
                             {{"sizes", "1 2 4", false},
                              {"layers", "16", false},
                              {"bytes_per_token", "16MiB", false},
                              {"kept_per_token", "1MiB", false},
                              {"kernels", "5000", false},
                              {"streams", "70MiB", false},
                              {"pool", pool, false}}};
    struct twin_result result;
    run(&scenario, &text, &result);
    uint64_t driver = graphs_driver_bytes(0, 3, UINT64_C(3) * 5000);
    assert_true(driver > 30 * AR_MIB);
    assert_int_equal(bytes_of(&result, 0, 0, "g/driver"), driver);
    assert_int_equal(bytes_of(&result, 0, 0, "g/outputs"), 7 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 0, 0)->used_bytes - driver - 570 * AR_MIB,
                     pool_mib * AR_MIB);
    assert_int_equal(figure(&result, "graphs"), (pool_mib + 70) * AR_MIB + driver);
    assert_int_equal(bytes_of(&result, 2, 0, "g/driver"), driver); /* it stays */
    uint64_t beside = driver + (500 + 70) * AR_MIB;
    assert_int_equal(bytes_of(&result, 3, 0, "g/streams"), 70 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 2, 0)->used_bytes - beside, after_mib * AR_MIB);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes - beside, 2 * AR_MIB);
    twin_result_close(&result);
}

TEST(pools_of_graphs)
{
    /* 64 MiB of the largest serve the others; outputs of 4 and 2 MiB take a segment of 20 MiB, that
     * of 1 MiB one of 2 MiB. Another 2 MiB are of the random state in the common pool, which stays.
     */
    captures("shared", 64 + 20 + 2 + 2, 64 + 20 + 2 + 2);
    captures("each", 64 + 20 + 32 + 20 + 16 + 2 + 2, 64 + 20 + 32 + 20 + 16 + 2 + 2);
}

/* An H200 with PyTorch 2.11: a decoder of width 1024 with 4 layers and 32000 words in bfloat16, 8
 * sizes. Reserved bytes grow by 58 MiB at the first size and by none later in a shared pool; by 58,
 * 22, 22 and 2 for each smaller one in pools of their own; by 36, 22 and 2 if the smallest size is
 * captured first. */
static void check_card(const char *pool, const char *order, uint64_t mib)
{
    struct twin_scenario scenario = {
        .device = "sim:profile=h200", .cards = 8, .start = "g.capture"};
    struct part_text text = {
        "graphs",
        "g",
        {{"sizes", "1 2 4 8 16 32 64 128", false},
         {"layers", "4", false},
         {"requests", "2048:1 6144:9 2048:1 2048:1 2048:5 2048:1 8192:1 8192:1 2048:1 2048:5",
          false},
         {"kept_per_token", "64000", false},
         {"workspace", "32MiB", false},
         {"pool", pool, false},
         {"order", order, false}}};
    struct twin_result result;
    run(&scenario, &text, &result);
    uint64_t beside = bytes_of(&result, 0, 0, "g/driver") + 500 * AR_MIB;
    assert_int_equal((twin_card_at(&result, 0, 0)->used_bytes - beside) / AR_MIB, mib);
    twin_result_close(&result);
}

TEST(pools_on_a_card)
{
    check_card("shared", "descending", 58);
    check_card("each", "descending", 58 + 22 + 22 + 2 * 5);
    check_card("shared", "ascending", 36 + 22 + 2);
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
    struct twin_result result;
    assert_ok(twin_run(&scenario, &result, &test_error));
    assert_int_equal(figure(&result, "reserved"), mib);
    twin_result_close(&result);
}

/* pytorch/pytorch#158152: empty_cache does nothing inside of use_mem_pool; from 2.13 on it does. */
TEST(release_inside_of_a_pool)
{
    check_trim("torch:version=2.11", 30 + 40);
    check_trim("torch:version=2.13", 40);
    check_trim("torch", 40);
}

TEST(wrong_options)
{
    static const struct {
        struct part_text text;
        const char *start, *sentence;
    } cases[] = {
        {{"nccl", "n", {{"version", "2.13", false}}}, "n.init", "from 2.14 on"},
        {{"nccl", "n", {{"groups", "8 x", false}}}, "n.init", "groups = 8 x"},
        {{"nccl", "n", {{"groups", "", false}}}, "n.init", "groups = "},
        {{"nccl", "n", {{"groups", "0", false}}}, "n.init", "groups = 0"},
        {{"nccl", "n", {{"rank", "8", false}}}, "n.init", "rank = 8"},
        {{"nccl", "n", {{"link", "ib", false}}}, "n.init", "link = ib"},
        {{"nccl", "n", {{NULL, NULL, false}}}, "n.use ring", "use ring"},
        {{"nccl", "n", {{NULL, NULL, false}}}, "n.use all_gather much", "much"},
        {{"libraries", "l", {{NULL, NULL, false}}}, "l.load cudnn", "load cudnn"},
        {{"graphs", "g", {{NULL, NULL, false}}}, "g.capture", "needs batch sizes"},
        {{"graphs", "g", {{"sizes", "2 1", false}}}, "g.capture", "sizes = 2 1"},
        {{"graphs", "g", {{"rules", "vllm", false}, {"version", "new", false}}},
         "g.capture",
         "version = new"},
        {{"graphs", "g", {{"rules", "vllm", false}, {"sizes", "1", false}}},
         "g.capture",
         "leave one of them out"},
        {{"graphs", "g", {{"sizes", "1", false}, {"driver", "x", false}}},
         "g.capture",
         "driver = x"},
        {{"graphs", "g", {{"sizes", "1", false}}}, "g.capture, g.capture", "captured already"},
        {{"graphs", "g", {{"sizes", "1", false}, {"requests", "2048 x", false}}},
         "g.capture",
         "requests = 2048 x"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal("sim:profile=h100", &cases[i].text, cases[i].start, cases[i].sentence);
}
