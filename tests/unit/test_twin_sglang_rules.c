/* Sizing rules of SGLang against figures that it printed: in its documentation, and in logs in
 * public issues, whose addresses are in the tables. Figures with two digits must agree within their
 * rounding, whole numbers must be equal. */
#include <math.h>

#include "sim/twin/rules/graphs.h"
#include "sim/twin/rules/sglang.h"
#include "tests/support/rule_rig.h"
#include "tests/support/test.h"

#define GIB     ((double)AR_GIB)
#define ROUNDED 0.005 /* of a figure with two digits */
#define VLLM    "github.com/vllm-project/vllm/issues/"
#define SGLANG  "github.com/sgl-project/sglang/pull/"

static struct sglang_version sglang(const char *text)
{
    struct sglang_version version;
    assert_ok(sglang_version_read(text, &version, &test_error));
    return version;
}

/* QwQ-32B, whose layers are those of Qwen2.5-32B, on four A10G. */
#define LLMS_IN_CLOUDS "github.com/didier-durand/llms-in-clouds test_qwen_qwq_32b.py"

TEST(buffers_have_the_sizes_of_the_logs)
{
    EACH_ROW (row, 5) {
        const struct llm *preset = model(row.field[1]);
        struct llm_rank rank = rank_of(cases_number(&row, 2));
        uint64_t layer = llm_kv_layer_bytes(preset, &rank, 2) / (preset->kv_rank ? 1 : 2);
        char text[32];
        snprintf(text, sizeof text, "%.2f",
                 (double)(preset->layers * sglang_buffer_bytes(cases_number(&row, 3), 1, layer)) /
                     GIB);
        if (strcmp(text, row.field[4]) != 0)
            fail_msg("%s: %s GB, printed %s", row.field[0], text, row.field[4]);
    }
}

/* GB of the card before and after the weights, and "max_total_num_tokens". */
static const struct {
    const char *source, *model;
    uint64_t parallel;
    double before, after, fraction;
    uint64_t tokens;
} budgets[] = {
    {"github.com/xorbitsai/inference/issues/3481", "qwen3-14b", 1, 47.24, 19.67, 0.88, 91749},
    {SGLANG "4760", "llama-3.1-8b", 1, 63.48 + 15.11, 63.48, 0.88, 442750},
    {LLMS_IN_CLOUDS, "qwen2.5-32b", 4, 21.63, 6.09, 0.85, 46611},
};

TEST(tokens_are_those_of_the_logs)
{
    /* sglang#18263 prints the budget in bytes: equal */
    struct llm_rank one = rank_of(1);
    uint64_t moe = llm_kv_token_bytes(model("qwen3-30b-a3b"), &one, 2);
    assert_int_equal(sglang_tokens(164149629787, moe, 1, 0), 1669816);
    assert_int_equal(sglang_tokens(164149629787, moe, 64, 0), 1669816 / 64 * 64);
    assert_int_equal(sglang_tokens(164149629787, moe, 1, 1000), 1000);
    assert_int_equal(sglang_tokens(-1, moe, 1, 0), 0);
    for (size_t i = 0; i < COUNT(budgets); i++) {
        struct llm_rank rank = rank_of(budgets[i].parallel);
        uint64_t token = llm_kv_token_bytes(model(budgets[i].model), &rank, 2);
        double before = budgets[i].before, after = budgets[i].after, share = budgets[i].fraction;
        double least = sglang_available((before + ROUNDED) * GIB, (after - ROUNDED) * GIB, share);
        double most = sglang_available((before - ROUNDED) * GIB, (after + ROUNDED) * GIB, share);
        assert_in_range(budgets[i].tokens, sglang_tokens(least, token, 1, 0),
                        sglang_tokens(most, token, 1, 0));
    }
    struct sglang_settings settings = {
        .card_mib = 49140, .tensor_parallel = 1, .pipeline_parallel = 1};
    sglang_defaults(sglang("0.4.6"), &settings);
    within("fraction", settings.fraction, 0.88, 1e-9);
    struct graphs_sizes sizes;
    graphs_sglang_sizes(406, (uint32_t)settings.graph_batch, &sizes);
    assert_int_equal(sizes.count, 23);
    assert_int_equal(sizes.at[3], 8);
    assert_int_equal(sizes.at[4], 16);
    assert_int_equal(sizes.at[22], 160);
}

/* The worked examples of the documentation of server_args.py: a card of 24564 MiB has 0.847, one of
 * 81920 MiB with 8 ranks has 0.819. */
TEST(fractions_of_sglang)
{
    EACH_ROW (row, 6) {
        struct sglang_settings settings = {.card_mib = cases_number(&row, 1),
                                           .tensor_parallel = cases_number(&row, 2),
                                           .pipeline_parallel = 1};
        sglang_defaults(sglang(row.field[0]), &settings);
        within(row.field[0], settings.fraction, cases_real(&row, 3), 1e-9);
        assert_int_equal(settings.chunked_prefill, cases_number(&row, 4));
        assert_int_equal(settings.graph_batch, cases_number(&row, 5));
    }
    struct graphs_sizes sizes;
    /* sglang#15909 prints 52 sizes up to 512 */
    graphs_sglang_sizes(506, 512, &sizes);
    assert_int_equal(sizes.count, 52);
    assert_int_equal(sizes.at[4], 12);
    assert_int_equal(sizes.at[51], 512);
    /* sglang#29575: 2086558 tokens with a context of 256000 give the least, 2048, by default */
    assert_int_equal(sglang_max_requests(2086558, 256000), 4096);
    assert_int_equal(sglang_max_requests(91749, 40960), 2048);
    assert_int_equal(sglang_request_table_bytes(2048, 40960), 2048 * 40964 * 4);
}

