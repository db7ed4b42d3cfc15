/* A trainer of a twin that plays a workload: purposes of blocks, passes, marks. */
#include <unistd.h>

#include "sim/experiment/session.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "tests/support/twin_rig.h"
#include "workloads/workload.h"

TEST(a_recording_is_played)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    /* GPT-2 has 124,439,808 parameters in float32, and Adam two states of each. */
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "t/weights"), 4 * UINT64_C(124439808));
    for (size_t cycle = 1; cycle <= 30; cycle++) {
        size_t phase = twin_phase_find(&result, TWIN_CYCLE, cycle, 0);
        assert_int_equal(twin_rig_bytes(&result, phase, 0, "t/weights"), 4 * UINT64_C(124439808));
        assert_int_equal(twin_rig_bytes(&result, phase, 0, "t/optimizer"), 8 * UINT64_C(124439808));
    }
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
    if (sample->reserved_bytes > steps->peak)
        steps->peak = sample->reserved_bytes;
    return AR_OK;
}

static void replay_plainly(const char *policy, const char *workload, struct steps *steps)
{
    CLOSED(close_trace) struct trace_source *source;
    struct replay_result result;
    struct ar_device_props props;
    *steps = (struct steps){.count = 0};
    const struct observer observer = {.argument = steps, .sample = note_sample};
    CLOSED(ar_spec_close) struct ar_spec policy_spec = spec_of(policy);
    CLOSED(ar_spec_close) struct ar_spec device_spec = spec_of("sim:capacity=40GiB");
    assert_int_equal(workload_open_single(workload, &source, NULL), AR_OK);
    const struct experiment experiment = {
        .policy = &policy_spec, .device = &device_spec, .source = source, .observer = &observer};
    assert_int_equal(experiment_run(&experiment, &result, &props, NULL), AR_OK);
    assert_true(result.passed);
    steps->count = result.steps;
    replay_result_close(&result);
}

/* A part that plays all steps of a workload makes the same requests as the workload itself. */
TEST(a_trainer_does_what_a_replay_does)
{
    static const char *const workloads[] = {
        "workloads/data/gpt2_train.default.csv.gz", "workloads/data/graphs.default.csv.gz",
        "workloads/data/streams_prefetch.default.csv.gz",
        "workloads/data/side_streams.default.csv.gz", "workloads/data/tape_small.default.csv.gz"};
    static const char *const policies[] = {"torch", "torch:expandable_segments=true", "vmm"};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < (i ? 3 : 1); j++) {
            struct steps plain;
            CLOSED(twin_result_close) struct twin_result result;
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
            twin_rig_run(&scenario, &part, 1, &result);
            assert_int_equal(result.outcome, TWIN_PASSED);
            twin_rig_check(&result);
            assert_int_equal(twin_rank_at(&result, 0, 0)->peak_reserved_bytes, plain.peak);
        }
}

TEST(purposes_follow_from_lifetimes)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    /* ResNet-50 has 25,557,032 parameters in float32, and 53 layers of batch normalisation with two
     * statistics for each of their 26,560 channels and a counter of eight bytes. */
    uint64_t weights = 4 * UINT64_C(25557032), statistics = 8 * UINT64_C(26560) + 53 * 8;
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "t/weights"), weights + statistics);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/weights"), weights + statistics);
}

/* Three steps after which a weight of 4 MiB and a block of 16, 24 and `last` MiB live. Later passes
 * begin at the second step, where the program has the one of 16 MiB. */
static void pass_again(const char *last, uint64_t last_bytes, uint64_t exchanged)
{
    char text[512];
    snprintf(text, sizeof text,
             "# allocrig-trace 1\na,0,4194304\na,1,16777216\nm,step\n"
             "a,2,25165824\nf,1\nm,step\na,3,%s\nf,2\nm,step\n",
             last);
    struct temporary_file file = temporary_file(text);
    struct twin_scenario scenario = {
        .processes = &twin_rig_process, .process_count = 1, .cycle = "t.train", .cycles = 9};
    const struct part_text part = {"trainer", "t", "p", {{"workload", file.path, false}}};
    struct twin_result result;
    twin_rig_run(&scenario, &part, 1, &result);
    twin_rig_check(&result);
    for (size_t step = 1; step < 9; step++) {
        const struct twin_rank_state *rank = twin_rank_at(&result, step, 0);
        assert_int_equal(rank->live_bytes, 4 * AR_MIB + (step % 2 ? 24 * AR_MIB : last_bytes));
        /* Free, request and mark; and what is exchanged at the begin of a pass. */
        assert_int_equal(rank->events, 3 + (step > 2 && step % 2 ? exchanged : 0));
    }
    twin_result_close(&result);
    unlink(file.path);
}

