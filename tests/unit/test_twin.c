/* Scenarios of training and inference on one card: figures that can be derived by hand, sums of
 * bytes by owner, refusals. */
#include <string.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "sim/experiment/session.h"
#include "sim/twin/twin.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "workloads/workload.h"

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

/* Sizes that are whole segments: 20 MiB blocks and more have segments of their own. */
#define SIZES LAYERS("4")
#define LAYERS(layers)                                                                             \
    {"layers", layers, false}, {"weights", "1GiB", false}, {"gradients", "1GiB", false},           \
        {"optimizer", "2GiB", false},                                                              \
    {                                                                                              \
        "activations", "512MiB", false                                                             \
    }

static void a_trainer_has_its_phases(void **state)
{
    (void)state;
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "t.load",
                                     .cycle = "t.train 2, t.offload optimizer, p.empty_cache, "
                                              "t.onload, t.offload weights optimizer, t.onload",
                                     .cycles = 2};
    const struct part_text parts[] = {{"trainer", "t", "p", {SIZES}}};
    struct twin_result result;
    run(&scenario, parts, 1, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_sums(&result);
    assert_int_equal(owner_bytes(&result, 0, 0, "t/weights"), AR_GIB);
    assert_int_equal(twin_card_at(&result, 0, 0)->used_bytes, AR_GIB + 500 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 1, 0, "t/weights"), AR_GIB);
    assert_int_equal(owner_bytes(&result, 1, 0, "t/optimizer"), 2 * AR_GIB);
    /* All gradients, and the last activation before it is freed. */
    assert_int_equal(twin_rank_at(&result, 1, 0)->peak_allocated_bytes, 4 * AR_GIB + 128 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 2, 0, "t/optimizer"), 0);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes, AR_GIB + 500 * AR_MIB);
    assert_int_equal(owner_bytes(&result, 4, 0, "t/optimizer"), 2 * AR_GIB);
    assert_int_equal(twin_rank_at(&result, 5, 0)->live_bytes, 0);
    assert_int_equal(twin_rank_at(&result, 6, 0)->live_bytes, 3 * AR_GIB);
    assert_int_equal(twin_rank_at(&result, 12, 0)->live_bytes, 3 * AR_GIB);
    twin_result_close(&result);
}

static void a_region_sleeps_and_wakes(void **state)
{
    (void)state;
    const struct twin_process_setup process = {.name = "p", .context_bytes = 500 * AR_MIB};
    struct twin_scenario scenario = {.processes = &process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "t.load, b.load",
                                     .cycle = "t.train, t.sleep, b.free, b.load, t.wake",
                                     .cycles = 2};
    const struct part_text parts[] = {
        {"trainer", "t", "p", {SIZES, {"region", "saver", false}}},
        {"buffer", "b", "p", {{"bytes", "100MiB", false}}},
    };
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_sums(&result);
    size_t asleep = twin_phase_find(&result, TWIN_CYCLE, 1, 1);
    const struct twin_rank_state *rank = twin_rank_at(&result, asleep, 0);
    assert_int_equal(twin_card_at(&result, asleep, 0)->used_bytes, 600 * AR_MIB);
    assert_int_equal(owner_bytes(&result, asleep, 0, "t/weights"), 0);
    assert_int_equal(rank->live_bytes, 3 * AR_GIB + 100 * AR_MIB);
    assert_int_equal(rank->asleep_bytes + rank->physical_bytes, rank->reserved_bytes);
    assert_int_equal(rank->pinned_bytes, rank->asleep_bytes);
    assert_int_equal(twin_residue(rank), 100 * AR_MIB);
    const struct twin_rank_state *awake = twin_rank_at(&result, asleep + 3, 0);
    assert_int_equal(awake->asleep_bytes, 0);
    assert_int_equal(awake->physical_bytes, awake->reserved_bytes);
    assert_int_equal(awake->pinned_bytes, rank->pinned_bytes); /* torch_memory_saver keeps copies */
    twin_result_close(&result);
}

