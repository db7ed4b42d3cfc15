/* The slab policy: the waste of its classes, which slab serves a request, what is kept and what is
 * released, and pages that move. */
#include "tests/support/fake_backing.h"
#include "tests/support/op_script.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

static struct ar_policy_stats stats_of(const struct policy_rig *rig)
{
    struct ar_policy_stats stats;
    ar_policy_stats(rig->policy, &stats);
    return stats;
}

/* Requests of 4 KiB and more waste at most an eighth of the granted bytes. The worst have the size
 * of a class plus one byte. Addresses are multiples of 256 bytes. */
TEST(waste)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab:largest_class=16MiB", UINT64_MAX);
    for (uint64_t bytes = 4096; bytes < 40 * AR_MIB;) {
        struct ar_policy_block block = policy_rig_take(&rig, bytes);
        assert_true(block.granted_bytes >= bytes);
        assert_true((block.granted_bytes - bytes) * 8 <= block.granted_bytes);
        assert_int_equal(block.address % 256, 0);
        uint64_t last = block.granted_bytes;
        policy_rig_give(&rig, block);
        assert_int_equal(policy_rig_take(&rig, last).granted_bytes, last);
        bytes = bytes <= 16 * AR_MIB ? last + 1 : bytes * 3 / 2 + 1;
    }
}

/* Below 4 KiB the step between classes is 256 bytes. */
TEST(small_classes)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab", UINT64_MAX);
    for (uint64_t bytes = 1; bytes <= 4096; bytes += 85)
        assert_int_equal(policy_rig_take(&rig, bytes).granted_bytes, ar_size_round_up(bytes, 256));
}

/* Two slabs of 64 KiB blocks: the fuller one serves, and the other one becomes empty. */
TEST(the_fullest_slab_serves)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    struct ar_policy_block blocks[8];
    fake_rig_open(&rig, "slab:keep=0", UINT64_MAX);
    for (int i = 0; i < 4; i++) /* two slabs of two blocks */
        blocks[i] = policy_rig_take(&rig, 64 * AR_KIB);
    policy_rig_give(&rig, blocks[0]);
    policy_rig_give(&rig, blocks[2]);
    policy_rig_give(&rig, blocks[3]); /* the second slab is empty and is returned */
    assert_int_equal(policy_rig_take(&rig, 64 * AR_KIB).address, blocks[0].address);
    assert_int_equal(stats_of(&rig).totals.reserved_bytes, 2 * AR_MIB);
}

/* A slab that is emptied and filled in turn stays with its class. The supply gets it when it needs
 * it. */
TEST(an_empty_slab_is_kept)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab:limit=2MiB", UINT64_MAX);
    struct ar_policy_block one = policy_rig_take(&rig, 256 * AR_KIB);
    uint64_t splits = stats_of(&rig).count.splits;
    for (int i = 0; i < 10; i++) {
        policy_rig_give(&rig, one);
        one = policy_rig_take(&rig, 256 * AR_KIB);
    }
    assert_int_equal(stats_of(&rig).count.splits, splits);
    policy_rig_give(&rig, one);
    struct ar_policy_block large = policy_rig_take(&rig, 2 * AR_MIB); /* all of the limit */
    policy_rig_give(&rig, large);
    assert_int_equal(stats_of(&rig).totals.releasable_bytes, 2 * AR_MIB);
    assert_int_equal(ar_policy_trim(rig.policy, 0), AR_OK);
    assert_int_equal(fake_rig_backing.held_bytes, 0);
}

/* 2 MiB hold 1920 KiB of a large block; a slab of less than two blocks of 112 KiB takes the
 * rest. */
TEST(a_small_piece_becomes_a_small_slab)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab:limit=2MiB", UINT64_MAX);
    (void)policy_rig_take(&rig, 1920 * AR_KIB);
    assert_int_equal(policy_rig_take(&rig, 112 * AR_KIB).granted_bytes, 112 * AR_KIB);
    assert_int_equal(stats_of(&rig).totals.reserved_bytes, 2 * AR_MIB);
}

