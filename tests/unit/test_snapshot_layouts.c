/* Every layout of PyTorch's memory snapshots, made from runs of policy `torch`: each
 * is read, and each address and the state at the end come out as they went in. */
#include "tests/support/amount.h"
#include "tests/support/snapshot_layouts.h"
#include "tests/support/snapshot_runs.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/import_report.h"
#include "workloads/formats/formats.h"

static const char *const forms[] = {"pickle of C++", "pickle", "JSON"};

/* Every layout that has these keys, in every form, complete and with its head missing. Under a
 * sanitizer a third: each layout in each form, with another part missing. */
static void check_layouts(const struct snapshot_image *image, unsigned keys)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (size_t i = 0; i < snapshot_layout_count; i++)
        for (unsigned form = SNAPSHOT_PICKLE_2; form <= SNAPSHOT_JSON; form++)
            for (unsigned part = 0; part < 3; part++) {
                const struct snapshot_layout *layout = &snapshot_layouts[i];
                if ((layout->keys & keys) != keys ||
                    (i + form + part) % (4 - test_amount(3, 3)) != 0)
                    continue;
                const struct snapshot_layout_options options = {
                    .form = (enum snapshot_form)form, .dropped = part * image->entry_count / 3};
                char what[120];
                snprintf(what, sizeof what, "layout %s, %s, %zu entries dropped", layout->name,
                         forms[form], options.dropped);
                snapshot_layout_write(rig.path[0], layout, image, &options);
                CLOSED(close_trace)
                struct trace_source *source = snapshot_open(rig.path[0], NULL, what);
                snapshot_check_agrees(source, what);
                snapshot_check_comes_back(source, rig.path[1], what);
            }
}

static void check_run(const char *policy, const char *workload, unsigned keys)
{
    CLOSED(run_snapshot_close) struct run_snapshot run;
    snapshot_run(&run, policy, workload);
    check_layouts(&run.image, keys);
}

TEST(every_layout_of_segments_is_met)
{
    check_run("torch", "gradient_tape:steps=4", 0);
    check_run("torch", "workloads/data/side_streams.default.csv.gz", 0);
}

/* There are such segments since the layout that has the addresses of blocks. */
TEST(every_layout_of_growing_segments_is_met)
{
    check_run("torch:expandable_segments=true", "gradient_tape:steps=4", LAYOUT_ADDRESSES);
}

TEST(private_pools_are_met)
{
    check_run("torch", "workloads/data/graphs.default.csv.gz", 0);
}

/* The second device repeats the events of the first, at the same addresses. */
static void double_image(struct snapshot_image *image)
{
    const size_t entries = image->entry_count, blocks = image->block_count;
    const size_t segments = image->segment_count;
    for (size_t i = 0; i < entries; i++) {
        struct snapshot_entry entry = image->entries[i];
        entry.device = 1;
        assert_ok(snapshot_add_entry(image, &entry, &test_error));
    }
    for (size_t i = 0; i < blocks; i++) {
        struct snapshot_block block = image->blocks[i];
        block.device = 1;
        assert_ok(snapshot_add_block(image, &block, &test_error));
    }
    image->segments = realloc(image->segments, 2 * segments * sizeof *image->segments);
    assert_non_null(image->segments);
    for (size_t i = 0; i < segments; i++) {
        struct snapshot_segment *segment = &image->segments[segments + i];
        *segment = image->segments[i];
        segment->device = 1;
        segment->first_block += blocks;
    }
    image->segment_count = image->segment_room = 2 * segments;
}

TEST(each_of_two_devices_is_met)
{
    CLOSED(run_snapshot_close) struct run_snapshot run;
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    snapshot_run(&run, "torch", "workloads/data/side_streams.default.csv.gz");
    double_image(&run.image);
    for (size_t i = 0; i < snapshot_layout_count; i++) {
        const struct snapshot_layout_options options = {.form = SNAPSHOT_PICKLE_4};
        snapshot_layout_write(rig.path[0], &snapshot_layouts[i], &run.image, &options);
        for (uint32_t device = 0; device < 2; device++) {
            CLOSED(close_trace)
            struct trace_source *source =
                snapshot_open(rig.path[0], &device, snapshot_layouts[i].name);
            snapshot_check_agrees(source, snapshot_layouts[i].name);
        }
    }
}

/* ---- marks ----------------------------------------------------------------------------- */

/* All lines but the header's. The caller frees them. */
static char *print_events(struct trace_rig *rig, struct trace_source *source)
{
    char *text = trace_rig_print(rig, source);
    const char *at = text;
    while (*at == '#')
        at = strchr(at, '\n') + 1;
    memmove(text, at, strlen(at) + 1);
    return text;
}

