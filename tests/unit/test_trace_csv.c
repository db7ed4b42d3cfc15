/* Recorded CSVs: the shipped recordings compared with their own statistics, and small invented
 * ones. */
#include <jansson.h>

#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"

static const char *const recordings[] = {
    "dlrm_embedding.default",
    "dlrm_embedding.expandable",
    "gpt2_train.default",
    "gpt2_train.expandable",
    "graphs.default",
    "graphs.expandable",
    "lora_recompute.default",
    "lora_recompute.limit5",
    "resnet50_train.default",
    "resnet50_train.expandable",
    "side_streams.default",
    "streams_prefetch.default",
    "streams_prefetch.expandable",
    "tape_small.default",
    "tape_small.expandable",
};

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Counts of a pass in addition to those of info. */
struct tally {
    uint64_t free_requests, completions, whole, kernel_ns, places, segments, segment_notes;
};

static struct tally tally_of(struct trace_source *source)
{
    struct tally tally = {0};
    const struct trace_event *events;
    size_t count;
    while (trace_next(source, &events, &count, &test_error) == AR_OK && count)
        for (size_t i = 0; i < count; i++) {
            const struct trace_event *event = &events[i];
            const char *text = event->kind == TRACE_NOTE ? trace_text_of(source, event->value) : "";
            tally.free_requests += event->kind == TRACE_FREE_REQUESTED;
            tally.completions +=
                event->kind == TRACE_FREE_COMPLETED && !(event->flags & TRACE_WHOLE);
            tally.whole += event->kind == TRACE_FREE_COMPLETED && event->flags & TRACE_WHOLE;
            tally.kernel_ns += event->kind == TRACE_KERNEL ? event->value : 0;
            tally.places += !strncmp(text, "alloc,", 6);
            tally.segment_notes += !strncmp(text, "segment_", 8);
            tally.segments +=
                !strncmp(text, "segment_alloc,", 14) || !strncmp(text, "segment_map,", 12);
        }
    return tally;
}

static void check_recording(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "workloads/data/%s.json", name);
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    const json_t *stats = json_object_get(json, "stats");
    (void)snprintf(path, sizeof path, "workloads/data/%s.csv.gz", name);
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    const struct trace_info *info = &source->info;
    struct tally tally = tally_of(source);
    assert_int_equal(info->allocs, number(stats, "allocation.all.allocated"));
    assert_int_equal(info->frees, number(stats, "allocation.all.freed"));
    assert_int_equal(tally.places, info->allocs);
    assert_int_equal(tally.segments, number(stats, "num_device_alloc"));
    assert_int_equal(info->allocs + info->frees + tally.whole + tally.completions +
                         tally.segment_notes,
                     number(json, "events"));
    assert_int_equal(tally.whole + tally.free_requests, info->frees);
    assert_int_equal(info->kernels, number(json, "kernels"));
    assert_int_equal(tally.kernel_ns, number(json, "kernel_ns"));
    assert_int_equal(info->steps, number(json, "steps"));
    assert_int_equal(info->limit_bytes, number(json, "limit"));
    assert_string_equal(info->conf, json_string_value(json_object_get(json, "conf")));
    assert_string_equal(info->recorder, "torch 2.11.0+cu130");
    assert_string_equal(info->card, "NVIDIA H100 80GB HBM3");
    assert_true(info->complete && info->has_times);
    /* The allocator counts blocks, which are a little larger than the requests. */
    uint64_t granted = number(stats, "allocated_bytes.all.peak");
    assert_in_range(info->peak_live_bytes, granted / 100 * 99, granted);
    json_decref(json);
}

TRACE_TEST(recordings_agree_with_their_statistics)
{
    for (size_t i = 0; i < COUNT(recordings); i++)
        check_recording(recordings[i]);
}

TRACE_TEST(names_come_from_files)
{
    struct trace_source *source = trace_rig_source("workloads/data/graphs.default.csv.gz");
    assert_string_equal(source->info.name, "graphs");
    trace_close(source);
    source = trace_rig_source("workloads/data/tape_small.expandable.csv.gz");
    assert_string_equal(source->info.name, "tape_small.expandable");
    trace_close(source);
}

static uint32_t streams_of(const char *path)
{
    struct trace_source *source = trace_rig_source(path);
    uint32_t streams = source->info.streams;
    trace_close(source);
    return streams;
}

/* Streams of kernels are the allocator's if the .json says so; the others come after them:
 * gpt2_train has one of its own and kernels on three. */
