/* Requests of pinned host memory in a replay: which policy serves them, what the metrics count, and
 * what a run without such requests does not show. */
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"

#define HEADER "# allocrig-trace 1\n"

/* Without pinned requests the second cache is not seen. */
#define PROGRAM                                                                                    \
    HEADER "a,0,1000,0\n"                                                                          \
           "a,1,3000000,space=pinned\n"                                                            \
           "k,1,50000000\n"                                                                        \
           "u,1,1\n"                                                                               \
           "f,1\n"                                                                                 \
           "a,2,3000000,space=pinned\n"                                                            \
           "f,2\n"                                                                                 \
           "a,3,2500000,space=pinned\n"                                                            \
           "s\n"                                                                                   \
           "a,4,2500000,space=pinned\n"                                                            \
           "f,3\n"                                                                                 \
           "c,space=pinned\n"                                                                      \
           "f,0\n"

struct run {
    struct trace_rig files;
    struct experiment_rig rig;
    struct ar_spec pinned;
};

static void open_run(struct run *run, const char *text, const char *pinned, const char *device)
{
    struct trace_source *source;
    run->files = trace_rig_open();
    assert_ok(trace_rig_text(&run->files, text, &source, &test_error));
    experiment_rig_over(&run->rig, "torch", device, source);
    if (pinned) {
        assert_ok(ar_spec_parse(pinned, &run->pinned, &test_error));
        run->rig.experiment.pinned = &run->pinned;
    }
}

static void close_run(struct run *run)
{
    if (run->rig.experiment.pinned)
        ar_spec_close(&run->pinned);
    experiment_rig_close(&run->rig);
    trace_rig_close(&run->files);
}

static const struct metric_value *value(const struct run *run, enum metric metric)
{
    return &run->rig.result.metrics.at[metric];
}

static void expect(const struct run *run, enum metric metric, uint64_t wanted)
{
    const struct metric_value *found = value(run, metric);
    if (found->kind != METRIC_INTEGER || found->integer != wanted)
        fail_msg("%s is %llu, not %llu", metric_info(metric)->name,
                 (unsigned long long)found->integer, (unsigned long long)wanted);
}

TEST(served_by_a_cache_of_their_own)
{
    CLOSED(close_run) struct run run;
    open_run(&run, PROGRAM, "checked+torch-pinned", "sim");
    experiment_rig_run(&run.rig);
    expect(&run, METRIC_peak_pinned_live_bytes, 5000000);
    expect(&run, METRIC_peak_pinned_granted_bytes, 8 * AR_MIB);
    expect(&run, METRIC_peak_pinned_reserved_bytes, 8 * AR_MIB); /* 1 is pending at request 2 */
    expect(&run, METRIC_pinned_driver_calls, 3);                 /* two made, one released */
    expect(&run, METRIC_failed_by_pinned, 0);
    expect(&run, METRIC_peak_live_bytes, 1000); /* of the device */
    expect(&run, METRIC_driver_calls, 1);
    expect(&run, METRIC_allocs, 5);
}

/* The same device figures with and without the second cache, and no pinned figures without. */
TEST(the_device_is_not_changed)
{
    struct run with, without;
    open_run(&with, PROGRAM, "torch-pinned", "sim");
    open_run(&without, PROGRAM, NULL, "sim");
    experiment_rig_run(&with.rig);
    experiment_rig_run(&without.rig);
    static const enum metric same[] = {METRIC_allocs,
                                       METRIC_frees,
                                       METRIC_peak_live_bytes,
                                       METRIC_peak_reserved_bytes,
                                       METRIC_peak_physical_bytes,
                                       METRIC_driver_calls,
                                       METRIC_driver_time_ns};
    for (size_t i = 0; i < COUNT(same); i++)
        assert_int_equal(value(&with, same[i])->integer, value(&without, same[i])->integer);
    for (int i = METRIC_FIRST_OPTIONAL; i < METRIC_COUNT; i++)
        assert_int_equal(value(&without, (enum metric)i)->kind, METRIC_NULL);
    close_run(&with);
    close_run(&without);
    open_run(&with, HEADER "a,0,1000,0\nf,0\n", "torch-pinned", "sim");
    experiment_rig_run(&with.rig);
    for (int i = METRIC_FIRST_OPTIONAL; i < METRIC_COUNT; i++)
        assert_int_equal(value(&with, (enum metric)i)->kind, METRIC_NULL);
    close_run(&with);
}