/* 60 of 100 MiB are cached; 50 more need them. */
TEST(cached_memory_goes_back_when_it_is_short)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab:slack=10", 100 * AR_MIB);
    struct ar_policy_block cached[3];
    for (int i = 0; i < 3; i++)
        cached[i] = policy_rig_take(&rig, 20 * AR_MIB);
    struct ar_policy_block live = policy_rig_take(&rig, 30 * AR_MIB);
    for (int i = 0; i < 3; i++)
        policy_rig_give(&rig, cached[i]);
    struct ar_policy_block more = policy_rig_take(&rig, 50 * AR_MIB);
    struct ar_policy_stats stats = stats_of(&rig);
    assert_int_equal(stats.count.segments_freed, 3);
    assert_true(stats.count.retries > 0);
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(&rig, 40 * AR_MIB, &block), AR_NO_MEMORY);
    assert_int_equal(stats_of(&rig).count.failures, 1);
    policy_rig_give(&rig, live);
    policy_rig_give(&rig, more);
}

/* Reserved memory stays below 9/8 of the greatest use. A program whose sizes change releases
 * segments; one with repeating sizes never does. */
TEST(the_cache_is_bounded)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab", UINT64_MAX);
    for (uint64_t bytes = 64 * AR_MIB; bytes < 256 * AR_MIB; bytes += 2 * AR_MIB) {
        policy_rig_give(&rig, policy_rig_take(&rig, bytes));
        assert_true(stats_of(&rig).totals.reserved_bytes <= bytes + bytes / 8);
    }
    uint64_t freed = stats_of(&rig).count.segments_freed;
    for (int i = 0; i < 20; i++)
        policy_rig_give(&rig, policy_rig_take(&rig, 200 * AR_MIB));
    assert_int_equal(stats_of(&rig).count.segments_freed, freed);
}

/* 8 GiB are allocated and freed, and small blocks that stay do not cut their segments. */
TEST(a_giant_is_not_broken_for_crumbs)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab", 8 * AR_GIB + 64 * AR_MIB);
    for (int i = 0; i < 8; i++) {
        struct ar_policy_block giant = policy_rig_take(&rig, 8 * AR_GIB);
        policy_rig_give(&rig, giant);
        (void)policy_rig_take(&rig, 300 * AR_KIB);
        (void)policy_rig_take(&rig, 3 * AR_MIB);
        (void)policy_rig_take(&rig, 1000);
    }
    assert_int_equal(stats_of(&rig).count.failures, 0);
}

/* The device is full: a small request is served from a free piece between large blocks, and a large
 * one from the place of slabs. */
TEST(either_kind_borrows)
{
    CLOSED(fake_rig_close) struct policy_rig rig;
    fake_rig_open(&rig, "slab", 8 * AR_MIB);
    struct ar_policy_block large[4];
    for (int i = 0; i < 4; i++)
        large[i] = policy_rig_take(&rig, i == 1 ? AR_MIB : 2 * AR_MIB);
    struct ar_policy_block fourth = policy_rig_take(&rig, 512 * AR_KIB); /* next to the second */
    struct ar_policy_block small = policy_rig_take(&rig, 1000);
    assert_int_equal(small.granted_bytes, 1024);
    assert_int_equal(stats_of(&rig).totals.reserved_bytes, 8 * AR_MIB);
    policy_rig_give(&rig, small);
    policy_rig_give(&rig, fourth);
    for (int i = 0; i < 4; i++)
        policy_rig_give(&rig, large[i]);
}

/* Twelve freed blocks of 50 MiB become three of 200: the pages move, and none is obtained from the
 * device. */
TEST(pages_move)
{
    struct policy_rig rig;
    struct ar_policy_block blocks[12];
    CLOSED(close_device)
    struct ar_device *device = sim_test_open("sim:profile=h100,capacity=640MiB");
    assert_int_equal(policy_rig_open(&rig, "slab:virtual=true,slack=0", device->backing, 0), AR_OK);
    for (int i = 0; i < 12; i++)
        blocks[i] = policy_rig_take(&rig, 50 * AR_MIB);
    uint64_t held = rig.policy->totals.reserved_bytes;
    assert_int_equal(held, 600 * AR_MIB);
    for (int i = 0; i < 12; i++)
        policy_rig_give(&rig, blocks[i]);
    for (int i = 0; i < 3; i++) {
        (void)policy_rig_take(&rig, 200 * AR_MIB);
        assert_int_equal(rig.policy->totals.reserved_bytes, held);
        assert_int_equal(device->counters.physical_bytes, held);
    }
    assert_int_equal(stats_of(&rig).count.remapped_bytes, held);
    assert_int_equal(policy_rig_close(&rig), 0);
    assert_int_equal(device->counters.physical_bytes, 0);
}

