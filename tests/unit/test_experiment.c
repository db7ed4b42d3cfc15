/* Experiments: the passes of a run, and ways to run that must agree. Known figures are in
 * tests/steps/experiment. */
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"

static double figure(const struct experiment_rig *rig, enum metric metric)
{
    return metric_number(&rig->result.metrics, metric, -1);
}

static enum ar_status count_row(void *argument, const struct replay_row *row,
                                struct ar_error *error)
{
    ++*(uint64_t *)argument;
    return AR_OK;
}

/* Robson's program depends on the addresses of its blocks; the passes replay its requests. */
TEST(an_adaptive_workload_is_written_down)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    uint64_t rows = 0;
    experiment_rig_open(&rig, "first-fit", "sim:profile=bump", "robson");
    assert_true(rig.source->info.adaptive);
    const struct observer observer = {.row = count_row, .argument = &rows};
    rig.experiment.observer = &observer;
    experiment_rig_run(&rig);
    assert_true(figure(&rig, METRIC_allocs) + figure(&rig, METRIC_frees) == (double)rows);
    assert_true(figure(&rig, METRIC_peak_reserved_bytes) > figure(&rig, METRIC_peak_live_bytes));
    assert_true(figure(&rig, METRIC_median_request_bytes) > 0);
}

TEST(the_same_run_gives_the_same_figures)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    struct metric_values first;
    const char *workload = "random:events=2000,target=64MiB,max=8MiB,seed=9";
    experiment_rig_open(&rig, "growth", "sim:capacity=1GiB", workload);
    experiment_rig_run(&rig);
    first = rig.result.metrics;
    replay_result_close(&rig.result);
    experiment_rig_run(&rig);
    assert_memory_equal(&first, &rig.result.metrics, sizeof first);
}

/* The loop has three bodies: lean, with exact metrics, watched. */
TEST(all_ways_to_run_have_the_same_outcome)
{
    static const enum metric outcome[] = {
        METRIC_events,        METRIC_allocs,         METRIC_frees,
        METRIC_failed_allocs, METRIC_failed_probes,  METRIC_first_failed_event,
        METRIC_driver_calls,  METRIC_device_time_ns, METRIC_peak_physical_bytes,
    };
    for (int stop = 0; stop < 2; stop++) {
        struct metric_values of[3];
        for (int way = 0; way < 3; way++) {
            CLOSED(experiment_rig_close) struct experiment_rig rig;
            uint64_t rows = 0;
            experiment_rig_open(&rig, "growth", "sim:capacity=440MiB",
                                "random:events=3000,target=256MiB,min=100,max=24MiB,seed=6");
            rig.experiment.stop_on_failure = stop;
            rig.experiment.measure = way ? REPLAY_METRICS_EXACT : REPLAY_METRICS_NONE;
            const struct observer observer = {.row = count_row, .argument = &rows};
            rig.experiment.observer = way == 2 ? &observer : NULL;
            experiment_rig_run(&rig);
            assert_false(rig.result.passed);
            of[way] = rig.result.metrics;
        }
        for (size_t i = 0; i < COUNT(outcome); i++)
            for (int way = 1; way < 3; way++)
                assert_true(metric_number(&of[way], outcome[i], -1) ==
                            metric_number(&of[0], outcome[i], -1));
        /* Two ways to see a pause: by the driver's counters, and by the clock around the call. */
        double longest = metric_number(&of[1], METRIC_longest_pause_ns, -1);
        assert_true(longest > 1000);
        assert_true(longest == metric_number(&of[2], METRIC_longest_pause_ns, -1));
        assert_true(metric_number(&of[0], METRIC_longest_pause_ns, -1) == -1);
        double events = metric_number(&of[0], METRIC_events, -1);
        double first = metric_number(&of[0], METRIC_first_failed_event, -1);
        assert_true(stop ? events == first + 1 : events > first + 1);
    }
}

TEST(host_times_are_measured_only_if_asked_for)
{
    static const enum metric timed[] = {METRIC_alloc_ns_p50,       METRIC_free_ns_p999,
                                        METRIC_alloc_total_ns_max, METRIC_free_total_ns_p50,
                                        METRIC_clock_ns,           METRIC_ops_per_s};
    for (int asked = 0; asked < 2; asked++) {
        CLOSED(experiment_rig_close) struct experiment_rig rig;
        experiment_rig_open(&rig, "growth", "sim:capacity=1GiB",
                            "random:events=2000,target=64MiB,max=8MiB");
        rig.experiment.measure_time = asked;
        experiment_rig_run(&rig);
        for (size_t i = 0; i < COUNT(timed); i++) {
            bool null = rig.result.metrics.at[timed[i]].kind == METRIC_NULL;
            assert_int_equal(null, !asked);
        }
        if (asked) {
            assert_true(figure(&rig, METRIC_ops_per_s) > 1000);
            assert_true(figure(&rig, METRIC_alloc_ns_p50) <= figure(&rig, METRIC_alloc_ns_max));
            /* The first requests are driver calls of some 100 microseconds. */
            assert_true(figure(&rig, METRIC_alloc_total_ns_max) > 10000);
        }
    }
}

/* A source that counts its readings from the beginning. */
struct counted {
    struct trace_source base;
    unsigned rewinds;
};

static enum ar_status counted_next(struct trace_source *self, const struct trace_event **events,
                                   size_t *count, struct ar_error *error)
{
    return trace_next(self->over, events, count, error);
}

static enum ar_status counted_rewind(struct trace_source *self, struct ar_error *error)
{
    ((struct counted *)self)->rewinds++;
    return trace_rewind(self->over, error);
}

/* Else the time to read a file would count as the policy's. */
TEST(a_trace_is_read_into_memory_before_host_times_are_measured)
{
    static const struct trace_source_ops ops = {.next = counted_next, .rewind = counted_rewind};
    for (int asked = 0; asked < 2; asked++) {
        CLOSED(experiment_rig_close) struct experiment_rig rig;
        experiment_rig_open(&rig, "growth", "sim:capacity=1GiB",
                            "random:events=2000,target=64MiB,max=8MiB");
        struct counted source = {
            .base = {.ops = &ops, .info = rig.source->info, .over = rig.source}};
        (void)strcpy(source.base.info.format, "text");
        rig.experiment.source = &source.base;
        rig.experiment.measure_time = asked;
        experiment_rig_run(&rig);
        assert_true(asked ? source.rewinds == 1 : source.rewinds > 1);
    }
}
