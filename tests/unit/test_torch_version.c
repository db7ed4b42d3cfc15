/* `torch:version=`: what releases of PyTorch do otherwise than the newest. The rules and their
 * sources are in allocators/policies/torch/settings.c; the expected values follow from them. */
#include "sim/fidelity/fidelity.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"
#include "tests/support/policy_rig.h"

#define PAGE (20 * AR_MIB)

static enum ar_status alloc_in(struct device_rig *rig, uint32_t pool, uint64_t bytes,
                               struct ar_policy_block *out)
{
    const struct ar_policy_request request = {.bytes = bytes, .pool = pool};
    return ar_policy_alloc(rig->policy.policy, &request, out);
}

static struct ar_policy_stats stats_of(const struct device_rig *rig)
{
    struct ar_policy_stats stats;
    ar_policy_stats(rig->policy.policy, &stats);
    return stats;
}

static uint64_t reserved(const struct device_rig *rig)
{
    return rig->policy.policy->totals.reserved_bytes;
}

/* 4 and 17 MiB of a private pool: two pages of one range. Before 2.5 a segment for each: of 20 MiB,
 * since 4 are below 10, and of 18. */
static void check_private_pool(const char *policy, uint64_t bytes, bool is_range)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block[4];
    device_rig_open(&rig, policy, "sim");
    assert_int_equal(alloc_in(&rig, 1, 4 * AR_MIB, &block[0]), AR_OK);
    assert_int_equal(reserved(&rig), PAGE);
    assert_int_equal(alloc_in(&rig, 1, 17 * AR_MIB, &block[1]), AR_OK);
    assert_int_equal(reserved(&rig), bytes);
    assert_int_equal(block[1].address == block[0].address + 4 * AR_MIB, is_range);
    /* The rest of a segment is cut to 512 bytes too. */
    assert_int_equal(alloc_in(&rig, 1, 16 * AR_MIB - 512, &block[2]), AR_OK);
    assert_int_equal(reserved(&rig), bytes);
    assert_int_equal(block[2].granted_bytes, 16 * AR_MIB - 512);
    /* The common pool grows by pages in any release. */
    assert_int_equal(alloc_in(&rig, 0, 17 * AR_MIB, &block[3]), AR_OK);
    assert_int_equal(reserved(&rig), bytes + PAGE);
    for (int i = 0; i < 4; i++)
        assert_int_equal(policy_rig_free(&rig.policy, &block[i]), AR_OK);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), bytes); /* the private pool is in use */
    rig.policy.policy->ops->end_pool(rig.policy.policy, 1);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 0);
}

TEST(private_pools_grow_from_2_5_on)
{
    check_private_pool("torch:version=2.4,expandable_segments=true", PAGE + 18 * AR_MIB, false);
    check_private_pool("torch:version=2.5,expandable_segments=true", 2 * PAGE, true);
    check_private_pool("torch:expandable_segments=true", 2 * PAGE, true);
}

/* 40 MiB free in a range, too large to be split, before a live block, and a page more than the card
 * has: the free pages are unmapped and the request is served. Before 2.5 the program stops. */
static void check_stop(const char *policy, enum ar_status status, uint64_t flushes)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block, after;
    device_rig_open(&rig, policy, "sim:capacity=70MiB");
    assert_int_equal(alloc_in(&rig, 0, 40 * AR_MIB, &block), AR_OK);
    assert_int_equal(alloc_in(&rig, 0, PAGE, &after), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &block), AR_OK);
    assert_int_equal(alloc_in(&rig, 0, 19 * AR_MIB, &block), status);
    assert_int_equal(stats_of(&rig).count.flushes, flushes);
}

TEST(ranges_are_no_segments_from_2_5_on)
{
    check_stop("torch:version=2.4,expandable_segments=true,max_split_size_mb=21", AR_NO_MEMORY, 0);
    check_stop("torch:version=2.5,expandable_segments=true,max_split_size_mb=21", AR_OK, 1);
    check_stop("torch:expandable_segments=true,max_split_size_mb=21", AR_OK, 1);
}

/* 30 MiB are cached in the common pool of a card of 50, and 40 are requested. */
static void check_retry(const char *policy, uint32_t pool, enum ar_status status)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block;
    device_rig_open(&rig, policy, "sim:capacity=50MiB");
    assert_int_equal(alloc_in(&rig, 0, 30 * AR_MIB, &block), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &block), AR_OK);
    assert_int_equal(alloc_in(&rig, pool, 40 * AR_MIB, &block), status);
    assert_int_equal(reserved(&rig), status ? 30 * AR_MIB : 40 * AR_MIB);
    assert_int_equal(stats_of(&rig).count.retries, !status);
}

/* The free of a block of a private pool that another stream used, and whose use is done: the next
 * request of the pool takes it. Before 2.13 only one of the common pool completes the free. */
