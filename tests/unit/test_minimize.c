/* The smallest trace for which a condition holds: known answers, an independent check of
 * 1-minimality, and the parsing of conditions. */
#include "allocators/base/rng.h"
#include "sim/search/search.h"
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

#define HEAD       "# allocrig-trace 1\n# name: t\n"
#define SMALL_CARD "sim:profile=bump,capacity=100MiB"

struct setting {
    struct ar_spec policy, device;
    struct condition condition;
    struct experiment experiment;
};

static void set(struct setting *self, const char *until, const char *policy, const char *device)
{
    if (ar_spec_parse(policy, &self->policy, &test_error) ||
        ar_spec_parse(device, &self->device, &test_error) ||
        condition_parse(until, &self->condition, &test_error))
        fail_msg("%s", test_error.text);
    self->experiment =
        (struct experiment){.policy = &self->policy, .device = &self->device, .seed = 1};
}

static void unset(struct setting *self)
{
    condition_close(&self->condition);
    ar_spec_close(&self->policy);
    ar_spec_close(&self->device);
}

static bool shows(const struct setting *self, struct trace_source *source)
{
    struct experiment experiment = self->experiment;
    uint64_t runs = 0;
    bool holds = false;
    experiment.source = source;
    assert_ok(condition_holds(&self->condition, &experiment, &runs, &holds, &test_error));
    return holds;
}

/* The smallest trace of `text`, as text without its head; the caller frees it. */
static char *smallest(void *rig, struct setting *setting, const char *text,
                      struct minimize_result *result)
{
    struct trace_source *source, *least;
    assert_ok(trace_rig_text(rig, text, &source, &test_error));
    setting->experiment.source = source;
    assert_ok(minimize(&setting->experiment, &setting->condition, &least, result, &test_error));
    assert_true(result->shown);
    assert_true(shows(setting, least));
    char *printed = trace_rig_print(rig, least);
    trace_close(least);
    trace_close(source);
    assert_int_equal(strncmp(printed, HEAD, strlen(HEAD)), 0);
    memmove(printed, printed + strlen(HEAD), strlen(printed) - strlen(HEAD) + 1);
    return printed;
}

/* Forty megabytes, then twenty that stay, and the forty are freed: sixty are free, but not
 * contiguous. The rest is noise. */
static const char fragmented[] = HEAD "a,0,500,tag=noise\n"
                                      "a,1,41943040\n"
                                      "t,5\n"
                                      "k,0,100\n"
                                      "a,2,20971520\n"
                                      "!,alloc,77\n"
                                      "a,3,700,1\n"
                                      "e,3,1\n"
                                      "w,0,3\n"
                                      "s\n"
                                      "u,3,0\n"
                                      "f,1\n"
                                      "m,step\n"
                                      "c\n"
                                      "r,3\n"
                                      "o,5\n"
                                      "a,4,62914560\n"
                                      "f,2\n"
                                      "m,step\n";

TRACE_TEST(answers_are_known)
{
    EACH_ROW (row, 4) {
        struct setting setting;
        struct minimize_result result;
        set(&setting, row.field[0], row.field[1], SMALL_CARD);
        FREED char *answer = smallest(*state, &setting, row.field[2], &result);
        if (strcmp(answer, row.field[3]) != 0)
            fail_msg("%s of %s: %s", row.field[0], row.field[1], answer);
        unset(&setting);
    }
}

TRACE_TEST(counts_are_told)
{
    struct setting setting;
    struct minimize_result result;
    set(&setting, "cause=fragmentation", "first-fit", SMALL_CARD);
    char *answer = smallest(*state, &setting, fragmented, &result);
    free(answer);
    assert_int_equal(result.events[0], 18); /* without the note */
    assert_int_equal(result.events[1], 4);
    assert_int_equal(result.requests[0], 5);
    assert_int_equal(result.requests[1], 3);
    assert_true(result.runs > 4 && result.runs <= result.candidates);
    unset(&setting);
}

TRACE_TEST(what_is_not_shown_is_not_minimized)
{
    struct setting setting;
    struct minimize_result result;
    struct trace_source *source, *least;
    set(&setting, "fails", "first-fit", SMALL_CARD);
    assert_ok(trace_rig_text(*state, HEAD "a,0,8\n", &source, &test_error));
    setting.experiment.source = source;
    assert_ok(minimize(&setting.experiment, &setting.condition, &least, &result, &test_error));
    assert_false(result.shown);
    assert_null(least);
    assert_int_equal(result.runs, 1);
    trace_close(source);
    unset(&setting);
}