/* The streams on which a fence was set, as bits. */
static uint64_t fenced;

static struct ar_backing_ticket note_fence(struct ar_backing *base, uint32_t stream)
{
    fenced |= UINT64_C(1) << stream;
    return (struct ar_backing_ticket){.stream = stream};
}

/* Pages are unmapped after the work of every stream that a request, a use or a free named. */
TEST(pages_move_behind_the_work_of_all_streams)
{
    for (unsigned way = 0; way < 3; way++) {
        CLOSED(fake_rig_close) struct policy_rig rig;
        fake_backing_open(&fake_rig_backing, UINT64_MAX);
        fake_backing_virtual(&fake_rig_backing, 2 * AR_MIB, 64 * AR_MIB);
        fake_rig_backing.cap_bytes = 64 * AR_MIB;
        struct ar_backing_ops ops = *fake_rig_backing.base.ops;
        ops.fence = note_fence;
        fake_rig_backing.base.ops = &ops;
        assert_int_equal(
            policy_rig_open(&rig, "slab:virtual=true,slack=0", &fake_rig_backing.base, 0), AR_OK);
        const struct ar_policy_request wanted = {.bytes = 40 * AR_MIB, .stream = way == 0 ? 5 : 0};
        struct ar_policy_block block;
        assert_int_equal(ar_policy_alloc(rig.policy, &wanted, &block), AR_OK);
        if (way == 1)
            assert_int_equal(ar_policy_use(rig.policy, &block, 5), AR_OK);
        assert_int_equal(ar_policy_free(rig.policy, &block, way == 2 ? 5 : 0), AR_OK);
        fenced = 0;
        policy_rig_give(&rig, policy_rig_take(&rig, 60 * AR_MIB));
        assert_int_equal(fenced, 63);
    }
}

TEST(virtual_needs_virtual_memory)
{
    struct policy_rig rig;
    fake_backing_open(&fake_rig_backing, UINT64_MAX);
    assert_int_equal(policy_rig_open(&rig, "slab:virtual=true", &fake_rig_backing.base, 0),
                     AR_UNSUPPORTED);
    assert_non_null(strstr(rig.error.text, "virtual=true"));
    assert_int_equal(policy_rig_close(&rig), 0);
}

/* Random operations with other settings than the default, which the property tests use. */
TEST(settings)
{
    static const char *const specs[] = {
        "checked(every=50)+slab:virtual=true",
        "checked(every=50)+slab:keep=0,slack=0",
        "checked(every=50)+slab:largest_class=16MiB,keep=3",
        "checked(every=50)+slab:largest_class=4096,limit=300MiB",
        "checked(every=50)+gmlake:frag_limit=2MiB",
        "checked(every=50)+gmlake:frag_limit=2MiB,auto_gc=512MiB,reuse_limit=1.5",
        "checked(every=50)+gmlake:frag_limit=2MiB,realloc=true,defrag_level=1",
    };
    CLOSED(op_script_close) struct op_script script;
    op_script_open(&script, 3, 20000, 300, 32 * AR_MIB);
    for (size_t i = 0; i < COUNT(specs); i++) {
        struct policy_rig rig;
        CLOSED(close_device)
        struct ar_device *device = sim_test_open("sim:profile=h100,capacity=512MiB");
        if (policy_rig_open(&rig, specs[i], device->backing, 0) != AR_OK)
            fail_msg("%s: %s", specs[i], rig.error.text);
        struct op_result result = op_script_run(&script, rig.policy);
        if (result.status != AR_OK)
            fail_msg("%s: %s", specs[i], ar_policy_problem(rig.policy));
        assert_true(result.served > result.refused && result.refused > 0);
        assert_int_equal(policy_rig_close(&rig), 0);
        assert_int_equal(device->counters.physical_bytes, 0);
    }
}
