/* Spools of the recorder as traces: order across threads and processes, unusual programs, and
 * files that are cut, foreign or damaged. */
#include "allocators/base/rng.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/record/recording.h"

#define RECORDS_MOST 64

/* A spool of one thread; records end at the first whose kind is SPOOL_NONE. */
struct sheet {
    int process, thread;
    uint64_t started_ns;
    struct spool_record records[RECORDS_MOST];
};

/* Writes the sheet as NAME.spool; `bytes` 0: complete, with a page of zeros after its records. */
static void write_sheet(struct trace_rig *rig, const char *name, const struct sheet *sheet,
                        size_t bytes)
{
    static union {
        struct spool_head head;
        char bytes[SPOOL_HEAD_BYTES + sizeof sheet->records + 4096];
    } file;
    char path[160];
    memset(&file, 0, sizeof file);
    memcpy(file.head.magic, SPOOL_MAGIC, sizeof file.head.magic);
    file.head.process_started_ns = sheet->started_ns;
    file.head.process = sheet->process;
    file.head.thread = sheet->thread;
    file.head.driver_version = 13000;
    snprintf(file.head.devices[0].name, sizeof file.head.devices[0].name, "Some card");
    file.head.devices[0].bytes = 1 << 30;
    memcpy(file.bytes + SPOOL_HEAD_BYTES, sheet->records, sizeof sheet->records);
    snprintf(path, sizeof path, "%s/%s" SPOOL_FILE_END, rig->folder, name);
    trace_rig_write(path, &file, bytes ? bytes : sizeof file);
}

/* The folder as canonical text without its header; the caller frees it. */
static char *make(struct trace_rig *rig, bool died, struct recording_counts *counts)
{
    struct spools spools;
    struct trace_source *source = NULL;
    enum ar_status status = spools_open(rig->folder, &spools, &test_error);
    if (!status)
        status = recording_make(&spools, "test", died, &source, counts, &test_error);
    if (status)
        fail_msg("%s", test_error.text);
    char *text = trace_rig_print(rig, source);
    trace_close(source);
    spools_close(&spools);
    char *events = text;
    while (*events == '#')
        events = strchr(events, '\n') + 1;
    memmove(text, events, strlen(events) + 1);
    return text;
}

static void makes(struct trace_rig *rig, const char *wanted, struct recording_counts *counts)
{
    FREED char *text = make(rig, false, counts);
    assert_string_equal(text, wanted);
}

#define ALLOC(time, at, size)                                                                      \
    {                                                                                              \
        .time_ns = time, .kind = SPOOL_ALLOC, .address = at, .bytes = size                         \
    }
#define FREE(time, at)                                                                             \
    {                                                                                              \
        .time_ns = time, .kind = SPOOL_FREE, .address = at                                         \
    }

/* One thread frees while the other gets the address: the free began first, although it ended, and
 * was written, last. */
TRACE_TEST(threads_are_ordered)
{
    struct recording_counts counts;
    const struct sheet one = {
        .process = 7,
        .thread = 7,
        .started_ns = 1,
        .records = {ALLOC(100, 4096, 10), ALLOC(400, 8192, 30), FREE(200, 4096)}};
    const struct sheet two = {
        .process = 7, .thread = 8, .started_ns = 1, .records = {ALLOC(300, 4096, 20)}};
    write_sheet(*state, "b", &one, 0);
    write_sheet(*state, "a", &two, 0);
    makes(*state,
          "t,0\na,0,10\n!,alloc,4096\nt,100\nf,0\nt,200\na,1,20,thread=1\n!,alloc,4096\nt,300\n"
          "a,2,30\n!,alloc,8192\n",
          &counts);
    assert_int_equal(counts.allocs, 3);
    assert_int_equal(counts.frees, 1);
    assert_int_equal(counts.threads, 2);
    assert_int_equal(counts.processes, 1);
    assert_int_equal(counts.reused, 0);
}

/* Another process with the same number and addresses has its own blocks and streams. */
TRACE_TEST(processes_are_separate)
{
    struct recording_counts counts;
    const struct sheet first = {
        .process = 7, .started_ns = 1, .records = {ALLOC(100, 4096, 10), FREE(500, 4096)}};
    const struct sheet second = {
        .process = 7, .started_ns = 2, .records = {ALLOC(200, 4096, 20), FREE(300, 4096)}};
    write_sheet(*state, "z", &first, 0);
    write_sheet(*state, "a", &second, 0);
    makes(*state,
          "t,0\na,0,10\n!,alloc,4096\nt,100\na,1,20,1,tenant=1\n!,alloc,4096\nt,200\n"
          "f,1,tenant=1\nt,400\nf,0\n",
          &counts);
    assert_int_equal(counts.processes, 2);
}