static void check_completion(const char *policy, bool completes)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block, next, common, last;
    device_rig_open(&rig, policy, "sim");
    assert_int_equal(alloc_in(&rig, 1, PAGE, &block), AR_OK);
    assert_int_equal(ar_policy_use(rig.policy.policy, &block, 1), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &block), AR_OK);
    rig.device->ops->sync(rig.device, 1);
    assert_int_equal(alloc_in(&rig, 1, PAGE, &next), AR_OK);
    assert_int_equal(next.address == block.address, completes);
    assert_int_equal(alloc_in(&rig, 0, 1, &common), AR_OK);
    assert_int_equal(alloc_in(&rig, 1, PAGE, &last), AR_OK);
    assert_int_equal(last.address == block.address, !completes);
}

TEST(pools_complete_frees_from_2_13_on)
{
    check_completion("torch:version=2.12", false);
    check_completion("torch:version=2.13", true);
    check_completion("torch", true);
}

TEST(pools_retry_from_2_13_on)
{
    check_retry("torch:version=2.12", 1, AR_NO_MEMORY);
    check_retry("torch:version=2.12", 0, AR_OK);
    check_retry("torch:version=2.13", 1, AR_OK);
    check_retry("torch", 1, AR_OK);
}

/* 30 MiB are cached of a limit of 50: a request of 40 releases them, or is refused at once. */
TEST(requests_beyond_the_limit_can_be_rejected)
{
    static const struct {
        const char *policy;
        enum ar_status status;
    } cases[] = {
        {"torch:limit=50MiB,conf='throw_on_cudamalloc_oom:True'", AR_NO_MEMORY},
        {"torch:limit=50MiB,version=2.12,conf='throw_on_cudamalloc_oom:True'", AR_NO_MEMORY},
        {"torch:limit=50MiB,conf='throw_on_cudamalloc_oom:False'", AR_OK},
        {"torch:limit=50MiB", AR_OK},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_retry(cases[i].policy, 0, cases[i].status);
    /* Without a limit it has no effect. */
    check_retry("torch:conf='throw_on_cudamalloc_oom:True'", 0, AR_OK);
}

/* A fraction of 1 is no limit: then old blocks are not collected either. */
TEST(a_fraction_of_one_is_no_limit)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block;
    device_rig_open(&rig, "torch:per_process_memory_fraction=1,garbage_collection_threshold=0.1",
                    "sim:capacity=100MiB");
    assert_int_equal(alloc_in(&rig, 0, 30 * AR_MIB, &block), AR_OK);
    assert_int_equal(policy_rig_free(&rig.policy, &block), AR_OK);
    assert_int_equal(alloc_in(&rig, 0, 40 * AR_MIB, &block), AR_OK);
    assert_int_equal(reserved(&rig), 70 * AR_MIB);
}

/* Ranges of half a card of 100 MiB: 50, which is 60 in pages of 20. Two blocks of 40 are in two
 * ranges, and a larger one than a range fails. */
static void check_reserve(const char *policy, bool one_range, enum ar_status large)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block[3];
    device_rig_open(&rig, policy, "sim:capacity=100MiB");
    assert_int_equal(alloc_in(&rig, 0, 40 * AR_MIB, &block[0]), AR_OK);
    assert_int_equal(alloc_in(&rig, 0, 40 * AR_MIB, &block[1]), AR_OK);
    assert_int_equal(block[1].address == block[0].address + 40 * AR_MIB, one_range);
    assert_int_equal(reserved(&rig), 80 * AR_MIB);
    for (int i = 0; i < 2; i++)
        assert_int_equal(policy_rig_free(&rig.policy, &block[i]), AR_OK);
    assert_int_equal(alloc_in(&rig, 0, 61 * AR_MIB, &block[2]), large);
}

TEST(ranges_can_be_shorter)
{
    check_reserve("torch:expandable_segments=true", true, AR_OK);
    check_reserve("torch:conf='expandable_segments:True,expandable_segments_reserve:0.5'", false,
                  AR_NO_MEMORY);
    check_reserve("torch:conf='expandable_segments:True,expandable_segments_reserve:0.05G'", false,
                  AR_NO_MEMORY);
    check_reserve("torch:conf='expandable_segments:True,expandable_segments_reserve:8'", true,
                  AR_OK);
    check_reserve("torch:conf='expandable_segments:True,expandable_segments_reserve:none'", true,
                  AR_OK);
}

TEST(keys_are_those_of_the_release)
{
    EACH_ROW (row, 1) {
        CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
        struct policy_rig rig;
        enum ar_status status = policy_rig_open(&rig, row.field[0], device->backing, 0);
        assert_int_equal(status, row.field[1] ? AR_INVALID : AR_OK);
        if (row.field[1])
            assert_string_equal(rig.error.text, row.field[1]);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}

/* A recording of an older release is compared with the rules of that release. */
TEST(recordings_have_a_release)
{
    EACH_ROW (row, 3) {
        struct trace_info info = {.limit_bytes = 7};
        char text[256];
        snprintf(info.recorder, sizeof info.recorder, "%s", row.field[0]);
        snprintf(info.conf, sizeof info.conf, "%s", row.field[1]);
        assert_ok(fidelity_default_spec(&info, text, sizeof text, &test_error));
        assert_string_equal(text, row.field[2]);
    }
}
