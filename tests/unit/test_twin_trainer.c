/* The trainer of a twin by its sizes: phases, regions, updates of weights, rules. */
#include <unistd.h>

#include "sim/twin/rules/llm.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "tests/support/twin_rig.h"

TEST(a_trainer_has_its_phases)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    assert_int_equal(twin_rig_bytes(&result, 0, 0, "t/weights"), AR_GIB);
    assert_int_equal(twin_card_at(&result, 0, 0)->used_bytes, AR_GIB + 500 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/weights"), AR_GIB);
    assert_int_equal(twin_rig_bytes(&result, 1, 0, "t/optimizer"), 2 * AR_GIB);
    /* All gradients, and the last activation before it is freed. */
    assert_int_equal(twin_rank_at(&result, 1, 0)->peak_allocated_bytes, 4 * AR_GIB + 128 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 2, 0, "t/optimizer"), 0);
    assert_int_equal(twin_card_at(&result, 3, 0)->used_bytes, AR_GIB + 500 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, 4, 0, "t/optimizer"), 2 * AR_GIB);
    assert_int_equal(twin_rank_at(&result, 5, 0)->live_bytes, 0);
    assert_int_equal(twin_rank_at(&result, 6, 0)->live_bytes, 3 * AR_GIB);
    assert_int_equal(twin_rank_at(&result, 12, 0)->live_bytes, 3 * AR_GIB);
}

TEST(a_region_sleeps_and_wakes)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    size_t asleep = twin_phase_find(&result, TWIN_CYCLE, 1, 1);
    const struct twin_rank_state *rank = twin_rank_at(&result, asleep, 0);
    assert_int_equal(twin_card_at(&result, asleep, 0)->used_bytes, 600 * AR_MIB);
    assert_int_equal(twin_rig_bytes(&result, asleep, 0, "t/weights"), 0);
    assert_int_equal(rank->live_bytes, 3 * AR_GIB + 100 * AR_MIB);
    assert_int_equal(rank->asleep_bytes + rank->physical_bytes, rank->reserved_bytes);
    assert_int_equal(rank->pinned_bytes, rank->asleep_bytes);
    assert_int_equal(twin_residue(rank), 100 * AR_MIB);
    const struct twin_rank_state *awake = twin_rank_at(&result, asleep + 3, 0);
    assert_int_equal(awake->asleep_bytes, 0);
    assert_int_equal(awake->physical_bytes, awake->reserved_bytes);
    assert_int_equal(awake->pinned_bytes, rank->pinned_bytes); /* torch_memory_saver keeps copies */
}

TEST(a_region_does_not_wake_without_memory)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_string_equal(result.failure.action, "t.wake");
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_TENANT);
    twin_rig_check(&result);
}

TEST(a_region_refuses_expandable_segments)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_REFUSED);
    assert_non_null(strstr(result.failure.why, "expandable_segments is not supported yet"));
    assert_int_equal(result.failure.phase, 0);
    assert_int_equal(result.failure.part, 0);
    assert_string_equal(result.failure.action, "t.load");
}

TEST(a_region_refuses_mosaic)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_REFUSED);
    assert_non_null(strstr(result.failure.why, "expandable_segments is not supported yet"));
}

/* Weights of 32.5 MiB in segments of 34 MiB, and a tag that outlives the trainer. */
TEST(weights_pin_the_rest_of_their_segments)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.pin_count, 2);
    assert_string_equal(result.pins[0].tag, "weight");
    assert_int_equal(result.pins[0].keeps_bytes, 3 * AR_MIB / 2);
    assert_int_equal(result.pins[0].segment_bytes, 34 * AR_MIB);
}