static void a_region_does_not_wake_without_memory(void **state)
{
    (void)state;
    const struct twin_process_setup processes[] = {{.name = "p", .context_bytes = 500 * AR_MIB},
                                                   {.name = "q", .context_bytes = 500 * AR_MIB}};
    struct twin_scenario scenario = {.processes = processes,
                                     .process_count = 2,
                                     .device = "sim:capacity=8GiB",
                                     .start = "t.load, t.train, t.sleep, b.load, t.wake"};
    const struct part_text parts[] = {
        {"trainer", "t", "p", {SIZES, {"region", "saver", false}}},
        {"buffer", "b", "q", {{"bytes", "6GiB", false}}},
    };
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_string_equal(result.failure.action, "t.wake");
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_TENANT);
    assert_sums(&result);
    twin_result_close(&result);
}

static void a_region_refuses_expandable_segments(void **state)
{
    (void)state;
    const struct twin_process_setup process = {.name = "p",
                                               .policy = "torch:expandable_segments=true"};
    struct twin_scenario scenario = {.processes = &process, .process_count = 1, .start = "t.load"};
    const struct part_text parts[] = {{"trainer", "t", "p", {SIZES, {"region", "saver", false}}}};
    struct twin_result result;
    run(&scenario, parts, 1, &result);
    assert_int_equal(result.outcome, TWIN_REFUSED);
    assert_non_null(strstr(result.failure.why, "expandable_segments is not supported yet"));
    twin_result_close(&result);
}

static void a_recording_is_played(void **state)
{
    (void)state;
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .start = "t.load",
                                     .cycle = "t.train, t.offload, p.empty_cache, t.onload",
                                     .cycles = 30};
    const struct part_text parts[] = {
        {"trainer", "t", "p", {{"workload", "workloads/data/gpt2_train.default.csv.gz", false}}}};
    struct twin_result result;
    run(&scenario, parts, 1, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_sums(&result);
    /* GPT-2 has 124,439,808 parameters in float32, and Adam two states of each. */
    assert_int_equal(owner_bytes(&result, 0, 0, "t/weights"), 4 * UINT64_C(124439808));
    for (size_t cycle = 1; cycle <= 30; cycle++) {
        size_t phase = twin_phase_find(&result, TWIN_CYCLE, cycle, 0);
        assert_int_equal(owner_bytes(&result, phase, 0, "t/weights"), 4 * UINT64_C(124439808));
        assert_int_equal(owner_bytes(&result, phase, 0, "t/optimizer"), 8 * UINT64_C(124439808));
    }
    twin_result_close(&result);
}

/* A plain replay: its steps, and the most reserved bytes. */
struct steps {
    uint64_t peak;
    size_t count;
};

static enum ar_status note_sample(void *argument, const struct replay_sample *sample,
                                  struct ar_error *error)
{
    struct steps *steps = argument;
    (void)error;
    if (sample->reserved_bytes > steps->peak)
        steps->peak = sample->reserved_bytes;
    return AR_OK;
}

static void replay_plainly(const char *policy, const char *workload, struct steps *steps)
{
    struct ar_spec policy_spec, device_spec;
    struct trace_source *source;
    struct replay_result result;
    struct ar_device_props props;
    *steps = (struct steps){.count = 0};
    const struct observer observer = {.argument = steps, .sample = note_sample};
    assert_int_equal(ar_spec_parse(policy, &policy_spec, NULL), AR_OK);
    assert_int_equal(ar_spec_parse("sim:capacity=40GiB", &device_spec, NULL), AR_OK);
    assert_int_equal(workload_open_single(workload, &source, NULL), AR_OK);
    const struct experiment experiment = {
        .policy = &policy_spec, .device = &device_spec, .source = source, .observer = &observer};
    assert_int_equal(experiment_run(&experiment, &result, &props, NULL), AR_OK);
    assert_true(result.passed);
    steps->count = result.steps;
    replay_result_close(&result);
    trace_close(source);
    ar_spec_close(&policy_spec);
    ar_spec_close(&device_spec);
}