/* Physical memory has a number from its creation to its release; a handle of which no creation was
 * recorded has none. */
TRACE_TEST(physical_memory_is_created_and_released)
{
    struct recording_counts counts;
    const struct sheet sheet = {
        .process = 7,
        .started_ns = 1,
        .records = {{.time_ns = 100, .kind = SPOOL_CREATE, .other = 55, .bytes = 4096},
                    {.time_ns = 200, .kind = SPOOL_RELEASE, .other = 66},
                    {.time_ns = 300, .kind = SPOOL_RELEASE, .other = 55},
                    {.time_ns = 400, .kind = SPOOL_CREATE, .other = 55, .bytes = 8192}}};
    write_sheet(*state, "a", &sheet, 0);
    makes(*state,
          "t,0\n!,physical_alloc,0,4096\nt,200\n!,physical_free,0\nt,300\n"
          "!,physical_alloc,1,8192\n",
          &counts);
}

TRACE_TEST(oddities_are_counted)
{
    struct recording_counts counts;
    const struct sheet sheet = {
        .process = 1,
        .records = {
            ALLOC(10, 4096, 10),
            ALLOC(20, 4096, 20), /* the free of the first was not recorded */
            FREE(30, 8192),      /* not in use */
            FREE(40, 0),         /* NULL */
            {.time_ns = 50, .kind = SPOOL_FREE, .address = 4096, .result = 1}, /* refused */
            {.time_ns = 60, .kind = SPOOL_ALLOC, .bytes = 5, .result = 2, .free_bytes = 3},
            {.time_ns = 70, .kind = SPOOL_ALLOC, .bytes = 6, .result = 700},
            {.time_ns = 80, .kind = SPOOL_ALLOC, .bytes = 0, .result = 1},
            {.time_ns = 90, .kind = SPOOL_UNMAP, .address = 1 << 20, .bytes = 1 << 20},
        }};
    write_sheet(*state, "a", &sheet, 0);
    makes(*state,
          "t,0\na,0,10\n!,alloc,4096\nt,10\nf,0\na,1,20\n!,alloc,4096\nt,20\n"
          "!,unknown_free,8192\nt,50\np,2,5\n!,oom,3\nr,2\nt,60\np,3,6\n"
          "!,failed,700\nr,3\nt,80\n!,segment_unmap,1048576,1048576,0\n",
          &counts);
    assert_int_equal(counts.reused, 1);
    assert_int_equal(counts.unknown_frees, 2);
    assert_int_equal(counts.failed_frees, 1);
    assert_int_equal(counts.failed_allocs, 3);
}

TRACE_TEST(the_last_failure_ended_the_program)
{
    struct recording_counts counts;
    const struct sheet sheet = {
        .process = 1,
        .records = {{.time_ns = 10, .kind = SPOOL_ALLOC, .bytes = 5, .result = 2}, FREE(20, 0)}};
    write_sheet(*state, "a", &sheet, 0);
    FREED char *text = make(*state, true, &counts);
    assert_string_equal(text, "t,0\na,0,5\n!,oom,0\nr,0\n");
}

/* Kernels of a graph are at its launch in the order of their starts; a kernel without a recorded
 * launch is left out. */
TRACE_TEST(kernels_find_their_launch)
{
    struct recording_counts counts;
    const struct sheet program = {
        .process = 1,
        .thread = 1,
        .records = {
            {.time_ns = 10, .kind = SPOOL_LAUNCH, .stream = 77, .correlation = 5},
            {.time_ns = 20, .kind = SPOOL_LAUNCH, .correlation = 7, .outer_correlation = 6},
            {.time_ns = 30, .kind = SPOOL_LAUNCH, .correlation = 8},
        }};
    const struct sheet profiler = {
        .process = 1,
        .thread = 2,
        .records = {
            {.time_ns = 90, .kind = SPOOL_KERNEL, .correlation = 6, .bytes = 600, .other = 3},
            {.time_ns = 90, .kind = SPOOL_KERNEL, .correlation = 5, .bytes = 502, .other = 2},
            {.time_ns = 90, .kind = SPOOL_KERNEL, .correlation = 5, .bytes = 501, .other = 1},
            {.time_ns = 90, .kind = SPOOL_KERNEL, .correlation = 9, .bytes = 900, .other = 4},
        }};
    write_sheet(*state, "a", &program, 0);
    write_sheet(*state, "b", &profiler, 0);
    makes(*state, "t,0\nk,1,501\nk,1,502\nt,10\nk,0,600\nt,20\nk,0,0\n", &counts);
    assert_int_equal(counts.kernels, 4);
    assert_int_equal(counts.untimed_kernels, 1);
    assert_int_equal(counts.unplaced_kernels, 1);
    assert_int_equal(counts.threads, 1);
}

