/* Sizing rules of models and of vLLM against printed figures: in documentation, and in logs in
 * public issues, whose addresses are in the tables. A log prints GiB with two digits, so a figure
 * that is computed from such figures must lie within their rounding. Figures that are computed from
 * whole numbers must be equal. */
#include <math.h>

#include "sim/twin/rules/graphs.h"
#include "sim/twin/rules/vllm.h"
#include "tests/support/rule_rig.h"
#include "tests/support/test.h"

#define GIB     ((double)AR_GIB)
#define ROUNDED 0.005 /* of a figure with two digits */
#define VLLM    "github.com/vllm-project/vllm/issues/"

static struct vllm_version vllm(const char *text)
{
    struct vllm_version version;
    assert_ok(vllm_version_read(text, &version, &test_error));
    return version;
}

/* Models that are no presets. */
static const struct llm others[] = {
    {.name = "llama-3.2-11b-vision", .layers = 40, .heads = 32, .kv_heads = 8, .head = 128},
    {.name = "qwen-7b", .layers = 32, .heads = 32, .kv_heads = 32, .head = 128},
    {.name = "deepseek-coder-6.7b", .layers = 32, .heads = 32, .kv_heads = 32, .head = 128},
    /* without latent attention keys and values have padded heads of 256 values */
    {.name = "deepseek-v2-lite-mha", .layers = 27, .heads = 16, .kv_heads = 16, .head = 256},
};

static const struct llm *any_model(const char *name)
{
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(others[i].name, name) == 0)
            return &others[i];
    return model(name);
}

/* ---- weights ---- */

TEST(parameters_are_those_of_the_model_cards)
{
    EACH_ROW (row, 3)
        within(row.field[0], (double)llm_parameters(model(row.field[0])), cases_real(&row, 1),
               cases_real(&row, 2));
}

TEST(weights_are_those_that_were_loaded)
{
    EACH_ROW (row, 5) {
        struct llm_rank rank = rank_of(cases_number(&row, 2));
        within(row.field[0], (double)llm_weights_bytes(model(row.field[1]), &rank) / GIB,
               cases_real(&row, 3), cases_real(&row, 4));
    }
}

TEST(ranks_divide_the_model)
{
    const struct llm *large = model("llama-3.1-70b");
    uint64_t sum = 0;
    for (uint64_t stage = 0; stage < 3; stage++) {
        struct llm_rank rank = {
            .tensor_parallel = 8, .pipeline_parallel = 3, .stage = stage, .value_bytes = 2};
        assert_ok(llm_check(large, &rank, &test_error));
        assert_int_equal(llm_stage_layers(large, &rank), stage == 2 ? 26 : 27);
        sum += llm_weights_bytes(large, &rank);
    }
    /* norms are on each rank */
    struct llm_rank whole = {.tensor_parallel = 1, .pipeline_parallel = 1, .value_bytes = 2};
    uint64_t norms = 161 * 8192 * 2;
    assert_int_equal(sum * 8, llm_weights_bytes(large, &whole) + 7 * norms);
    struct llm_rank odd = rank_of(3);
    assert_says(llm_check(large, &odd, &test_error), AR_INVALID, "64 heads cannot be divided");
    struct llm_rank many = {.tensor_parallel = 1, .pipeline_parallel = 100, .value_bytes = 2};
    assert_int_equal(llm_check(large, &many, &test_error), AR_INVALID);
    many.pipeline_parallel = 80;
    assert_ok(llm_check(large, &many, &test_error));
    /* experts: divided by width, or whole ones */
    struct llm_rank wide = rank_of(8), expert = rank_of(8);
    expert.expert_parallel = true;
    const struct llm *moe = model("qwen3-30b-a3b");
    assert_int_equal(llm_weights_bytes(moe, &wide), llm_weights_bytes(moe, &expert));
    /* replicas divide whole experts, and nothing else */
    struct llm_rank alone = rank_of(1), replica = rank_of(1);
    replica.expert_parallel = true;
    replica.data_parallel = 2;
    uint64_t half = moe->layers * moe->experts / 2 * 3 * moe->expert_ffn * moe->hidden * 2;
    assert_int_equal(llm_weights_bytes(moe, &alone) - llm_weights_bytes(moe, &replica), half);
    /* experts alone in 4 bits: vllm#45178, MiniMax M2.5 on two ranks, computed by hand: 66.3 GiB */
    replica.experts_only = true;
    replica.quantization = LLM_NVFP4;
    within(VLLM "45178", (double)llm_weights_bytes(model("minimax-m2"), &replica) / GIB, 66.3, 0.3);
    /* an encoder of images: Qwen3-VL's has 0.58 billion parameters */
    within("Qwen3-VL",
           (double)(llm_parameters(model("qwen3-vl-8b")) - llm_parameters(model("qwen3-8b"))) / 1e9,
           0.58, 0.03);
    /* quantised: bytes of a weight, with scales */
    struct llm_rank int4 = rank_of(1);
    int4.quantization = LLM_INT4;
    within(VLLM "13882", (double)llm_weights_bytes(model("qwen2.5-7b"), &int4) / GIB, 5.2032, 0.01);
}

