/* The slab policy: the waste of its classes, which slab serves a request, what is kept and what is
 * released, and pages that move. */
#include "tests/support/fake_backing.h"
#include "tests/support/op_script.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

static struct fake_backing fake;

static void open_rig(struct policy_rig *rig, const char *spec, uint64_t cap_bytes)
{
    fake_backing_open(&fake, cap_bytes);
    if (policy_rig_open(rig, spec, &fake.base, 0) != AR_OK)
        fail_msg("%s: %s", spec, rig->error.text);
}

static void check(struct policy_rig *rig)
{
    assert_ok(ar_policy_validate(rig->policy, &test_error));
}

static struct ar_policy_block take(struct policy_rig *rig, uint64_t bytes)
{
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(rig, bytes, &block), AR_OK);
    check(rig);
    return block;
}

static void free_requested(struct policy_rig *rig, struct ar_policy_block block)
{
    assert_int_equal(policy_rig_free(rig, &block), AR_OK);
    check(rig);
}

static void close_rig(struct policy_rig *rig)
{
    check(rig);
    assert_int_equal(policy_rig_close(rig), 0);
    assert_int_equal(fake.held_bytes, 0);
}

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
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab:largest_class=16MiB", UINT64_MAX);
    for (uint64_t bytes = 4096; bytes < 40 * AR_MIB;) {
        struct ar_policy_block block = take(&rig, bytes);
        assert_true(block.granted_bytes >= bytes);
        assert_true((block.granted_bytes - bytes) * 8 <= block.granted_bytes);
        assert_int_equal(block.address % 256, 0);
        uint64_t last = block.granted_bytes;
        free_requested(&rig, block);
        assert_int_equal(take(&rig, last).granted_bytes, last);
        bytes = bytes <= 16 * AR_MIB ? last + 1 : bytes * 3 / 2 + 1;
    }
}

/* Below 4 KiB the step between classes is 256 bytes. */
TEST(small_classes)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab", UINT64_MAX);
    for (uint64_t bytes = 1; bytes <= 4096; bytes += 85)
        assert_int_equal(take(&rig, bytes).granted_bytes, ar_size_round_up(bytes, 256));
}

/* Two slabs of 64 KiB blocks: the fuller one serves, and the other one becomes empty. */
TEST(the_fullest_slab_serves)
{
    CLOSED(close_rig) struct policy_rig rig;
    struct ar_policy_block blocks[8];
    open_rig(&rig, "slab:keep=0", UINT64_MAX);
    for (int i = 0; i < 4; i++) /* two slabs of two blocks */
        blocks[i] = take(&rig, 64 * AR_KIB);
    free_requested(&rig, blocks[0]);
    free_requested(&rig, blocks[2]);
    free_requested(&rig, blocks[3]); /* the second slab is empty and is returned */
    assert_int_equal(take(&rig, 64 * AR_KIB).address, blocks[0].address);
    assert_int_equal(stats_of(&rig).totals.reserved_bytes, 2 * AR_MIB);
}

/* A slab that is emptied and filled in turn stays with its class. The supply gets it when it needs
 * it. */
TEST(an_empty_slab_is_kept)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab:limit=2MiB", UINT64_MAX);
    struct ar_policy_block one = take(&rig, 256 * AR_KIB);
    uint64_t splits = stats_of(&rig).count.splits;
    for (int i = 0; i < 10; i++) {
        free_requested(&rig, one);
        one = take(&rig, 256 * AR_KIB);
    }
    assert_int_equal(stats_of(&rig).count.splits, splits);
    free_requested(&rig, one);
    struct ar_policy_block large = take(&rig, 2 * AR_MIB); /* all of the limit */
    free_requested(&rig, large);
    assert_int_equal(stats_of(&rig).totals.releasable_bytes, 2 * AR_MIB);
    assert_int_equal(ar_policy_trim(rig.policy, 0), AR_OK);
    assert_int_equal(fake.held_bytes, 0);
}

/* 2 MiB hold 1920 KiB of a large block; a slab of less than two blocks of 112 KiB takes the
 * rest. */
TEST(a_small_piece_becomes_a_small_slab)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab:limit=2MiB", UINT64_MAX);
    (void)take(&rig, 1920 * AR_KIB);
    assert_int_equal(take(&rig, 112 * AR_KIB).granted_bytes, 112 * AR_KIB);
    assert_int_equal(stats_of(&rig).totals.reserved_bytes, 2 * AR_MIB);
}