TEST(actions_of_a_phase_take_turns)
{
    const struct part_text parts[] = {{"trainer", "t", "p", {TWIN_RIG_LAYERS("32")}},
                                      {"trainer", "u", "p", {TWIN_RIG_LAYERS("32")}}};
    uint64_t peaks[2];
    const char *const cycles[] = {"t.train, u.train", "t.train & u.train"};
    for (unsigned i = 0; i < 2; i++) {
        struct twin_scenario scenario = {.processes = &twin_rig_process,
                                         .process_count = 1,
                                         .device = "sim:capacity=40GiB",
                                         .start = "t.load, u.load",
                                         .cycle = cycles[i],
                                         .cycles = 2};
        CLOSED(twin_result_close) struct twin_result result;
        twin_rig_run(&scenario, parts, 2, &result);
        assert_int_equal(result.outcome, TWIN_PASSED);
        twin_rig_check(&result);
        peaks[i] = twin_rank_at(&result, result.phase_count - 1, 0)->peak_allocated_bytes;
        assert_int_equal(twin_rank_at(&result, result.phase_count - 1, 0)->live_bytes, 6 * AR_GIB);
    }
    assert_int_equal(peaks[0], 7 * AR_GIB + 16 * AR_MIB);
    assert_true(peaks[1] > peaks[0]); /* gradients of both */
}

TEST(a_trainer_evaluates)
{
    struct temporary_file file = temporary_file("# allocrig-trace 1\na,0,67108864\nm,step\n"
                                                "a,1,33554432\nf,1\nm,step\n");
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .start = "t.load, t.train, p.empty_cache, t.evaluate, "
                                              "t.evaluate"};
    const struct part_text part = {
        "trainer", "t", "p", {TWIN_RIG_SIZES, {"evaluate", file.path, false}}};
    struct twin_result result;
    twin_rig_run(&scenario, &part, 1, &result);
    twin_rig_check(&result);
    for (size_t phase = 3; phase < 5; phase++) {
        const struct twin_rank_state *rank = twin_rank_at(&result, phase, 0);
        assert_int_equal(rank->live_bytes, 3 * AR_GIB);
        assert_int_equal(rank->peak_allocated_bytes, 3 * AR_GIB + 96 * AR_MIB);
    }
    twin_result_close(&result);
    unlink(file.path);
}

TEST(kernels_take_time)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    /* Four layers forward and backward, the loss and the optimizer. */
    assert_true(twin_rank_at(&result, 0, 0)->ns < 1000000000);
    assert_true(twin_rank_at(&result, 1, 0)->ns >= 10 * UINT64_C(1000000000));
    assert_true(twin_rank_at(&result, 1, 0)->ns < 11 * UINT64_C(1000000000));
}

TEST(memory_that_sleeps_is_not_given_out)
{
    const struct ar_spec_pair pairs[] = {{"weights", "1GiB", false}, {"region", "saver", false}};
    const struct twin_part_setup part = {.name = "t",
                                         .ops = twin_part_find("trainer"),
                                         .process = "p",
                                         .options = {.pairs = pairs, .pair_count = 2}};
    const struct twin_scenario scenario = {.processes = &twin_rig_process,
                                           .process_count = 1,
                                           .parts = &part,
                                           .part_count = 1,
                                           .start = "t.load, t.sleep, t.free, t.load"};
    struct twin_result result;
    struct ar_error error = {""};
    assert_int_equal(twin_run(&scenario, &result, &error), AR_INVALID);
    assert_string_equal(error.text,
                        "t.load: a request got memory of a region that sleeps, which the real "
                        "program would fault on; wake the region first");
}

/* Cached memory of the same process is where the memory is. */
TEST(a_region_waits_for_the_cache)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    twin_rig_check(&result);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_CACHE);
    assert_string_equal(result.owners[result.failure.owner].name, "t/region t");
}

/* A step ends when the optimizer has stepped. What the program frees then is of that step: after
 * `train` neither gradients nor losses are live. What it frees at its end stays. */