/* A layer by hand: products of 256 to 512, 256 to 256, 256 to 1024 and 512 to 256; two norms. */
TEST(quantised_layers_are_those_by_hand)
{
    const uint64_t values = 256 * (512 + 256 + 1024) + 512 * 256, norms = 2 * 256 * 2;
    const struct {
        enum llm_quantization quantization;
        uint64_t bytes;
    } table[] = {
        {LLM_PLAIN, 2 * values},
        {LLM_FP8, values + 4 * 4},
        /* a scale for each block of 128 x 128 */
        {LLM_FP8_BLOCK, values + 4 * (4 * 2 + 2 * 2 + 8 * 2 + 2 * 4)},
        /* a scale for each output */
        {LLM_INT8, values + 4 * (512 + 256 + 1024 + 256)},
        /* a scale of 2 bytes and half a byte of zero for 128 inputs of an output */
        {LLM_INT4, values / 2 + 5 * (512 * 2 + 256 * 2 + 1024 * 2 + 256 * 4) / 2},
        /* a byte for 16 inputs, and two scales of a product; a byte for 32 inputs */
        {LLM_NVFP4, values / 2 + values / 16 + 4 * 8},
        {LLM_MXFP4, values / 2 + values / 32},
    };
    struct llm two = {.layers = 2,
                      .hidden = 256,
                      .heads = 2,
                      .kv_heads = 1,
                      .head = 128,
                      .ffn = 512,
                      .vocabulary = 1000,
                      .positions = 100};
    struct llm one = two;
    one.layers = 1;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct llm_rank rank = rank_of(1);
        rank.quantization = table[i].quantization;
        uint64_t layer = llm_weights_bytes(&two, &rank) - llm_weights_bytes(&one, &rank);
        if (layer != table[i].bytes + norms)
            fail_msg("row %zu: %" PRIu64 " bytes, expected %" PRIu64, i, layer,
                     table[i].bytes + norms);
    }
}

/* ---- vLLM: the account of the profile run ---- */

TEST(the_rest_of_the_account_is_what_was_printed)
{
    EACH_ROW (row, 8) {
        double weights = cases_real(&row, 4), peak = cases_real(&row, 6);
        struct vllm_version version = vllm(row.field[1]);
        bool whole_peak = vllm_account_of(version) == VLLM_TORCH_PEAK;
        double used = (whole_peak ? 0 : weights) + cases_real(&row, 5);
        struct vllm_profile profile = {
            .total_bytes = (uint64_t)(cases_real(&row, 2) * GIB),
            .free_start = (uint64_t)(cases_real(&row, 2) * GIB),
            .free_after = (uint64_t)((cases_real(&row, 2) - used) * GIB),
            .reserved_after = (uint64_t)(weights * GIB),
            .weights_bytes = (uint64_t)(weights * GIB),
            .allocated_before = (uint64_t)(weights * GIB),
            .allocated_after = whole_peak ? 0 : (uint64_t)(weights * GIB),
            .peak_bytes = (uint64_t)((weights + peak) * GIB),
        };
        double rest = vllm_available(version, cases_real(&row, 3), &profile) / GIB;
        within(row.field[0], rest, cases_real(&row, 7), 5 * ROUNDED);
    }
}

