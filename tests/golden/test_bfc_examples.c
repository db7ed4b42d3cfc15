/* Worked examples of the BFC allocator: most measured with its own code over a bump address
 * (google/tsl and openxla/xla), some from its unit tests. The numbers in the names are those of the
 * source list. */
#include "allocators/policies/bfc/bfc.h"
#include "tests/support/bfc_rig.h"
#include "tests/support/test.h"

static void check_totals(const struct bfc_rig *rig, uint64_t granted, uint64_t reserved)
{
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    assert_int_equal(stats.totals.granted_bytes, granted);
    assert_int_equal(stats.totals.reserved_bytes, reserved);
}

static void check_largest(const struct bfc_rig *rig, uint64_t largest)
{
    assert_int_equal(bfc_rig_stats(rig).largest_free_block_bytes, largest);
    assert_int_equal(ar_policy_servable(rig->policy, AR_POLICY_EFFORT_NONE), largest);
}

static void check_attempts(const struct bfc_rig *rig, const uint64_t *bytes, uint64_t count)
{
    assert_int_equal(rig->backing.calls, count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(rig->backing.attempts[i], bytes[i]);
}

TEST(test_01_small_request)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, 4), 0);
    assert_int_equal(rig->blocks[0].requested_bytes, 4);
    assert_int_equal(rig->blocks[0].granted_bytes, 256);
}

TEST(test_02_first_region)
{
    struct bfc_rig *rig = bfc_rig_open("growth:limit=2GiB", UINT64_MAX);
    assert_int_equal(bfc_next_region_bytes(rig->policy), 2097152);
    bfc_rig_close(rig);
    rig = bfc_rig_open("bfc:limit=2GiB,growth=false", UINT64_MAX);
    assert_int_equal(bfc_next_region_bytes(rig->policy), 2147483648);
    assert_int_equal(rig->backing.calls, 0); /* nothing before the first request */
    bfc_rig_close(rig);
}

TEST(test_03_past_a_small_limit)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=2MiB", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, 256), 0);
    assert_int_equal(bfc_rig_alloc(rig, 1, 8 * AR_MIB), BFC_RIG_FAILED);
    assert_int_equal(bfc_rig_stats(rig).count.failures, 1);
}

TEST(test_03_rounds)
{
    static const uint64_t bytes[] = {4096, 8388608, 16384, 41943040};
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
    uint64_t first = bfc_rig_alloc(rig, 0, 4096);
    bfc_rig_free(rig, 0);
    for (unsigned round = 0; round < 1024; round++) {
        for (unsigned i = 0; i < 4; i++)
            bfc_rig_alloc(rig, i, bytes[i]);
        check_totals(rig, 50352128, AR_GIB);
        for (unsigned i = 0; i < 4; i++)
            bfc_rig_free(rig, i);
    }
    check_totals(rig, 0, AR_GIB);
    assert_int_equal(bfc_rig_alloc(rig, 0, 4096), first);
}

TEST(test_04_offsets)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, 1), 0);
    assert_int_equal(bfc_rig_alloc(rig, 1, 257), 256);
    assert_int_equal(bfc_rig_alloc(rig, 2, 1000), 768);
    assert_int_equal(bfc_rig_alloc(rig, 3, AR_MIB), 1792);
    check_totals(rig, 1050368, 1073741824);
    check_largest(rig, 1072691456);
}

TEST(test_05_split_at_twice_the_size)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, 100 * AR_MIB), 0);
    assert_int_equal(bfc_rig_alloc(rig, 1, AR_MIB), 104857600);
    bfc_rig_free(rig, 0);
    assert_int_equal(bfc_rig_alloc(rig, 2, 60 * AR_MIB), 0);
    check_totals(rig, 105906176, AR_GIB);
    bfc_rig_free(rig, 2);
    assert_int_equal(bfc_rig_alloc(rig, 3, 50 * AR_MIB), 0);
    check_totals(rig, 53477376, AR_GIB);
    check_largest(rig, 967835648);
    assert_float_equal(bfc_rig_fragmentation(rig), 0.05138746, 1e-8);
}

TEST(test_06_split_at_128_mib_of_slack)
{
    static const struct {
        uint64_t bytes, granted;
    } cases[] = {{AR_GIB - 128 * AR_MIB, 939524352}, {AR_GIB - 128 * AR_MIB + 256, 1073742080}};
    for (unsigned i = 0; i < 2; i++) {
        CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=4GiB", UINT64_MAX);
        assert_int_equal(bfc_rig_alloc(rig, 0, AR_GIB), 0);
        assert_int_equal(bfc_rig_alloc(rig, 1, 256), AR_GIB);
        bfc_rig_free(rig, 0);
        assert_int_equal(bfc_rig_alloc(rig, 2, cases[i].bytes), 0);
        check_totals(rig, cases[i].granted, 4 * AR_GIB);
    }
}

