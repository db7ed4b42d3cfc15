/* Rules of vLLM where they change: at a release, a size of card, a length, a number of layers. */
#include <math.h>

#include "sim/twin/rules/vllm.h"
#include "tests/support/rule_rig.h"
#include "tests/support/test.h"

static struct vllm_version vllm(const char *text)
{
    struct vllm_version version;
    assert_ok(vllm_version_read(text, &version, &test_error));
    return version;
}

/* A layer with a value for each key and value: 4 bytes a token, 64 a block. */
static struct llm layers_of(uint64_t layers, uint64_t windowed)
{
    return (struct llm){.layers = layers,
                        .heads = 1,
                        .kv_heads = 1,
                        .head = 1,
                        .window = 64,
                        .window_layers = windowed};
}

TEST(groups_at_their_bounds)
{
    struct llm_rank rank = rank_of(1);
    const struct {
        uint64_t layers, windowed;
        const char *version;
        uint64_t tensors, full, window;
    } table[] = {
        {24, 0, "0.11.0", 24, 1, 0},
        {24, 24, "0.11.0", 24, 0, 1},
        {24, 24, "0.9.1", 24, 1, 0},
        {24, 24, "0.9.2", 24, 0, 1},
        {24, 24, "0.10.2-v0", 24, 1, 0},
        {24, 14, "0.11.0", 14, 1, 1}, /* 14 is less than 1.5 x 10 */
        {24, 14, "0.10.2", 10, 1, 2},
        {25, 15, "0.11.0", 10, 1, 2},
        {25, 10, "0.11.0", 10, 2, 1},
        {24, 12, "0.11.0", 12, 1, 1},
        {24, 1, "0.11.0", 1, 23, 1},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct llm layers = layers_of(table[i].layers, table[i].windowed);
        struct vllm_cache cache = vllm_cache_of(vllm(table[i].version), &layers, &rank, 16, 2);
        if (cache.tensors != table[i].tensors || cache.full_groups != table[i].full ||
            cache.window_groups != table[i].window)
            fail_msg("row %zu: %" PRIu64 " tensors, %" PRIu64 " and %" PRIu64 " groups", i,
                     cache.tensors, cache.full_groups, cache.window_groups);
    }
    struct llm none = layers_of(24, 12);
    none.window = 0;
    assert_int_equal(vllm_cache_of(vllm("0.11"), &none, &rank, 16, 2).tensors, 24);
}

TEST(blocks_at_their_bounds)
{
    struct llm_rank rank = rank_of(1);
    struct llm two = layers_of(2, 0);
    struct vllm_cache cache = vllm_cache_of(vllm("0.11"), &two, &rank, 16, 2);
    const double block = 128;
    assert_int_equal(cache.page_bytes, 64);
    assert_int_equal(vllm_blocks(&cache, block - 1), 0);
    assert_int_equal(vllm_blocks(&cache, block), 1);
    assert_int_equal(vllm_blocks(&cache, -block), 0);
    assert_int_equal(vllm_longest(&cache, 2 * block, 100, 0), 32);
    assert_int_equal(vllm_longest(&cache, 2 * block, 32, 0), 32);
    assert_int_equal(vllm_longest(&cache, 2 * block, 20, 0), 20);
    assert_int_equal(vllm_longest(&cache, block - 1, 20, 0), 0);
    for (unsigned v1 = 0; v1 < 2; v1++) {
        struct vllm_version version = vllm(v1 ? "0.10.2" : "0.10.2-v0");
        assert_ok(vllm_cache_check(version, &cache, 2 * block, 32, 0, &test_error));
        assert_int_equal(vllm_cache_check(version, &cache, 2 * block, 33, 0, &test_error),
                         AR_NEGATIVE);
        assert_says(vllm_cache_check(version, &cache, 0, 1, 0, &test_error), AR_NEGATIVE,
                    "no memory is left");
        assert_int_equal(vllm_cache_check(version, &cache, 1, 1, 0, &test_error), AR_NEGATIVE);
        assert_int_equal(strstr(test_error.text, "no memory is left") == NULL, v1);
    }
    /* 33 tokens are 3 blocks of 16 */
    const char *whole[] = {"0.9.1", "0.10.0"}, *parts[] = {"0.9.0", "0.10.0-v0", "0.7.3"};
    for (size_t i = 0; i < COUNT(whole); i++)
        within(whole[i], vllm_concurrency(vllm(whole[i]), &cache, 6, 33, 0), 2, 1e-9);
    for (size_t i = 0; i < COUNT(parts); i++)
        within(parts[i], vllm_concurrency(vllm(parts[i]), &cache, 6, 33, 0), 96.0 / 33, 1e-9);
}