/* 60 of 100 MiB are cached; 50 more need them. */
TEST(cached_memory_goes_back_when_it_is_short)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab:slack=10", 100 * AR_MIB);
    struct ar_policy_block cached[3];
    for (int i = 0; i < 3; i++)
        cached[i] = take(&rig, 20 * AR_MIB);
    struct ar_policy_block live = take(&rig, 30 * AR_MIB);
    for (int i = 0; i < 3; i++)
        free_requested(&rig, cached[i]);
    struct ar_policy_block more = take(&rig, 50 * AR_MIB);
    struct ar_policy_stats stats = stats_of(&rig);
    assert_int_equal(stats.count.segments_freed, 3);
    assert_true(stats.count.retries > 0);
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(&rig, 40 * AR_MIB, &block), AR_NO_MEMORY);
    assert_int_equal(stats_of(&rig).count.failures, 1);
    free_requested(&rig, live);
    free_requested(&rig, more);
}

/* Reserved memory stays below 9/8 of the greatest use. A program whose sizes change releases
 * segments; one with repeating sizes never does. */
TEST(the_cache_is_bounded)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab", UINT64_MAX);
    for (uint64_t bytes = 64 * AR_MIB; bytes < 256 * AR_MIB; bytes += 2 * AR_MIB) {
        free_requested(&rig, take(&rig, bytes));
        assert_true(stats_of(&rig).totals.reserved_bytes <= bytes + bytes / 8);
    }
    uint64_t freed = stats_of(&rig).count.segments_freed;
    for (int i = 0; i < 20; i++)
        free_requested(&rig, take(&rig, 200 * AR_MIB));
    assert_int_equal(stats_of(&rig).count.segments_freed, freed);
}

/* 8 GiB are allocated and freed, and small blocks that stay do not cut their segments. */
TEST(a_giant_is_not_broken_for_crumbs)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab", 8 * AR_GIB + 64 * AR_MIB);
    for (int i = 0; i < 8; i++) {
        struct ar_policy_block giant = take(&rig, 8 * AR_GIB);
        free_requested(&rig, giant);
        (void)take(&rig, 300 * AR_KIB);
        (void)take(&rig, 3 * AR_MIB);
        (void)take(&rig, 1000);
    }
    assert_int_equal(stats_of(&rig).count.failures, 0);
}

/* The device is full: a small request is served from a free piece between large blocks, and a large
 * one from the place of slabs. */
TEST(either_kind_borrows)
{
    CLOSED(close_rig) struct policy_rig rig;
    open_rig(&rig, "slab", 8 * AR_MIB);
    struct ar_policy_block large[4];
    for (int i = 0; i < 4; i++)
        large[i] = take(&rig, i == 1 ? AR_MIB : 2 * AR_MIB);
    struct ar_policy_block fourth = take(&rig, 512 * AR_KIB); /* next to the second */
    struct ar_policy_block small = take(&rig, 1000);
    assert_int_equal(small.granted_bytes, 1024);
    assert_int_equal(stats_of(&rig).totals.reserved_bytes, 8 * AR_MIB);
    free_requested(&rig, small);
    free_requested(&rig, fourth);
    for (int i = 0; i < 4; i++)
        free_requested(&rig, large[i]);
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
        blocks[i] = take(&rig, 50 * AR_MIB);
    uint64_t held = rig.policy->totals.reserved_bytes;
    assert_int_equal(held, 600 * AR_MIB);
    for (int i = 0; i < 12; i++)
        free_requested(&rig, blocks[i]);
    for (int i = 0; i < 3; i++) {
        (void)take(&rig, 200 * AR_MIB);
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
        CLOSED(close_rig) struct policy_rig rig;
        fake_backing_open(&fake, UINT64_MAX);
        fake_backing_virtual(&fake, 2 * AR_MIB, 64 * AR_MIB);
        fake.cap_bytes = 64 * AR_MIB;
        struct ar_backing_ops ops = *fake.base.ops;
        ops.fence = note_fence;
        fake.base.ops = &ops;
        assert_int_equal(policy_rig_open(&rig, "slab:virtual=true,slack=0", &fake.base, 0), AR_OK);
        const struct ar_policy_request wanted = {.bytes = 40 * AR_MIB, .stream = way == 0 ? 5 : 0};
        struct ar_policy_block block;
        assert_int_equal(ar_policy_alloc(rig.policy, &wanted, &block), AR_OK);
        if (way == 1)
            assert_int_equal(ar_policy_use(rig.policy, &block, 5), AR_OK);
        assert_int_equal(ar_policy_free(rig.policy, &block, way == 2 ? 5 : 0), AR_OK);
        fenced = 0;
        free_requested(&rig, take(&rig, 60 * AR_MIB));
        assert_int_equal(fenced, 63);
    }
}

TEST(virtual_needs_virtual_memory)
{
    struct policy_rig rig;
    fake_backing_open(&fake, UINT64_MAX);
    assert_int_equal(policy_rig_open(&rig, "slab:virtual=true", &fake.base, 0), AR_UNSUPPORTED);
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