/* A part that plays all steps of a workload makes the same requests as the workload itself. */
static void a_trainer_does_what_a_replay_does(void **state)
{
    (void)state;
    static const char *const workloads[] = {
        "workloads/data/gpt2_train.default.csv.gz", "workloads/data/graphs.default.csv.gz",
        "workloads/data/streams_prefetch.default.csv.gz",
        "workloads/data/side_streams.default.csv.gz", "workloads/data/tape_small.default.csv.gz"};
    static const char *const policies[] = {"torch", "torch:expandable_segments=true", "vmm"};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 3; j++) {
            struct steps plain;
            struct twin_result result;
            char cycle[32];
            replay_plainly(policies[j], workloads[i], &plain);
            snprintf(cycle, sizeof cycle, "t.train %zu", plain.count ? plain.count : 1);
            const struct twin_process_setup process = {.name = "p", .policy = policies[j]};
            struct twin_scenario scenario = {.processes = &process,
                                             .process_count = 1,
                                             .device = "sim:capacity=40GiB",
                                             .cycle = cycle};
            const struct part_text part = {
                "trainer", "t", "p", {{"workload", workloads[i], false}}};
            run(&scenario, &part, 1, &result);
            assert_int_equal(result.outcome, TWIN_PASSED);
            assert_sums(&result);
            assert_int_equal(twin_rank_at(&result, 0, 0)->peak_reserved_bytes, plain.peak);
            twin_result_close(&result);
        }
}

static void purposes_follow_from_lifetimes(void **state)
{
    (void)state;
    struct twin_scenario scenario = {
        .processes = &one_process, .process_count = 1, .start = "t.load", .cycle = "t.train"};
    const struct part_text parts[] = {
        {"trainer",
         "t",
         "p",
         {{"workload", "workloads/data/resnet50_train.default.csv.gz", false}}}};
    struct twin_result result;
    run(&scenario, parts, 1, &result);
    assert_sums(&result);
    /* ResNet-50 has 25,557,032 parameters in float32, and 53 layers of batch normalisation with two
     * statistics for each of their 26,560 channels and a counter of eight bytes. */
    uint64_t weights = 4 * UINT64_C(25557032), statistics = 8 * UINT64_C(26560) + 53 * 8;
    assert_int_equal(owner_bytes(&result, 0, 0, "t/weights"), weights + statistics);
    assert_int_equal(owner_bytes(&result, 1, 0, "t/weights"), weights + statistics);
    twin_result_close(&result);
}

static void blocks_pin_their_segments(void **state)
{
    (void)state;
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "a.load, b.load, a.free, p.empty_cache"};
    const struct part_text parts[] = {
        {"buffer", "a", "p", {{"bytes", "4MiB", false}}},
        {"buffer", "b", "p", {{"bytes", "4MiB", false}}},
    };
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_sums(&result);
    /* Both are in one segment of 20 MiB. */
    const struct twin_pin *pin = &result.pins[result.pin_count - 1];
    assert_int_equal(pin->phase, 3);
    assert_int_equal(pin->segment_bytes, 20 * AR_MIB);
    assert_int_equal(pin->keeps_bytes, 16 * AR_MIB);
    assert_int_equal(pin->bytes, 4 * AR_MIB);
    assert_int_equal(pin->born_phase, 1);
    assert_string_equal(result.owners[pin->owner].name, "b/buffer");
    assert_int_equal(twin_residue(twin_rank_at(&result, 3, 0)), 20 * AR_MIB);
    twin_result_close(&result);
}

static void actions_of_a_phase_take_turns(void **state)
{
    (void)state;
    const struct part_text parts[] = {{"trainer", "t", "p", {LAYERS("32")}},
                                      {"trainer", "u", "p", {LAYERS("32")}}};
    uint64_t peaks[2];
    const char *const cycles[] = {"t.train, u.train", "t.train & u.train"};
    for (unsigned i = 0; i < 2; i++) {
        struct twin_scenario scenario = {.processes = &one_process,
                                         .process_count = 1,
                                         .device = "sim:capacity=40GiB",
                                         .start = "t.load, u.load",
                                         .cycle = cycles[i],
                                         .cycles = 2};
        struct twin_result result;
        run(&scenario, parts, 2, &result);
        assert_int_equal(result.outcome, TWIN_PASSED);
        assert_sums(&result);
        peaks[i] = twin_rank_at(&result, result.phase_count - 1, 0)->peak_allocated_bytes;
        assert_int_equal(twin_rank_at(&result, result.phase_count - 1, 0)->live_bytes, 6 * AR_GIB);
        twin_result_close(&result);
    }
    assert_int_equal(peaks[0], 7 * AR_GIB + 16 * AR_MIB);
    assert_true(peaks[1] > peaks[0]); /* gradients of both */
}