static size_t count_lines(const char *text, const char *line)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += strlen(line))
        count += at == text || at[-1] == '\n';
    return count;
}

/* Marks of every kind are read back from a snapshot unchanged and in order, also without times. */
TEST(marks_come_back)
{
    static const char text[] =
        "# allocrig-trace 1\n# recorder: torch 2.11.0\nt,0\n!,segment_alloc,2097152,2097152,0\n"
        "m,fwd,stage=start\na,0,1024\n!,alloc,2097152\nm,fwd,stage=end\nm,step\nm,mine\n"
        "m,other,device=1,stage=x\nf,0\nm,step,name=ProfilerStep#3\n"
        "m,step_begins,name=step,stage=start\nt,5000\na,1,512\n!,alloc,2097152\n"
        "!,annotate,2097152,packed\nm,last\n";
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    struct trace_source *source;
    assert_ok(trace_rig_text(&rig, text, &source, &test_error));
    assert_ok(format_write(&format_writer_snapshot, source, rig.path[1], false, &test_error));
    FREED char *wanted = print_events(&rig, source);
    trace_close(source);
    source = snapshot_open(rig.path[1], NULL, "marks");
    FREED char *got = print_events(&rig, source);
    char *end = strstr(got, "!,final");
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(got, wanted);
    trace_close(source);
}

/* PyTorch's annotations tell their times alone. */
TEST(annotations_stand_by_their_times)
{
    CLOSED(run_snapshot_close) struct run_snapshot run;
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    snapshot_run(&run, "torch", "gradient_tape:steps=4");
    assert_int_equal(run.image.annotation_count, 4);
    for (size_t i = 0; i < snapshot_layout_count; i++) {
        const struct snapshot_layout *layout = &snapshot_layouts[i];
        const struct snapshot_layout_options options = {.form = SNAPSHOT_PICKLE_4};
        snapshot_layout_write(rig.path[0], layout, &run.image, &options);
        CLOSED(close_trace)
        struct trace_source *source = snapshot_open(rig.path[0], NULL, layout->name);
        FREED char *text = print_events(&rig, source);
        bool has = layout->keys & LAYOUT_ANNOTATIONS && !(layout->keys & LAYOUT_NO_HISTORY);
        assert_int_equal(count_lines(text, "m,step\n"), has ? 4 : 0);
        assert_int_equal(source->info.steps, has ? 4 : 0);
    }
}

/* Marks as PyTorch writes them: names with blanks, both stages, one older than the history. */
TEST(annotations_become_marks)
{
    struct cases block = {0};
    const char *text = cases_text(&block, "snapshot_layouts", "annotations_become_marks"),
               *wanted = block.field[1];
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    trace_rig_write(rig.path[0], text, strlen(text));
    CLOSED(close_trace)
    struct trace_source *source = snapshot_open(rig.path[0], NULL, "annotations");
    FREED char *got = print_events(&rig, source);
    got[strstr(got, "!,final") - got + 7] = '\0';
    assert_string_equal(got, wanted);
    assert_int_equal(source->report->left_out, 1);
    assert_int_equal(source->report->guess_count, 1);
    assert_string_equal(source->report->guesses[0],
                        "1 annotations are older than the history: marks at its beginning");
}

/* From 2.14 on a snapshot may have the history of pinned host memory. */
TEST(pinned_memory_is_merged)
{
    struct cases block = {0};
    const char *text = cases_text(&block, "snapshot_layouts", "pinned_memory_is_merged"),
               *both = block.field[1];
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    trace_rig_write(rig.path[0], text, strlen(text));
    struct trace_source *source = snapshot_open(rig.path[0], NULL, "pinned");
    char *got = print_events(&rig, source);
    assert_string_equal(got, both);
    assert_int_equal(source->info.streams, 1);
    assert_int_equal(source->report->double_frees, 1); /* of a block before the history */
    free(got);
    trace_close(source);
    /* Pinned memory alone: record_cuda=False. */
    char only[2048];
    snprintf(only, sizeof only, "{\"segments\": [], \"device_traces\": [[]], %s",
             strstr(text, "\"host_segments\""));
    trace_rig_write(rig.path[0], only, strlen(only));
    source = snapshot_open(rig.path[0], NULL, "pinned");
    assert_int_equal(source->info.allocs, 2);
    trace_close(source);
}

/* Pools of histories that name none, and what follows from the rules of a pool. */
TEST(pools_are_inferred)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (struct cases block = {0}; cases_block(&block, "snapshot_layouts", __func__);) {
        trace_rig_write(rig.path[0], block.field[0], strlen(block.field[0]));
        CLOSED(close_trace) struct trace_source *source = snapshot_open(rig.path[0], NULL, "pools");
        FREED char *got = print_events(&rig, source);
        assert_string_equal(got, block.field[1]);
    }
}

