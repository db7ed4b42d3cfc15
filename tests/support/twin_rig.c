#include "tests/support/twin_rig.h"

#include <unistd.h>

#include "bench/suite/twin_study.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

const struct twin_process_setup twin_rig_process = {
    .name = "p", .policy = "torch", .context_bytes = 500 * AR_MIB};

void twin_rig_run(struct twin_scenario *scenario, const struct part_text *texts, size_t count,
                  struct twin_result *result)
{
    struct twin_part_setup parts[8];
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
    enum ar_status status = twin_run(scenario, result, &test_error);
    if (status != AR_OK)
        fail_msg("%s", test_error.text);
}

struct twin_result twin_rig_case(const char *file, const char *section)
{
    static struct scenario text; /* the result points into these two */
    static struct twin_setup setup;
    struct twin_result result;
    struct cases block = {0};
    const char *kinds[TWIN_KINDS_MOST];
    struct temporary_file made = temporary_file(cases_text(&block, file, section));
    twin_setup_close(&setup);
    scenario_close(&text);
    assert_ok(
        scenario_read(made.path, kinds, twin_setup_kinds(kinds, COUNT(kinds)), &text, &test_error));
    unlink(made.path);
    assert_ok(twin_setup_make(&text, &setup, &test_error));
    assert_ok(twin_run(&setup.scenario, &result, &test_error));
    return result;
}

uint64_t twin_rig_bytes(const struct twin_result *result, size_t phase, unsigned card,
                        const char *owner)
{
    const struct twin_card_state *state = twin_card_at(result, phase, card);
    for (size_t i = 0; i < state->amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[state->amounts.first + i];
        if (strcmp(result->owners[amount->owner].name, owner) == 0)
            return amount->bytes;
    }
    return 0;
}

void twin_rig_check(const struct twin_result *result)
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
