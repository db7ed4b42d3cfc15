/* The public interface: what it returns equals what the program's own parts return; its errors. */
#include <unistd.h>

#include "bench/library/allocrig.h"
#include "sim/replay.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "workloads/workload.h"

#define WORKLOAD "random:events=600"
#define DEVICE   "sim:capacity=8GiB"

static struct ar_library *opened(void)
{
    struct ar_library *library = NULL;
    assert_int_equal(ar_library_open(&library, NULL), AR_OK);
    return library;
}

static struct ar_experiment *experiment_of(struct ar_library *library, const char *policy,
                                           const char *workload, const char *device)
{
    struct ar_experiment *experiment = NULL;
    assert_ok(ar_experiment_open(library, &experiment, &test_error));
    if (policy)
        assert_ok(ar_experiment_set(experiment, "policy", policy, &test_error));
    assert_ok(ar_experiment_set(experiment, "workload", workload, &test_error));
    assert_ok(ar_experiment_set(experiment, "device", device, &test_error));
    return experiment;
}

static struct ar_results *run(struct ar_library *library, const char *policy, const char *workload,
                              const char *device)
{
    struct ar_results *results = NULL;
    struct ar_experiment *experiment = experiment_of(library, policy, workload, device);
    assert_ok(ar_experiment_run(experiment, &results, &test_error));
    ar_experiment_close(experiment);
    return results;
}

static uint64_t metric(const struct ar_results *results, size_t row, const char *name)
{
    struct ar_value value;
    assert_int_equal(ar_results_metric(results, row, name, &value, NULL), AR_OK);
    assert_int_equal(value.kind, AR_VALUE_INTEGER);
    return value.integer;
}

TEST(every_metric_is_that_of_the_engine)
{
    struct ar_device_props props;
    struct replay_result expected;
    CLOSED(close_trace) struct trace_source *source = NULL;
    struct ar_metric described;
    struct ar_library *library = opened();
    struct ar_results *results = run(library, "growth", WORKLOAD, DEVICE);
    CLOSED(ar_spec_close) struct ar_spec policy = spec_of("growth");
    CLOSED(ar_spec_close) struct ar_spec device = spec_of(DEVICE);
    assert_ok(workload_open(WORKLOAD, &source, &test_error));
    const struct experiment same = {.policy = &policy,
                                    .device = &device,
                                    .source = source,
                                    .measure = REPLAY_METRICS_EXACT,
                                    .seed = 1};
    assert_ok(experiment_run(&same, &expected, &props, &test_error));
    size_t count = 0;
    for (; ar_metric_at(count, &described, sizeof described); count++) {
        struct ar_value value;
        assert_ok(ar_results_metric(results, 0, described.name, &value, &test_error));
        const struct metric_value *wanted = &expected.metrics.at[count];
        assert_int_equal((int)value.kind, (int)wanted->kind);
        if (value.kind == AR_VALUE_INTEGER)
            assert_int_equal(value.integer, wanted->integer);
        if (value.kind == AR_VALUE_REAL)
            assert_memory_equal(&value.real, &wanted->real, sizeof value.real);
    }
    assert_int_equal(count, METRIC_COUNT);
    replay_result_close(&expected);
    ar_results_close(results);
    ar_library_close(library);
}

TEST(all_combinations_are_rows)
{
    struct ar_row row;
    struct ar_results *results = NULL;
    struct ar_library *library = opened();
    struct ar_experiment *experiment =
        experiment_of(library, "growth", WORKLOAD, "sim:capacity=64MiB");
    assert_int_equal(ar_experiment_set(experiment, "policy", "vmm", NULL), AR_OK);
    assert_int_equal(ar_experiment_set(experiment, "device", DEVICE, NULL), AR_OK);
    assert_int_equal(ar_experiment_run(experiment, &results, NULL), AR_OK);
    ar_experiment_close(experiment);
    assert_int_equal(ar_results_count(results), 4);
    assert_int_equal(ar_results_row(results, 0, &row, sizeof row, NULL), AR_OK);
    assert_string_equal(row.policy, "growth");
    assert_string_equal(row.device, "sim:capacity=64MiB");
    assert_string_equal(row.outcome, "played");
    assert_false(row.passed);
    assert_string_equal(row.cause, "capacity");
    assert_true(row.first_failed_bytes > 0);
    assert_int_equal(ar_results_row(results, 3, &row, sizeof row, NULL), AR_OK);
    assert_string_equal(row.policy, "vmm");
    assert_true(row.passed && !row.cause);
    assert_int_equal(ar_results_row(results, 4, &row, sizeof row, NULL), AR_INVALID);
    char *text = NULL;
    assert_int_equal(ar_results_json(results, &text, NULL), AR_OK);
    assert_non_null(strstr(text, "\"schema\": \"allocrig.result/1\""));
    ar_free(text);
    ar_results_close(results);
    ar_library_close(library);
}