/* The notes of a trace on changes of the allocator, each with the number of its event. */
static void notes_of(struct trace_source *source, char *text, size_t room)
{
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    unsigned number = 0;
    *text = '\0';
    for (; (event = trace_read(&cursor, &status, &test_error)) != NULL; number++)
        if (trace_is_change(event))
            snprintf(text + strlen(text), room - strlen(text), "%u %s; ", number,
                     trace_text_of(source, event->value));
}

#define MADE(action, address)                                                                      \
    "{\"action\": \"" action "\", \"addr\": " address ", \"size\": 20971520, \"stream\": 0}, "     \
    "{\"action\": \"alloc\", \"addr\": " address ", \"size\": 20971520, \"stream\": 0}"
#define SWITCHING                                                                                  \
    "{\"segments\": [], \"device_traces\": [[" MADE("segment_alloc", "134217728") ", " MADE(       \
        "segment_map", "4294967296") ", " MADE("segment_alloc",                                    \
                                               "167772160") "]], "                                 \
                                                            "\"allocator_settings\": "             \
                                                            "{\"PYTORCH_CUDA_ALLOC_CONF\": "       \
                                                            "\"max_split_size_mb:80\"}"

/* A program that makes segments and maps pages switched in between, or says what it changed. */
TEST(changes_of_settings_are_notes)
{
    static const char *const texts[] = {
        SWITCHING "}",
        SWITCHING ", \"external_annotations\": ["
                  "{\"stage\": \"START\", \"name\": \"allocator settings a:1 -> x\", \"entry\": 2},"
                  "{\"stage\": \"END\", \"name\": \"allocator settings a:1 -> x\", \"entry\": 2},"
                  "{\"stage\": \"START\", \"name\": \"allocator limit 77\", \"entry\": 4}]}"};
    static const char *const notes[] = {
        "4 settings,max_split_size_mb:80,expandable_segments:True; "
        "8 settings,max_split_size_mb:80,expandable_segments:False; ",
        "4 settings,x; 8 limit,77; "};
    static const char *const confs[] = {"max_split_size_mb:80,expandable_segments:False", ""};
    for (size_t i = 0; i < COUNT(texts); i++) {
        char found[512];
        CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
        trace_rig_write(rig.path[0], texts[i], strlen(texts[i]));
        CLOSED(close_trace) struct trace_source *source = snapshot_open(rig.path[0], NULL, "notes");
        notes_of(source, found, sizeof found);
        assert_string_equal(found, notes[i]);
        assert_string_equal(source->info.conf, confs[i]);
    }
}

/* A change that a note cannot say as it was written is a mark, and changes nothing. */
static void check_stays_a_mark(const char *name)
{
    char text[8192], found[512], json[2048];
    size_t used = 0;
    for (const char *at = name; *at; at++) /* %: a NUL */
        used +=
            (size_t)snprintf(json + used, sizeof json - used, *at == '%' ? "\\u0000" : "%c", *at);
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    (void)snprintf(text, sizeof text,
                   "{\"segments\": [], \"device_traces\": [[" MADE(
                       "segment_alloc", "134217728") "]], \"external_annotations\": ["
                                                     "{\"stage\": \"START\", \"name\": \"%s\"},"
                                                     "{\"stage\": \"END\", \"name\": \"%s\"}]}",
                   json, json);
    trace_rig_write(rig.path[0], text, strlen(text));
    CLOSED(close_trace) struct trace_source *source = snapshot_open(rig.path[0], NULL, name);
    notes_of(source, found, sizeof found);
    assert_string_equal(found, "");
    assert_string_equal(source->info.conf, "");
    assert_ok(trace_rewind(source, &test_error));
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    size_t marks = 0;
    while ((event = trace_read(&cursor, &status, &test_error)) != NULL)
        marks += event->kind == TRACE_MARK;
    assert_int_equal(marks, 2);
}

TEST(what_is_no_change_of_settings_stays_a_mark)
{
    char name[1024];
    check_stays_a_mark("allocator settings a");
    check_stays_a_mark("allocator settings ");
    check_stays_a_mark("allocator settings a:1 -> b:1%c");
    check_stays_a_mark("allocator settings a:1%c -> b:1");
    check_stays_a_mark("allocator limit many");
    check_stays_a_mark("allocator limit ");
    check_stays_a_mark("allocator limit 7%");
    (void)snprintf(name, sizeof name, "allocator settings a:1 -> b:%0600d", 1);
    check_stays_a_mark(name);
    (void)snprintf(name, sizeof name, "allocator settings a:%0600d -> b:1", 1);
    check_stays_a_mark(name);
}

