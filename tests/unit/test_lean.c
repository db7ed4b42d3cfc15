/* Trials with a trace in fewer events: the answers are those with the whole trace. */
#include "allocators/base/rng.h"
#include "sim/advise/candidates.h"
#include "sim/advise/trial.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

#define TAPE "workloads/data/tape_small.default.csv.gz"

static struct trace_source *open_copy(const char *path)
{
    struct trace_source *file, *copy = NULL;
    if (trace_open_recording(path, &file, &test_error) ||
        trace_memory_copy(file, &copy, &test_error))
        fail_msg("%s", test_error.text);
    trace_close(file);
    return copy;
}

static void make(struct trace_source *trace, enum replay_frees frees, enum replay_host host,
                 bool timeless, struct lean *out)
{
    assert_ok(lean_make(trace, frees, host, timeless, out, &test_error));
}

/* The kinds of the events, as letters. */
static const char *kinds_of(const struct lean *lean)
{
    static char text[64];
    size_t i = 0;
    for (; i < lean->count && i + 1 < sizeof text; i++)
        text[i] = TRACE_LETTERS[lean->events[i].kind - 1];
    text[i] = '\0';
    return text;
}

TEST(frees_are_joined_and_times_left_out)
{
    CLOSED(close_trace)
    struct trace_source *trace =
        tiny_trace("t,5 a,0,100 k,0,7 r,0 t,9 a,1,300 f,0 r,1 m,step c f,1");
    struct lean lean;
    make(trace, REPLAY_ORDERED, REPLAY_HOST_NONE, true, &lean);
    assert_string_equal(kinds_of(&lean), "afafmc");
    assert_true(lean.events[1].flags & TRACE_WHOLE);
    assert_int_equal(lean.numbers[3], 7); /* the free request of block 1 */
    assert_int_equal(lean.largest_bytes, 300);
    assert_false(lean.info.has_split_frees);
    assert_int_equal(lean.info.kernels, 0);
    lean_close(&lean);
    make(trace, REPLAY_ORDERED, REPLAY_HOST_NONE, false, &lean);
    assert_string_equal(kinds_of(&lean), "akfafmc");
    lean_close(&lean);
    make(trace, REPLAY_ORDERED, REPLAY_HOST_RECORDED, false, &lean);
    assert_string_equal(kinds_of(&lean), "takftafmc");
    lean_close(&lean);
    make(trace, REPLAY_RECORDED, REPLAY_HOST_NONE, true, &lean);
    assert_string_equal(kinds_of(&lean), "arafrmcf");
    assert_true(lean.info.has_split_frees);
    lean_close(&lean);
}

/* Whether a trial passes at the capacity. */
static bool passes_at(const struct trial_setup *setup, struct trace_source *trace,
                      const char *policy, uint64_t bytes)
{
    struct trial trial;
    assert_ok(trial_run(setup, trace, policy, bytes, false, &trial, &test_error));
    return trial.begun && trial.passed;
}

/* The search in its smallest steps. */
static uint64_t step_by_step(const struct trial_setup *setup, struct trace_source *trace,
                             const char *policy, uint64_t from_bytes)
{
    const uint64_t unit = 2 * AR_MIB, live = setup->live_peak_bytes;
    uint64_t least = ar_size_round_up(live, unit), high = from_bytes, low = high;
    while (high > least && low == high) {
        uint64_t step = ar_size_round_up(live / 100 * (high / 2 > live ? 5 : 2), unit);
        low = high - least > step ? high - step : least;
        high = passes_at(setup, trace, policy, low) ? low : high;
    }
    while (low < high && high - low > unit) {
        uint64_t middle = low + ar_size_round_down((high - low) / 2, unit);
        *(passes_at(setup, trace, policy, middle) ? &high : &low) = middle;
    }
    return high;
}

/* Requests of all kinds of sizes in a random order of lifetimes, as text. */
static void random_events(struct ar_rng *rng, char *text, size_t text_bytes)
{
    static const uint64_t most[] = {2048, 4 * AR_MIB, 24 * AR_MIB, 60 * AR_MIB, 150 * AR_MIB};
    bool live[40] = {false};
    unsigned ids[40], next = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < 600 && used + 64 < text_bytes; i++) {
        unsigned at = (unsigned)ar_rng_below(rng, 40);
        if (live[at])
            used += (size_t)snprintf(text + used, text_bytes - used, "f,%u ", ids[at]);
        else
            used += (size_t)snprintf(text + used, text_bytes - used, "a,%u,%" PRIu64 " ",
                                     ids[at] = next++,
                                     ar_rng_between(rng, 1, most[ar_rng_below(rng, 5)]));
        live[at] = !live[at];
    }
}