TEST(a_step_frees_its_gradients)
{
    static const char *const trace =
        "# allocrig-trace 1\na,0,67108864,tag=weight\n"
        "a,1,16777216\na,2,67108864\nf,1\na,3,67108864,tag=cublas\na,4,1048576\nm,step\nt,5\nf,"
        "2\nf,4\n"
        "a,5,16777216\na,6,67108864\nf,5\na,7,1048576\nm,step\nf,6\nf,7\n"
        "a,8,16777216\na,9,67108864\nf,8\na,10,1048576\nm,step\nf,9\nf,10\nf,0\nf,3\n";
    struct temporary_file file = temporary_file(trace);
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .device = "sim:capacity=8GiB",
                                     .start = "t.train, t.train 2, t.train, t.train 5, "
                                              "t.offload optimizer"};
    const struct part_text parts[] = {{"trainer", "t", "p", {{"workload", file.path, false}}}};
    struct twin_result result;
    twin_rig_run(&scenario, parts, 1, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    for (size_t i = 0; i < result.phase_count; i++) {
        assert_int_equal(twin_rig_bytes(&result, i, 0, "t/weights"), 64 * AR_MIB);
        assert_int_equal(twin_rig_bytes(&result, i, 0, "t/state"), 64 * AR_MIB);
        assert_int_equal(twin_rank_at(&result, i, 0)->live_bytes, 128 * AR_MIB);
    }
    assert_int_equal(twin_rank_at(&result, 1, 0)->peak_allocated_bytes, 208 * AR_MIB);
    assert_int_equal(twin_rank_at(&result, 3, 0)->peak_allocated_bytes, 208 * AR_MIB);
    twin_result_close(&result);
    unlink(file.path);
}

TEST(copies_of_a_region_need_host_memory)
{
    struct twin_scenario scenario = {.processes = &twin_rig_process,
                                     .process_count = 1,
                                     .host_bytes = 900 * AR_MIB,
                                     .start = "t.load, t.sleep"};
    const struct part_text with = {
        "trainer", "t", "p", {TWIN_RIG_SIZES, {"region", "saver", false}}};
    const struct part_text without = {
        "trainer", "t", "p", {TWIN_RIG_SIZES, {"region", "saver", false}, {"backup", "no", false}}};
    struct twin_result result;
    twin_rig_run(&scenario, &with, 1, &result);
    twin_rig_check(&result);
    assert_int_equal(result.outcome, TWIN_OUT_OF_MEMORY);
    assert_int_equal(result.failure.cause, REPLAY_CAUSE_PINNED);
    assert_true(result.failure.pinned);
    assert_int_equal(result.failure.bytes, 256 * AR_MIB); /* the last of four */
    twin_result_close(&result);
    twin_rig_run(&scenario, &without, 1, &result);
    assert_int_equal(result.outcome, TWIN_PASSED);
    assert_int_equal(twin_rank_at(&result, 1, 0)->pinned_bytes, 0);
    assert_int_equal(twin_rank_at(&result, 1, 0)->asleep_bytes, AR_GIB);
    twin_result_close(&result);
}

TEST(logits_live_between_the_passes)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(twin_rank_at(&result, 1, 0)->live_bytes, 3 * AR_GIB);
    assert_int_equal(twin_rank_at(&result, 1, 0)->peak_allocated_bytes,
                     9 * AR_GIB + 512 * AR_MIB); /* weights, activations, logits */
}

/* Weights of four layers go to an engine in another process, on the same card: a layer of 256 MiB
 * is in both at a time. */
TEST(weights_are_sent_to_an_engine)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    size_t last = result.phase_count - 1;
    for (size_t rank = 0; rank < 2; rank++)
        assert_int_equal(twin_rank_at(&result, last, rank)->peak_allocated_bytes -
                             twin_rank_at(&result, last - 1, rank)->allocated_bytes,
                         256 * AR_MIB);
    assert_int_equal(twin_card_at(&result, last, 0)->peak_bytes -
                         twin_card_at(&result, last - 1, 0)->used_bytes,
                     512 * AR_MIB);
}

