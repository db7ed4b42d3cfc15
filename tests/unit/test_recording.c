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

/* "alloc 100 address=4096 bytes=10": a record and its time. */
static struct spool_record record_of(char *line)
{
    static const char *const kinds[SPOOL_KIND_COUNT] = {
        [SPOOL_ALLOC] = "alloc",     [SPOOL_FREE] = "free",   [SPOOL_CREATE] = "create",
        [SPOOL_RELEASE] = "release", [SPOOL_UNMAP] = "unmap", [SPOOL_EVENT] = "event",
        [SPOOL_EVENT_GONE] = "gone", [SPOOL_WAIT] = "wait",   [SPOOL_LAUNCH] = "launch",
        [SPOOL_KERNEL] = "kernel"};
    struct spool_record record = {0};
    char *word = strtok(line, " ");
    for (uint8_t kind = 0; kind < SPOOL_KIND_COUNT; kind++)
        if (kinds[kind] && strcmp(kinds[kind], word) == 0)
            record.kind = kind;
    assert_true(record.kind != SPOOL_NONE);
    record.time_ns = strtoull(strtok(NULL, " "), NULL, 10);
    while ((word = strtok(NULL, " "))) {
        uint64_t value = strtoull(strchr(word, '=') + 1, NULL, 10);
        switch (*word) {
        case 'a':
            record.address = value;
            break;
        case 'b':
            record.bytes = value;
            break;
        case 's':
            record.stream = value;
            break;
        case 'o':
            record.other = value;
            break;
        case 'c':
            record.correlation = (uint32_t)value;
            break;
        case 'g': /* of a graph */
            record.outer_correlation = (uint32_t)value;
            break;
        case 'r':
            record.result = (int32_t)value;
            break;
        case 'f':
            record.free_bytes = value;
            break;
        default:
            fail_msg("%s", word);
        }
    }
    return record;
}

/* Spools as text: "spool NAME PROCESS THREAD STARTED", and a line for each record. */
static void write_spools(struct trace_rig *rig, char *text)
{
    struct sheet sheet = {0};
    char name[32] = "", *save = NULL;
    size_t count = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "spool ", 6) != 0) {
            sheet.records[count++] = record_of(line);
            continue;
        }
        if (name[0])
            write_sheet(rig, name, &sheet, 0);
        sheet = (struct sheet){0};
        count = 0;
        if (sscanf(line, "spool %31s %d %d %" SCNu64, name, &sheet.process, &sheet.thread,
                   &sheet.started_ns) != 4)
            fail_msg("%s", line);
    }
    write_sheet(rig, name, &sheet, 0);
}

/* The counts that are not 0. */
static void print_counts(const struct recording_counts *counts, char *text, size_t bytes)
{
#define COUNTED(name)                                                                              \
    {                                                                                              \
#name, counts->name                                                                        \
    }
    const struct {
        const char *name;
        uint64_t count;
    } all[] = {COUNTED(allocs),           COUNTED(frees),         COUNTED(failed_allocs),
               COUNTED(failed_frees),     COUNTED(unknown_frees), COUNTED(reused),
               COUNTED(pinned),           COUNTED(managed),       COUNTED(mappings),
               COUNTED(dropped_waits),    COUNTED(kernels),       COUNTED(untimed_kernels),
               COUNTED(unplaced_kernels), COUNTED(lost),          COUNTED(processes),
               COUNTED(threads)};
    size_t used = 0;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].count)
            used += (size_t)snprintf(text + used, bytes - used, "%s %" PRIu64 "\n", all[i].name,
                                     all[i].count);
}

/* Blocks of cases: spools, the trace, and the counts. A first line "died": with a failure that
 * ended the program. */
TEST(spools_become_traces)
{
    for (struct cases block = {0}; cases_block(&block, __FILE__, __func__);) {
        struct recording_counts counts;
        char counted[512] = "";
        bool died = strncmp(block.field[0], "died\n", 5) == 0;
        CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
        write_spools(&rig, block.field[0] + (died ? 5 : 0));
        FREED char *text = make(&rig, died, &counts);
        print_counts(&counts, counted, sizeof counted);
        assert_string_equal(text, block.field[1]);
        assert_string_equal(counted, block.field[2]);
    }
}

TRACE_TEST(cut_and_foreign_files_are_skipped)
{
    struct recording_counts counts;
    struct trace_rig *rig = *state;
    char path[160];
    const struct sheet sheet = {
        .process = 1,
        .records = {{.time_ns = 10, .kind = SPOOL_ALLOC, .address = 4096, .bytes = 1},
                    {.time_ns = 20, .kind = SPOOL_ALLOC, .address = 8192, .bytes = 2}}};
    write_sheet(rig, "whole", &sheet, SPOOL_HEAD_BYTES + sizeof sheet.records[0] + 63);
    write_sheet(rig, "head", &sheet, SPOOL_HEAD_BYTES - 1);
    static const char *const names[] = {"empty.spool", "foreign.spool", "other.txt"};
    for (size_t i = 0; i < 3; i++) {
        static char bytes[9000];
        snprintf(path, sizeof path, "%s/%s", rig->folder, names[i]);
        trace_rig_write(path, bytes, i ? sizeof bytes : 0);
    }
    FREED char *text = make(rig, false, &counts);
    assert_string_equal(text, "t,0\na,0,1\n!,alloc,4096\n");
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
