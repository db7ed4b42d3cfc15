/* Parts of a trace, merged traces, and the statistics of a trace. */
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

/* The events of a section, which may be `steps`, filtered, are those behind its arrow. */
static void filtered(void *rig, const char *section, const struct trace_filter_options *options)
{
    struct cases block = {0};
    char from[1024], to[1024];
    (void)cases_text(&block, __FILE__, section);
    snprintf(from, sizeof from, HEAD "%s", block.field[0]);
    snprintf(to, sizeof to, HEAD "%s", block.field[1]);
    trace_rig_filtered(rig, strcmp(block.field[0], "steps\n") == 0 ? steps : from, options, to);
}

TRACE_TEST(no_options_change_nothing)
{
    trace_rig_filtered(*state, steps, &(struct trace_filter_options){0}, steps);
}

TRACE_TEST(steps_begin_with_the_live_blocks)
{
    filtered(*state, __func__, &(struct trace_filter_options){.first_step = 2, .last_step = 2});
    filtered(*state, "steps_begin_with_the_live_blocks_2",
             &(struct trace_filter_options){.first_step = 1, .last_step = 1});
}

/* A part of a recording begins with the state: segments, ranges with their pages, blocks with
 * their rests, pending blocks. */
TRACE_TEST(parts_of_a_recording_begin_with_its_state)
{
    const struct trace_filter_options second = {.first_step = 2, .last_step = 2};
    filtered(*state, __func__, &second);
    filtered(*state, "parts_of_a_recording_begin_with_its_state_2", &second);
}

TRACE_TEST(streams_sizes_and_kinds)
{
    const uint32_t one = 1;
    filtered(*state, __func__, &(struct trace_filter_options){.streams = &one, .stream_count = 1});
    filtered(*state, "streams_sizes_and_kinds_2", &(struct trace_filter_options){.min_bytes = 300});
    struct trace_filter_options options = {0};
    assert_ok(trace_filter_kinds("a,f", &options.kinds, &test_error));
    filtered(*state, "streams_sizes_and_kinds_3", &options);
    assert_says(trace_filter_kinds("a,z", &options.kinds, &test_error), AR_INVALID, "\"z\"");
}

/* Times and marks are of no device: each device's part has them. */
TRACE_TEST(a_device_keeps_times_and_steps)
{
    static const char both[] = HEAD "a,0,100\na,1,200,device=1\nt,10\nk,0,5\nk,0,7,device=1\n"
                                    "m,step\nt,20\nf,0\nf,1\nt,30\n";
    const uint32_t one = 1, zero = 0;
    trace_rig_filtered(*state, both, &(struct trace_filter_options){.device = &one},
                       HEAD "a,0,200,device=1\nt,10\nk,0,7,device=1\nm,step\nt,20\nf,0\nt,30\n");
    trace_rig_filtered(*state, both, &(struct trace_filter_options){.device = &zero},
                       HEAD "a,0,100\nt,10\nk,0,5\nm,step\nt,20\nf,0\nt,30\n");
}

/* What a program changed before a part holds in the part. */
TRACE_TEST(changes_of_the_allocator_are_kept)
{
    static const char text[] = HEAD "!,settings,max_split_size_mb:80\na,0,100\n!,alloc,4096\n"
                                    "m,step\na,1,200,device=1\n!,alloc,8192\n!,limit,5\nf,1\n"
                                    "m,step\nf,0\n";
    const uint32_t one = 1;
    trace_rig_filtered(*state, text,
                       &(struct trace_filter_options){.min_bytes = 150, .device = &one},
                       HEAD "!,settings,max_split_size_mb:80\nm,step\na,0,200,device=1\n"
                            "!,limit,5\nf,0\nm,step\n");
}

