/* The slab policy: the waste of its classes, and fences. Its rules, step by step: tests/steps/slab;
 * random operations: test_engines. */
#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

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