TEST(defaults_at_their_bounds)
{
    EACH_ROW (row, 3)
        assert_int_equal(
            vllm_batch_tokens(vllm(row.field[0]), 80 * AR_GIB, false, false, cases_number(&row, 1)),
            cases_number(&row, 2));
    struct vllm_version v1 = vllm("0.9.2");
    assert_int_equal(vllm_batch_tokens(v1, 70 * AR_GIB, false, true, 1), 16384);
    assert_int_equal(vllm_batch_tokens(v1, 70 * AR_GIB - 1, false, true, 1), 8192);
    assert_int_equal(vllm_batch_tokens(v1, 70 * AR_GIB, true, false, 1), 2048);
    assert_int_equal(vllm_max_seqs(vllm("0.8.4"), 24 * AR_GIB, false), 1024);
    assert_int_equal(vllm_max_seqs(vllm("0.8.5"), 24 * AR_GIB, false), 256);
    assert_int_equal(vllm_max_seqs(vllm("0.8.5-v0"), 80 * AR_GIB, false), 256);
}

TEST(rules_change_at_their_release)
{
    const struct {
        const char *version;
        enum vllm_account account;
    } accounts_of[] = {
        {"0.6.3", VLLM_FREE_DROP}, {"0.6.4", VLLM_TORCH_PEAK},    {"0.6.5", VLLM_PARTS},
        {"0.8.0-v0", VLLM_PARTS},  {"0.7.0-v1", VLLM_TORCH_PEAK}, {"0.9.0", VLLM_TORCH_PEAK},
        {"0.9.1", VLLM_PARTS},     {"0.25.9", VLLM_PARTS},        {"0.26.0", VLLM_CONSUMED},
        {"1.0", VLLM_CONSUMED},
    };
    for (size_t i = 0; i < COUNT(accounts_of); i++)
        if (vllm_account_of(vllm(accounts_of[i].version)) != accounts_of[i].account)
            fail_msg("account of %s", accounts_of[i].version);
    assert_false(vllm_sleep_trims(vllm("0.8.2")));
    assert_true(vllm_sleep_trims(vllm("0.8.3")));
    assert_true(vllm_weights_sleep(vllm("0.13.9")) && vllm_weights_sleep(vllm("0.17.0")));
    assert_false(vllm_weights_sleep(vllm("0.14.0")) || vllm_weights_sleep(vllm("0.16.9")));
    assert_false(vllm_estimates_graphs(vllm("0.20.9")));
    assert_true(vllm("0.8.0").v1);
    assert_false(vllm("0.7.9").v1);
    assert_true(vllm("0.7.0-v1").v1);
    assert_false(vllm("0.10.9-v0").v1);
    struct vllm_version version;
    assert_int_equal(vllm_version_read("0.11.0-v0", &version, &test_error), AR_INVALID);
    assert_int_equal(vllm_version_read("0.6.9-v1", &version, &test_error), AR_INVALID);
}

TEST(versions)
{
    struct vllm_version version;
    assert_true(vllm("0.8").v1);
    assert_false(vllm("0.7.3").v1);
    assert_false(vllm("0.9.2-v0").v1);
    assert_int_equal(vllm("0.9").patch, 99);
    const char *wrong[] = {"", "nine", "0", "0.9.", "0.9.2x", "0.11-v0", "0.6-v1"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (vllm_version_read(wrong[i], &version, &test_error) != AR_INVALID)
            fail_msg("\"%s\" is a version", wrong[i]);
}
