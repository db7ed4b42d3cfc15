/* Files about one run: observers get its memory events in order, latencies have HdrHistogram's
 * form; and the folder of results. Snapshots and timelines: tests/cli/test_writers.sh. */
#include <sys/stat.h>
#include <unistd.h>

#include "bench/report/run_output.h"
#include "bench/suite/run_files.h"
#include "sim/replay/timing.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"
#include "tests/support/tiny_trace.h"

#define EVENTS_MOST 4096

/* All memory events of a run. */
struct told {
    struct {
        enum observer_kind kind;
        uint64_t address, bytes, event, now_ns;
        bool unmaps;
    } at[EVENTS_MOST];
    size_t count;
};

static enum ar_status note(void *argument, const struct observer_event *event,
                           struct ar_error *error)
{
    struct told *told = argument;
    assert_true(told->count < EVENTS_MOST);
    told->at[told->count].kind = event->kind;
    told->at[told->count].address = event->address;
    told->at[told->count].bytes = event->bytes;
    told->at[told->count].now_ns = event->now_ns;
    told->at[told->count].unmaps = event->call && strstr(event->call, "nmap");
    told->at[told->count++].event = event->event;
    return AR_OK;
}

/* Runs a policy over a small trace and returns the memory events, which the caller frees. */
static struct told *run(const char *policy, const char *device, const char *events)
{
    struct told *told = calloc(1, sizeof *told);
    const struct observer observer = {.memory = note, .argument = told};
    struct experiment_rig rig;
    assert_non_null(told);
    experiment_rig_over(&rig, policy, device, tiny_trace(events));
    rig.experiment.observer = &observer;
    experiment_rig_run(&rig);
    experiment_rig_close(&rig);
    return told;
}

static size_t count_of(const struct told *told, enum observer_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < told->count; i++)
        count += told->at[i].kind == kind;
    return count;
}

TEST(a_request_comes_behind_the_segment_made_for_it)
{
    static const enum observer_kind wanted[] = {
        OBSERVER_CALL,           OBSERVER_SEGMENT_ALLOC, OBSERVER_ALLOC,
        OBSERVER_ALLOC,          OBSERVER_MARK,          OBSERVER_FREE_REQUESTED,
        OBSERVER_FREE_COMPLETED, OBSERVER_CALL,          OBSERVER_FAILED,
    };
    FREED struct told *told =
        run("torch", "sim:capacity=64MiB", "a,0,1000 a,1,2000 m,step f,0 a,2,134217728");
    size_t next = 0;
    for (size_t i = 0; i < COUNT(wanted); i++, next++) {
        while (i && wanted[i] != OBSERVER_CALL && next < told->count &&
               told->at[next].kind == OBSERVER_CALL)
            next++; /* a refused call may be tried again */
        assert_true(next < told->count);
        assert_int_equal(told->at[next].kind, wanted[i]);
    }
    assert_int_equal(told->at[1].bytes, 2 * AR_MIB);
    assert_int_equal(told->at[2].address, told->at[1].address);
    assert_int_equal(told->at[2].event, 0);
    assert_int_equal(told->at[3].event, 1);
    assert_int_equal(told->at[5].bytes, 1000);
}

/* Pages that are unmapped one after the other are one event, at the time of the last one. */
TEST(a_run_of_pages_is_unmapped_at_its_end)
{
    FREED struct told *told =
        run("torch:expandable_segments=true", "sim", "a,0,104857600 f,0 c a,1,1000");
    size_t last = 0;
    assert_int_equal(count_of(told, OBSERVER_SEGMENT_UNMAP), 1);
    for (size_t i = 0; i < told->count; i++) {
        if (told->at[i].unmaps)
            last = i;
        if (told->at[i].kind == OBSERVER_SEGMENT_UNMAP) {
            assert_int_equal(told->at[i].bytes, 100 * AR_MIB);
            assert_int_equal(told->at[i].now_ns, told->at[last].now_ns);
        }
    }
}

/* A block used on another stream is complete when that one has come past its free: the policy does
 * not report it, and the observer is told before the block is served again. */
TEST(a_pending_block_completes_before_it_is_given_again)
{
    FREED struct told *told =
        run("torch", "sim", "a,0,4000000 u,0,1 k,1,50000 f,0 a,1,4000000 s a,2,4000000 f,1 f,2");
    uint64_t first = 0;
    size_t requested = 0, completed = 0, again = 0;
    for (size_t i = 0; i < told->count; i++) {
        if (told->at[i].kind == OBSERVER_ALLOC && !first)
            first = told->at[i].address;
        else if (told->at[i].kind == OBSERVER_ALLOC && told->at[i].address == first)
            again = i;
        if (told->at[i].address != first || completed)
            continue;
        if (told->at[i].kind == OBSERVER_FREE_REQUESTED)
            requested = i;
        if (told->at[i].kind == OBSERVER_FREE_COMPLETED)
            completed = i;
    }
    assert_true(requested && completed && again);
    assert_true(requested + 1 < completed);
    assert_true(completed < again);
    assert_int_equal(count_of(told, OBSERVER_FREE_COMPLETED), 3);
}