TEST(accounts_of_the_versions)
{
    /* 10 GiB free at first; weights 4, activations up to 2 more of which 1 stays reserved, 0.5
     * outside; a neighbour on the card has 6 of 16 */
    struct vllm_profile profile = {
        .total_bytes = 16 * AR_GIB,
        .free_start = 10 * AR_GIB,
        .free_after = 5 * AR_GIB,
        .reserved_after = 9 * AR_GIB / 2,
        .weights_bytes = 4 * AR_GIB,
        .allocated_before = 4 * AR_GIB,
        .peak_bytes = 6 * AR_GIB,
        .allocated_after = 4 * AR_GIB,
        .graphs_bytes = AR_GIB,
    };
    const struct {
        const char *version;
        double gib;
    } table[] = {
        {"0.6.3", 8 - 5},     /* the drop of free memory */
        {"0.6.4", 8 - 6 - 7}, /* the neighbour counts */
        {"0.8.5", 8 - 6 - 7},      {"0.8.5-v0", 8 - 4 - 2 - 0.5},
        {"0.9.0", 8 - 6 - 7},      {"0.9.1", 8 - 4 - 2 - 0.5},
        {"0.11", 8 - 4 - 2 - 0.5}, {"0.21.0", 8 - 4 - 2 - 0.5 - 1}, /* graphs are estimated */
        {"0.27.1", 8 - 5 - 2 - 1},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        profile.graphs_bytes = vllm_estimates_graphs(vllm(table[i].version)) ? AR_GIB : 0;
        within(table[i].version, vllm_available(vllm(table[i].version), 0.5, &profile) / GIB,
               table[i].gib, 1e-9);
    }
    within("0.20", vllm_utilization(vllm("0.20")), 0.9, 0);
    within("0.21.0", vllm_utilization(vllm("0.21.0")), 0.92, 0);
}

TEST(graphs_are_estimated_from_two)
{
    const uint64_t mib = AR_MIB;
    const struct vllm_graphs modes[] = {
        {51, 120 * mib, 6 * mib}, {35, 90 * mib, 0}, {0, 500 * mib, mib}};
    assert_int_equal(vllm_graphs_estimate(modes, 3), (120 + 50 * 6 + 34) * mib);
    assert_int_equal(vllm_graphs_estimate(modes, 0), 0);
}

/* "Replace gpu_memory_utilization config with `--kv-cache-memory=151519866880` to fit into
 * requested memory", with what is available and what the graphs took. */
#define LLMD "llm-d/llm-d-benchmark config_explorer/empirical-vllm-memory-results.md"
static const struct {
    const char *source;
    double available, graphs, bytes;
} suggestions[] = {
    {"github.com/vllm-project/vllm/pull/21489", 160.53 - 8.58 - 9.96 - 0.07, 0.65, 151519866880},
    {LLMD, 50.28, 0.39, 53414341735},
    {LLMD, 32.00, -0.42, 34644505703},
    {LLMD, 51.38, -0.45, 55491753575},
    {LLMD, 64.45, 0.10, 68930180199},
};

TEST(the_suggested_cache_is_what_was_printed)
{
    for (size_t i = 0; i < COUNT(suggestions); i++)
        within(suggestions[i].source,
               vllm_suggested(suggestions[i].available * GIB, suggestions[i].graphs * GIB) / GIB,
               suggestions[i].bytes / GIB, 5 * ROUNDED);
    assert_false(vllm_suggests(vllm("0.10.1")));
    assert_true(vllm_suggests(vllm("0.10.2")));
}

TEST(a_card_that_is_in_use_is_refused)
{
    EACH_ROW (row, 5) {
        uint64_t total = (uint64_t)(cases_real(&row, 2) * GIB);
        uint64_t free = (uint64_t)(cases_real(&row, 1) * GIB);
        within(row.field[0], cases_real(&row, 2) * cases_real(&row, 3), cases_real(&row, 4),
               2 * ROUNDED);
        assert_false(vllm_starts(vllm("0.9.1"), cases_real(&row, 3), total, free));
        assert_true(vllm_starts(vllm("0.9.0"), cases_real(&row, 3), total, free));
        assert_true(vllm_starts(vllm("0.9.1"), cases_real(&row, 3), total,
                                (uint64_t)(cases_real(&row, 4) * GIB) + AR_GIB / 64));
    }
}

/* ---- vLLM: blocks ---- */