struct counted {
    uint64_t kinds[AR_RUN_MARK + 1], peak_live_bytes, stop_at;
};

static enum ar_status count(void *argument, const struct ar_run_event *event,
                            struct ar_error *error)
{
    struct counted *self = argument;
    self->kinds[event->kind]++;
    if (event->live_bytes > self->peak_live_bytes)
        self->peak_live_bytes = event->live_bytes;
    if (self->stop_at && self->kinds[AR_RUN_ALLOC] == self->stop_at)
        return ar_error_set(error, AR_NEGATIVE, "the observer has seen enough");
    return AR_OK;
}

TEST(an_observer_is_told_of_each_event)
{
    struct counted counted = {.stop_at = 0};
    struct ar_results *results = NULL;
    struct ar_library *library = opened();
    struct ar_results *unobserved = run(library, "growth", WORKLOAD, DEVICE);
    struct ar_experiment *experiment = experiment_of(library, "growth", WORKLOAD, DEVICE);
    ar_experiment_observe(experiment, count, &counted);
    assert_ok(ar_experiment_run(experiment, &results, &test_error));
    assert_int_equal(counted.kinds[AR_RUN_ALLOC], metric(results, 0, "allocs"));
    assert_int_equal(counted.kinds[AR_RUN_FREE_REQUESTED], metric(results, 0, "frees"));
    assert_int_equal(counted.peak_live_bytes, metric(results, 0, "peak_live_bytes"));
    assert_true(counted.kinds[AR_RUN_SEGMENT_ALLOC] > 0 && counted.kinds[AR_RUN_CALL] > 0);
    assert_int_equal(metric(results, 0, "device_time_ns"), metric(unobserved, 0, "device_time_ns"));
    ar_results_close(results);
    ar_results_close(unobserved);
    counted = (struct counted){.stop_at = 10};
    assert_says(ar_experiment_run(experiment, &results, &test_error), AR_NEGATIVE, "seen enough");
    ar_experiment_close(experiment);
    ar_library_close(library);
}

TEST(capacities_are_where_runs_pass)
{
    struct ar_capacity found;
    struct ar_capacities *capacities = NULL;
    struct ar_library *library = opened();
    struct ar_experiment *experiment = experiment_of(library, "growth", WORKLOAD, "sim");
    assert_int_equal(ar_experiment_set(experiment, "jobs", "1", NULL), AR_OK);
    assert_int_equal(ar_experiment_capacity(experiment, &capacities, NULL), AR_OK);
    assert_int_equal(ar_capacities_count(capacities), 1);
    assert_int_equal(ar_capacities_row(capacities, 0, &found, sizeof found, NULL), AR_OK);
    assert_true(found.first_pass_bytes >= found.live_peak_bytes);
    assert_true(found.safe_bytes >= found.first_pass_bytes && found.runs > 0);
    for (int above = 0; above <= 1; above++) {
        char device[64];
        snprintf(device, sizeof device, "sim:capacity=%llu",
                 (unsigned long long)(found.first_pass_bytes - (above ? 0 : 2 * AR_MIB)));
        struct ar_row row;
        struct ar_results *results = run(library, "growth", WORKLOAD, device);
        assert_int_equal(ar_results_row(results, 0, &row, sizeof row, NULL), AR_OK);
        assert_int_equal(row.passed, above);
        ar_results_close(results);
    }
    ar_capacities_close(capacities);
    ar_experiment_close(experiment);
    ar_library_close(library);
}

TEST(advice_is_ranked_settings)
{
    struct ar_setting setting;
    struct ar_advice *advice = NULL;
    char *text = NULL;
    struct ar_library *library = opened();
    struct ar_experiment *experiment =
        experiment_of(library, NULL, "tests/golden/data/snapshots/tape_small.pickle.gz", "sim");
    assert_ok(ar_experiment_set(experiment, "capacity", "1700MiB", &test_error));
    assert_ok(ar_experiment_advise(experiment, &advice, &test_error));
    assert_true(ar_advice_count(advice) > 2);
    assert_ok(ar_advice_row(advice, 0, &setting, sizeof setting, &test_error));
    assert_int_equal(setting.rank, 1);
    assert_true(setting.own);
    assert_memory_equal(setting.policy, "torch", 5);
    assert_ok(ar_advice_json(advice, &text, &test_error));
    assert_non_null(strstr(text, "allocrig.advise/1"));
    ar_free(text);
    ar_advice_close(advice);
    ar_experiment_close(experiment);
    ar_library_close(library);
}

