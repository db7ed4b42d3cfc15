/* `torch` with expandable segments and many streams. Few of them: tests/steps/torch_pages. */
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

/* Every stream has its own free blocks, for any number of streams. */
TEST(test_many_streams)
{
    enum { STREAMS = 20000 };
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "torch:expandable_segments=true", "sim");
    FREED struct ar_policy_block *blocks = calloc(STREAMS, sizeof *blocks);
    assert_non_null(blocks);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < STREAMS; i++) {
            const struct ar_policy_request request = {.bytes = 1000, .stream = i};
            uint64_t before = blocks[i].address;
            assert_int_equal(ar_policy_alloc(rig.policy.policy, &request, &blocks[i]), AR_OK);
            assert_true(!round || blocks[i].address == before);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
            assert_int_equal(ar_policy_free(rig.policy.policy, &blocks[i], i), AR_OK);
    }
    assert_int_equal(rig.device->counters.physical_bytes, STREAMS * 2 * AR_MIB);
}