TEST(blocks_are_those_of_the_logs)
{
    EACH_ROW (row, 8) {
        struct llm_rank rank = rank_of(cases_number(&row, 3));
        struct vllm_cache cache = vllm_cache_of(vllm(row.field[1]), any_model(row.field[2]), &rank,
                                                16, (unsigned)cases_number(&row, 4));
        uint64_t least = vllm_blocks(&cache, (cases_real(&row, 5) - ROUNDED) * GIB);
        uint64_t most = vllm_blocks(&cache, (cases_real(&row, 5) + ROUNDED) * GIB);
        uint64_t printed =
            cases_number(&row, 7) ? cases_number(&row, 7) / 16 : cases_number(&row, 6);
        if (printed < least || printed > most)
            fail_msg("%s: %" PRIu64 " blocks, computed %" PRIu64 " to %" PRIu64, row.field[0],
                     printed, least, most);
        if (cases_number(&row, 7))
            assert_int_equal(vllm_tokens(&cache, printed), cases_number(&row, 7));
    }
}

TEST(a_block_has_the_bytes_of_the_logs)
{
    EACH_ROW (row, 5) {
        struct llm_rank rank = rank_of(cases_number(&row, 2));
        struct vllm_cache cache =
            vllm_cache_of(vllm("0.6.3"), any_model(row.field[1]), &rank, 16, 2);
        if (vllm_swap_blocks(&cache, cases_number(&row, 3) * AR_GIB) != cases_number(&row, 4))
            fail_msg("%s: %" PRIu64 " blocks", row.field[0],
                     vllm_swap_blocks(&cache, cases_number(&row, 3) * AR_GIB));
    }
}

/* "Maximum concurrency for N tokens per request"; the printed digits are equal. */
static const struct {
    const char *source, *version;
    uint64_t blocks, length;
    const char *printed;
} concurrencies[] = {
    {VLLM "10517", "0.6.4", 1952, 20000, "1.56"},
    {VLLM "10517", "0.6.4", 1478, 29000, "0.82"},
    {VLLM "17327", "0.8.4", 198784 / 16, 8192, "24.27"},
    {VLLM "25350", "0.10.2", 230528 / 16, 100000, "2.31"},
    {VLLM "13882", "0.7.3", 0, 4096, "0.00"},
    {"github.com/LMCache/LMCache/issues/1739", "0.11", 42656 / 16, 32768, "1.30"},
    {"github.com/mlcommons/inference/issues/2267", "0.6.4", 464716, 131072, "56.73"},
    {"github.com/vllm-project/vllm/pull/10927", "0.6.4", 5373, 8192, "10.49"},
};

TEST(concurrency_is_that_of_the_logs)
{
    struct llm_rank rank = rank_of(1);
    for (size_t i = 0; i < COUNT(concurrencies); i++) {
        struct vllm_version version = vllm(concurrencies[i].version);
        struct vllm_cache cache = vllm_cache_of(version, model("llama-3.1-8b"), &rank, 16, 2);
        char text[32];
        snprintf(text, sizeof text, "%.2f",
                 vllm_concurrency(version, &cache, concurrencies[i].blocks, concurrencies[i].length,
                                  2048));
        if (strcmp(text, concurrencies[i].printed) != 0)
            fail_msg("%s: %s, printed %s", concurrencies[i].source, text, concurrencies[i].printed);
    }
}

TEST(caches_that_are_too_small_are_refused)
{
    struct llm_rank one = rank_of(1), two = rank_of(2);
    /* vllm#10517: 1478 blocks hold 23648 tokens, 29000 are refused; so 23648 pass */
    struct vllm_cache llama = vllm_cache_of(vllm("0.6.4"), model("llama-3.1-8b"), &one, 16, 2);
    double bytes = 1478 * 2.0 * (double)AR_MIB;
    assert_says(vllm_cache_check(vllm("0.6.4"), &llama, bytes, 29000, 0, &test_error), AR_NEGATIVE,
                "at most 23648 tokens fit");
    assert_ok(vllm_cache_check(vllm("0.6.4"), &llama, bytes, 23648, 0, &test_error));
    /* vllm#2418: 229 blocks hold 3664 tokens; OpenRLHF#336: 378 blocks hold 6048 */
    struct vllm_cache old = vllm_cache_of(vllm("0.2.7"), model("llama-2-7b"), &one, 16, 2);
    assert_int_equal(vllm_tokens(&old, 229), 3664);
    struct vllm_cache large = vllm_cache_of(vllm("0.5.0"), model("llama-3-70b"), &two, 16, 2);
    assert_int_equal(vllm_tokens(&large, 378), 6048);
    /* vllm#25350: 221000 tokens need 10.12 GiB, 5.59 are available, 122080 fit */
    struct vllm_cache moe = vllm_cache_of(vllm("0.10.2"), model("qwen3-30b-a3b"), &one, 16, 1);
    assert_says(vllm_cache_check(vllm("0.10.2"), &moe, 5.5884 * GIB, 221000, 8192, &test_error),
                AR_NEGATIVE, "needs 10.12 GiB of key-value cache, and 5.59 GiB");
    assert_non_null(strstr(test_error.text, "at most 122080 tokens fit"));
    assert_says(vllm_cache_check(vllm("0.10.2"), &moe, -1, 16, 8192, &test_error), AR_NEGATIVE,
                "no memory is left");
}

