/* MemPools of the policy torch with an allocator of their own (vLLM's sleep mode,
 * torch_memory_saver), and what collection and release do with pools. The rules are those of
 * c10/cuda/CUDACachingAllocator.cpp; the file settings.c has releases and pull requests. */
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"
#include "tests/support/policy_rig.h"

#define PAGE (20 * AR_MIB)

static enum ar_status alloc(struct device_rig *rig, uint32_t pool, uint8_t mempool, uint64_t bytes,
                            struct ar_policy_block *out)
{
    const struct ar_policy_request request = {.bytes = bytes, .pool = pool, .mempool = mempool};
    enum ar_status status = ar_policy_alloc(rig->policy.policy, &request, out);
    assert_ok(ar_policy_validate(rig->policy.policy, &test_error));
    return status;
}

static uint64_t reserved(const struct device_rig *rig)
{
    return rig->policy.policy->totals.reserved_bytes;
}

enum { PLAIN = AR_MEMPOOL_PLAIN, OWN = AR_MEMPOOL_PLAIN | AR_MEMPOOL_ALLOCATOR };

/* 4 and 17 MiB: pages of a range or, for a pool with an allocator, segments of 20 and 18 MiB. */
static void check_segments(const char *policy, uint8_t mempool, enum ar_status status,
                           uint64_t bytes)
{
    struct device_rig rig;
    struct ar_policy_block a, b, c;
    device_rig_open(&rig, policy, "sim");
    if (alloc(&rig, 1, mempool, 4 * AR_MIB, &a) != status)
        fail_msg("%s: wrong status", policy);
    if (status) {
        assert_int_equal(reserved(&rig), 0);
        assert_int_equal(alloc(&rig, 0, 0, 4 * AR_MIB, &a), AR_OK); /* the common pool works */
        device_rig_close(&rig);
        return;
    }
    assert_int_equal(alloc(&rig, 1, mempool, 17 * AR_MIB, &b), AR_OK);
    if (reserved(&rig) != bytes)
        fail_msg("%s: %llu MiB", policy, (unsigned long long)(reserved(&rig) / AR_MIB));
    /* A rest of 1 MiB or less is not cut off in a segment of the large pool. */
    assert_int_equal(policy_rig_free(&rig.policy, &a), AR_OK);
    assert_int_equal(alloc(&rig, 1, mempool, PAGE - AR_MIB, &c), AR_OK);
    assert_int_equal(c.granted_bytes, bytes == PAGE + 18 * AR_MIB ? PAGE : PAGE - AR_MIB);
    assert_int_equal(policy_rig_free(&rig.policy, &b), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &c), AR_OK);
    assert_int_equal(ar_policy_delete_pool(rig.policy.policy, 1), AR_OK);
    assert_int_equal(reserved(&rig), 0);
    device_rig_close(&rig);
}

TEST(pools_with_an_allocator_have_segments)
{
    const uint64_t segments = PAGE + 18 * AR_MIB;
    check_segments("torch", OWN, AR_OK, segments);
    check_segments("torch:expandable_segments=true", OWN, AR_OK, segments);
    check_segments("torch:version=2.10,expandable_segments=true", OWN, AR_OK, segments);
    check_segments("torch:version=2.8", OWN, AR_OK, segments);
}

TEST(releases_that_cannot_do_both)
{
    check_segments("torch:version=2.7,expandable_segments=true", PLAIN, AR_NO_MEMORY, 0);
    check_segments("torch:version=2.7,expandable_segments=true", OWN, AR_NO_MEMORY, 0);
    check_segments("torch:version=2.8,expandable_segments=true", OWN, AR_NO_MEMORY, 0);
    check_segments("torch:version=2.9,expandable_segments=true", OWN, AR_NO_MEMORY, 0);
    /* Graphs are no MemPools. */
    struct device_rig rig;
    struct ar_policy_block block;
    device_rig_open(&rig, "torch:version=2.7,expandable_segments=true", "sim");
    assert_int_equal(alloc(&rig, 1, 0, 4 * AR_MIB, &block), AR_OK);
    device_rig_close(&rig);
    /* 2.8: a MemPool without an allocator grows, as it did before and does later. */
    device_rig_open(&rig, "torch:version=2.8,expandable_segments=true", "sim");
    assert_int_equal(alloc(&rig, 1, PLAIN, 4 * AR_MIB, &block), AR_OK);
    assert_int_equal(reserved(&rig), PAGE);
    device_rig_close(&rig);
}