/* Far above the live peak a search takes many steps at once, and finds the same. */
TEST(a_search_from_far_above_finds_the_same)
{
    static const char *const policies[] = {"torch:max_split_size_mb=20", "torch", "tlsf", "cupy"};
    struct ar_rng rng = ar_rng_of(7);
    CLOSED(ar_spec_close) struct ar_spec device = spec_of("sim");
    for (int round = 0; round < 12; round++) {
        char text[16384];
        random_events(&rng, text, sizeof text);
        CLOSED(close_trace) struct trace_source *trace = tiny_trace(text);
        const struct trial_setup setup = {.device = &device,
                                          .seed = 1,
                                          .live_peak_bytes = trace->info.peak_live_bytes,
                                          .card_bytes = 80 * AR_GIB};
        uint64_t safe,
            from = ar_size_round_up(setup.live_peak_bytes * (uint64_t)(3 + round), 2 * AR_MIB);
        assert_ok(trial_safe(&setup, trace, policies[round % 4], from, &safe, &test_error));
        assert_int_equal(safe, step_by_step(&setup, trace, policies[round % 4], from));
    }
}

TEST(ordered_streams_have_no_such_form)
{
    CLOSED(close_trace) struct trace_source *trace = tiny_trace("a,0,100,0 a,1,100,1 f,0 f,1");
    struct lean lean;
    make(trace, REPLAY_ORDERED, REPLAY_HOST_NONE, true, &lean);
    assert_null(lean.events);
    lean_close(&lean);
    make(trace, REPLAY_AT_ONCE, REPLAY_HOST_NONE, true, &lean);
    assert_int_equal(lean.count, 4);
    lean_close(&lean);
}

/* Every policy at its need, above it, and below it, where it fails. */
TEST(answers_are_those_of_the_whole_trace)
{
    CLOSED(close_trace) struct trace_source *trace = open_copy(TAPE);
    struct lean timed, timeless;
    CLOSED(ar_spec_close) struct ar_spec device = spec_of("sim");
    make(trace, REPLAY_ORDERED, REPLAY_HOST_NONE, false, &timed);
    make(trace, REPLAY_ORDERED, REPLAY_HOST_NONE, true, &timeless);
    assert_true(timeless.count < timed.count && timed.count < trace->info.events);
    struct trial_setup whole = {.device = &device,
                                .seed = 1,
                                .live_peak_bytes = trace->info.peak_live_bytes,
                                .card_bytes = UINT64_C(80) << 30};
    struct trial_setup lean = whole;
    lean.timed = &timed;
    lean.timeless = &timeless;
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)); i++) {
        uint64_t from = whole.live_peak_bytes * 5 / 4, safe[2] = {0}, at[3] = {from, 0, 0};
        if (ops->capabilities & (AR_POLICY_UNRANKED | AR_POLICY_OFFLINE))
            continue;
        assert_ok(trial_safe(&whole, trace, ops->name, from, &safe[0], &test_error));
        assert_ok(trial_safe(&lean, trace, ops->name, from, &safe[1], &test_error));
        assert_int_equal(safe[0], safe[1]);
        at[1] = safe[0] ? safe[0] : from / 2;
        at[2] = whole.live_peak_bytes / 2;
        for (int k = 0; k < 3; k++) {
            struct trial a, b;
            assert_ok(trial_run(&whole, trace, ops->name, at[k], true, &a, &test_error));
            assert_ok(trial_run(&lean, trace, ops->name, at[k], true, &b, &test_error));
            assert_int_equal(a.passed, b.passed);
            assert_int_equal(a.event, b.event); /* that of the whole trace */
            assert_int_equal(a.bytes, b.bytes);
            assert_int_equal(a.cause, b.cause);
            assert_int_equal(a.peak_reserved_bytes, b.peak_reserved_bytes);
            assert_int_equal(a.peak_physical_bytes, b.peak_physical_bytes);
            assert_int_equal(a.driver_calls, b.driver_calls);
            assert_int_equal(a.retries, b.retries);
        }
    }
    lean_close(&timed);
    lean_close(&timeless);
}

TEST(idle_options_have_no_effect)
{
    EACH_ROW (row, 2) {
        char text[CANDIDATE_SPEC_ROOM];
        candidate_effect(row.field[0], (UINT64_C(99) << 20) + 1, text, sizeof text);
        assert_string_equal(text, row.field[1]);
    }
}

/* PyTorch compares a limit with the bytes asked for, and then maps a page of 20 MiB. */
TEST(a_page_may_exceed_the_limit)
{
    CLOSED(ar_spec_close) struct ar_spec device = spec_of("sim");
    EACH_ROW (row, 3) {
        CLOSED(close_trace) struct trace_source *trace = tiny_trace(row.field[0]);
        const struct trial_setup setup = {.device = &device,
                                          .seed = 1,
                                          .as_limit = true,
                                          .live_peak_bytes = 12 << 20,
                                          .card_bytes = UINT64_C(80) << 30};
        for (int peaks = 0; peaks < 2; peaks++) {
            struct trial trial;
            assert_ok(trial_run(&setup, trace, "torch:expandable_segments=true",
                                cases_number(&row, 1), peaks, &trial, &test_error));
            assert_int_equal(trial.passed, cases_number(&row, 2));
        }
    }
}