/* Each repetition begins with the settings and the limit of the start. */
TRACE_TEST(a_repetition_begins_with_the_settings_of_the_start)
{
    const struct trace_filter_options twice = {.repeat = 2};
    trace_rig_filtered(*state,
                       HEAD "# conf: a:1\n# limit: 9\na,0,8\n!,settings,expandable_segments:True\n"
                            "!,limit,7\n",
                       &twice,
                       HEAD "# conf: a:1\n# limit: 9\na,0,8\n!,settings,expandable_segments:True\n"
                            "!,limit,7\nf,0\n!,settings,a:1,expandable_segments:False\n!,limit,9\n"
                            "a,1,8\n!,settings,expandable_segments:True\n!,limit,7\n");
    trace_rig_filtered(*state, HEAD "!,settings,b:2\na,0,8\n", &twice,
                       HEAD "!,settings,b:2\na,0,8\nf,0\n!,settings,\n!,settings,b:2\na,1,8\n");
    trace_rig_filtered(*state, HEAD "a,0,8\n!,limit,7\n", &twice,
                       HEAD "a,0,8\n!,limit,7\nf,0\n!,limit,0\na,1,8\n!,limit,7\n");
}

/* A part of a recording begins with all changes before it: each resets some settings only. */
TRACE_TEST(a_part_of_a_recording_begins_with_the_changes_before_it)
{
    static const char text[] =
        HEAD "!,settings,expandable_segments:True\na,0,100\n!,segment_alloc,4096,2097152,0\n"
             "!,alloc,4096\n!,limit,7\nm,step\n!,settings,max_split_size_mb:80\n!,limit,5\n"
             "m,step\n!,limit,9\nf,0\nm,step\n!,limit,3\n";
    trace_rig_filtered(
        *state, text, &(struct trace_filter_options){.first_step = 3, .last_step = 3},
        HEAD "!,settings,expandable_segments:True\n!,limit,7\n!,settings,max_split_size_mb:80\n"
             "!,limit,5\n!,segment,4096,2097152,0\n!,block,4096,512,0\na,0,100,initial=yes\n"
             "!,limit,9\nf,0\nm,step\n");
}

/* A change is of one process, and a merge has one allocator. */
TRACE_TEST(a_merge_refuses_changes_of_the_allocator)
{
    struct trace_rig *rig = *state;
    static const char *const texts[] = {HEAD "a,0,1\nf,0\n", HEAD "a,0,1\n!,limit,5\nf,0\n"};
    for (size_t changed = 0; changed < 2; changed++) {
        struct trace_source *sources[2] = {NULL, NULL}, *merge = NULL;
        for (size_t i = 0; i < 2; i++) {
            const char *text = texts[i == changed];
            trace_rig_write(rig->path[i], text, strlen(text));
            assert_ok(trace_open(rig->path[i], &sources[i], &test_error));
        }
        assert_says(trace_merge(sources, 2, &merge, &test_error), AR_INVALID,
                    "x: event 1: the note \"limit,5\" is on the allocator of one process");
    }
}

/* Only these two verbs need a value. */
TRACE_TEST(a_change_without_a_value_is_refused)
{
    struct trace_source *source = NULL;
    assert_says(trace_rig_text(*state, HEAD "!,settings\na,0,1\n", &source, &test_error),
                AR_INVALID, "the note settings has no value: write !,settings,CONF");
    assert_says(trace_rig_text(*state, HEAD "!,limit\na,0,1\n", &source, &test_error), AR_INVALID,
                "the note limit has no value: write !,limit,BYTES");
    trace_rig_filtered(*state, HEAD "!,setting\n!,limits\n!,settings,\na,0,1\n",
                       &(struct trace_filter_options){0},
                       HEAD "!,setting\n!,limits\n!,settings,\na,0,1\n");
}

/* A merge is on the card of the first. */
TRACE_TEST(a_merge_has_the_card_of_the_first)
{
    struct trace_rig *rig = *state;
    struct trace_source *sources[2] = {NULL, NULL}, *merge = NULL;
    static const char *const texts[] = {HEAD "# card: Some card\n# capacity: 1000000\na,0,1\nf,0\n",
                                        HEAD
                                        "# card: Another card\n# capacity: 2000000\na,0,1\nf,0\n"};
    for (size_t i = 0; i < 2; i++) {
        trace_rig_write(rig->path[i], texts[i], strlen(texts[i]));
        assert_ok(trace_open(rig->path[i], &sources[i], &test_error));
    }
    assert_ok(trace_merge(sources, 2, &merge, &test_error));
    assert_string_equal(merge->info.card, "Some card");
    assert_int_equal(merge->info.capacity_bytes, 1000000);
    trace_close(merge);
}

