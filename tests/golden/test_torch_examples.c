/* Worked examples of PyTorch's allocator with segments, derived from its source: sizes,
 * offsets and counters after each request, over a device whose segments follow each other. */
#include "allocators/policies/torch/torch.h"
#include "allocators/registry.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

static void expect_place(struct policy_rig *rig, uint64_t bytes, uint64_t offset,
                         uint64_t granted_bytes)
{
    struct ar_policy_block block = policy_rig_take(rig, bytes);
    assert_int_equal(block.address, offset);
    assert_int_equal(block.granted_bytes, granted_bytes);
}

static void expect_failure(struct policy_rig *rig, uint64_t bytes)
{
    struct ar_policy_block block;
    struct ar_policy_request asked = {.bytes = bytes};
    assert_int_equal(ar_policy_alloc(rig->policy, &asked, &block), AR_NO_MEMORY);
}

static uint64_t reserved(const struct policy_rig *rig)
{
    return rig->policy->totals.reserved_bytes;
}

static uint64_t stat(const struct policy_rig *rig, enum torch_stat name)
{
    return torch_statistic((struct torch *)rig->policy, name, TORCH_ALL).current;
}

TEST(sizes_and_segments)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", UINT64_MAX);
    expect_place(&rig, 1, 0, 512);
    expect_place(&rig, 512, 512, 512);
    expect_place(&rig, 513, 1024, 1024);
    expect_place(&rig, 1048576, 2048, 1048576);
    assert_int_equal(reserved(&rig), 2097152);
    assert_int_equal(stat(&rig, TORCH_ALLOCATED_BYTES), 1050624);
    assert_int_equal(stat(&rig, TORCH_INACTIVE_SPLIT), 1);
    assert_int_equal(stat(&rig, TORCH_INACTIVE_SPLIT_BYTES), 1046528);
    expect_place(&rig, 1048577, 2097152, 1049088);
    assert_int_equal(reserved(&rig), 23068672);
    expect_place(&rig, 8 * AR_MIB, 3146240, 8 * AR_MIB);
    expect_place(&rig, 10485759, 11534848, 11533824); /* slack of 1 MiB at most: not divided */
    (void)policy_rig_take(&rig, 10485760);
    assert_int_equal(reserved(&rig), 33554432);
    (void)policy_rig_take(&rig, 10485761);
    assert_int_equal(reserved(&rig), 46137344);
}

TEST(workspace)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", UINT64_MAX);
    (void)policy_rig_take(&rig, 8519680);
    assert_int_equal(reserved(&rig), 20971520);
    assert_int_equal(stat(&rig, TORCH_INACTIVE_SPLIT_BYTES), 12451840);
}

TEST(small_requests)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", UINT64_MAX);
    static const uint64_t bytes[] = {40000, 512, 4096, 100, 1};
    static const uint64_t offsets[] = {0, 40448, 40960, 45056, 45568};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(policy_rig_take(&rig, bytes[i]).address, offsets[i]);
    struct ar_policy_stats stats;
    ar_policy_stats(rig.policy, &stats);
    assert_int_equal(ar_policy_free_bytes(&stats.totals), 2051072);
}

TEST(rounding_by_divisions)
{
    EACH_ROW (row, 3) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_rig_open(&rig, row.field[0], UINT64_MAX);
        assert_int_equal(
            torch_round(&((struct torch *)rig.policy)->settings, cases_number(&row, 1)),
            cases_number(&row, 2));
    }
}

TEST(slack_of_a_large_block)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", UINT64_MAX);
    policy_rig_give(&rig, policy_rig_take(&rig, 20 * AR_MIB));
    struct ar_policy_block whole = policy_rig_take(&rig, 19 * AR_MIB);
    assert_int_equal(whole.granted_bytes, 20971520);
    policy_rig_give(&rig, whole);
    assert_int_equal(policy_rig_take(&rig, 19 * AR_MIB - 512).granted_bytes, 19922432);
    assert_int_equal(stat(&rig, TORCH_INACTIVE_SPLIT_BYTES), 1049088);
}