static void cards_with_the_same_processes_are_the_same(void **state)
{
    (void)state;
    const struct twin_process_setup processes[] = {
        {.name = "p", .cards = 0xff, .context_bytes = 100 * AR_MIB},
        {.name = "q", .cards = 0x01, .context_bytes = 50 * AR_MIB},
    };
    struct twin_scenario scenario = {.processes = processes,
                                     .process_count = 2,
                                     .cards = 8,
                                     .device = "sim:capacity=8GiB",
                                     .start = "t.load, b.load, t.train"};
    const struct part_text parts[] = {{"trainer", "t", "p", {SIZES}},
                                      {"buffer", "b", "q", {{"bytes", "64MiB", false}}}};
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_sums(&result);
    assert_int_equal(result.card_count, 8);
    assert_int_equal(result.rank_count, 9);
    assert_int_equal(result.ranks[7].rank, 7);
    assert_int_equal(result.ranks[8].process, 1);
    for (unsigned card = 0; card < 8; card++)
        assert_int_equal(twin_card_at(&result, 1, card)->used_bytes,
                         AR_GIB + 100 * AR_MIB + (card ? 0 : 114 * AR_MIB));
    twin_result_close(&result);
}

static void wrong_scenarios_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *start, *error;
    } cases[] = {
        {"", "the schedule has no phases; write start = PART.ACTION, .."},
        {"a.laod", "schedule: start, phase 1: a has no action \"laod\"; did you mean \"load\"?"},
        {"a.load, c.load", "schedule: start, phase 2: there is no part or process \"c\"; did you "
                           "mean \"a\"?"},
        {"a.load 3", "schedule: start, phase 1: a.load takes no arguments, and got 1"},
        {"a.load & load", "schedule: start, phase 1: \"load\" is not an action; write PART.ACTION "
                          "ARGUMENT.."},
        {"t.offload all", NULL},
        {"t.offload wieghts", "t.offload: \"wieghts\" is not one of "
                              "[weights|gradients|optimizer|state|all]"},
        {"t.load, t.offload weights, t.train",
         "t.train: a part of what it trains is offloaded; write onload before it"},
        {"p.end, a.load", "a.load: process p has ended"},
        {"t.sleep", "t.sleep: the trainer's memory is in no region; write region = saver, or use "
                    "offload"},
    };
    const struct ar_spec_pair bytes = {"bytes", "64MiB", false},
                              weights = {"weights", "1GiB", false};
    const struct twin_part_setup parts[] = {
        {.name = "a",
         .ops = twin_part_find("buffer"),
         .process = "p",
         .options = {.pairs = &bytes, .pair_count = 1}},
        {.name = "t",
         .ops = twin_part_find("trainer"),
         .process = "p",
         .options = {.pairs = &weights, .pair_count = 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct twin_scenario scenario = {.processes = &one_process,
                                               .process_count = 1,
                                               .parts = parts,
                                               .part_count = 2,
                                               .start = cases[i].start};
        struct twin_result result;
        struct ar_error error = {""};
        enum ar_status status = twin_run(&scenario, &result, &error);
        assert_int_equal(status, cases[i].error ? AR_INVALID : AR_OK);
        if (cases[i].error)
            assert_string_equal(error.text, cases[i].error);
        twin_result_close(&result);
    }
}

/* A program that marks its phases: blocks of 64 and 32 MiB, one of which stays. */
static void a_recording_is_played_to_its_marks(void **state)
{
    (void)state;
    struct temporary_file file = temporary_file("# allocrig-trace 1\na,0,67108864\nm,loaded\n"
                                                "a,1,33554432\nf,1\nm,done\nf,0\n");
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "t.play loaded, t.play done"};
    const struct ar_spec_pair pair = {"workload", file.path, false};
    const struct twin_part_setup part = {.name = "t",
                                         .ops = twin_part_find("trainer"),
                                         .process = "p",
                                         .options = {.pairs = &pair, .pair_count = 1}};
    scenario.parts = &part;
    scenario.part_count = 1;
    struct twin_result result;
    struct ar_error error = {""};
    assert_int_equal(twin_run(&scenario, &result, &error), AR_OK);
    assert_sums(&result);
    assert_int_equal(twin_rank_at(&result, 0, 0)->live_bytes, 64 * AR_MIB);
    assert_int_equal(twin_rank_at(&result, 1, 0)->live_bytes, 64 * AR_MIB);
    assert_int_equal(twin_rank_at(&result, 1, 0)->peak_allocated_bytes, 96 * AR_MIB);
    twin_result_close(&result);
    scenario.start = "t.play done, t.play loaded";
    assert_int_equal(twin_run(&scenario, &result, &error), AR_INVALID);
    assert_string_equal(error.text, "t.play: the rest of the workload has no mark \"loaded\"");
    unlink(file.path);
}