TEST(a_failure_has_its_cause)
{
    struct run run;
    open_run(&run, PROGRAM, "torch-pinned", "sim:host=7MiB");
    run.rig.experiment.stop_on_failure = false;
    experiment_rig_run(&run.rig);
    assert_false(run.rig.result.passed);
    assert_int_equal(run.rig.result.cause, REPLAY_CAUSE_PINNED);
    assert_int_equal(run.rig.result.first_failed_event, 5);
    expect(&run, METRIC_failed_by_pinned, 2);
    expect(&run, METRIC_failed_allocs, 2);
    close_run(&run);
    open_run(&run, HEADER "p,0,8000000,space=pinned\n", "torch-pinned", "sim:host=7MiB");
    experiment_rig_run(&run.rig);
    assert_true(run.rig.result.passed);
    expect(&run, METRIC_failed_probes, 1);
    close_run(&run);
}

/* `recorded`: the block is free at the recorded completion, whatever the streams do. */
TEST(recorded_completions)
{
    static const char text[] = HEADER "a,0,4096,space=pinned\n"
                                      "r,0\n"
                                      "a,1,4096,space=pinned\n"
                                      "f,0\n"
                                      "a,2,4096,space=pinned\n"
                                      "r,1\n";
    struct run run;
    open_run(&run, text, "checked+torch-pinned", "sim");
    run.rig.experiment.frees = REPLAY_RECORDED;
    experiment_rig_run(&run.rig);
    expect(&run, METRIC_pinned_driver_calls, 2);
    expect(&run, METRIC_peak_pinned_reserved_bytes, 8192);
    expect(&run, METRIC_peak_pinned_live_bytes, 8192);
    close_run(&run);
    open_run(&run, text, "checked+torch-pinned", "sim");
    run.rig.experiment.frees = REPLAY_AT_ONCE;
    experiment_rig_run(&run.rig);
    expect(&run, METRIC_pinned_driver_calls, 2);
    close_run(&run);
}

/* Costs and waits are those of the profile, and they are host time of the program. */
TEST(costs_of_the_profile)
{
    CLOSED(trace_rig_close) struct trace_rig files = trace_rig_open();
    char device[200];
    static const char profile[] =
        "# allocrig-profile 1\nname: t\ngranule_bytes: 1\n"
        "total_bytes: 1073741824\nusable_bytes: 1073741824\n"
        "waits: pinned_free\n"
        "cost: pinned_alloc 4096 1000\ncost: pinned_alloc 1048576 256000\n"
        "cost: pinned_free 4096 700\n";
    CLOSED(close_run) struct run run;
    trace_rig_write(files.path[1], profile, sizeof profile - 1);
    snprintf(device, sizeof device, "sim:profile=%s", files.path[1]);
    open_run(&run,
             HEADER "a,0,4096,space=pinned\na,1,65536,space=pinned\nf,0\nk,0,5000000\n"
                    "c,space=pinned\n",
             "torch-pinned", device);
    experiment_rig_run(&run.rig);
    expect(&run, METRIC_pinned_driver_calls, 3);
    expect(&run, METRIC_pinned_driver_time_ns, 1000 + 16000 + 700);
    expect(&run, METRIC_driver_time_ns, 0);
    expect(&run, METRIC_stall_ns, 5000000);
    expect(&run, METRIC_device_time_ns, 5017700);
}
