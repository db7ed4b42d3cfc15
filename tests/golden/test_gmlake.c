/* The decisions of GMLake on a simulated H100: what is stitched, what is not, and the life of
 * stitched blocks. The device refuses every misuse of its virtual memory. */
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

static struct ar_policy_block request_on(struct device_rig *rig, uint64_t bytes, uint32_t stream)
{
    const struct ar_policy_request asked = {.bytes = bytes, .stream = stream};
    struct ar_policy_block block;
    assert_int_equal(ar_policy_alloc(rig->policy.policy, &asked, &block), AR_OK);
    device_rig_check(rig);
    return block;
}

static struct ar_policy_block request(struct device_rig *rig, uint64_t bytes)
{
    return request_on(rig, bytes, 0);
}

static void release(struct device_rig *rig, struct ar_policy_block block)
{
    assert_int_equal(policy_rig_free(&rig->policy, &block), AR_OK);
    device_rig_check(rig);
}

static uint64_t reserved(const struct device_rig *rig)
{
    return rig->policy.policy->totals.reserved_bytes;
}

static uint64_t free_bytes(const struct device_rig *rig)
{
    return ar_policy_free_bytes(&rig->policy.policy->totals);
}

/* Two free blocks of these sizes, each in its own segment. */
static void two_free_blocks(struct device_rig *rig, uint64_t a_bytes, uint64_t b_bytes)
{
    struct ar_policy_block a = request(rig, a_bytes);
    struct ar_policy_block b = request(rig, b_bytes);
    release(rig, a);
    release(rig, b);
}

/* 300 and 400 MiB free: 600 MiB are made of both, 500 MiB are below the limit and new. */
TEST(stitches_from_the_limit_on)
{
    struct device_rig rig;
    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 400 * AR_MIB);
    assert_int_equal(reserved(&rig), 734003200);
    struct ar_policy_block block = request(&rig, 600 * AR_MIB);
    assert_int_equal(block.granted_bytes, 600 * AR_MIB);
    assert_int_equal(reserved(&rig), 734003200);
    assert_int_equal(free_bytes(&rig), 100 * AR_MIB);
    release(&rig, block);
    assert_int_equal(free_bytes(&rig), 734003200);
    device_rig_close(&rig);

    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 400 * AR_MIB);
    (void)request(&rig, 500 * AR_MIB);
    assert_int_equal(reserved(&rig), 1258291200);
    assert_int_equal(free_bytes(&rig), 734003200);
    device_rig_close(&rig);
}

/* The largest block is first, the smallest needed one is cut: 200 of 300 MiB are used. */
TEST(takes_the_largest_first)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    struct ar_policy_block blocks[3] = {request(&rig, 100 * AR_MIB), request(&rig, 300 * AR_MIB),
                                        request(&rig, 400 * AR_MIB)};
    for (int i = 0; i < 3; i++)
        release(&rig, blocks[i]);
    (void)request(&rig, 600 * AR_MIB);
    struct ar_policy_stats stats;
    ar_policy_stats(rig.policy.policy, &stats);
    assert_int_equal(stats.count.segments_made, 4);
    assert_int_equal(stats.largest_free_block_bytes, 100 * AR_MIB);
    /* The rest of the second block lies above the used part. */
    assert_int_equal(request(&rig, 100 * AR_MIB).address, blocks[0].address);
    assert_int_equal(request(&rig, 100 * AR_MIB).address, blocks[1].address + 200 * AR_MIB);
    assert_int_equal(reserved(&rig), 800 * AR_MIB);
}

/* A freed view is reused at its address without a driver call, unless one of its pages is used at
 * another address. */
TEST(a_view_is_used_again)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    struct ar_policy_block view = request(&rig, 600 * AR_MIB);
    release(&rig, view);
    struct ar_policy_block again = request(&rig, 600 * AR_MIB);
    assert_int_equal(again.address, view.address);
    release(&rig, again);
    struct ar_policy_block part = request(&rig, 200 * AR_MIB);
    assert_true(part.address != view.address);
    struct ar_policy_block other = request(&rig, 600 * AR_MIB); /* 100 + 300 MiB do not suffice */
    assert_true(other.address != view.address);
    assert_int_equal(reserved(&rig), 1200 * AR_MIB);
    release(&rig, part);
    release(&rig, other);
    assert_int_equal(request(&rig, 600 * AR_MIB).address, other.address); /* a whole block first */
    assert_int_equal(request(&rig, 600 * AR_MIB).address, view.address);
}