/* Figures are the same with and without an observer. */
TEST(figures_are_the_same_with_an_observer)
{
    static const char *const policies[] = {"torch:expandable_segments=true", "vmm", "async",
                                           "growth"};
    for (size_t i = 0; i < COUNT(policies); i++) {
        struct experiment_rig with, without;
        FREED struct told *told = calloc(1, sizeof *told);
        const struct observer observer = {.memory = note, .argument = told};
        assert_non_null(told);
        experiment_rig_open(&without, policies[i], "sim", "random:events=400,seed=7");
        experiment_rig_run(&without);
        experiment_rig_open(&with, policies[i], "sim", "random:events=400,seed=7");
        with.experiment.observer = &observer;
        experiment_rig_run(&with);
        assert_memory_equal(&with.result.metrics, &without.result.metrics,
                            sizeof with.result.metrics);
        assert_true(count_of(told, OBSERVER_ALLOC) > 100);
        experiment_rig_close(&with);
        experiment_rig_close(&without);
    }
}

TEST(latencies_have_the_form_of_hdrhistogram)
{
    struct cases block = {0};
    const char *wanted = cases_text(&block, "run_files", "latencies_have_the_form_of_hdrhistogram");
    FREED struct ar_hist *hist = calloc(1, sizeof *hist);
    struct capture capture;
    assert_non_null(hist);
    ar_hist_add(hist, 10, 6);
    ar_hist_add(hist, 20, 3);
    ar_hist_add(hist, 100, 1);
    hdr_percentiles_write(capture_begin(&capture), hist);
    capture_is(&capture, wanted);

    ar_hist_clear(hist);
    hdr_percentiles_write(capture_begin(&capture), hist);
    FREED char *text = capture_end(&capture);
    assert_non_null(strstr(text, "Total count    =            0]"));
    assert_null(strstr(text, "nan"));
}

static enum ar_status take_latencies(void *argument, const struct latency *latency,
                                     struct ar_error *error)
{
    *(uint64_t *)argument = latency->alloc.total;
    return AR_OK;
}

TEST(histograms_are_those_of_the_pass_with_clocks)
{
    CLOSED(experiment_rig_close) struct experiment_rig rig;
    uint64_t allocs = 0;
    experiment_rig_open(&rig, "growth", "sim", "order_flip");
    rig.experiment.measure_time = true;
    const struct observer observer = {.latencies = take_latencies, .argument = &allocs};
    rig.experiment.observer = &observer;
    experiment_rig_run(&rig);
    assert_true(allocs > 0);
    assert_int_equal(allocs, metric_number(&rig.result.metrics, METRIC_allocs, 0));
}

/* As many calls as are kept, and more: all are written once, in their order. */
TEST(calls_beyond_those_kept_are_written)
{
    FREED char *text = NULL;
    size_t bytes;
    FILE *streams[SUITE_FILE_COUNT] = {NULL};
    const struct suite_files files = {.path = {NULL}};
    const struct plan plan = {0};
    struct run_files self;
    streams[SUITE_FILE_calls] = open_memstream(&text, &bytes);
    assert_non_null(streams[SUITE_FILE_calls]);
    assert_ok(run_files_open(&self, streams, &files, &plan, &test_error));
    assert_true(self.calls_most >= 1000000);
    self.calls_most = 2;
    const struct observer *observer = run_files_observer(&self, 0);
    for (uint64_t event = 1; event <= 5; event++) {
        const struct observer_driver_call made = {.event = event, .bytes = 10 * event};
        observer->driver_call(observer->argument, &made);
    }
    assert_ok(self.end.finished(self.end.argument, NULL, &test_error));
    run_files_close(&self);
    fclose(streams[SUITE_FILE_calls]);
    unsigned rows = 0;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1)
        assert_int_equal(strtoul(at, NULL, 10), ++rows);
    assert_int_equal(rows, 5);
}

/* ---- the folder of results ------------------------------------------------------------------- */

/* A file that a suite would write anyway is refused, by any path to it; others are not. */
TEST(a_file_of_the_folder_is_refused_by_any_path)
{
    char before[4096], folder[] = "/tmp/allocrig-XXXXXX";
    assert_non_null(getcwd(before, sizeof before));
    assert_non_null(mkdtemp(folder));
    assert_true(!chdir(folder) && !mkdir("a", 0777) && !mkdir("a/data", 0777) &&
                !mkdir("data", 0777) && !chdir(before));
    EACH_ROW (row, 3) {
        struct output_set none = {0};
        assert_true(!chdir(folder));
        enum ar_status status = result_folder_check(row.field[0], &none, row.field[1], &test_error);
        assert_true(!chdir(before));
        if (status != (cases_number(&row, 2) ? AR_INVALID : AR_OK))
            fail_msg("%s in %s: %d", row.field[1], row.field[0], status);
    }
    assert_true(!chdir(folder) && !rmdir("a/data") && !rmdir("a") && !rmdir("data"));
    assert_true(!chdir(before) && !rmdir(folder));
}

/* Results that are replaced are named by their suite and commit; another page is not taken for
 * results. */
TEST(replaced_results_are_named)
{
    char folder[] = "/tmp/allocrig-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/summary.md", folder);
    EACH_ROW (row, 2) {
        FREED char *said;
        size_t length;
        FILE *kept = stderr, *file = fopen(path, "w");
        struct output_set none = {0};
        assert_non_null(file);
        fputs(row.field[0], file);
        assert_int_equal(fclose(file), 0);
        stderr = open_memstream(&said, &length);
        assert_non_null(stderr);
        enum ar_status status =
            result_folder_commit(&(struct result_folder){.path = folder}, &none, NULL, &test_error);
        fclose(stderr);
        stderr = kept;
        assert_int_equal(status, AR_OK);
        if (row.field[1] ? !strstr(said, row.field[1]) : length != 0)
            fail_msg("%s: \"%s\"", row.field[0], said);
    }
    assert_true(!unlink(path) && !rmdir(folder));
}
