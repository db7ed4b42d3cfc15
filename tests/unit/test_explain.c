/* Explains a failure with known numbers: an arena of 100 MiB with two free blocks of 40 MiB around
 * a block of 20 MiB, and a request of 60 MiB. */
#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "sim/explain/pinning_blocks.h"
#include "sim/explain/explain.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

#define PINNED                                                                                     \
    "a,0,41943040 a,1,20971520,0,tag=kept a,2,31457280 m,step f,0 f,2 "                            \
    "a,3,62914560,0,tag=wanted f,3 f,1"

static void explain(const char *policy, const char *device, const char *events,
                    struct explain_result *result)
{
    struct experiment_rig rig;
    experiment_rig_over(&rig, policy, device, tiny_trace(events));
    if (explain_run(&rig.experiment, 2, result, &rig.error))
        fail_msg("%s", rig.error.text);
    experiment_rig_close(&rig);
}

static const struct explain_rerun *find(const struct explain_result *result, const char *spec)
{
    for (size_t i = 0; i < result->rerun_count; i++)
        if (strcmp(result->reruns[i].candidate.spec, spec) == 0)
            return &result->reruns[i];
    return NULL;
}

static void the_block_between_is_named(void **state)
{
    struct explain_result result;
    explain("greedy:framework=jax,fraction=1", "sim:capacity=100MiB", PINNED, &result);
    assert_false(result.passed);
    assert_int_equal(result.event, 6);
    assert_int_equal(result.bytes, 60 * AR_MIB);
    assert_int_equal(result.id, 3);
    assert_string_equal(result.tag, "wanted");
    assert_int_equal(result.step, 2);
    assert_int_equal(result.cause, REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(result.totals.live_bytes, 20 * AR_MIB);
    assert_int_equal(result.free_blocks, 2);
    assert_int_equal(result.free_block_bytes, 80 * AR_MIB);
    assert_int_equal(result.largest_free_block_bytes, 40 * AR_MIB);
    assert_true(result.indices.external == 0.5);
    assert_true(result.indices.unusable == 1);
    assert_true(result.indices.fragmentation == 0); /* below: 1 - (1 + 80 / 60) / 2 */
    assert_int_equal(result.servable_bytes[AR_POLICY_EFFORT_NONE], 40 * AR_MIB);
    assert_int_equal(result.ladder.same_bytes, 80 * AR_MIB);
    assert_int_equal(result.pinning_block_count, 1);
    assert_string_equal(result.pinning_blocks[0].tag, "kept");
    assert_int_equal(result.pinning_blocks[0].bytes, 20 * AR_MIB);
    assert_int_equal(result.pinning_blocks[0].event, 1);
    assert_int_equal(result.pinning_blocks[0].age_events, 5);
    assert_int_equal(result.pinning_blocks[0].age_bytes, 30 * AR_MIB);
    assert_int_equal(result.pinning_blocks[0].free_bytes, 80 * AR_MIB);
    assert_true(result.pinning_blocks[0].in_stretch);
    assert_int_equal(result.stretch_blocks, 1);
    assert_int_equal(result.stretch_live_bytes, 20 * AR_MIB);
    explain_result_close(&result);
}

/* The indices of free memory, worked out by hand. A checkerboard of s = 8 MiB in C = 512 that is
 * asked for 2 s: 1 - 2 s / C, all of it unusable, 1 / 2 - 2 s / C. A free block of 80 MiB that
 * belongs to another stream than the one which asks for 30: two pieces of it, 20 are left over. */
static void free_blocks_are_put_into_indices(void **state)
{
    struct explain_result result;
    char events[2048];
    tiny_trace_checkerboard(events);
    explain("best-fit", "sim:capacity=512MiB", events, &result);
    assert_int_equal(result.free_blocks, 32);
    assert_true(result.indices.external == 1 - 2 * 8.0 / 512);
    assert_true(result.indices.unusable == 1);
    assert_true(result.indices.fragmentation == 0.5 - 2 * 8.0 / 512);
    explain_result_close(&result);
    explain("torch", "sim:capacity=110MiB", "a,0,104857600,1 f,0 a,1,20971520,1 a,2,31457280,2",
            &result);
    assert_int_equal(result.free_block_bytes, 80 * AR_MIB);
    assert_true(result.indices.external == 0);
    assert_true(result.indices.unusable == 20 / 80.0);
    assert_true(result.indices.fragmentation == -1);
    explain_result_close(&result);
}

/* Capacity: 90 MiB are live at once, so that in 80 nothing helps, and 90 to 120 do. */
static void what_would_have_helped(void **state)
{
    struct explain_result result;
    explain("greedy:framework=jax,fraction=1", "sim:capacity=100MiB", PINNED, &result);
    assert_non_null(find(&result, "direct"));
    assert_true(find(&result, "direct")->candidate.own);
    assert_null(find(&result, "greedy:framework=jax,fraction=0.95"));
    assert_int_equal(result.more_capacity_bytes, 120 * AR_MIB);
    assert_int_equal(result.live_peak_bytes, 90 * AR_MIB);
    explain_result_close(&result);
    explain("greedy:framework=jax,fraction=1", "sim:capacity=80MiB", PINNED, &result);
    assert_int_equal(result.cause, REPLAY_CAUSE_CAPACITY);
    assert_int_equal(result.rerun_count, 0);
    explain_result_close(&result);
}

static void a_run_that_passes_is_told(void **state)
{
    struct explain_result result;
    explain("torch", "sim:capacity=1GiB", PINNED, &result);
    assert_true(result.passed);
    assert_int_equal(result.rerun_count, 0);
    explain_result_close(&result);
}

#define ADDRESSES 300

/* Compares the table with an array that has an element for each address. */
static void births_are_found_by_address(void **state)
{
    struct births births = {0};
    uint64_t expected[ADDRESSES] = {0};
    struct ar_rng rng;
    ar_rng_seed(&rng, 7);
    for (uint64_t i = 1; i < 20000; i++) {
        uint64_t at = ar_rng_below(&rng, ADDRESSES);
        if (ar_rng_below(&rng, 2)) {
            assert_true(births_add(&births, at * 512, &(struct birth){i, 0}));
            expected[at] = i;
        } else {
            births_remove(&births, at * 512);
            expected[at] = 0;
        }
        at = ar_rng_below(&rng, ADDRESSES);
        const struct birth *birth = births_find(&births, at * 512);
        assert_int_equal(birth ? birth->event : 0, expected[at]);
    }
    births_close(&births);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_block_between_is_named),
        cmocka_unit_test(free_blocks_are_put_into_indices),
        cmocka_unit_test(what_would_have_helped),
        cmocka_unit_test(a_run_that_passes_is_told),
        cmocka_unit_test(births_are_found_by_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