/* The number of an event is used again after the event is destroyed; a wait for a new one has no
 * effect. */
TRACE_TEST(events_have_lives)
{
    struct recording_counts counts;
    const struct sheet sheet = {.process = 1,
                                .records = {{.kind = SPOOL_EVENT, .other = 500},
                                            {.kind = SPOOL_EVENT, .other = 600},
                                            {.kind = SPOOL_EVENT_GONE, .other = 500},
                                            {.kind = SPOOL_WAIT, .other = 500, .stream = 9},
                                            {.kind = SPOOL_EVENT, .other = 500},
                                            {.kind = SPOOL_WAIT, .other = 500, .stream = 9}}};
    write_sheet(*state, "a", &sheet, 0);
    makes(*state, "t,0\ne,0,0\ne,1,0\ne,0,0\nw,1,0\n", &counts);
    assert_int_equal(counts.dropped_waits, 1);
}

TRACE_TEST(cut_and_foreign_files_are_skipped)
{
    struct recording_counts counts;
    struct trace_rig *rig = *state;
    char path[160];
    const struct sheet sheet = {.process = 1, .records = {ALLOC(10, 4096, 1), ALLOC(20, 8192, 2)}};
    write_sheet(rig, "whole", &sheet, SPOOL_HEAD_BYTES + sizeof sheet.records[0] + 63);
    write_sheet(rig, "head", &sheet, SPOOL_HEAD_BYTES - 1);
    static const char *const names[] = {"empty.spool", "foreign.spool", "other.txt"};
    for (size_t i = 0; i < 3; i++) {
        static char bytes[9000];
        snprintf(path, sizeof path, "%s/%s", rig->folder, names[i]);
        trace_rig_write(path, bytes, i ? sizeof bytes : 0);
    }
    makes(rig, "t,0\na,0,1\n!,alloc,4096\n", &counts);
}

/* Any records give a trace or an error. */
TRACE_TEST(random_records_are_safe)
{
    struct ar_rng rng = ar_rng_of(11);
    unsigned made = 0;
    for (unsigned round = 0; round < 300; round++) {
        struct sheet sheet = {.process = 1};
        for (size_t i = 0; i + 1 < RECORDS_MOST; i++) {
            struct spool_record *record = &sheet.records[i];
            uint64_t shift = round % 2 ? 50 : ar_rng_below(&rng, 64);
            *record = (struct spool_record){
                .time_ns = ar_rng_below(&rng, 1000),
                .address = ar_rng_below(&rng, 8) * 4096,
                .bytes = ar_rng_next(&rng) >> shift,
                .stream = ar_rng_below(&rng, 5),
                .other = ar_rng_below(&rng, 4),
                .correlation = (uint32_t)ar_rng_below(&rng, 4),
                .result = ar_rng_below(&rng, 8) ? 0 : 2,
                .device = (uint16_t)ar_rng_below(&rng, 3),
                .flags = (uint8_t)ar_rng_below(&rng, 256),
                .kind = (uint8_t)(1 + ar_rng_below(&rng, SPOOL_KIND_COUNT + 2)),
            };
        }
        write_sheet(*state, "a", &sheet, 0);
        CLOSED(spools_close) struct spools spools;
        struct recording_counts counts;
        struct ar_error error = {{0}};
        CLOSED(close_trace) struct trace_source *source = NULL;
        assert_int_equal(spools_open(((struct trace_rig *)*state)->folder, &spools, &error), 0);
        enum ar_status status = recording_make(&spools, "test", false, &source, &counts, &error);
        if (status)
            assert_true(error.text[0] != '\0');
        else
            made++;
    }
    assert_true(made >= 150); /* all of small sizes */
}
