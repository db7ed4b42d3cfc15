/* `drift` against programs whose future is known: generators. The first steps of each are learned,
 * the rest is predicted, and the generator itself runs on. */
#include <math.h>

#include "bench/report/pages.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"
#include "workloads/workload.h"

#define SEEDS 5

struct outcome {
    struct trend_interval level, drift, live; /* MiB after the steps; MiB in 10^6 steps */
};

/* Runs a workload on for `steps` steps, learned from what it has, with `seeds` seeds. */
static struct outcome run_on(const char *workload, uint64_t steps, size_t seeds, const char *policy)
{
    static struct drift_run runs[SEEDS];
    struct trace_source *source = NULL;
    struct learned_model *model = NULL;
    struct ar_spec policy_spec, device;
    struct drift_answer answer = {.policy = policy, .runs = runs, .run_count = seeds};
    if (workload_open(workload, &source, &test_error) ||
        learned_model_make(source, NULL, &model, &test_error))
        fail_msg("%s: %s", workload, test_error.text);
    assert_ok(ar_spec_parse(policy, &policy_spec, &test_error));
    assert_ok(ar_spec_parse("sim", &device, &test_error));
    for (size_t i = 0; i < seeds; i++) {
        const struct drift_setup setup = {.model = model,
                                          .policy = &policy_spec,
                                          .device = &device,
                                          .steps = steps,
                                          .seed = 1 + i};
        if (drift_run_all(&setup, &runs[i], 1, 1, NULL, &test_error) != AR_OK)
            fail_msg("%s: %s", workload, test_error.text);
        assert_int_equal(runs[i].failed_step, 0);
    }
    if (drift_answer_find(model, steps, &answer, &test_error) != AR_OK)
        fail_msg("%s: %s", workload, test_error.text);
    const struct drift_level *last = &answer.levels[answer.level_count - 1];
    assert_int_equal(last->step, steps);
    ar_spec_close(&policy_spec);
    ar_spec_close(&device);
    learned_model_close(model);
    trace_close(source);
    return (struct outcome){last->reserved, answer.per_million, last->live};
}

static bool covers(const struct trend_interval *interval, const struct trend_interval *truth)
{
    return interval->low <= truth->estimate + 1e-6 && interval->high >= truth->estimate - 1e-6;
}

/* The recorded part of a generator and the whole, by one option of it. */
struct program {
    const char *spec, *part, *whole;
    uint64_t steps; /* of the whole */
};

static void names(const struct program *program, unsigned seed, char *part, char *whole,
                  size_t room)
{
    snprintf(part, room, "%s,%s,seed=%u", program->spec, program->part, seed);
    snprintf(whole, room, "%s,%s,seed=%u", program->spec, program->whole, seed);
}

/* The intervals are stated at 90 %. Of 100 cases, at least 80 must be inside. */
TEST(intervals_cover)
{
    static const struct program programs[] = {
        {"jitter_batch:tensors=4", "steps=100", "steps=1000", 1000},
        {"gnn_minibatch:layers=3", "steps=100", "steps=500", 500},
    };
    unsigned cases = (unsigned)test_amount(50, 50), levels = 0, drifts = 0;
    char part[128], whole[128];
    for (size_t i = 0; i < 2; i++)
        for (unsigned seed = 1; seed <= cases; seed++) {
            names(&programs[i], seed, part, whole, sizeof part);
            struct outcome truth = run_on(whole, programs[i].steps, 1, "torch");
            struct outcome predicted = run_on(part, programs[i].steps, SEEDS, "torch");
            levels += covers(&predicted.level, &truth.level);
            drifts += covers(&predicted.drift, &truth.drift);
        }
    print_message("of %u cases, %u levels and %u drifts are covered\n", 2 * cases, levels, drifts);
    assert_true(levels * 10 >= 2 * cases * 8);
    assert_true(drifts * 10 >= 2 * cases * 8);
}

/* A program that leaks: its drift is known. Twelve cycles of 8 steps are recorded, each leaks two
 * blocks of 1 MiB; the prediction is within a twentieth for live bytes, and covers the reserved. */
TEST(a_leak_goes_on)
{
    static const struct program program = {"phases:leak=2,layers=6", "cycles=12", "cycles=100",
                                           800};
    char part[128], whole[128];
    for (unsigned seed = 1; seed <= test_amount(3, 3); seed++) {
        names(&program, seed, part, whole, sizeof part);
        struct outcome truth = run_on(whole, program.steps, 1, "torch");
        struct outcome predicted = run_on(part, program.steps, SEEDS, "torch");
        assert_true(covers(&predicted.level, &truth.level));
        assert_true(fabs(predicted.live.estimate - truth.live.estimate) <
                    0.05 * truth.live.estimate);
        assert_true(covers(&predicted.drift, &truth.drift));
    }
}

/* A program that repeats itself: the prediction is exact, and its interval has no width. */
TEST(what_repeats_is_exact)
{
    static const struct program programs[] = {
        {"varlen_transformer:layers=1,draw=cycle,lengths='256;512;1024'", "steps=12", "steps=400",
         400},
        {"rnn_buckets:repeat=1", "buckets='5;10;20;5;10;20;5;10;20'",
         "buckets='5;10;20;5;10;20;5;10;20;5;10;20;5;10;20'", 15},
        {"stash_restore:tables=12", "steps=10", "steps=60", 60},
    };
    static const char *const policies[] = {"torch", "torch:expandable_segments=true", "growth"};
    char part[200], whole[200];
    for (size_t i = 0; i < COUNT(programs); i++)
        for (size_t j = 0; j < COUNT(policies); j++) {
            names(&programs[i], 1, part, whole, sizeof part);
            struct outcome truth = run_on(whole, programs[i].steps, 1, policies[j]);
            struct outcome predicted = run_on(part, programs[i].steps, 2, policies[j]);
            assert_true(predicted.level.low == truth.level.estimate);
            assert_true(predicted.level.high == truth.level.estimate);
        }
}

/* Lengths drawn for a transformer: levels after 1000 steps under two policies. */
TEST(lengths_between_and_beyond)
{
    static const struct program program = {"varlen_transformer:layers=1", "steps=100", "steps=1000",
                                           1000};
    static const char *const policies[] = {"torch", "torch:expandable_segments=true"};
    unsigned inside = 0, seeds = (unsigned)test_amount(3, 3);
    char part[128], whole[128];
    for (unsigned seed = 1; seed <= seeds; seed++)
        for (int j = 0; j < 2; j++) {
            names(&program, seed, part, whole, sizeof part);
            struct outcome truth = run_on(whole, program.steps, 1, policies[j]);
            struct outcome predicted = run_on(part, program.steps, SEEDS, policies[j]);
            inside += covers(&predicted.level, &truth.level);
        }
    assert_true(inside + 1 >= 2 * seeds);
}