TEST(retry_gives_the_cache_back)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", 100 * AR_MIB);
    struct ar_policy_block blocks[5];
    for (int i = 0; i < 5; i++)
        blocks[i] = policy_rig_take(&rig, 20 * AR_MIB);
    policy_rig_give(&rig, blocks[0]);
    policy_rig_give(&rig, blocks[2]);
    assert_int_equal(reserved(&rig), 104857600);
    assert_int_equal(stat(&rig, TORCH_ALLOCATED_BYTES), 62914560);
    assert_int_equal(stat(&rig, TORCH_INACTIVE_SPLIT), 0);
    (void)policy_rig_take(&rig, 30 * AR_MIB);
    assert_int_equal(reserved(&rig), 94371840);
    assert_int_equal(((struct torch *)rig.policy)->num_alloc_retries, 1);
}

TEST(split_head_blocks_a_segment)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", 100 * AR_MIB);
    policy_rig_give(&rig, policy_rig_take(&rig, 60 * AR_MIB));
    expect_place(&rig, 20 * AR_MIB, 0, 20 * AR_MIB);
    assert_int_equal(stat(&rig, TORCH_INACTIVE_SPLIT_BYTES), 41943040);
    expect_failure(&rig, 50 * AR_MIB);
}

TEST(oversize_blocks)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch:max_split_size_mb=32", UINT64_MAX);
    policy_rig_give(&rig, policy_rig_take(&rig, 60 * AR_MIB));
    (void)policy_rig_take(&rig, 20 * AR_MIB);
    assert_int_equal(reserved(&rig), 83886080);
    struct ar_policy_block whole = policy_rig_take(&rig, 42 * AR_MIB);
    assert_int_equal(whole.granted_bytes, 60 * AR_MIB);
    policy_rig_give(&rig, whole);
    (void)policy_rig_take(&rig, 40 * AR_MIB);
    assert_int_equal(reserved(&rig), 125829120);
}

TEST(fraction_counts_device_requests)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch:per_process_memory_fraction=0.5", 100 * AR_MIB);
    (void)policy_rig_take(&rig, 20 * AR_MIB);
    (void)policy_rig_take(&rig, 20 * AR_MIB);
    expect_failure(&rig, 2 * AR_MIB);
    (void)policy_rig_take(&rig, 1 * AR_MIB);
    assert_int_equal(reserved(&rig), 44040192);
}

/* ---- pools of torch.cuda.MemPool (recordings: tests/golden/data/mempool) --------------------- */

static struct ar_policy_block request_in(struct policy_rig *rig, uint32_t pool, uint64_t bytes,
                                         uint8_t mempool)
{
    struct ar_policy_block block = {0};
    const struct ar_policy_request asked = {.bytes = bytes, .pool = pool, .mempool = mempool};
    assert_int_equal(ar_policy_alloc(rig->policy, &asked, &block), AR_OK);
    assert_ok(ar_policy_validate(rig->policy, &test_error));
    return block;
}

static void delete_pool(struct policy_rig *rig, uint32_t pool)
{
    assert_int_equal(ar_policy_delete_pool(rig->policy, pool), AR_OK);
    assert_ok(ar_policy_validate(rig->policy, &test_error));
}