/* A copy of the trace without one event and, if it is a request, without its block. */
static struct trace_source *copy_without(struct trace_source *source, size_t left_out)
{
    struct trace_memory *memory = trace_memory_create(&source->info);
    struct trace_source *out;
    const struct trace_event *events;
    uint64_t gone = UINT64_MAX;
    size_t count;
    assert_ok(trace_rewind(source, &test_error));
    assert_ok(trace_next(source, &events, &count, &test_error));
    if (events[left_out].kind <= TRACE_PROBE)
        gone = events[left_out].id;
    for (size_t i = 0; i < count; i++) {
        struct trace_event event = events[i];
        bool block = trace_kind_has_block(event.kind);
        if (i == left_out || (block && event.id == gone))
            continue;
        event.id -= block && gone != UINT64_MAX && event.id > gone;
        event.attributes = 0;
        assert_ok(trace_memory_append(memory, &event, NULL, NULL, &test_error));
    }
    assert_ok(trace_memory_open(memory, &out, &test_error));
    return out;
}

/* A random trace of requests and frees; some sizes are a large part of the card. */
static char *random_trace(uint64_t seed)
{
    struct ar_rng rng = ar_rng_of(seed);
    char *text = malloc(1 << 16);
    size_t used = (size_t)sprintf(text, HEAD), live[64], live_count = 0, next = 0;
    assert_non_null(text);
    for (int i = 0; i < 200; i++) {
        if (live_count == 64 || (live_count > 2 && ar_rng_below(&rng, 5) < 2)) {
            size_t at = (size_t)ar_rng_below(&rng, live_count);
            used += (size_t)sprintf(text + used, "f,%zu\n", live[at]);
            live[at] = live[--live_count];
        } else {
            used += (size_t)sprintf(text + used, "a,%zu,%llu\n", next,
                                    (unsigned long long)ar_rng_below(&rng, 16 << 20));
            live[live_count++] = next++;
        }
    }
    return text;
}

TRACE_TEST(no_block_and_no_event_can_be_missed)
{
    static const char *const untils[] = {
        "cause=fragmentation", "fails", "differs(first-fit,best-fit)", "peak_reserved_bytes>90MiB"};
    unsigned checked = 0;
    for (uint64_t seed = 1; seed <= 6; seed++)
        for (size_t i = 0; i < COUNT(untils); i++) {
            struct setting setting;
            struct minimize_result result;
            struct trace_source *source, *least;
            FREED char *text = random_trace(seed);
            set(&setting, untils[i], "first-fit", SMALL_CARD);
            assert_ok(trace_rig_text(*state, text, &source, &test_error));
            setting.experiment.source = source;
            assert_ok(
                minimize(&setting.experiment, &setting.condition, &least, &result, &test_error));
            for (size_t at = 0; result.shown && at < least->info.events; at++, checked++) {
                CLOSED(close_trace) struct trace_source *less = copy_without(least, at);
                if (shows(&setting, less))
                    fail_msg("seed %d, %s: event %zu can be missed", (int)seed, untils[i], at);
            }
            trace_close(least);
            trace_close(source);
            unset(&setting);
        }
    assert_true(checked > 50); /* otherwise the traces are no test */
}

TRACE_TEST(conditions_are_read)
{
    CLOSED(condition_close) struct condition condition;
    assert_ok(condition_parse("cause=pending", &condition, &test_error));
    assert_int_equal(condition.kind, CONDITION_CAUSE);
    assert_int_equal(condition.cause, REPLAY_CAUSE_PENDING);
    assert_ok(condition_parse("driver_calls >= 12", &condition, &test_error));
    assert_int_equal(condition.metric, METRIC_driver_calls);
    assert_int_equal(condition.order, CONDITION_FROM);
    assert_true(condition.value == 12);
    assert_ok(condition_parse("peak_live_bytes<1.5GiB", &condition, &test_error));
    assert_int_equal(condition.order, CONDITION_BELOW);
    assert_true(condition.value == 1610612736.0);
    /* commas belong to the specs */
    assert_ok(condition_parse("differs(growth:limit=2GiB,checked+torch:limit=1GiB)", &condition,
                              &test_error));
    assert_string_equal(condition.policies[0].text, "growth:limit=2GiB");
    assert_string_equal(condition.policies[1].text, "checked+torch:limit=1GiB");
}

TRACE_TEST(bad_conditions_are_refused)
{
    EACH_ROW (row, 2) {
        struct condition condition;
        assert_int_equal(condition_parse(row.field[0], &condition, &test_error), AR_INVALID);
        if (strncmp(test_error.text, row.field[1], strlen(row.field[1])) != 0)
            fail_msg("%s: %s", row.field[0], test_error.text);
    }
}