/* Ten blocks of 10 GiB, which the default card does not have. */
TEST(a_card_has_any_size)
{
    static const char *const devices[] = {"sim:capacity=141GiB", "sim:profile=h200", "sim"};
    char text[512] = "# allocrig-trace 1\n# name: large\n# recorder: torch 2.9.0\n";
    for (int i = 0; i < 10; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "a,%d,%llu\n", i,
                 (unsigned long long)(10 * AR_GIB));
    }
    struct temporary_file file = temporary_file(text);
    struct ar_library *library = opened();
    for (int i = 0; i < 3; i++) {
        struct ar_row row;
        struct ar_results *results = run(library, "torch", file.path, devices[i]);
        assert_int_equal(ar_results_row(results, 0, &row, sizeof row, NULL), AR_OK);
        assert_int_equal(row.passed, i < 2);
        ar_results_close(results);
    }
    struct ar_capacities *capacities;
    struct ar_capacity found;
    struct ar_advice *advice;
    struct ar_setting setting;
    struct ar_experiment *experiment = experiment_of(library, "torch", file.path, "sim");
    assert_int_equal(ar_experiment_capacity(experiment, &capacities, NULL), AR_OK);
    assert_int_equal(ar_capacities_row(capacities, 0, &found, sizeof found, NULL), AR_OK);
    assert_int_equal(found.safe_bytes, 100 * AR_GIB);
    ar_capacities_close(capacities);
    ar_experiment_close(experiment);
    experiment = experiment_of(library, NULL, file.path, "sim");
    assert_int_equal(ar_experiment_set(experiment, "capacity", "288GiB", NULL), AR_OK);
    assert_int_equal(ar_experiment_advise(experiment, &advice, NULL), AR_OK);
    assert_int_equal(ar_advice_row(advice, 0, &setting, sizeof setting, NULL), AR_OK);
    assert_int_equal(setting.safe_bytes, 100 * AR_GIB);
    ar_advice_close(advice);
    ar_experiment_close(experiment);
    ar_library_close(library);
    unlink(file.path);
}

#define TWO_GPUS "tests/golden/data/two_gpus.trace"

TEST(gpus_of_a_workload_are_apart)
{
    static const uint64_t peaks[] = {12582912, 7340032};
    static const char *const names[] = {TWO_GPUS ":device=0", TWO_GPUS ":device=1"};
    struct ar_advice *advice = NULL;
    struct ar_results *results = NULL;
    struct ar_row row;
    struct ar_value value;
    struct ar_setting setting;
    struct ar_library *library = opened();
    struct ar_experiment *experiment = experiment_of(library, "direct", TWO_GPUS, "sim");
    assert_ok(ar_experiment_run(experiment, &results, &test_error));
    assert_int_equal(ar_results_count(results), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ar_results_row(results, i, &row, sizeof row, &test_error));
        assert_string_equal(row.workload, names[i]);
        assert_string_equal(row.workload_name, i ? "two_gpus gpu1" : "two_gpus gpu0");
        assert_ok(ar_results_metric(results, i, "peak_live_bytes", &value, &test_error));
        assert_int_equal(value.integer, peaks[i]);
    }
    ar_results_close(results);
    assert_says(ar_experiment_advise(experiment, &advice, &test_error), AR_INVALID,
                "policy has no effect on advice");
    ar_experiment_close(experiment);
    experiment = experiment_of(library, NULL, TWO_GPUS, "sim");
    assert_ok(ar_experiment_set(experiment, "capacity", "64MiB", &test_error));
    assert_ok(ar_experiment_advise(experiment, &advice, &test_error));
    size_t count = ar_advice_count(advice);
    assert_ok(ar_advice_row(advice, 0, &setting, sizeof setting, &test_error));
    assert_string_equal(setting.workload, names[0]);
    size_t first = 0; /* of as many rows each */
    for (size_t i = 0; i < count; i++) {
        assert_ok(ar_advice_row(advice, i, &setting, sizeof setting, &test_error));
        first += strcmp(setting.workload, names[0]) == 0;
    }
    assert_int_equal(2 * first, count);
    assert_ok(ar_advice_row(advice, count - 1, &setting, sizeof setting, &test_error));
    assert_string_equal(setting.workload, names[1]);
    assert_int_equal(ar_advice_row(advice, count, &setting, sizeof setting, &test_error),
                     AR_INVALID);
    ar_advice_close(advice);
    ar_experiment_close(experiment);
    experiment = experiment_of(library, "direct", TWO_GPUS, "1");
    assert_ok(ar_experiment_run(experiment, &results, &test_error));
    assert_int_equal(ar_results_count(results), 1);
    ar_results_close(results);
    ar_experiment_close(experiment);
    ar_library_close(library);
}