TRACE_TEST(frees_at_once)
{
    struct trace_filter_options options = {.at_once = true};
    assert_ok(trace_filter_kinds("af", &options.kinds, &test_error));
    filtered(*state, __func__, &options);
}

TRACE_TEST(waits_need_their_events)
{
    const uint32_t zero = 0;
    filtered(*state, __func__, &(struct trace_filter_options){.streams = &zero, .stream_count = 1});
}

TRACE_TEST(repeats_end_with_nothing_left)
{
    filtered(*state, __func__, &(struct trace_filter_options){.repeat = 2});
    /* If the trace has free requests only, none completes in between. */
    filtered(*state, "repeats_end_with_nothing_left_2",
             &(struct trace_filter_options){.repeat = 2});
}

TRACE_TEST(steps_as_written)
{
    struct trace_filter_options o;
    assert_int_equal(trace_filter_steps("3-5", &o, NULL), AR_OK);
    assert_true(o.first_step == 3 && o.last_step == 5);
    assert_int_equal(trace_filter_steps("7", &o, NULL), AR_OK);
    assert_true(o.first_step == 7 && o.last_step == 7);
    assert_int_equal(trace_filter_steps("2-", &o, NULL), AR_OK);
    assert_true(o.first_step == 2 && o.last_step == UINT64_MAX);
    static const char *const bad[] = {"", "-", "0", "5-3", "-2", "a-b", "1-2-3", "1 - 2"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(trace_filter_steps(bad[i], &o, NULL), AR_INVALID);
}

TRACE_TEST(a_filter_that_leaves_nothing_is_refused)
{
    struct trace_source *source = NULL, *filter = NULL;
    assert_ok(trace_rig_text(*state, steps, &source, &test_error));
    assert_says(trace_filter(source,
                             &(struct trace_filter_options){.first_step = 9, .last_step = 9},
                             &filter, &test_error),
                AR_INVALID, "x: the filter leaves no events: the trace has 2 steps");
}

static void merged_to(struct trace_rig *rig, const char *left, const char *right,
                      const char *wanted)
{
    struct trace_source *sources[2] = {NULL, NULL}, *merge = NULL;
    trace_rig_write(rig->path[1], left, strlen(left));
    trace_rig_write(rig->path[2], right, strlen(right));
    if (trace_open(rig->path[1], &sources[0], &test_error) != AR_OK ||
        trace_open(rig->path[2], &sources[1], &test_error) != AR_OK ||
        trace_merge(sources, 2, &merge, &test_error) != AR_OK)
        fail_msg("%s", test_error.text);
    FREED char *got = trace_rig_print(rig, merge);
    assert_string_equal(got, wanted);
    trace_close(merge);
}

TRACE_TEST(merges_go_by_time_or_share)
{
    merged_to(*state, HEAD "a,0,1\nt,10\ne,3,1\nf,0\nt,30\nm,step\n",
              HEAD "a,0,2\nt,20\nk,0,7\nf,0\nt,30\nm,step\n",
              "# allocrig-trace 1\n# name: x+x\na,0,1,tenant=0\na,1,2,2,tenant=1\nt,10\n"
              "e,6,1,tenant=0\nf,0,tenant=0\nt,20\nk,2,7,tenant=1\nf,1,tenant=1\nt,30\n"
              "m,step,tenant=0\nm,step,tenant=1\n");
    merged_to(*state, HEAD "a,0,1\nf,0\n", HEAD "!,x\na,0,2\nr,0\na,1,3\nr,1\n",
              "# allocrig-trace 1\n# name: x+x\n# let-go: final\na,0,1,tenant=0\na,1,2,1,tenant=1\n"
              "f,0,tenant=0\nr,1,tenant=1\na,2,3,1,tenant=1\nr,2,tenant=1\n");
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
