/* Scenarios of training and inference on one card: figures that can be derived by hand, sums of
 * bytes by owner, refusals. */
#include <string.h>

#include "allocators/base/size.h"
#include "sim/twin/twin.h"
#include "tests/support/test.h"

static const struct twin_process_setup one_process = {
    .name = "p", .policy = "torch", .context_bytes = 500 * AR_MIB};

/* A part with up to four options as "key=value" texts. */
struct part_text {
    const char *kind, *name, *process;
    struct ar_spec_pair pairs[8];
};

static void run(struct twin_scenario *scenario, const struct part_text *texts, size_t count,
                struct twin_result *result)
{
    struct twin_part_setup parts[8];
    struct ar_error error = {""};
    for (size_t i = 0; i < count; i++) {
        size_t pairs = 0;
        while (texts[i].pairs[pairs].key)
            pairs++;
        parts[i] =
            (struct twin_part_setup){.name = texts[i].name,
                                     .ops = twin_part_find(texts[i].kind),
                                     .process = texts[i].process,
                                     .options = {.pairs = texts[i].pairs, .pair_count = pairs}};
        assert_non_null(parts[i].ops);
    }
    scenario->parts = parts;
    scenario->part_count = count;
    enum ar_status status = twin_run(scenario, result, &error);
    if (status != AR_OK)
        fail_msg("%s", error.text);
}

static uint64_t owner_bytes(const struct twin_result *result, size_t phase, unsigned card,
                            const char *name)
{
    const struct twin_card_state *state = twin_card_at(result, phase, card);
    for (size_t i = 0; i < state->amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[state->amounts.first + i];
        if (strcmp(result->owners[amount->owner].name, name) == 0)
            return amount->bytes;
    }
    return 0;
}

static void assert_sums(const struct twin_result *result)
{
    for (size_t phase = 0; phase < result->phase_count; phase++)
        for (unsigned card = 0; card < result->card_count; card++) {
            const struct twin_card_state *state = twin_card_at(result, phase, card);
            uint64_t sum = 0, peak = 0;
            for (size_t i = 0; i < state->amounts.count; i++)
                sum += result->amounts[state->amounts.first + i].bytes;
            for (size_t i = 0; i < state->peak_amounts.count; i++)
                peak += result->amounts[state->peak_amounts.first + i].bytes;
            assert_int_equal(sum, state->used_bytes);
            assert_int_equal(peak, state->peak_bytes);
            assert_true(state->peak_bytes >= state->used_bytes);
        }
}

static void a_buffer_has_its_owner(void **state)
{
    (void)state;
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "a.load, b.load",
                                     .cycle = "a.free, p.empty_cache, a.load",
                                     .cycles = 3};
    const struct part_text parts[] = {
        {"buffer", "a", "p", {{"bytes", "100MiB", false}}},
        {"buffer", "b", "p", {{"bytes", "3MiB", false}, {"where", "outside", false}}},
    };
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_int_equal(result.phase_count, 2 + 9);
    assert_sums(&result);
    assert_int_equal(owner_bytes(&result, 1, 0, "a/buffer"), 100 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 1, 0, "b/buffer"), 3 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 1, 0, "p/context"), 500 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 1, 0, "p/pages"), AR_MIB); /* outside: whole pages */
    assert_int_equal(twin_card_at(&result, 1, 0)->used_bytes, 604 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 2, 0, "p/cached"), 100 * AR_MIB);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes, 504 * AR_MIB);
    double drift;
    assert_true(twin_drift(&result, 2, 0, 0, &drift));
    assert_true(drift == 0);
    twin_result_close(&result);
}

static void memory_runs_out(void **state)
{
    (void)state;
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "a.load, b.load"};
    const struct part_text parts[] = {
        {"buffer", "a", "p", {{"bytes", "7GiB", false}}},
        {"buffer", "b", "p", {{"bytes", "2GiB", false}}},
    };
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_int_equal(result.failure.phase, 1);
    assert_int_equal(result.failure.bytes, 2 * AR_GIB);
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_CAPACITY);
    assert_string_equal(result.owners[result.failure.owner].name, "b/buffer");
    assert_string_equal(result.failure.why,
                        "b.load: 2.000 GiB of b/buffer do not fit on card 0, 524.0 MiB are free");
    assert_sums(&result);
    twin_result_close(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_has_its_owner),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
