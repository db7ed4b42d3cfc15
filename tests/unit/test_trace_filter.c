/* A large recording in parts, the statistics of a trace, and notes without a value. Small traces
 * are in tests/steps/trace_filter. */
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/filter.h"
#include "workloads/trace/inspect.h"

#define HEAD "# allocrig-trace 1\n# name: x\n"

/* Two steps: 0 lives through, 1 in the first, 2 from the first into the second, 3 in the second. */
static const char steps[] = HEAD "a,0,100,tag=w\n!,alloc,4096\na,1,200,1\nt,10\nk,0,5\nk,1,6\nr,1\n"
                                 "a,2,300\nf,1\nt,20\nm,step\na,3,400,1\nt,35\nf,2\nu,3,0\nr,3\n"
                                 "f,3\nm,step\nt,50\nc\n";

/* Only these two verbs need a value. */
TRACE_TEST(a_change_without_a_value_is_refused)
{
    struct trace_source *source = NULL;
    assert_says(trace_rig_text(*state, HEAD "!,settings\na,0,1\n", &source, &test_error),
                AR_INVALID, "the note settings has no value: write !,settings,CONF");
    assert_says(trace_rig_text(*state, HEAD "!,limit\na,0,1\n", &source, &test_error), AR_INVALID,
                "the note limit has no value: write !,limit,BYTES");
}

TRACE_TEST(a_recording_in_parts_and_twice)
{
    struct trace_source *sources[2] = {NULL, NULL}, *merge = NULL;
    static const char path[] = "workloads/data/side_streams.default.csv.gz";
    assert_ok(trace_open(path, &sources[0], &test_error));
    assert_ok(trace_open(path, &sources[1], &test_error));
    struct trace_info one = sources[0]->info;
    assert_ok(trace_merge(sources, 2, &merge, &test_error));
    assert_int_equal(merge->info.allocs, 2 * one.allocs);
    assert_int_equal(merge->info.peak_live_bytes, 2 * one.peak_live_bytes);
    assert_int_equal(merge->info.streams, 2 * one.streams);
    assert_true(merge->info.slots <= 2 * one.slots);
    CLOSED(close_trace) struct trace_source *part;
    assert_ok(trace_filter(merge,
                           &(struct trace_filter_options){.first_step = 101, .last_step = 200},
                           &part, &test_error));
    assert_int_equal(part->info.steps, 100);
}

/* FORMAT.md lists the keys in the order of their bits, which is that of the writer. */
TRACE_TEST(every_key_is_counted_under_its_name)
{
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(inspect_close) struct inspect inspect;
    FREED char *format = trace_rig_read("workloads/trace/FORMAT.md", &(size_t){0});
    const char *row = format;
    char text[64];
    assert_ok(trace_rig_text(*state,
                             "# allocrig-trace 1\na,0,8,x=1,mempool=plain,end=upper,space=device,"
                             "tenant=1,thread=1,device=1,align=8,pool=1,tag=a\na,1,8,end=lower\n",
                             &source, &test_error));
    assert_ok(inspect_trace(source, &inspect, &test_error));
    for (unsigned i = 0; i < INSPECT_KEYS; i++) {
        const char *name = inspect_key_name(i);
        assert_int_equal(inspect.keys[i], strcmp(name, "end") == 0 ? 2 : 1);
        (void)snprintf(text, sizeof text, "\n| `%s` | ", name);
        if (i < INSPECT_KEYS - 1)
            assert_non_null(row = strstr(row, text));
    }
}

TRACE_TEST(pinned_host_memory_is_not_live_on_the_card)
{
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(inspect_close) struct inspect inspect;
    assert_ok(trace_rig_text(*state,
                             "# allocrig-trace 1\na,0,100\na,1,400,space=pinned\na,2,200\nf,1\n"
                             "f,0\na,3,300\nm,step\n",
                             &source, &test_error));
    assert_ok(inspect_trace(source, &inspect, &test_error));
    assert_int_equal(inspect.peak_live_bytes, 500);
    assert_int_equal(inspect.peak_pinned_bytes, 400);
    assert_int_equal(inspect.steps[0].live_bytes, 500);
    assert_int_equal(source->info.peak_card_bytes, 500);
    assert_int_equal(source->info.peak_live_bytes, 700);
}

TRACE_TEST(statistics_of_a_trace)
{
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(inspect_close) struct inspect inspect;
    assert_ok(trace_rig_text(*state, steps, &source, &test_error));
    assert_ok(inspect_trace(source, &inspect, &test_error));
    assert_int_equal(inspect.by_kind[TRACE_ALLOC], 4);
    assert_int_equal(inspect.by_kind[TRACE_FREE_REQUESTED], 2);
    assert_int_equal(inspect.sizes[7].blocks, 1);  /* 100 */
    assert_int_equal(inspect.sizes[9].bytes, 700); /* 300 and 400 */
    assert_int_equal(inspect_bin_from(9), 256);
    assert_int_equal(inspect.free_requested_blocks, 3);
    assert_int_equal(inspect.lifetimes[0].blocks, 2);  /* 1 and 3: no request in between */
    assert_int_equal(inspect.lifetimes[1].bytes, 300); /* 2: one */
    assert_int_equal(inspect.kept_blocks, 1);
    assert_int_equal(inspect.kept_bytes, 100);
    assert_int_equal(inspect.peak_live_bytes, 800);
    assert_int_equal(inspect.peak_event, 11);
    assert_int_equal(inspect.peak_live_blocks, 3);
    assert_int_equal(inspect.largest_bytes, 400);
    assert_int_equal(inspect.kernel_ns, 11);
    assert_int_equal(inspect.duration_ns, 50);
    assert_int_equal(inspect.keys[0], 1);
    assert_int_equal(inspect.stream_count, 2);
    assert_int_equal(inspect.streams[0].bytes, 400);
    assert_int_equal(inspect.streams[0].uses, 1);
    assert_int_equal(inspect.streams[0].kernel_ns, 5); /* a use by a stream is no time of it */
    assert_int_equal(inspect.streams[0].kernels, 1);
    assert_int_equal(inspect.streams[1].kernel_ns, 6);
    assert_int_equal(inspect.step_count, 2);
    assert_int_equal(inspect.steps[0].events, 11);
    assert_int_equal(inspect.steps[0].live_bytes, 400);
    assert_int_equal(inspect.steps[0].peak_live_bytes, 400);
    assert_int_equal(inspect.steps[1].peak_live_bytes, 800);
    assert_int_equal(inspect.steps[1].requests, 1);
}