TEST(a_workload_goes_on_after_its_last_step)
{
    pass_again("16777216", 16 * AR_MIB, 0);
    pass_again("8388608", 8 * AR_MIB, 2);
    pass_again("33554432", 32 * AR_MIB, 2);
}

/* Runs a trainer on a text trace; the caller closes the result. */
static void run_trace(const char *text, const char *start, struct twin_result *result)
{
    struct temporary_file file = temporary_file(text);
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = start};
    const struct part_text part = {"trainer", "t", "p", {{"workload", file.path, false}}};
    twin_rig_run(&scenario, &part, 1, result);
    twin_rig_check(result);
    unlink(file.path);
}

/* Tags count more than lifetimes: all four blocks stay. */
TEST(tags_name_purposes)
{
    CLOSED(twin_result_close) struct twin_result result;
    run_trace("# allocrig-trace 1\na,0,1048576,tag=model.param\na,1,2097152,tag=EXP_AVG\n"
              "a,2,4194304,tag=grad_buffer\na,3,8388608,tag=autograd\nm,step\nm,step\n",
              "t.load, t.train", &result);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "t/weights"), AR_MIB);
    assert_int_equal(twin_rank_at(&result, 0, 0)->live_bytes, AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/weights"), AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/optimizer"), 2 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/gradients"), 4 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/activations"), 8 * AR_MIB);
}

/* States have the bytes of a weight, half, a quarter or twice as many; counters up to eight. */
TEST(counters_are_states)
{
    CLOSED(twin_result_close) struct twin_result result;
    run_trace("# allocrig-trace 1\na,0,1048576\na,1,2097152\na,2,1048576\nf,1\na,3,1048576\n"
              "a,4,8\na,5,9\na,6,524288\na,7,262144\na,8,131072\na,9,2097152\na,10,4194304\n"
              "m,step\nf,2\nm,step\n",
              "t.load, t.train", &result);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/weights"), AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/optimizer"), 15 * AR_MIB / 4 + 8);
}

TEST(a_request_that_may_fail_does_not_end_the_run)
{
    struct twin_result result;
    run_trace("# allocrig-trace 1\np,0,17179869184\nf,0\na,1,1048576\nm,step\n", "t.train",
              &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_int_equal(twin_rank_at(&result, 0, 0)->live_bytes, AR_MIB);
    twin_result_close(&result);
    run_trace("# allocrig-trace 1\na,0,17179869184\nf,0\na,1,1048576\nm,step\n", "t.train",
              &result);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    twin_result_close(&result);
}

/* A program that marks its phases: blocks of 64 and 32 MiB, one of which stays. */
TEST(a_recording_is_played_to_its_marks)
{
    struct temporary_file file = temporary_file("# allocrig-trace 1\na,0,67108864\nm,loaded\n"
                                                "a,1,33554432\nf,1\nm,done\nf,0\n");
    struct twin_scenario scenario = {.processes = &twin_rig_process,
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
    twin_rig_check(&result);
    assert_int_equal(twin_rank_at(&result, 0, 0)->live_bytes, 64 * AR_MIB);
    assert_int_equal(twin_rank_at(&result, 1, 0)->live_bytes, 64 * AR_MIB);
    assert_int_equal(twin_rank_at(&result, 1, 0)->peak_allocated_bytes, 96 * AR_MIB);
    twin_result_close(&result);
    scenario.start = "t.play done, t.play loaded";
    assert_int_equal(twin_run(&scenario, &result, &error), AR_INVALID);
    assert_string_equal(error.text, "t.play: the rest of the workload has no mark \"loaded\"");
    unlink(file.path);
}
