/* Explains a failure with known numbers: an arena of 100 MiB with two free blocks of 40 MiB around
 * a block of 20 MiB, and a request of 60 MiB. */
#include <jansson.h>

#include "allocators/base/map.h"
#include "allocators/base/rng.h"
#include "bench/report/pages.h"
#include "sim/explain/explain.h"
#include "sim/search/search.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"
#include "tests/support/tiny_trace.h"

#define PINNED                                                                                     \
    "a,0,41943040 a,1,20971520,0,tag=kept a,2,31457280 m,step f,0 f,2 "                            \
    "a,3,62914560,0,tag=wanted f,3 f,1"

static void explain(const char *policy, const char *device, const char *events,
                    struct explain_result *result)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_over(&rig, policy, device, tiny_trace(events));
    if (explain_run(&rig.experiment, 2, result, &rig.error))
        fail_msg("%s", rig.error.text);
}

static const struct explain_rerun *find(const struct explain_result *result, const char *spec)
{
    for (size_t i = 0; i < result->rerun_count; i++)
        if (strcmp(result->reruns[i].candidate.spec, spec) == 0)
            return &result->reruns[i];
    return NULL;
}

TEST(the_block_between_is_named)
{
    CLOSED(explain_result_close) struct explain_result result;
    explain("greedy:framework=jax,fraction=1", "sim:capacity=100MiB", PINNED, &result);
    assert_false(result.passed);
    assert_int_equal(result.event, 6);
    assert_int_equal(result.bytes, 60 * AR_MIB);
    assert_int_equal(result.id, 3);
    assert_string_equal(result.tag, "wanted");
    assert_int_equal(result.step, 2);
    assert_int_equal(result.cause, REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(result.pool_limit_bytes, 0); /* of the cause `cache` alone */
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
}

/* The indices of free memory, worked out by hand. A checkerboard of s = 8 MiB in C = 512 that is
 * asked for 2 s: 1 - 2 s / C, all of it unusable, 1 / 2 - 2 s / C. A free block of 80 MiB of
 * another stream than the one which asks for 30: the request can use none of it, only the 10 MiB
 * that the device has. */
TEST(free_blocks_are_put_into_indices)
{
    struct explain_result result;
    char events[2048] = "";
    for (unsigned i = 0; i < 64; i++)
        sprintf(events + strlen(events), "a,%u,8388608 ", i);
    for (unsigned i = 0; i < 64; i += 2)
        sprintf(events + strlen(events), "f,%u ", i);
    strcat(events, "a,64,16777216");
    explain("best-fit", "sim:capacity=512MiB", events, &result);
    assert_int_equal(result.free_blocks, 32);
    assert_true(result.indices.external == 1 - 2 * 8.0 / 512);
    assert_true(result.indices.unusable == 1);
    assert_true(result.indices.fragmentation == 0.5 - 2 * 8.0 / 512);
    explain_result_close(&result);
    explain("torch", "sim:capacity=110MiB", "a,0,104857600,1 f,0 a,1,20971520,1 a,2,31457280,2",
            &result);
    assert_int_equal(result.cause, REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(result.free_block_bytes, 80 * AR_MIB);
    assert_int_equal(result.largest_same_bytes, 0);
    assert_int_equal(result.largest_other_bytes, 80 * AR_MIB);
    assert_int_equal(result.ladder.obtainable_bytes, 10 * AR_MIB);
    assert_true(result.indices.external == 1 - 10 / 90.0);
    assert_true(result.indices.unusable == 1);
    assert_true(result.indices.fragmentation == 0); /* below: 1 - (1 + 90 / 30) / 2 */
    explain_result_close(&result);
}

/* explain --json. A policy whose free blocks are not visible cannot say what it could serve. */
TEST(the_state_as_json)
{
    static const char *const policies[] = {"greedy:framework=jax,fraction=1", "async", "async"};
    static const char *const devices[] = {"sim:capacity=100MiB", "sim:capacity=100MiB",
                                          "sim:profile=l4,capacity=100MiB"};
    static const char *const events[] = {PINNED, "a,0,20971520 a,1,104857600",
                                         "a,0,20971520 a,1,104857600"};
    for (int i = 0; i < 3; i++) {
        CLOSED(explain_result_close) struct explain_result result;
        struct recorded_card card = {0};
        struct json_writer json;
        struct capture capture;
        explain(policies[i], devices[i], events[i], &result);
        explain_json_begin(&json, capture_begin(&capture));
        explain_json_run(&json,
                         &(struct explain_page){"w", policies[i], REPLAY_ORDERED, &result, &card});
        explain_json_end(&json);
        FREED char *text = capture_end(&capture);
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        json_t *run = json_array_get(json_object_get(root, "runs"), 0);
        json_t *state_of = json_object_get(run, "state"),
               *servable = json_object_get(run, "servable");
        assert_int_equal(json_object_size(state_of), i == 2 ? 12 : 11);
        if (i == 2)
            assert_string_equal(json_string_value(json_object_get(state_of, "costs_of")), "h100");
        assert_int_equal(json_integer_value(json_object_get(state_of, "capacity_bytes")),
                         100 * AR_MIB);
        assert_int_equal(json_integer_value(json_object_get(state_of, "live_bytes")), 20 * AR_MIB);
        assert_true(json_is_null(servable) == (i > 0));
        if (i == 0)
            assert_int_equal(json_integer_value(json_object_get(servable, "no_call_bytes")),
                             40 * AR_MIB);
        json_decref(root);
    }
}

/* Capacity: 90 MiB are live at once, so that in 80 nothing helps, and 90 to 120 do. */
TEST(what_would_have_helped)
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

TEST(a_run_that_passes_is_told)
{
    CLOSED(explain_result_close) struct explain_result result;
    explain("torch", "sim:capacity=1GiB", PINNED, &result);
    assert_true(result.passed);
    assert_int_equal(result.rerun_count, 0);
}

static void failure(const char *policy, const char *device, const char *events,
                    struct explain_result *result)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    experiment_rig_over(&rig, policy, device, tiny_trace(events));
    if (explain_failure(&rig.experiment, result, &rig.error))
        fail_msg("%s", rig.error.text);
}

#define MIB(n) ((uint64_t)(n)*AR_MIB)

/* Memory beside the pool. In MiB: what was asked for, what the device has free, with the cached
 * segments, with all that is free in the pool. */
TEST(the_cache_in_the_way_is_named)
{
    static const struct {
        const char *policy, *device, *events;
        enum replay_cause cause;
        uint64_t event, asked, free, cached, all;
    } cases[] = {
        /* two segments of 100 are cached */
        {"torch", "sim:capacity=650MiB",
         "a,0,419430400 a,1,104857600 a,2,104857600 f,1 f,2 o,104857600", REPLAY_CAUSE_CACHE, 5,
         100, 50, 250, 250},
        /* the same, and the program has released them */
        {"torch", "sim:capacity=650MiB",
         "a,0,419430400 a,1,104857600 a,2,104857600 f,1 f,2 c o,104857600 o,272629760",
         REPLAY_CAUSE_CAPACITY, 7, 160, 150, 150, 150},
        /* 60 more than the 40 before */
        {"torch", "sim:capacity=200MiB", "o,41943040 a,0,125829120 f,0 o,104857600",
         REPLAY_CAUSE_CACHE, 3, 60, 40, 160, 160},
        /* free, but between live blocks */
        {"torch", "sim:capacity=210MiB",
         "a,0,209715200 f,0 a,1,104857600 a,2,52428800 f,1 o,52428800", REPLAY_CAUSE_CACHE, 5, 50,
         10, 10, 160},
        {"torch:expandable_segments=true", "sim:capacity=210MiB",
         "a,0,104857600 a,1,83886080 f,0 o,83886080", REPLAY_CAUSE_CACHE, 3, 80, 30, 130, 130},
        {"cupy", "sim:capacity=300MiB", "a,0,209715200 f,0 o,157286400", REPLAY_CAUSE_CACHE, 2, 150,
         100, 300, 300},
        {"greedy:framework=jax,fraction=0.9", "sim:capacity=1000MiB", "a,0,104857600 o,524288000",
         REPLAY_CAUSE_CACHE, 1, 500, 100, 100, 900},
        /* other processes, work that is not done, and live blocks */
        {"torch", "sim:capacity=300MiB,others=100MiB", "a,0,104857600 f,0 o,262144000",
         REPLAY_CAUSE_TENANT, 2, 250, 100, 200, 200},
        {"torch", "sim:capacity=110MiB", "a,0,104857600 k,1,90000000 u,0,1 r,0 o,104857600",
         REPLAY_CAUSE_PENDING, 4, 100, 10, 10, 10},
        {"direct", "sim:capacity=100MiB", "a,0,83886080 o,41943040", REPLAY_CAUSE_CAPACITY, 1, 40,
         20, 20, 20},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct explain_result result;
        failure(cases[i].policy, cases[i].device, cases[i].events, &result);
        assert_int_equal(result.cause, cases[i].cause);
        assert_int_equal(result.kind, EXPLAIN_BESIDE);
        assert_int_equal(result.event, cases[i].event);
        assert_int_equal(result.bytes, MIB(cases[i].asked));
        assert_int_equal(result.ladder.obtainable_bytes, MIB(cases[i].free));
        assert_int_equal(result.ladder.cached_bytes, MIB(cases[i].cached));
        assert_int_equal(result.ladder.other_bytes, MIB(cases[i].all));
        assert_int_equal(result.pinning_block_count, 0);
    }
}

/* Pieces of a segment whose frees complete while the request waits for them. */
TEST(a_block_that_came_back_is_named)
{
#define SEGMENT "a,0,209715200 f,0 a,1,104857600 a,2,104857600 "
#define PENDING "k,1,50000000 u,1,1 r,1 "
    static const struct {
        const char *policy, *device, *events;
        enum replay_cause cause;
        uint64_t largest; /* free for the request, in MiB */
    } cases[] = {
        {"torch", "sim:capacity=200MiB", SEGMENT PENDING "a,3,104857600", REPLAY_CAUSE_RETURNED,
         100},
        {"torch", "sim:capacity=215MiB", SEGMENT PENDING "a,3,52428800", REPLAY_CAUSE_RETURNED,
         100},
        {"torch:limit=201MiB", "sim", SEGMENT PENDING "a,3,104857600", REPLAY_CAUSE_RETURNED, 100},
        {"torch:roundup_power2_divisions=4", "sim:capacity=230MiB",
         "a,0,234881024 f,0 a,1,117440512 a,2,117440512 " PENDING "a,3,104857600",
         REPLAY_CAUSE_RETURNED, 112},
        {"torch", "sim:capacity=300MiB",
         "a,0,314572800 f,0 a,1,104857600 a,2,104857600 a,3,104857600 k,1,50000000 u,1,1 r,1 "
         "k,1,9000000 u,2,1 r,2 a,4,209715200",
         REPLAY_CAUSE_RETURNED, 200},
        {"gmlake:defragment=no", "sim:capacity=200MiB", SEGMENT PENDING "a,3,104857600",
         REPLAY_CAUSE_RETURNED, 100},
        /* it came back, but is too small, or for another stream; or it did not come back */
        {"torch", "sim:capacity=215MiB", SEGMENT PENDING "a,3,115343360",
         REPLAY_CAUSE_FRAGMENTATION, 100},
        {"torch", "sim:capacity=200MiB", SEGMENT PENDING "a,3,104857600,2",
         REPLAY_CAUSE_FRAGMENTATION, 0},
        {"torch", "sim:capacity=200MiB", SEGMENT "a,3,104857600", REPLAY_CAUSE_CAPACITY, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct explain_result result;
        failure(cases[i].policy, cases[i].device, cases[i].events, &result);
        if (result.cause != cases[i].cause)
            fail_msg("%s: %s", cases[i].events, replay_cause_name(result.cause));
        assert_int_equal(result.ladder.again, result.cause == REPLAY_CAUSE_RETURNED);
        assert_int_equal(result.largest_same_bytes, MIB(cases[i].largest));
    }
}

/* The capacity that passes is that of `capacity`, and above the one that failed. */
TEST(the_capacity_that_passes_is_the_safe_one)
{
#define BESIDE "a,0,419430400 a,1,104857600 a,2,104857600 f,1 f,2 o,104857600 a,3,52428800"
    static const struct {
        const char *policy, *device, *events;
    } cases[] = {
        {"torch", "sim:capacity=650MiB", BESIDE},
        {"torch:limit=590MiB", "sim", BESIDE},
        {"torch:expandable_segments=true", "sim:capacity=500MiB", BESIDE},
        {"greedy:framework=jax,fraction=1", "sim:capacity=100MiB", PINNED},
        {"growth:framework=jax", "sim:capacity=130MiB", PINNED},
        {"torch", "sim:capacity=200MiB", SEGMENT PENDING "a,3,104857600"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLOSED(explain_result_close) struct explain_result result;
        CLOSED(capacity_result_close) struct capacity_result capacity;
        CLOSED(experiment_rig_close) struct experiment_rig rig;
        explain(cases[i].policy, cases[i].device, cases[i].events, &result);
        const char *bare = strstr(cases[i].policy, "limit") ? "torch" : cases[i].policy;
        experiment_rig_over(&rig, bare, cases[i].device, tiny_trace(cases[i].events));
        if (capacity_find(&rig.experiment, 1, &capacity, &rig.error))
            fail_msg("%s", rig.error.text);
        assert_int_equal(result.more_capacity_bytes, capacity.safe_bytes);
        assert_true(result.limit_bytes || result.more_capacity_bytes > result.capacity_bytes);
    }
}

/* A limit of the pool leaves 100 MiB for memory beside it. */
TEST(a_limit_that_leaves_room_is_tried)
{
    struct explain_result result;
    explain("torch", "sim:capacity=650MiB", BESIDE, &result);
    assert_int_equal(result.cause, REPLAY_CAUSE_CACHE);
    assert_int_equal(result.pool_limit_bytes, 550 * AR_MIB);
    assert_false(result.pool_limit_passes); /* 600 are live */
    explain_result_close(&result);
    explain("torch", "sim:capacity=650MiB", "a,0,314572800 f,0 a,1,325058560 f,1 o,104857600",
            &result);
    assert_int_equal(result.cause, REPLAY_CAUSE_CACHE);
    assert_true(result.pool_limit_passes && result.can_trim);
    explain_result_close(&result);
}

#define ADDRESSES 300

/* Compares the table with an array that has an element for each address. */
TEST(births_are_found_by_address)
{
    CLOSED(ar_map_close) struct ar_map births = {.more_words = 1};
    uint64_t expected[ADDRESSES] = {0};
    struct ar_rng rng = ar_rng_of(7);
    for (uint64_t i = 1; i < 20000; i++) {
        uint64_t at = ar_rng_below(&rng, ADDRESSES);
        if (ar_rng_below(&rng, 2)) {
            uint64_t *birth = ar_map_add(&births, at * 512);
            assert_non_null(birth);
            birth[0] = i;
            expected[at] = i;
        } else {
            (void)ar_map_remove(&births, at * 512);
            expected[at] = 0;
        }
        at = ar_rng_below(&rng, ADDRESSES);
        const uint64_t *birth = ar_map_find(&births, at * 512);
        assert_int_equal(birth ? birth[0] : 0, expected[at]);
    }
}