TEST(windows_make_groups)
{
    /* gpt-oss-20b: 12 layers with a window of 128, 12 without; Gemma-3: 5 to 1 */
    struct llm oss = {
        .layers = 24, .heads = 64, .kv_heads = 8, .head = 64, .window = 128, .window_layers = 12};
    struct llm gemma = {
        .layers = 48, .heads = 16, .kv_heads = 8, .head = 256, .window = 1024, .window_layers = 40};
    struct llm_rank rank = rank_of(1);
    struct vllm_cache one = vllm_cache_of(vllm("0.9.1"), &oss, &rank, 16, 2);
    assert_int_equal(one.tensors, 24);
    assert_int_equal(one.full_groups + one.window_groups, 1);
    struct vllm_cache two = vllm_cache_of(vllm("0.11"), &oss, &rank, 16, 2);
    assert_int_equal(two.tensors, 12);
    assert_int_equal(two.full_groups, 1);
    assert_int_equal(two.window_groups, 1);
    /* 8192 tokens without window, and the window with one step of 2048 */
    assert_int_equal(vllm_request_blocks(&two, 8192, 2048), 512 + 136 + 1);
    struct vllm_cache six = vllm_cache_of(vllm("0.11"), &gemma, &rank, 16, 2);
    assert_int_equal(six.tensors, 8);
    assert_int_equal(six.full_groups, 1);
    assert_int_equal(six.window_groups, 5);
    assert_int_equal(vllm_tokens(&six, 600), 1600);
}

/* Layers with a state: "Setting attention block size to 1568 tokens", keys of a byte
 * (noonghunna/club-3090#1047); 48 of 64 layers, which are three groups of 16. */
TEST(states_make_blocks_larger)
{
    struct llm_rank rank = rank_of(1);
    const struct llm *next = model("qwen3.5-27b");
    struct vllm_cache cache = vllm_cache_of(vllm("0.27"), next, &rank, 16, 1);
    assert_int_equal(cache.block_tokens, 1568);
    assert_int_equal(cache.tensors, 16);
    assert_int_equal(cache.full_groups, 1);
    assert_int_equal(cache.state_groups, 3);
    assert_int_equal(vllm_request_blocks(&cache, 1569, 2048), 2 + 3);
    assert_int_equal(vllm_tokens(&cache, 43), 10 * 1568);
    assert_int_equal(llm_kv_token_bytes(next, &rank, 2), 16 * 2 * 4 * 256 * 2);
    /* noonghunna/club-3090#612: 5.98 GiB, prefixes are cached, "567,978 tokens", "4.33x" */
    cache = vllm_cache_of(vllm("0.24"), model("qwen3.5-35b-a3b"), &rank, 16, 1);
    cache.state_blocks = 2;
    uint64_t blocks = vllm_blocks(&cache, 5.98 * GIB);
    within("#612", vllm_concurrency(vllm("0.24"), &cache, blocks, 131072, 8192), 4.33, 0.005);
    assert_int_equal(vllm_printed_tokens(vllm("0.24"), &cache, blocks, 131072, 8192), 567978);
    assert_int_equal(vllm_printed_tokens(vllm("0.20"), &cache, blocks, 131072, 8192),
                     vllm_tokens(&cache, blocks));
    within("Qwen3-Next", (double)llm_parameters(model("qwen3-next-80b-a3b")) / 1e9, 79.67, 0.01);
    within("Qwen3.5", (double)llm_parameters(model("qwen3.5-35b-a3b")) / 1e9, 35.1, 0.01);
    struct llm bad = *next;
    bad.linear_layers = 64;
    assert_int_equal(llm_check(&bad, &rank, &test_error), AR_INVALID);
}

/* vllm#23278: "Model loading took 65.9651 GiB", with widths padded for Marlin's kernels, and with
 * remainders that PyTorch does not split off. */
