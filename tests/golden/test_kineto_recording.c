/* What PyTorch's profiler wrote on a card, as a trace: the counts of its events, and its own count
 * of bytes after each. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/import_report.h"
#include "workloads/trace/trace.h"

static const char path[] = "tests/golden/data/kineto/mlp.json.gz";

static bool guessed(const struct trace_source *source, const char *words)
{
    for (unsigned i = 0; i < source->report->guess_count; i++)
        if (strstr(source->report->guesses[i], words))
            return true;
    return false;
}

TEST(test_counts)
{
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    const struct trace_info *info = &source->info;
    assert_int_equal(info->allocs, 77 + 1); /* what was there before is one */
    assert_int_equal(info->frees, 70);
    assert_int_equal(info->kernels, 98);
    assert_int_equal(info->streams, 1);
    assert_string_equal(info->card, "NVIDIA H100 80GB HBM3");
    assert_int_equal(info->capacity_bytes, 85017493504);
    assert_int_equal(source->report->records, 1418);
    assert_int_equal(source->report->left_out, 1418 - 77 - 70 - 98);
    assert_int_equal(source->report->unmatched_frees, 0);
    assert_int_equal(source->report->double_frees, 0);
    /* Parameters and the first batch existed before the profiler began, and stay. */
    assert_true(guessed(source, ": 8398848 bytes at the first event (never freed here), 8398848 at "
                                "the last; changed 0 times"));
}

/* Live bytes at the end, by the profiler's last "Total Allocated". */
TEST(test_live_bytes)
{
    const struct trace_event *events;
    static uint64_t bytes_of[78];
    uint64_t live = 0, places = 0, time_ns = 0;
    size_t count;
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    while (trace_next(source, &events, &count, &test_error) == AR_OK && count)
        for (size_t i = 0; i < count; i++) {
            if (events[i].kind == TRACE_ALLOC) {
                bytes_of[events[i].id] = events[i].value;
                live += events[i].value;
            } else if (events[i].kind == TRACE_FREE_COMPLETED) {
                live -= bytes_of[events[i].id];
            } else if (events[i].kind == TRACE_TIME) {
                assert_true(events[i].value >= time_ns);
                time_ns = events[i].value;
            } else if (events[i].kind == TRACE_NOTE) {
                places += !strncmp(trace_text_of(source, events[i].value), "alloc,", 6);
            }
        }
    assert_int_equal(live, 84955136);
    assert_int_equal(places, 77);
    assert_int_equal(time_ns, 216393497); /* from the first memory event to the last */
}
