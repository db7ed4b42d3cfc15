/* The parts nccl and graphs: memory beside the pool and in private pools, in scenarios whose
 * figures follow from the rules (test_twin_rules has those). */
#include "sim/twin/rules/graphs.h"
#include "tests/support/test.h"
#include "tests/support/twin_rig.h"

static const struct twin_process_setup processes[] = {
    {.name = "p", .policy = "torch", .cards = 0xff, .context_bytes = 500 * AR_MIB}};

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

/* The scenario of a section, which runs to its end. */
static struct twin_result run(const char *section)
{
    struct twin_result result = twin_rig_case(__FILE__, section);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    return result;
}

/* NVIDIA/nccl#964 on 8 cards: ranks at the end of the trees take less. */
TEST(communicators)
{
    CLOSED(twin_result_close) struct twin_result result = run(__func__);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "n/communicators"), 688 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 0, 1, "n/communicators"), 832 * AR_MIB);
    /* 32 channels to each of 7 ranks; an A100 reads: 6 MiB in both directions. */
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "n/communicators"),
                     (688 + 7 * 32 * 12) * AR_MIB);
    /* What the driver loaded stays: 100 MiB, 186 at the first operation, 58 at the all-to-all. */
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "n/kernels"), 286 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 2, 0)->used_bytes, 844 * AR_MIB);
}

TEST(groups_and_buffers_of_the_program)
{
    CLOSED(twin_result_close) struct twin_result result = run(__func__);
    uint64_t arrays = 2 * (3 * 32 + 2) * 2 * AR_MIB; /* 32 channels for sends and receives */
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "n/communicators"), arrays);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "n/buffers"), 6 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "n/kernels"), 20 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 7, "n/communicators"),
                     arrays + 2 * 24 * (2 + 10) * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 2, 0, "n/captured operations"), 0);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes, 526 * AR_MIB);
}

/* An H200 with PyTorch 2.11: outside of the pool 526.8 MiB, 618.8 after the first kernel, 692.8
 * after a step of a decoder, 762.8 with a stream. */
TEST(libraries_of_torch)
{
    static const uint64_t mib[] = {92, 92 + 74, 92 + 74 + 70, 92 + 74 + 70, 92 + 74 + 70 + 8 + 5};
    CLOSED(twin_result_close) struct twin_result result = run(__func__);
    for (size_t i = 0; i < 5; i++) {
        uint64_t pages = twin_rig_bytes(&result, i, 0, "p/pages");
        assert_int_equal((twin_card_at(&result, i, 0)->used_bytes - pages) / AR_MIB, 500 + mib[i]);
    }
    assert_int_equal(twin_rig_bytes(&result, 4, 7, "l/streams"), 70 * AR_MIB);
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
static void captures(const char *section, uint64_t pool_mib, uint64_t after_mib)
{
    CLOSED(twin_result_close) struct twin_result result = run(section);
    uint64_t driver = graphs_driver_bytes(0, 3, UINT64_C(3) * 5000);
    assert_true(driver > 30 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "g/driver"), driver);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "g/outputs"), 7 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 0, 0)->used_bytes - driver - 570 * AR_MIB,
                     pool_mib * AR_MIB);
    assert_int_equal(figure(&result, "graphs"), (pool_mib + 70) * AR_MIB + driver);
    assert_int_equal(twin_rig_bytes(&result, 2, 0, "g/driver"), driver); /* it stays */
    uint64_t beside = driver + (500 + 70) * AR_MIB;
    assert_int_equal(twin_rig_bytes(&result, 3, 0, "g/streams"), 70 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 2, 0)->used_bytes - beside, after_mib * AR_MIB);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes - beside, 2 * AR_MIB);
}

TEST(pools_of_graphs)
{
    /* 64 MiB of the largest serve the others; outputs of 4 and 2 MiB take a segment of 20 MiB, that
     * of 1 MiB one of 2 MiB. Another 2 MiB are of the random state in the common pool, which stays.
     */
    captures("captures_shared", 64 + 20 + 2 + 2, 64 + 20 + 2 + 2);
    captures("captures_each", 64 + 20 + 32 + 20 + 16 + 2 + 2, 64 + 20 + 32 + 20 + 16 + 2 + 2);
}

/* An H200 with PyTorch 2.11: a decoder of width 1024 with 4 layers and 32000 words in bfloat16, 8
 * sizes. Reserved bytes grow by 58 MiB at the first size and by none later in a shared pool; by 58,
 * 22, 22 and 2 for each smaller one in pools of their own; by 36, 22 and 2 if the smallest size is
 * captured first. */
static void check_card(const char *section, uint64_t mib)
{
    CLOSED(twin_result_close) struct twin_result result = run(section);
    uint64_t beside = twin_rig_bytes(&result, 0, 0, "g/driver") + 500 * AR_MIB;
    assert_int_equal((twin_card_at(&result, 0, 0)->used_bytes - beside) / AR_MIB, mib);
}

TEST(pools_on_a_card)
{
    check_card("card_shared", 58);
    check_card("card_each", 58 + 22 + 22 + 2 * 5);
    check_card("card_ascending", 36 + 22 + 2);
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
    assert_int_equal(figure(&result, "reserved"), mib);
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
        {{"nccl", "n", "p", {{"version", "2.13", false}}}, "n.init", "from 2.14 on"},
        {{"nccl", "n", "p", {{"groups", "8 x", false}}}, "n.init", "groups = 8 x"},
        {{"nccl", "n", "p", {{"groups", "", false}}}, "n.init", "groups = "},
        {{"nccl", "n", "p", {{"groups", "0", false}}}, "n.init", "groups = 0"},
        {{"nccl", "n", "p", {{"rank", "8", false}}}, "n.init", "rank = 8"},
        {{"nccl", "n", "p", {{"link", "ib", false}}}, "n.init", "link = ib"},
        {{"nccl", "n", "p", {{NULL, NULL, false}}}, "n.use ring", "use ring"},
        {{"nccl", "n", "p", {{NULL, NULL, false}}}, "n.use all_gather much", "much"},
        {{"libraries", "l", "p", {{NULL, NULL, false}}}, "l.load cudnn", "load cudnn"},
        {{"graphs", "g", "p", {{NULL, NULL, false}}}, "g.capture", "needs batch sizes"},
        {{"graphs", "g", "p", {{"sizes", "2 1", false}}}, "g.capture", "sizes = 2 1"},
        {{"graphs", "g", "p", {{"rules", "vllm", false}, {"version", "new", false}}},
         "g.capture",
         "version = new"},
        {{"graphs", "g", "p", {{"rules", "vllm", false}, {"sizes", "1", false}}},
         "g.capture",
         "leave one of them out"},
        {{"graphs", "g", "p", {{"sizes", "1", false}, {"driver", "x", false}}},
         "g.capture",
         "driver = x"},
        {{"graphs", "g", "p", {{"sizes", "1", false}}}, "g.capture, g.capture", "captured already"},
        {{"graphs", "g", "p", {{"sizes", "1", false}, {"requests", "2048 x", false}}},
         "g.capture",
         "requests = 2048 x"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal("sim:profile=h100", &cases[i].text, cases[i].start, cases[i].sentence);
}