TEST(mxfp4_is_padded)
{
    struct llm_rank rank = rank_of(1);
    rank.quantization = LLM_MXFP4;
    rank.experts_only = true;
    rank.rope_bytes = 2;
    within(VLLM "23278", (double)llm_weights_bytes(model("gpt-oss-120b"), &rank) / GIB, 65.9651,
           0.04);
}

TEST(defaults_of_vllm)
{
    struct vllm_version v0 = vllm("0.7.2"), v1 = vllm("0.9.2");
    assert_int_equal(vllm_batch_tokens(v0, 80 * AR_GIB, false, false, 8192), 8192);
    assert_int_equal(vllm_batch_tokens(v0, 80 * AR_GIB, false, false, 131072), 2048);
    /* vllm#10537: 0.6.4.post1, "max_num_batched_tokens=512" */
    assert_int_equal(vllm_batch_tokens(vllm("0.6.4"), 80 * AR_GIB, false, false, 120000), 512);
    /* llm-compressor#1560: 0.9.1, class LLM on an A100, 8192; LMCache#2522: 8192 for a server */
    assert_int_equal(vllm_batch_tokens(vllm("0.9.1"), 80 * AR_GIB, true, true, 4096), 8192);
    assert_int_equal(vllm_batch_tokens(v1, 80 * AR_GIB, false, false, 1024), 8192);
    assert_int_equal(vllm_batch_tokens(v1, 24 * AR_GIB, false, false, 1024), 2048);
    assert_int_equal(vllm_max_seqs(v1, 24 * AR_GIB, false), 256);
    assert_int_equal(vllm_max_seqs(v1, 80 * AR_GIB, false), 1024);
    struct graphs_sizes sizes;
    /* vllm#15228: 0.7.2 prints 256, 248, .. 8, 4, 2, 1 */
    graphs_vllm_sizes(702, 256, 16000, 0, &sizes);
    assert_int_equal(sizes.count, 35);
    assert_int_equal(sizes.at[3], 8);
    assert_int_equal(sizes.at[34], 256);
    graphs_vllm_sizes(804, 1024, 8192, 0, &sizes);
    assert_int_equal(sizes.count, 67);
    /* vllm#39559, vllm#46389: "51/51" to 512; ProxmoxVED#2047 prints the list */
    graphs_vllm_sizes(1900, 256, 8192, 0, &sizes);
    assert_int_equal(sizes.count, 51);
    assert_int_equal(sizes.at[34], 256);
    assert_int_equal(sizes.at[35], 272);
    assert_int_equal(sizes.at[50], 512);
}

/* Workspaces of attention by hand: of Kimi K2 on a rank of eight, and plain. */
TEST(workspaces_of_attention)
{
    const struct llm latent = {
        .layers = 61, .heads = 64, .kv_rank = 512, .rope = 64, .nope = 128, .v_head = 128};
    const struct llm plain = {.layers = 32, .heads = 32, .kv_heads = 8, .head = 128};
    struct vllm_spaces spaces = vllm_spaces_of(vllm("0.19"), &latent, 100, 131072, 256, 64, 2);
    assert_int_equal(spaces.context_bytes, 65536 * 576 * 2);
    assert_int_equal(spaces.projected_bytes, UINT64_C(65536) * 64 * 256 * 2);
    assert_int_equal(spaces.prefill_bytes, 394 * AR_MIB);
    assert_int_equal(spaces.decode_bytes, 128 * AR_MIB);
    spaces = vllm_spaces_of(vllm("0.19"), &latent, 90, 1000, 20, 64, 2); /* 8 requests */
    assert_int_equal(spaces.context_bytes, 8000 * 576 * 2);
    assert_int_equal(spaces.prefill_bytes + spaces.decode_bytes, 0);
    spaces = vllm_spaces_of(vllm("0.19"), &latent, 90, 1000, 4096, 64, 2); /* a block for each */
    assert_int_equal(spaces.context_bytes, 4096 * 64 * 576 * 2);
    spaces = vllm_spaces_of(vllm("0.19"), &plain, 90, 131072, 256, 16, 2);
    assert_int_equal(spaces.context_bytes + spaces.projected_bytes + spaces.decode_bytes, 0);
    spaces = vllm_spaces_of(vllm("0.11"), &plain, 100, 131072, 256, 16, 2);
    assert_int_equal(spaces.decode_bytes, 256 * AR_MIB);
}

