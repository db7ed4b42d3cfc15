/* The slab policy: the waste of its classes, fences, and random operations. Its rules, step by
 * step: tests/steps/slab. */
#include "tests/support/fake_backing.h"
#include "tests/support/op_script.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
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
