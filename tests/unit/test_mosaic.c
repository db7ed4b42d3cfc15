/* `mosaic` before memory runs out. Then, step by step: tests/steps/mosaic. */
#include "allocators/base/rng.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

enum { SLOTS = 48 };

/* Every address, total and driver call is that of expandable segments. */
TEST(before_memory_runs_out_it_is_torch)
{
    static const char *const specs[] = {"torch:expandable_segments=true", "mosaic"};
    struct device_rig rig[2];
    struct ar_policy_block blocks[2][SLOTS] = {0};
    struct ar_rng rng;
    ar_rng_seed(&rng, 7);
    for (int p = 0; p < 2; p++)
        device_rig_open(&rig[p], specs[p], "sim:capacity=900MiB");
    for (int i = 0; i < 4000; i++) {
        uint32_t slot = (uint32_t)ar_rng_below(&rng, SLOTS);
        uint64_t bytes = 1 + ar_rng_below(&rng, UINT64_C(1) << (10 + ar_rng_below(&rng, 15)));
        for (int p = 0; p < 2; p++) {
            struct ar_policy_block *block = &blocks[p][slot];
            if (block->granted_bytes) {
                assert_int_equal(policy_rig_free(&rig[p].policy, block), AR_OK);
                *block = (struct ar_policy_block){0};
            } else {
                assert_int_equal(policy_rig_alloc(&rig[p].policy, bytes, block), AR_OK);
            }
        }
        assert_int_equal(blocks[0][slot].address, blocks[1][slot].address);
    }
    assert_memory_equal(&rig[0].device->counters, &rig[1].device->counters,
                        sizeof rig[0].device->counters);
    for (int p = 0; p < 2; p++)
        device_rig_close(&rig[p]);
}