/* Up to 2.6 the allocator is not called: the memory is in ranges of PyTorch. */
TEST(releases_that_ignore_the_allocator)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block a, b;
    device_rig_open(&rig, "torch:version=2.6,expandable_segments=true", "sim");
    assert_int_equal(alloc(&rig, 1, OWN, 4 * AR_MIB, &a), AR_OK);
    assert_int_equal(alloc(&rig, 1, OWN, 17 * AR_MIB, &b), AR_OK);
    assert_int_equal(b.address, a.address + 4 * AR_MIB);
    assert_int_equal(reserved(&rig), 2 * PAGE);
}

/* try_mempool_fallback finds blocks of segments only: those of a pool with an allocator. */
TEST(last_resort_beside_ranges)
{
    for (int own = 0; own < 2; own++) {
        CLOSED(device_rig_close) struct device_rig rig;
        struct ar_policy_block block, other;
        uint8_t mempool = (uint8_t)(AR_MEMPOOL_USE_ON_OOM | (own ? OWN : PLAIN));
        device_rig_open(&rig, "torch:expandable_segments=true", "sim:capacity=60MiB");
        assert_int_equal(alloc(&rig, 1, mempool, 40 * AR_MIB, &block), AR_OK);
        assert_int_equal(policy_rig_free(&rig.policy, &block), AR_OK);
        assert_int_equal(alloc(&rig, 0, 0, 30 * AR_MIB, &other), own ? AR_OK : AR_NO_MEMORY);
        if (own)
            assert_int_equal(other.address, block.address);
    }
}

/* garbage_collection_threshold: only cached blocks of the common large pool are collected, also for
 * a request in a private pool. The oldest here is of a private pool and stays. */
TEST(collection_spares_pools)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block pool, common, block;
    device_rig_open(&rig, "torch:limit=100MiB,garbage_collection_threshold=0.5", "sim");
    assert_int_equal(alloc(&rig, 1, PLAIN, 30 * AR_MIB, &pool), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &pool), AR_OK);
    assert_int_equal(alloc(&rig, 0, 0, 40 * AR_MIB, &common), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &common), AR_OK);
    assert_int_equal(reserved(&rig), 70 * AR_MIB);
    assert_int_equal(alloc(&rig, 2, PLAIN, 12 * AR_MIB, &block), AR_OK);
    assert_int_equal(reserved(&rig), (30 + 12) * AR_MIB);
}

/* The pool of a graph that was destroyed: segments without a live block are released by the next
 * empty_cache, the others when their blocks are free. */
TEST(pools_of_graphs_end_by_segments)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block live, other;
    device_rig_open(&rig, "torch", "sim");
    assert_int_equal(alloc(&rig, 1, 0, 12 * AR_MIB, &live), AR_OK);
    assert_int_equal(alloc(&rig, 1, 0, 30 * AR_MIB, &other), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &other), AR_OK);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 42 * AR_MIB);
    rig.policy.policy->ops->end_pool(rig.policy.policy, 1);
    assert_int_equal(reserved(&rig), 42 * AR_MIB);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 12 * AR_MIB);
    assert_int_equal(policy_rig_free(&rig.policy, &live), AR_OK);
    assert_int_equal(reserved(&rig), 12 * AR_MIB);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 0);
}