TEST(a_workload_is_its_events)
{
    struct ar_event event;
    struct ar_workload_info info;
    struct ar_workload *workload = NULL;
    for (int round = 0; round < 2; round++) {
        uint64_t events = 0, requested = 0;
        assert_int_equal(ar_workload_open(WORKLOAD, &workload, NULL), AR_OK);
        assert_int_equal(ar_workload_info(workload, &info, sizeof info, NULL), AR_OK);
        assert_string_equal(info.format, "generator");
        do {
            assert_int_equal(ar_workload_next(workload, &event, sizeof event, NULL), AR_OK);
            events += event.kind != AR_EVENT_END;
            requested += event.kind == AR_EVENT_ALLOC ? event.value : 0;
        } while (event.kind != AR_EVENT_END);
        assert_int_equal(events, info.events);
        assert_int_equal(event.number, events);
        assert_int_equal(requested, info.requested_bytes);
        assert_int_equal(ar_workload_rewind(workload, NULL), AR_OK);
        assert_int_equal(ar_workload_next(workload, &event, sizeof event, NULL), AR_OK);
        assert_int_equal(event.number, 0);
        ar_workload_close(workload);
    }
}

static const struct ar_policy_ops *policy_named(const struct ar_library *library, const char *name)
{
    for (size_t i = 0; ar_policy_at(library, i); i++)
        if (strcmp(ar_policy_at(library, i)->name, name) == 0)
            return ar_policy_at(library, i);
    return NULL;
}

TEST(what_is_registered_is_named_in_specs)
{
    struct ar_library *library = opened(), *other = opened();
    struct ar_policy_ops mine = *policy_named(library, "growth");
    struct ar_device_kind card = *ar_device_kind_at(library, 0);
    mine.name = "mine";
    card.name = "card";
    assert_ok(ar_register_policy(library, &mine, &test_error));
    assert_ok(ar_register_device(library, &card, &test_error));
    assert_ptr_equal(policy_named(library, "mine"), &mine);
    assert_null(policy_named(other, "mine"));
    struct ar_results *built_in = run(library, "growth:limit=4GiB", WORKLOAD, DEVICE);
    struct ar_results *registered =
        run(library, "checked+mine:limit=4GiB", WORKLOAD, "card:capacity=8GiB");
    assert_int_equal(metric(registered, 0, "peak_reserved_bytes"),
                     metric(built_in, 0, "peak_reserved_bytes"));
    ar_results_close(built_in);
    ar_results_close(registered);

    struct ar_results *results = NULL;
    struct ar_experiment *experiment = experiment_of(other, "mine", WORKLOAD, DEVICE);
    assert_says(ar_experiment_run(experiment, &results, &test_error), AR_INVALID,
                "there is no policy \"mine\"");
    ar_experiment_close(experiment);

    assert_says(ar_register_policy(library, &mine, &test_error), AR_INVALID, "already");
    mine.name = "a+b";
    assert_int_equal(ar_register_policy(library, &mine, &test_error), AR_INVALID);
    mine.name = "checked";
    assert_int_equal(ar_register_policy(library, &mine, &test_error), AR_INVALID);
    mine.name = "lacking";
    mine.alloc = NULL;
    assert_int_equal(ar_register_policy(library, &mine, &test_error), AR_INVALID);
    card.name = "sim";
    assert_int_equal(ar_register_device(library, &card, &test_error), AR_INVALID);
    for (int i = 0; i < 40; i++) { /* the lists grow */
        static char names[40][24];
        static struct ar_device_kind kinds[40];
        static struct ar_policy_ops policies[40];
        snprintf(names[i], sizeof names[i], "added-%d", i);
        kinds[i] = card;
        policies[i] = *policy_named(library, "growth");
        kinds[i].name = policies[i].name = names[i];
        assert_ok(ar_register_device(library, &kinds[i], &test_error));
        assert_ok(ar_register_policy(library, &policies[i], &test_error));
    }
    ar_results_close(run(library, "added-39", WORKLOAD, "added-39:capacity=8GiB"));
    ar_library_close(library);
    ar_library_close(other);
}

