/* `explain --json`, and where blocks were born. What it finds: tests/steps/explain. */
#include <jansson.h>

#include "allocators/base/map.h"
#include "allocators/base/rng.h"
#include "bench/report/pages.h"
#include "sim/explain/explain.h"
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
        explain_json_run(&json, &(struct explain_page){.workload = "w",
                                                       .policy = policies[i],
                                                       .frees = REPLAY_ORDERED,
                                                       .result = &result,
                                                       .card = &card});
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