TEST(cards_at_their_bounds)
{
    EACH_ROW (row, 5)
        for (uint64_t parallel = 3; parallel < 5; parallel++) {
            struct sglang_settings settings = {.card_mib = cases_number(&row, 1),
                                               .tensor_parallel = parallel,
                                               .pipeline_parallel = 1};
            sglang_defaults(sglang(row.field[0]), &settings);
            assert_int_equal(settings.chunked_prefill, cases_number(&row, 2));
            assert_int_equal(settings.max_prefill, 16384);
            assert_int_equal(settings.graph_batch,
                             parallel < 4 ? cases_number(&row, 3) : cases_number(&row, 4));
        }
}

/* What attention keeps: logs have what is free at the end of the memory pool and before the
 * capture, which also makes cuBLAS load itself. */
TEST(spaces_of_attention)
{
    const struct llm *qwen = llm_find("qwen2.5-7b"), *llama = llm_find("llama-3.2-1b"),
                     *experts = llm_find("qwen3-30b-a3b"), *latent = llm_find("deepseek-v3");
    const struct {
        const char *version;
        const struct llm *model;
        uint32_t compute;
        uint64_t mib;
    } table[] = {
        {"0.5.4", qwen, 80, 512},   {"0.5.4", llama, 80, 384},   {"0.5.4", experts, 80, 384},
        {"0.5.4", latent, 80, 0},   {"0.5.4", qwen, 90, 0},      {"0.4.5", qwen, 90, 512},
        {"0.5.5", llama, 100, 512}, {"0.5.5", latent, 100, 150},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const struct sglang_spaces spaces =
            sglang_spaces_of(sglang(table[i].version), table[i].model, table[i].compute, 1);
        assert_int_equal(spaces.workspace_bytes, table[i].mib * AR_MIB);
    }
}

/* MiB that are not for weights and cache, of a card with so many that thousandths show them. */
TEST(reserves_at_their_bounds)
{
    const struct {
        const char *version;
        uint64_t card_mib, parallel, stages, chunk, batch;
        double reserve;
    } table[] = {
        {"0.5.3", 35839, 4, 2, 0, 0, (2.8 + 0.8) * 1024},
        {"0.5.3", 35840, 4, 2, 0, 0, (9.5 + 4) * 1024},
        {"0.5.3", 92159, 1, 1, 0, 0, (9.5 + 0.5) * 1024},
        {"0.5.3", 92160, 1, 1, 0, 0, (12 + 0.5) * 1024},
        {"0.5.3", 163840, 1, 1, 0, 0, 32 * 1024},
        {"0.5.4", 24564, 1, 1, 1024, 8, 512 + 3072 + 16 + 128},
        {"0.5.4", 24564, 2, 2, 4096, 8, 512 + 6144 + 16 + 512},
        {"0.5.4", 61440, 1, 1, 1024, 8, 512 + 3072 + 16 + 128}, /* 60 GiB: not above */
        {"0.5.4", 61441, 1, 1, 1024, 8, 10 * 1024},
        {"0.5.4", 81920, 8, 1, 8192, 512, 512 + 12288 + 1024 + 1024},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct sglang_settings settings = {.card_mib = table[i].card_mib,
                                           .tensor_parallel = table[i].parallel,
                                           .pipeline_parallel = table[i].stages,
                                           .chunked_prefill = table[i].chunk,
                                           .graph_batch = table[i].batch};
        sglang_defaults(sglang(table[i].version), &settings);
        double memory = (double)table[i].card_mib;
        within(table[i].version, settings.fraction, (memory - table[i].reserve) / memory, 0.0005);
    }
    const struct {
        uint64_t parallel;
        double fraction;
    } old[] = {{1, 0.88}, {2, 0.87}, {3, 0.87}, {4, 0.85}, {7, 0.85}, {8, 0.81}, {16, 0.79}};
    for (size_t i = 0; i < COUNT(old); i++) {
        struct sglang_settings settings = {
            .card_mib = 81920, .tensor_parallel = old[i].parallel, .pipeline_parallel = 1};
        sglang_defaults(sglang("0.4.6"), &settings);
        within("0.4.6", settings.fraction, old[i].fraction, 1e-9);
    }
}

TEST(versions)
{
    struct sglang_version version;
    assert_int_equal(sglang_version_read("0.5.4post", &version, &test_error), AR_INVALID);
    assert_int_equal(sglang_version_read("5", &version, &test_error), AR_INVALID);
}

/* A log of Granite 4 on a card of 16 GB: states 0.03 and 2.74 GB, keys and values 1.52 each. */
TEST(states_have_their_part)
{
    within("Granite 4", sglang_states(5.81 * GIB, AR_MIB) / GIB, 2.77, 0.02);
    assert_true(sglang_states(GIB, 0) == 0 && sglang_states(-GIB, AR_MIB) == 0);
    assert_true(fmod(sglang_states(GIB, 3 * AR_MIB), 3 * (double)AR_MIB) == 0);
}