/* A live pool keeps its memory; its deletion releases that, and nothing of the others. */
TEST(a_pool_lives_until_it_is_deleted)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", UINT64_MAX);
    struct ar_policy_block live = request_in(&rig, 1, 12 * AR_MIB, AR_MEMPOOL_PLAIN);
    struct ar_policy_block freed = request_in(&rig, 1, 30 * AR_MIB, AR_MEMPOOL_PLAIN);
    policy_rig_give(&rig, freed);
    policy_rig_give(&rig, policy_rig_take(&rig, 50 * AR_MIB));
    policy_rig_give(&rig, request_in(&rig, 2, 16 * AR_MIB, AR_MEMPOOL_PLAIN));
    assert_int_equal(ar_policy_trim(rig.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), (12 + 30 + 16) * AR_MIB);
    assert_int_equal(request_in(&rig, 1, 25 * AR_MIB, AR_MEMPOOL_PLAIN).address, freed.address);
    policy_rig_give(&rig, freed = policy_rig_take(&rig, 50 * AR_MIB));
    struct ar_policy_block second = request_in(&rig, 1, 4 * AR_MIB, AR_MEMPOOL_PLAIN);
    (void)second; /* the rest of the 30 MiB */
    assert_int_equal(reserved(&rig), (12 + 30 + 16 + 50) * AR_MIB);
    delete_pool(&rig, 2);
    assert_int_equal(reserved(&rig), (12 + 30 + 50) * AR_MIB);
    delete_pool(&rig, 1); /* blocks of both segments live */
    assert_int_equal(reserved(&rig), (12 + 30 + 50) * AR_MIB);
    policy_rig_give(&rig, live);
    assert_int_equal(ar_policy_trim(rig.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 30 * AR_MIB);
}

/* Before 2.13 nothing is released for a request in a pool, not even memory of the common pool. */
TEST(no_flush_within_a_pool)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch:version=2.11", 100 * AR_MIB);
    struct ar_policy_block block;
    const struct ar_policy_request within = {.bytes = 60 * AR_MIB, .pool = 1};
    policy_rig_give(&rig, policy_rig_take(&rig, 60 * AR_MIB));
    assert_int_equal(ar_policy_alloc(rig.policy, &within, &block), AR_NO_MEMORY);
    assert_int_equal(reserved(&rig), 60 * AR_MIB);
    assert_int_equal(((struct torch *)rig.policy)->num_alloc_retries, 0);
    (void)policy_rig_take(&rig, 70 * AR_MIB); /* outside it is */
    assert_int_equal(reserved(&rig), 70 * AR_MIB);
}

TEST(a_pool_for_the_last_resort)
{
    struct policy_rig rig;
    fake_rig_open(&rig, "torch", 100 * AR_MIB);
    uint8_t last_resort = AR_MEMPOOL_PLAIN | AR_MEMPOOL_USE_ON_OOM;
    struct ar_policy_block block = request_in(&rig, 1, 40 * AR_MIB, last_resort);
    policy_rig_give(&rig, block);
    policy_rig_give(&rig, policy_rig_take(&rig, 30 * AR_MIB));
    (void)policy_rig_take(&rig, 25 * AR_MIB); /* of the 30 */
    assert_int_equal(policy_rig_take(&rig, 35 * AR_MIB).address, block.address);
    assert_int_equal(reserved(&rig), 70 * AR_MIB);
    delete_pool(&rig, 1);
    expect_failure(&rig, 35 * AR_MIB);
    fake_rig_close(&rig);
    fake_rig_open(&rig, "torch", 100 * AR_MIB); /* not without the option */
    policy_rig_give(&rig, request_in(&rig, 1, 70 * AR_MIB, AR_MEMPOOL_PLAIN));
    expect_failure(&rig, 40 * AR_MIB);
    fake_rig_close(&rig);
}

TEST(whole_blocks)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "torch", UINT64_MAX);
    uint8_t whole = AR_MEMPOOL_PLAIN | AR_MEMPOOL_NO_SPLIT;
    policy_rig_give(&rig, request_in(&rig, 1, 30 * AR_MIB, whole));
    assert_int_equal(request_in(&rig, 1, 5 * AR_MIB, whole).granted_bytes, 30 * AR_MIB);
    assert_int_equal(request_in(&rig, 1, 512, whole).granted_bytes, 2 * AR_MIB);
    assert_int_equal(request_in(&rig, 1, 512, whole).granted_bytes, 2 * AR_MIB);
    assert_int_equal(policy_rig_take(&rig, 512).granted_bytes, 512);
    assert_int_equal(reserved(&rig), 36 * AR_MIB);
}