struct growth_step {
    uint64_t request_mib, address, granted, reserved, next_mib;
};

static void check_growth(struct bfc_rig *rig, const struct growth_step *steps, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(bfc_rig_alloc(rig, i, steps[i].request_mib * AR_MIB), steps[i].address);
        check_totals(rig, steps[i].granted, steps[i].reserved);
        assert_int_equal(bfc_next_region_bytes(rig->policy), steps[i].next_mib * AR_MIB);
    }
}

TEST(test_07_growth_by_doubling)
{
    static const struct growth_step steps[] = {
        {1, 0, 1048576, 2097152, 4},
        {3, 2097152, 5242880, 6291456, 8},
        {20, 6291456, 38797312, 39845888, 32},
        {33, 39845888, 105906176, 106954752, 64},
    };
    static const uint64_t regions[] = {2 * AR_MIB, 4 * AR_MIB, 32 * AR_MIB, 64 * AR_MIB};
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=16GiB", UINT64_MAX);
    check_growth(rig, steps, 4);
    check_attempts(rig, regions, 4);
}

TEST(test_08_growth_clipped_by_the_limit)
{
    static const uint64_t regions[] = {2 * AR_MIB, 4 * AR_MIB, 4 * AR_MIB};
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("growth:limit=10MiB", UINT64_MAX);
    bfc_rig_alloc(rig, 0, AR_MIB);
    bfc_rig_alloc(rig, 1, 2 * AR_MIB);
    bfc_rig_alloc(rig, 2, 4 * AR_MIB);
    check_attempts(rig, regions, 3);
    assert_int_equal(rig->policy->totals.reserved_bytes, 10485760);
    assert_int_equal(bfc_next_region_bytes(rig->policy), 16 * AR_MIB);
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    assert_int_equal(ar_policy_free_bytes(&stats.totals), 3 * AR_MIB);
    check_largest(rig, 2 * AR_MIB);
    assert_float_equal(bfc_rig_fragmentation(rig), 1.0 / 3, 1e-9);
    assert_int_equal(bfc_rig_alloc(rig, 3, 5 * AR_MIB), BFC_RIG_FAILED);
}

TEST(test_09_backing_off)
{
    static const uint64_t attempts[] = {67108864, 60398080, 54358272, 48922624};
    struct bfc_rig *rig = bfc_rig_open("greedy:limit=64MiB", 50 * AR_MIB);
    assert_int_equal(bfc_rig_alloc(rig, 0, 256), 0);
    check_attempts(rig, attempts, 4);
    check_totals(rig, 256, 48922624);
    assert_int_equal(bfc_rig_alloc(rig, 1, 48 * AR_MIB), BFC_RIG_FAILED);
    bfc_rig_close(rig);

    rig = bfc_rig_open("greedy:limit=64MiB", 50 * AR_MIB);
    assert_int_equal(bfc_rig_alloc(rig, 0, 51 * AR_MIB), BFC_RIG_FAILED);
    check_attempts(rig, attempts, 3);
    check_totals(rig, 0, 0);
    bfc_rig_close(rig);
}

TEST(test_10_every_other_block)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(bfc_rig_alloc(rig, i, 64 * AR_MIB), i * 64 * AR_MIB);
    for (unsigned i = 0; i < 16; i += 2)
        bfc_rig_free(rig, i);
    check_totals(rig, 536870912, AR_GIB);
    check_largest(rig, 67108864);
    assert_float_equal(bfc_rig_fragmentation(rig), 0.875, 1e-12);
    assert_int_equal(bfc_rig_alloc(rig, 16, 65 * AR_MIB), BFC_RIG_FAILED);
}

static struct bfc_rig *three_free_regions(const char *spec)
{
    struct bfc_rig *rig = bfc_rig_open(spec, UINT64_MAX);
    for (unsigned i = 0; i < 3; i++)
        bfc_rig_alloc(rig, i, (uint64_t)2 * AR_MIB << i);
    check_totals(rig, 14 * AR_MIB, 14 * AR_MIB);
    bfc_rig_free_all(rig);
    assert_int_equal(rig->policy->totals.releasable_bytes, 14 * AR_MIB);
    return rig;
}