/* Weights of four layers go to an engine in another process, on the same card: a layer of 256 MiB
 * is in both at a time. */
static void weights_are_sent_to_an_engine(void **state)
{
    (void)state;
    const struct twin_process_setup processes[] = {{.name = "p", .context_bytes = 500 * AR_MIB},
                                                   {.name = "q", .context_bytes = 500 * AR_MIB}};
    struct twin_scenario scenario = {.processes = processes,
                                     .process_count = 2,
                                     .device = "sim:capacity=40GiB",
                                     .start = "t.load, e.load, p.reset_peaks, q.empty_cache, "
                                              "p.empty_cache, t.update e"};
    const struct part_text parts[] = {{"trainer", "t", "p", {SIZES}},
                                      {"engine", "e", "q", {{"weights", "1GiB", false}}}};
    struct twin_result result;
    run(&scenario, parts, 2, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_sums(&result);
    size_t last = result.phase_count - 1;
    for (size_t rank = 0; rank < 2; rank++)
        assert_int_equal(twin_rank_at(&result, last, rank)->peak_allocated_bytes -
                             twin_rank_at(&result, last - 1, rank)->allocated_bytes,
                         256 * AR_MIB);
    assert_int_equal(twin_card_at(&result, last, 0)->peak_bytes -
                         twin_card_at(&result, last - 1, 0)->used_bytes,
                     512 * AR_MIB);
    twin_result_close(&result);
}

static void long_schedules_keep_some_cycles(void **state)
{
    (void)state;
    struct twin_scenario scenario = {.processes = &one_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "a.load",
                                     .cycle = "b.load, b.free",
                                     .cycles = 1000,
                                     .cycles_kept = 100};
    const struct part_text parts[] = {
        {"buffer", "a", "p", {{"bytes", "4MiB", false}}},
        {"buffer", "b", "p", {{"bytes", "40MiB", false}}},
    };
    struct twin_result result;
    double drift;
    run(&scenario, parts, 2, &result);
    assert_sums(&result);
    /* The first ten cycles, and every tenth. */
    assert_int_equal(result.phase_count, 1 + 2 * (10 + 99));
    assert_int_not_equal(twin_phase_find(&result, TWIN_CYCLE, 9, 1), SIZE_MAX);
    assert_int_equal(twin_phase_find(&result, TWIN_CYCLE, 11, 1), SIZE_MAX);
    assert_int_not_equal(twin_phase_find(&result, TWIN_CYCLE, 1000, 1), SIZE_MAX);
    assert_true(twin_drift(&result, 1, 0, 10, &drift));
    assert_true(drift == 0);
    twin_result_close(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_has_its_owner),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(a_trainer_has_its_phases),
        cmocka_unit_test(a_region_sleeps_and_wakes),
        cmocka_unit_test(a_region_does_not_wake_without_memory),
        cmocka_unit_test(a_region_refuses_expandable_segments),
        cmocka_unit_test(a_recording_is_played),
        cmocka_unit_test(a_trainer_does_what_a_replay_does),
        cmocka_unit_test(purposes_follow_from_lifetimes),
        cmocka_unit_test(blocks_pin_their_segments),
        cmocka_unit_test(actions_of_a_phase_take_turns),
        cmocka_unit_test(cards_with_the_same_processes_are_the_same),
        cmocka_unit_test(wrong_scenarios_are_refused),
        cmocka_unit_test(a_recording_is_played_to_its_marks),
        cmocka_unit_test(weights_are_sent_to_an_engine),
        cmocka_unit_test(long_schedules_keep_some_cycles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