/* ZeRO (arXiv:1910.02054), section 1 and figure 1: 7.5 billion parameters on 64 ranks take 120 GB,
 * 31.4, 16.6 and 1.9 GB at the stages 0 to 3. */
TEST(states_are_divided_as_published)
{
    static const double published[] = {120, 31.4, 16.6, 1.9};
    for (unsigned stage = 0; stage < 4; stage++) {
        const struct training_division division = {.parameters = UINT64_C(7500000000),
                                                   .data_parallel = 64,
                                                   .tensor_parallel = 1,
                                                   .zero = stage,
                                                   .weight_bytes = 2,
                                                   .gradient_bytes = 2,
                                                   .state_bytes = 12};
        const struct training_bytes bytes = training_bytes_of(&division);
        double all = (double)(bytes.weights + bytes.gradients + bytes.states) / 1e9;
        assert_true(all > published[stage] - 0.05 && all < published[stage] + 0.05);
    }
}

/* arXiv:2205.05198, section 5: 5 a s / h is 80 for GPT-3 and 64 for MT-NLG, so that attention takes
 * 70 % and 65 % of the activations of a layer. */
TEST(activations_are_as_published)
{
    static const struct {
        uint64_t hidden, heads;
        double saved;
    } models[] = {{12288, 96, 0.70}, {20480, 128, 0.65}};
    for (size_t i = 0; i < 2; i++) {
        const struct training_layer layer = {.tokens = 2048,
                                             .sequence = 2048,
                                             .hidden = models[i].hidden,
                                             .heads = models[i].heads,
                                             .tensor_parallel = 8};
        double kept = (double)training_activations(&layer, TRAINING_KEEP);
        double fused = (double)training_activations(&layer, TRAINING_ATTENTION);
        double saved = 1 - fused / kept;
        assert_true(saved > models[i].saved - 0.005 && saved < models[i].saved + 0.005);
        /* s b h (34 + 5 a s / h) / t bytes, and 34 s b h / t without attention. */
        assert_int_equal(kept, 2048 * (34 * models[i].hidden + 5 * models[i].heads * 2048) / 8);
        assert_int_equal(fused, 2048 * 34 * models[i].hidden / 8);
        assert_int_equal(training_activations(&layer, TRAINING_LAYER),
                         2048 * models[i].hidden * 2 / 8);
    }
    /* Whole bytes, rounded: 136 * 3 / 5 = 81.6. */
    const struct training_layer odd = {
        .tokens = 3, .sequence = 3, .hidden = 4, .heads = 1, .tensor_parallel = 5};
    assert_int_equal(training_activations(&odd, TRAINING_ATTENTION), 82);
}

/* Llama 3.1 8B on eight cards with FSDP: an eighth of 2, 2 and 12 bytes of 8,030,261,248
 * parameters. */
TEST(sizes_follow_from_a_model)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    assert_int_equal(result.outcome, TWIN_PASSED);
    twin_rig_check(&result);
    assert_int_equal(twin_rig_bytes(&result, 1, 7, "t/weights"), UINT64_C(8030261248) * 2 / 8);
    assert_int_equal(twin_rig_bytes(&result, 1, 7, "t/optimizer"), UINT64_C(8030261248) * 12 / 8);
}

/* On one card nothing is gathered: 2, 2 and 12 bytes of each parameter, without activations. */
TEST(a_model_on_one_card_is_whole)
{
    CLOSED(twin_result_close) struct twin_result result = twin_rig_case(__FILE__, __func__);
    uint64_t weights = twin_rig_bytes(&result, 0, 0, "t/weights");
    assert_int_equal(twin_rank_at(&result, 1, 0)->live_bytes, 7 * weights);
    uint64_t peak = twin_rank_at(&result, 1, 0)->peak_allocated_bytes;
    assert_true(peak >= 8 * weights && peak < 8 * weights + 16 * AR_MIB);
}