/* A free view serves a smaller request with its first pages; the others stay free. */
TEST(a_view_serves_less)
{
    struct device_rig rig;
    device_rig_open(&rig, "gmlake:reuse_limit=2", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    struct ar_policy_block view = request(&rig, 600 * AR_MIB);
    release(&rig, view);
    struct ar_policy_block less = request(&rig, 400 * AR_MIB);
    assert_int_equal(less.address, view.address);
    assert_int_equal(less.granted_bytes, 400 * AR_MIB);
    assert_int_equal(free_bytes(&rig), 200 * AR_MIB);
    (void)request(&rig, 200 * AR_MIB);
    assert_int_equal(reserved(&rig), 600 * AR_MIB);
    device_rig_close(&rig);

    device_rig_open(&rig, "gmlake:reuse_limit=1.2", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    release(&rig, request(&rig, 600 * AR_MIB));
    (void)request(&rig, 400 * AR_MIB); /* 600 is more than 1.2 times that, and 400 below 512 */
    assert_int_equal(reserved(&rig), 1000 * AR_MIB);
    device_rig_close(&rig);
}

TEST(level_one_asks_the_device_first)
{
    struct device_rig rig;
    device_rig_open(&rig, "gmlake:defrag_level=1", "sim:profile=h100,capacity=1300MiB");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    struct ar_policy_block block = request(&rig, 600 * AR_MIB);
    assert_int_equal(reserved(&rig), 1200 * AR_MIB);
    (void)request(&rig, 600 * AR_MIB); /* the device has no more: stitched */
    assert_int_equal(reserved(&rig), 1200 * AR_MIB);
    assert_int_equal(free_bytes(&rig), 0);
    release(&rig, block);
    device_rig_close(&rig);
}

/* Address space above the limit: unused views are destroyed, and a later request makes a new
 * one. */
TEST(views_are_collected)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_stats stats;
    device_rig_open(&rig, "gmlake:auto_gc=1GiB", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    struct ar_policy_block view = request(&rig, 600 * AR_MIB);
    release(&rig, view);
    struct ar_policy_block a = request(&rig, 300 * AR_MIB);
    release(&rig, request(&rig, 200 * AR_MIB));
    ar_policy_stats(rig.policy.policy, &stats);
    assert_int_equal(stats.count.segments_freed, 0);
    release(&rig, request(&rig, 310 * AR_MIB)); /* a third block */
    (void)request(&rig, 602 * AR_MIB);          /* 310 and 292 MiB: a view of 602 and one of 600 */
    ar_policy_stats(rig.policy.policy, &stats);
    assert_int_equal(stats.count.segments_freed, 1);
    release(&rig, a);
}

/* The same while a kernel of 50 ms uses the view that was freed: it is not destroyed, which the
 * device would refuse. */
TEST(a_view_in_use_is_not_collected)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_stats stats;
    device_rig_open(&rig, "gmlake:auto_gc=1GiB", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    struct ar_policy_block view = request(&rig, 600 * AR_MIB);
    rig.device->ops->kernel(rig.device, 0, 50000000);
    rig.device->ops->used(rig.device, view.address, view.granted_bytes, 0, 1);
    release(&rig, view);
    struct ar_policy_block a = request(&rig, 300 * AR_MIB);
    release(&rig, request(&rig, 200 * AR_MIB));
    release(&rig, request(&rig, 310 * AR_MIB));
    (void)request(&rig, 602 * AR_MIB);
    ar_policy_stats(rig.policy.policy, &stats);
    assert_int_equal(stats.count.segments_freed, 0);
    assert_true(rig.device->ops->now(rig.device) < 50000000);
    assert_string_equal(rig.device->ops->problem(rig.device), "");
    release(&rig, a);
}

static const struct ar_backing_ops *device_ops;
static unsigned refusals; /* of the next calls */

static enum ar_status reserve_or_refuse(struct ar_backing *backing, uint64_t bytes,
                                        uint64_t *address)
{
    return refusals && refusals-- ? AR_REFUSED : device_ops->reserve(backing, bytes, address);
}

/* The device has no address space for a stitch of 310 MiB. At first, fragmented views of four times
 * that are destroyed, those of the first stream first: three of 600 to 604 MiB. Then sixteen times
 * that, five and four views, and the unused view of 300 MiB; four views stay. */
TEST(views_make_room_for_a_stitch)
{
    for (unsigned round = 1; round <= 2; round++) {
        CLOSED(device_rig_close) struct device_rig rig;
        struct ar_policy_stats stats;
        struct ar_policy_block used[4], parts[3];
        device_rig_open(&rig, "gmlake:reuse_limit=1,frag_limit=250MiB", "sim:profile=h100");
        struct ar_backing *backing = rig.device->backing;
        struct ar_backing_ops ops = *(device_ops = backing->ops);
        ops.reserve = reserve_or_refuse;
        backing->ops = &ops;
        for (uint32_t stream = 0; stream < 2; stream++) {
            struct ar_policy_block a = request_on(&rig, 310 * AR_MIB, stream);
            struct ar_policy_block b = request_on(&rig, 310 * AR_MIB, stream);
            release(&rig, a);
            release(&rig, b);
            for (unsigned view = 0; view < 8; view++)
                release(&rig, request_on(&rig, (600 + 2 * view) * AR_MIB, stream));
            used[2 * stream] = request_on(&rig, 310 * AR_MIB, stream);
            used[2 * stream + 1] = request_on(&rig, 310 * AR_MIB, stream);
        }
        for (unsigned i = 0; i < 3; i++)
            parts[i] = request(&rig, 150 * AR_MIB);
        for (unsigned i = 0; i < 3; i++)
            release(&rig, parts[i]);
        release(&rig, request(&rig, 300 * AR_MIB));
        uint64_t before = reserved(&rig);
        ar_policy_stats(rig.policy.policy, &stats);
        assert_int_equal(stats.count.segments_freed, 0);
        refusals = round;
        struct ar_policy_block stitched = request(&rig, 310 * AR_MIB);
        ar_policy_stats(rig.policy.policy, &stats);
        assert_int_equal(stats.count.segments_freed, round == 1 ? 3 : 13);
        assert_int_equal(reserved(&rig), before);
        release(&rig, stitched);
        for (unsigned i = 0; i < 4; i++)
            release(&rig, used[i]);
        backing->ops = device_ops;
    }
}

/* A stitched block that another stream uses is pending until the work of that stream is done, and
 * so are its pages. */
TEST(another_stream_delays_a_view)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    struct ar_policy_block view = request(&rig, 600 * AR_MIB);
    assert_int_equal(ar_policy_use(rig.policy.policy, &view, 1), AR_OK);
    release(&rig, view);
    const struct ar_policy_totals *totals = &rig.policy.policy->totals;
    assert_int_equal(totals->granted_bytes, 0);
    assert_int_equal(totals->pending_bytes + ar_policy_free_bytes(totals), 600 * AR_MIB);
    ar_policy_progress(rig.policy.policy);
    assert_int_equal(totals->pending_bytes, 0);
    device_rig_check(&rig);
    /* Another stream does not get it. */
    (void)request_on(&rig, 600 * AR_MIB, 1);
    assert_int_equal(reserved(&rig), 1200 * AR_MIB);
}

/* empty_cache destroys the views with their memory. */
TEST(trim_takes_views)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    two_free_blocks(&rig, 300 * AR_MIB, 300 * AR_MIB);
    release(&rig, request(&rig, 600 * AR_MIB));
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    device_rig_check(&rig);
    assert_int_equal(reserved(&rig), 0);
}

/* Small requests are served as in PyTorch; large ones below 10 MiB share segments of 20 MiB. */
TEST(sizes)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "gmlake", "sim:profile=h100");
    assert_int_equal(request(&rig, 1).granted_bytes, 512);
    assert_int_equal(request(&rig, AR_MIB).granted_bytes, AR_MIB);
    assert_int_equal(reserved(&rig), 2 * AR_MIB);
    assert_int_equal(request(&rig, AR_MIB + 1).granted_bytes, 2 * AR_MIB);
    assert_int_equal(reserved(&rig), 22 * AR_MIB);
    assert_int_equal(request(&rig, 17 * AR_MIB).granted_bytes, 18 * AR_MIB);
    assert_int_equal(reserved(&rig), 22 * AR_MIB);
    assert_int_equal(request(&rig, 11 * AR_MIB).granted_bytes, 12 * AR_MIB);
    assert_int_equal(reserved(&rig), 34 * AR_MIB);
}