TEST(a_session_is_a_policy_by_hand)
{
    struct ar_session *session = NULL, *second = NULL;
    struct ar_policy_block block;
    struct ar_policy_stats stats;
    struct ar_device *device = NULL;
    const struct ar_policy_request request = {.bytes = 3 * AR_MIB};
    struct ar_library *library = opened();
    assert_ok(ar_session_open(library, "growth", "sim:capacity=1GiB", 1, &session, &test_error));
    assert_ok(ar_session_alloc(session, &request, &block, &test_error));
    assert_true(block.granted_bytes >= request.bytes);
    ar_session_stats(session, &stats);
    assert_int_equal(stats.totals.live_bytes, request.bytes);
    assert_true(ar_session_device(session)->counters.physical_bytes >= request.bytes);
    const struct ar_policy_request large = {.bytes = 2 * AR_GIB};
    assert_says(ar_session_alloc(session, &large, &block, &test_error), AR_NO_MEMORY, "growth");
    assert_int_equal(ar_session_alloc(session, &(struct ar_policy_request){0}, &block, &test_error),
                     AR_INVALID);
    const struct ar_policy_request far = {.bytes = 5, .stream = 65536};
    assert_says(ar_session_alloc(session, &far, &block, &test_error), AR_INVALID,
                "stream 65536 is not below 65536");
    assert_says(ar_session_free(session, &block, UINT32_MAX, &test_error), AR_INVALID,
                "stream 4294967295");
    assert_ok(ar_session_free(session, &block, 0, &test_error));
    ar_session_stats(session, &stats);
    assert_int_equal(stats.totals.live_bytes, 0);
    ar_session_close(session);

    assert_ok(ar_library_device(library, "sim:capacity=1GiB", &device, &test_error));
    assert_ok(ar_session_open_on(library, "vmm", device->backing, 1, &second, &test_error));
    assert_null(ar_session_device(second));
    assert_int_equal(ar_policy_alloc(ar_session_policy(second), &request, &block), AR_OK);
    assert_int_equal(ar_policy_free(ar_session_policy(second), &block, 0), AR_OK);
    ar_session_close(second);
    ar_device_close(device);
    assert_says(ar_session_open(library, "growht", "sim", 1, &session, &test_error), AR_INVALID,
                "growth");
    ar_library_close(library);
}

TEST(a_smaller_struct_is_not_overrun)
{
    struct {
        struct ar_metric metric;
        char after[8];
    } room;
    memset(&room, 0x5a, sizeof room);
    assert_true(ar_metric_at(0, &room.metric, sizeof(const char *)));
    assert_string_equal(room.metric.name, "events");
    assert_int_equal(((unsigned char *)&room)[sizeof(const char *)], 0x5a);
    assert_true(ar_metric_at(0, &room.metric, sizeof room)); /* a newer program, an older library */
    assert_int_equal(room.after[0], 0);
    assert_false(ar_metric_at(100000, &room.metric, sizeof room.metric));
}

TEST(a_metric_says_what_is_better)
{
    struct ar_metric metric;
    for (size_t i = 0; ar_metric_at(i, &metric, sizeof metric); i++)
        if (strcmp(metric.name, "utilisation") == 0)
            assert_int_equal(metric.better, AR_METRIC_HIGHER);
        else if (strcmp(metric.name, "events") == 0)
            assert_int_equal(metric.better, AR_METRIC_NEITHER);
}

TEST(settings_are_checked_when_they_are_set)
{
    struct ar_results *results = NULL;
    struct ar_experiment *experiment = NULL;
    struct ar_library *library = opened();
    assert_ok(ar_experiment_open(library, &experiment, &test_error));
    EACH_ROW (row, 3) {
        assert_int_equal(ar_experiment_set(experiment, row.field[0], row.field[1], &test_error),
                         AR_INVALID);
        if (!strstr(test_error.text, row.field[2]))
            fail_msg("%s=%s: %s", row.field[0], row.field[1], test_error.text);
    }
    assert_says(ar_experiment_run(experiment, &results, &test_error), AR_INVALID, "no workload");
    assert_ok(ar_experiment_set(experiment, "workload", WORKLOAD, &test_error));
    assert_int_equal(ar_experiment_run(experiment, &results, NULL), AR_INVALID);
    assert_ok(ar_experiment_set(experiment, "policy", "growth", &test_error));
    assert_ok(ar_experiment_set(experiment, "replicates", "3", &test_error));
    assert_ok(ar_experiment_run(experiment, &results, &test_error));
    assert_int_equal(ar_results_count(results), 3);
    struct ar_value value;
    assert_says(ar_results_metric(results, 0, "slowdwn", &value, &test_error), AR_INVALID,
                "slowdown");
    ar_results_close(results);
    ar_experiment_close(experiment);
    ar_library_close(library);
}