TRACE_TEST(kernel_streams_are_mapped)
{
    assert_int_equal(streams_of("workloads/data/tape_small.default.csv.gz"), 1);
    assert_int_equal(streams_of("workloads/data/gpt2_train.default.csv.gz"), 3);
    assert_int_equal(streams_of("workloads/data/side_streams.default.csv.gz"), 4);
    assert_int_equal(streams_of("workloads/data/streams_prefetch.default.csv.gz"), 2);
}

static uint64_t requests_in_pool(struct trace_source *source, uint32_t pool)
{
    const struct trace_event *events;
    size_t count;
    uint64_t found = 0;
    while (trace_next(source, &events, &count, &test_error) == AR_OK && count)
        for (size_t i = 0; i < count; i++)
            found += events[i].kind == TRACE_ALLOC &&
                     trace_attributes_of(source, events[i].attributes)->pool == pool;
    return found;
}

/* graphs: one stream captures all graphs into one private pool; the requests of the captures
 * are in it, the others are not. */
static void check_private_pools(const char *path, uint64_t requests)
{
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    uint64_t in_pool = requests_in_pool(source, 1);
    assert_ok(trace_rewind(source, &test_error));
    assert_int_equal(in_pool + requests_in_pool(source, 0), source->info.allocs);
    assert_int_equal(in_pool, requests);
}

TRACE_TEST(private_pools_are_known)
{
    check_private_pools("workloads/data/graphs.default.csv.gz", 32);
    /* Inferred: the 7 large ones fit the common pool too, which has no large range there. */
    check_private_pools("workloads/data/graphs.expandable.csv.gz", 25);
}

#define HEAD "action,addr,size,stream,time_us\n"

/* The rows of a block of that section become its events. */
static void converts(struct trace_rig *rig, const char *section)
{
    struct cases block = {0};
    const char *rows = cases_text(&block, "trace_csv", section), *wanted = block.field[1];
    char text[1024], full[1024];
    CLOSED(close_trace) struct trace_source *source;
    (void)snprintf(text, sizeof text, HEAD "%s", rows);
    assert_ok(trace_rig_text(rig, text, &source, &test_error));
    FREED char *got = trace_rig_print(rig, source);
    (void)snprintf(full, sizeof full, "# allocrig-trace 1\n# name: 0\n# recorder: torch\n%s",
                   wanted);
    assert_string_equal(got, full);
}

TRACE_TEST(rows_become_events)
{
    converts(*state, "rows_become_events");
}

TRACE_TEST(requests_that_failed)
{
    converts(*state, "requests_that_failed");
}

TRACE_TEST(recordings_that_begin_in_the_middle)
{
    converts(*state, "recordings_that_begin_in_the_middle");
}

TRACE_TEST(bad_rows_are_refused)
{
    struct trace_rig *rig = *state;
    EACH_ROW (row, 2) {
        char text[512];
        struct trace_source *source;
        (void)snprintf(text, sizeof text, HEAD "%s", row.field[0]);
        assert_int_not_equal(trace_rig_text(rig, text, &source, &test_error), AR_OK);
        size_t length = strlen(rig->path[0]);
        if (strncmp(test_error.text + length, row.field[1], strlen(row.field[1])) != 0)
            fail_msg("\"%s\" begins not with \"%s\"", test_error.text, row.field[1]);
    }
}

TRACE_TEST(sidecars_are_checked)
{
    struct trace_rig *rig = *state;
    struct trace_source *source;
    char csv[128], json[128];
    (void)snprintf(csv, sizeof csv, "%s/x.csv", rig->folder);
    (void)snprintf(json, sizeof json, "%s/x.json", rig->folder);
    trace_rig_write(csv, HEAD "alloc,1,1,0,1\n", strlen(HEAD) + 14);
    trace_rig_write(json, "{\"torch\": \"9\", \"failed\": \"why\", \"limit\": 5}", 43);
    source = trace_rig_source(csv);
    assert_string_equal(source->info.recorder, "torch 9");
    assert_string_equal(source->info.name, "x");
    assert_int_equal(source->info.limit_bytes, 5);
    assert_false(source->info.complete);
    trace_close(source);
    /* Of a key that is there twice the last counts. */
    trace_rig_write(json, "{\"limit\": 5, \"limit\": 7}", 24);
    source = trace_rig_source(csv);
    assert_int_equal(source->info.limit_bytes, 7);
    trace_close(source);
    static const char *const bad[] = {"", "[]", "{\"limit\": -1}", "{\"conf\": 3}",
                                      "{\"kernel_stream_of_stream\": {\"x\": 1}}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        trace_rig_write(json, bad[i], strlen(bad[i]));
        assert_says(trace_open(csv, &source, &test_error), AR_FORMAT, "x.json (beside ");
    }
}