/* A history without completions: a free is completed when it is requested. */
TEST(frees_without_completions_are_met)
{
    CLOSED(run_snapshot_close) struct run_snapshot run;
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    snapshot_run(&run, "torch", "gradient_tape:steps=4");
    for (size_t i = 0; i < snapshot_layout_count; i++)
        for (size_t part = 0; part < 3; part++) {
            const struct snapshot_layout_options options = {.form = SNAPSHOT_PICKLE_4,
                                                            .dropped =
                                                                part * run.image.entry_count / 4,
                                                            .no_completions = true};
            snapshot_layout_write(rig.path[0], &snapshot_layouts[i], &run.image, &options);
            CLOSED(close_trace)
            struct trace_source *source =
                snapshot_open(rig.path[0], NULL, snapshot_layouts[i].name);
            snapshot_check_agrees(source, snapshot_layouts[i].name);
        }
}

/* Settings are read as PyTorch reads them; an unknown one is reported and left out. */
TEST(settings_are_taken_one_by_one)
{
    static const char text[] =
        "{\"segments\": [{\"address\": 2097152, \"total_size\": 2097152, \"blocks\": []}], "
        "\"device_traces\": [[]], \"allocator_settings\": {\"PYTORCH_HIP_ALLOC_CONF\": "
        "\" max_split_size_mb : 64 , of_tomorrow:[1,2],"
        "roundup_power2_divisions:[256:1,>:4],pinned_max_cached_size_mb:64 \", "
        "\"garbage_collection_threshold\": 0.5}}";
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    trace_rig_write(rig.path[0], text, sizeof text - 1);
    CLOSED(close_trace) struct trace_source *source = snapshot_open(rig.path[0], NULL, "settings");
    assert_string_equal(source->info.conf,
                        "max_split_size_mb:64,roundup_power2_divisions:[256:1,>:4],"
                        "pinned_max_cached_size_mb:64,garbage_collection_threshold:0.5");
    assert_int_equal(source->report->guess_count, 1);
    assert_string_equal(source->report->guesses[0],
                        "the setting of_tomorrow:[1,2] is not known: left out");
}

#define ENTRY(action, address, size, time)                                                         \
    "{\"action\": \"" action "\", \"addr\": " #address ", \"size\": " #size                        \
    ", \"stream\": 0, \"time_us\": " #time "}"
#define HISTORY(segments, entries)                                                                 \
    "{\"segments\": [" segments "], \"device_traces\": [[" entries "]]}"
#define EMPTY_SEGMENT "{\"address\": 2097152, \"total_size\": 0, \"blocks\": []}"

/* Small histories and the events that come of them; or the sentence that refuses them. */
TEST(odd_histories)
{
    static const struct {
        const char *text, *wanted, *guess;
    } cases[] = {
        {HISTORY(EMPTY_SEGMENT, ENTRY("alloc", 4096, 512, 5)), "t,0\na,0,512\n!,alloc,4096\n", ""},
        {HISTORY("", ENTRY("alloc", 4096, 512, 5) "," ENTRY("dance", 4096, 8,
                                                            6) "," ENTRY("leap", 4096, 8, 7)),
         "t,0\na,0,512\n!,alloc,4096\nt,1000\nt,2000\n",
         "2 entries of an action that is not known (dance): left out"},
        /* 2 GiB, a gap of 1.5 GiB that is less than what was mapped at once, 2 GiB: one range. */
        {HISTORY("", ENTRY("segment_unmap", 1073741824, 2147483648,
                           5) "," ENTRY("segment_unmap", 4831838208, 2147483648, 6)),
         "!,range,1073741824,0\n!,pages,1073741824,2147483648\n!,pages,4831838208,2147483648\n"
         "t,0\n!,segment_unmap,1073741824,2147483648,0\nt,1000\n"
         "!,segment_unmap,4831838208,2147483648,0\n",
         ""},
        {HISTORY("", ENTRY("alloc", 4096, 512, 5) "," ENTRY("alloc", 8192, 512, 1125899906842630)),
         NULL, "an entry is more than 35 years after the first"},
    };
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct trace_source *source = NULL;
        struct ar_error error = {""};
        trace_rig_write(rig.path[0], cases[i].text, strlen(cases[i].text));
        enum ar_status status = trace_open(rig.path[0], &source, &error);
        if (!cases[i].wanted) {
            assert_int_not_equal(status, AR_OK);
            assert_non_null(strstr(error.text, cases[i].guess));
            continue;
        }
        if (status)
            fail_msg("%s", error.text);
        char *got = print_events(&rig, source);
        assert_string_equal(got, cases[i].wanted);
        free(got);
        bool found = !cases[i].guess[0];
        for (size_t k = 0; k < source->report->guess_count; k++)
            found |= strcmp(source->report->guesses[k], cases[i].guess) == 0;
        assert_true(found);
        trace_close(source);
    }
}