TEST(test_11_collection_of_regions)
{
    struct bfc_rig *rig = three_free_regions("growth:limit=16MiB,framework=jax");
    assert_int_equal(ar_policy_servable(rig->policy, AR_POLICY_EFFORT_TRIM), 8 * AR_MIB);
    assert_float_equal(bfc_rig_fragmentation(rig), 3.0 / 7, 1e-12);
    assert_int_equal(bfc_rig_alloc(rig, 3, 14 * AR_MIB), BFC_RIG_FAILED);
    bfc_rig_close(rig);

    rig = three_free_regions("growth:limit=16MiB");
    assert_int_equal(ar_policy_servable(rig->policy, AR_POLICY_EFFORT_TRIM), 14 * AR_MIB);
    assert_int_equal(bfc_rig_alloc(rig, 3, 14 * AR_MIB), 14 * AR_MIB);
    check_totals(rig, 16777216, 16777216);
    assert_int_equal(bfc_next_region_bytes(rig->policy), 32 * AR_MIB);
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    assert_int_equal(stats.count.segments_freed, 3);
    assert_int_equal(stats.count.flushes, 1);
    assert_int_equal(stats.count.retries, 1);
    assert_int_equal(stats.count.failures, 0);
    bfc_rig_close(rig);
}

TEST(test_12_order_among_free_blocks)
{
    static const uint64_t bytes[] = {768, 256, 1024, 256, 512, 256, 768, 256};
    static const uint64_t at[] = {0, 768, 1024, 2048, 2304, 2816, 3072, 3840};
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB", UINT64_MAX);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(bfc_rig_alloc(rig, i, bytes[i]), at[i]);
    for (unsigned i = 0; i < 8; i += 2)
        bfc_rig_free(rig, i);
    assert_int_equal(bfc_rig_alloc(rig, 8, 600), 0);
    assert_int_equal(bfc_rig_alloc(rig, 9, 600), 3072);
    assert_int_equal(bfc_rig_alloc(rig, 10, 700), 1024);
    assert_int_equal(rig->blocks[10].granted_bytes, 1024);
    check_totals(rig, 3584, AR_GIB);
}

TEST(test_13_coalescing_supply)
{
    static const struct growth_step steps[] = {
        {1, 0, 1048576, 2097152, 4},
        {3, 1048576, 6291456, 6291456, 8},
        {8, 6291456, 14680064, 14680064, 16},
        {20, 14680064, 0, 48234496, 32},
    };
    struct bfc_rig *rig = bfc_rig_open("growth:limit=64MiB,coalesce=true", UINT64_MAX);
    check_growth(rig, steps, 3);
    assert_int_equal(bfc_rig_alloc(rig, 3, 20 * AR_MIB), steps[3].address);
    assert_int_equal(rig->policy->totals.reserved_bytes, steps[3].reserved);
    assert_int_equal(rig->blocks[1].granted_bytes, 5 * AR_MIB);
    assert_int_equal(bfc_region_count(rig->policy), 1);
    bfc_rig_free_all(rig);
    check_largest(rig, 48234496);
    bfc_rig_close(rig);
}

TEST(test_14_fragmentation_fraction)
{
    CLOSED(close_bfc_rig)
    struct bfc_rig *rig = bfc_rig_open("greedy:limit=1GiB,fragmentation_fraction=0.05", UINT64_MAX);
    bfc_rig_alloc(rig, 0, 100 * AR_MIB);
    bfc_rig_alloc(rig, 1, 256);
    bfc_rig_free(rig, 0);
    bfc_rig_alloc(rig, 2, 60 * AR_MIB);
    assert_int_equal(rig->blocks[2].granted_bytes, 100 * AR_MIB);
    bfc_rig_free(rig, 2);
    bfc_rig_alloc(rig, 3, 40 * AR_MIB);
    assert_int_equal(rig->blocks[3].granted_bytes, 40 * AR_MIB);
}

TEST(test_15_best_fit_is_the_tail)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=2MiB", UINT64_MAX);
    assert_int_equal(bfc_rig_alloc(rig, 0, AR_MIB), 0);
    assert_int_equal(bfc_rig_alloc(rig, 1, 300), 1048576);
    assert_int_equal(rig->blocks[1].granted_bytes, 512);
    bfc_rig_free(rig, 0);
    assert_int_equal(bfc_rig_alloc(rig, 2, 614400), 1049088);
    assert_int_equal(rig->blocks[2].granted_bytes, 1048064);
    check_largest(rig, AR_MIB);
    assert_int_equal(bfc_rig_alloc(rig, 3, 2 * AR_MIB), BFC_RIG_FAILED);
}

TEST(test_16_backing_off_in_float)
{
    static const uint64_t attempts[] = {17179869184, 15461881856};
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open("greedy:limit=16GiB", 15 * AR_GIB);
    bfc_rig_alloc(rig, 0, 256);
    check_attempts(rig, attempts, 2);
    check_totals(rig, 256, 15461881856);
}