/* Experts by hand: what is kept, and what each call makes. */
TEST(experts_by_release_and_card)
{
    const uint64_t rows = UINT64_C(8192) * 8 * 2;
    static const struct {
        const char *version;
        uint32_t compute;
        bool plain;
        uint64_t kept, first, second; /* for `rows` */
    } cases[] = {
        {"0.13", 90, true, 0, 7168, 256},
        {"0.14", 90, true, 2 * 7168, 0, 0},
        {"0.19", 100, true, 2 * 7168, 0, 0},
        {"0.20", 80, true, 2 * 7168, 0, 0},        /* Triton */
        {"0.20", 90, true, 7168 / 8, 2 * 7168, 0}, /* FlashInfer, CUTLASS */
        {"0.20", 100, true, 0, 2 * 256, 7168},     /* TRT-LLM */
        {"0.19", 90, true, 2 * 7168, 0, 0},
        {"0.23", 90, false, 2 * 7168, 0, 0},
        {"0.14.0", 90, true, 2 * 7168, 0, 0},
        {"0.20.0", 90, true, 7168 / 8, 2 * 7168, 0},
        {"0.20.0", 100, true, 0, 2 * 256, 7168},
        {"0.23", 100, false, 2 * 7168, 0, 0}, /* Marlin */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct vllm_experts got = vllm_experts_of(vllm(cases[i].version), cases[i].compute,
                                                        cases[i].plain, 8192, 8, 256, 7168, 2);
        assert_int_equal(got.kept_bytes, rows * cases[i].kept);
        assert_int_equal(got.passing_bytes[0], rows * cases[i].first);
        assert_int_equal(got.passing_bytes[1], rows * cases[i].second);
    }
    /* gate and up are wider than the result; tokens in pieces */
    assert_int_equal(vllm_experts_of(vllm("0.14"), 90, false, 100000, 2, 1024, 1024, 2).kept_bytes,
                     UINT64_C(16384) * 2 * 3 * 1024 * 2);
    assert_int_equal(vllm_experts_of(vllm("0.13"), 90, true, 8, 2, 1024, 1024, 2).passing_bytes[0],
                     8 * 2 * 2048 * 2);
    /* each cache is whole blocks of 256 bytes */
    assert_int_equal(vllm_experts_of(vllm("0.14"), 90, true, 1, 1, 3, 5, 1).kept_bytes, 2 * 256);
    assert_int_equal(vllm_experts_of(vllm("0.14"), 90, true, 1, 1, 3, 9, 1).kept_bytes, 2 * 256);
}

/* Buffers of all-reduces by hand, MiB. */
TEST(all_reduces_have_buffers)
{
    static const struct {
        const char *version;
        uint32_t compute;
        uint64_t ranks, start, pool, fused;
    } cases[] = {
        {"0.8.2", 90, 2, 18, 8, 0}, /* 8 MiB and signals, 8 MiB */
        {"0.8.2-v0", 80, 8, 18, 8, 0},
        {"0.8.2", 90, 1, 0, 0, 0},
        {"0.8.2", 90, 16, 0, 0, 0},
        {"0.14", 90, 8, 4 + 66, 8, 0},
        {"0.14", 80, 8, 18, 8, 0},
        {"0.17", 90, 2, 18 + 66, 8, 4 * 128 + 2}, /* 64 MiB for each rank, four times */
        {"0.17", 90, 8, 4 + 66, 8, 4 + 2 + 12},   /* 0.5 MiB */
        {"0.20", 100, 4, 6 + 34, 8, 4 * 128 + 2},
        {"0.20", 100, 6, 4 + 130, 8, 0}, /* FlashInfer has no six ranks */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct vllm_reduces got = vllm_reduces_of(vllm(cases[i].version), cases[i].compute,
                                                        cases[i].ranks, 4096, 16384, 2);
        assert_int_equal(got.start_bytes, cases[i].start * AR_MIB);
        assert_int_equal(got.pool_bytes, cases[i].pool * AR_MIB);
        assert_int_equal(got.fused_bytes, cases[i].fused * AR_MIB);
    }
    /* no more tokens than a step has */
    assert_int_equal(vllm_reduces_of(vllm("0.17"), 90, 2, 4096, 256, 2).fused_bytes,
                     (4 + 2 + 12) * AR_MIB);
}
