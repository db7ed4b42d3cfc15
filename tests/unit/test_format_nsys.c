/* Exports of Nsight Systems: memory, kernels and streams; older versions; errors; and
 * databases that want more than to be read. */
#include <unistd.h>

#include "tests/support/format_rig.h"
#include "tests/support/nsys_export.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"

#define PID       "1107296256" /* 66 << 24 */
#define OTHER_PID "1124073472" /* 67 << 24 */

/* start, process, device, address, bytes, kind, operation, stream */
#define MEMORY(start, pid, device, address, bytes, kind, operation, stream)                        \
    "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address,"    \
    " pc, bytes, memKind, memoryOperationType, streamId) VALUES (" start ", " pid ", " device      \
    ", 1, " address ", 0, " bytes ", " kind ", " operation ", " stream ");"
#define KERNEL(start, end, stream, correlation)                                                    \
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" start ", " end ", 0, 1, NULL, " stream       \
    ", " correlation ", " PID ");"
#define CALL(start, correlation)                                                                   \
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" start ", " start ", 0, " PID                \
    " + 5, " correlation ", 0, 0, NULL);"

static void converts(void *state, const char *const *statements, const char *events,
                     struct import_report *report)
{
    struct trace_rig *rig = state;
    nsys_export_make(rig->path[0], statements);
    size_t count;
    char *bytes = trace_rig_read(rig->path[0], &count);
    format_rig_converts_bytes(rig, bytes, count, events, report);
    free(bytes);
}

TRACE_TEST(memory_kernels_and_streams)
{
    struct import_report report;
    static const char *const statements[] = {
        nsys_export_2024,
        /* not in the order of time */
        MEMORY("5000", PID, "1", "8192", "512", "2", "0", "21"),
        MEMORY("1000", PID, "1", "4096", "1048576", "2", "0", "NULL"),
        MEMORY("9000", PID, "1", "4096", "1048576", "2", "1", "NULL"),
        MEMORY("9500", PID, "1", "8192", "512", "2", "1", "21"),
        MEMORY("500", PID, "0", "77", "64", "1", "0", "21"), /* pinned: of no card and stream */
        MEMORY("1600", PID, "1", "78", "64", "4", "0", "NULL"),
        MEMORY("1600", PID, "1", "79", "64", "5", "0", "NULL"),
        MEMORY("1700", OTHER_PID, "0", "4096", "64", "2", "0", "NULL"),
        /* launched at 6000 and 7000, run much later; and one on a default stream */
        KERNEL("8100", "8400", "21", "2"), KERNEL("8000", "8100", "21", "1"),
        KERNEL("8500", "8600", "13", "3"), CALL("6000", "1"), CALL("7000", "2"), NULL};
    converts(*state, statements,
             "# recorder: nsys 2024.6.2.225\n# capacity: 85520809984\n"
             "# card: NVIDIA H100 80GB HBM3\n"
             "t,0\na,0,64,space=pinned\n!,alloc,77\n"
             "t,500\na,1,1048576,device=1\n!,alloc,4096\n"
             "t,4500\na,2,512,1,device=1\n!,alloc,8192\nt,5500\nk,1,100\nt,6500\nk,1,300\n"
             "t,8000\nk,0,100\nt,8500\nf,1\nt,9000\nf,2\n",
             &report);
    assert_int_equal(report.records, 11);
    assert_int_equal(report.left_out, 3);
    assert_int_equal(report.guess_count, 3);
    assert_string_equal(report.guesses[0], "1 requests of managed memory are left out");
    assert_string_equal(report.guesses[1], "1 requests of static device memory are left out");
    assert_string_equal(report.guesses[2],
                        "of several processes, 66 with the most requests is taken");
}

/* An export of an early version: no kinds, no enumerations, no streams, no calls. */
TRACE_TEST(early_versions)
{
    struct import_report report;
    static const char *const statements[] = {
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, bytes INT, memoryOperationType INT,"
        " address INT); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, [end] INT, deviceId "
        "INT,"
        " streamId INT, correlationId INT);"
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (10, 256, 0, 4096), (30, 256, 1, 4096);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 25, 0, 7, 9);"
        /* texts that are no texts */
        "CREATE TABLE META_DATA_EXPORT (name, value);"
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '1' || char(10) || '2');",
        NULL};
    converts(*state, statements,
             "# recorder: nsys 1_2\nt,0\na,0,256\n!,alloc,4096\nt,10\nk,0,5\nt,20\nf,0\n", &report);
    assert_int_equal(report.guess_count, 3);
    assert_non_null(strstr(report.guesses[0], "has no kinds"));
    assert_non_null(strstr(report.guesses[1], "stream 7 is taken for the default stream"));
    assert_non_null(strstr(report.guesses[2], "kernels are placed at their begin"));
}

/* The numbers are those of the enumerations, whatever they are. */
TRACE_TEST(enumerations_tell_numbers)
{
    static const char *const statements[] = {
        "CREATE TABLE ENUM_CUDA_MEM_KIND (id INT, name TEXT);"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (9, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE'),"
        " (2, 'CUDA_MEMOPR_MEMORY_KIND_PINNED'), (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE');"
        "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INT, name TEXT);"
        "INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (5, 'X_ALLOCATION'), (0, "
        "'X_DEALLOCATION');"
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, bytes INT, memoryOperationType INT,"
        " address INT, memKind INT);"
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (10, 256, 5, 4096, 9),"
        " (20, 1, 5, 8192, 2), (25, 1, 5, 12288, 0), (26, 1, 5, 16384, 7), (30, 256, 0, 4096, 9);",
        NULL};
    struct import_report report;
    converts(*state, statements,
             "# recorder: nsys\nt,0\na,0,256\n!,alloc,4096\n"
             "t,10\na,1,1,space=pinned\n!,alloc,8192\nt,20\nf,0\n",
             &report);
    assert_non_null(strstr(report.guesses[0], "pageable host"));
    assert_non_null(strstr(report.guesses[1], "unknown"));
}

static void refuses(void *state, const char *const *statements, const char *part)
{
    struct trace_rig *rig = state;
    struct trace_source *source;
    struct ar_error error;
    nsys_export_make(rig->path[0], statements);
    if (trace_open(rig->path[0], &source, &error) == AR_OK)
        fail_msg("\"%s\" is taken", statements[0]);
    assert_int_equal(strncmp(error.text, rig->path[0], strlen(rig->path[0])), 0);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" says not \"%s\"", error.text, part);
}

#define EVENT(object) "INSERT INTO EVENTS VALUES ('" object "');"

TRACE_TEST(umpire_writes_databases_too)
{
    struct import_report report;
    static const char *const statements[] = {
        "CREATE TABLE EVENTS (EVENT JSON);",
        EVENT("{\"category\":\"operation\",\"name\":\"make_memory_resource\",\"string_args\":"
              "{\"allocator_ref\":\"0x2\"},\"tags\":{\"allocator_name\":\"DEVICE\"},\"timestamp\":"
              "1}"),
        EVENT("{\"category\":\"operation\",\"name\":\"reallocate\",\"numeric_args\":{\"size\":64},"
              "\"string_args\":{\"allocator_ref\":\"0x2\",\"current_ptr\":\"0\"},\"timestamp\":2}"),
        EVENT("{\"category\":\"operation\",\"name\":\"reallocate\",\"string_args\":"
              "{\"allocator_ref\":\"0x2\",\"new_ptr\":\"0x40\"},\"timestamp\":3}"),
        NULL};
    converts(*state, statements, "# recorder: umpire\nt,0\na,0,64,tag=DEVICE\n!,alloc,64\n",
             &report);
    assert_int_equal(report.records, 3);
    struct trace_source *source;
    struct trace_rig *rig = *state;
    assert_ok(trace_open(rig->path[0], &source, &test_error));
    assert_string_equal(source->info.format, "umpire");
    trace_close(source);
}

TRACE_TEST(bad_exports_are_refused)
{
    static const struct {
        const char *statements[4], *part;
    } cases[] = {
        {{"CREATE TABLE x (y INT)"}, "has no table CUDA_GPU_MEMORY_USAGE_EVENTS: profile with"},
        {{"CREATE TABLE x (y INT)"}, "and no table EVENTS, which a replay log of Umpire has"},
        {{"CREATE TABLE EVENTS (EVENT JSON);", "INSERT INTO EVENTS VALUES (NULL);"},
         ": EVENTS: row 1: EVENT: a JSON object as text is expected"},
        {{"CREATE TABLE EVENTS (EVENT JSON);", "INSERT INTO EVENTS VALUES ('{');"},
         ": EVENTS: row 1: this is not JSON"},
        {{"CREATE TABLE EVENTS (x JSON);", "INSERT INTO EVENTS VALUES ('{}');"},
         ": EVENTS: row 1: EVENT: a JSON object as text is expected"},
        {{"CREATE TABLE EVENTS (EVENT JSON);",
          EVENT("{\"name\":\"allocate\",\"numeric_args\":{\"size\":-8}}")},
         ": EVENTS: row 1: size: an integer of bytes is expected"},
        {{"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, bytes INT)"}, "lacks one of"},
        {{nsys_export_2024}, "has no rows of device memory"},
        {{nsys_export_2024, MEMORY("-1", PID, "0", "1", "1", "2", "0", "0")},
         ": CUDA_GPU_MEMORY_USAGE_EVENTS: row 1: start is not a number"},
        {{nsys_export_2024, MEMORY("1", PID, "0", "1", "'many'", "2", "0", "0")},
         ": row 1: bytes is not a number"},
        {{nsys_export_2024, MEMORY("1", PID, "0", "1", "1", "2", "3", "0")},
         ": row 1: memoryOperationType is neither"},
        {{nsys_export_2024, MEMORY("1", PID, "0", "1", "1", "2", "0", "0"),
          KERNEL("9", "8", "7", "1")},
         ": CUPTI_ACTIVITY_KIND_KERNEL: row 1: the kernel ends before it begins"},
        {{nsys_export_2024, MEMORY("1", PID, "0", "1", "1152921504606846976", "2", "0", "0")},
         ": row 1: a block of 1152921504606846976 bytes"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuses(*state, cases[i].statements, cases[i].part);
}

/* Databases that make SQLite do more than return rows. */
TRACE_TEST(hostile_databases_run_nothing)
{
    static const struct {
        const char *statements[4], *part;
    } cases[] = {
        /* a view in place of the table */
        {{"CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL"
          " SELECT x + 1 FROM n) SELECT x AS start, x AS bytes, 0 AS memoryOperationType, x AS"
          " address FROM n"},
         "has no table CUDA_GPU_MEMORY_USAGE_EVENTS"},
        /* a virtual table */
        {{"CREATE VIRTUAL TABLE CUDA_GPU_MEMORY_USAGE_EVENTS USING fts5(start, bytes,"
          " memoryOperationType, address)"},
         "has no table CUDA_GPU_MEMORY_USAGE_EVENTS"},
        /* a column that calls a function */
        {{"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, bytes INT, memoryOperationType"
          " INT, address INT AS (length(hex(zeroblob(1000)))));"
          "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 1, 0)"},
         "it has a column that is computed"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuses(*state, cases[i].statements, cases[i].part);
}

/* A journal next to the file, and its contents after a crash, are ignored. */
TRACE_TEST(other_files_are_not_touched)
{
    struct trace_rig *rig = *state;
    char journal[128];
    struct trace_source *source;
    static const char *const statements[] = {nsys_export_2024, "PRAGMA journal_mode = wal",
                                             MEMORY("1", PID, "0", "4096", "8", "2", "0", "0"),
                                             NULL};
    nsys_export_make(rig->path[0], statements);
    (void)snprintf(journal, sizeof journal, "%s-journal", rig->path[0]);
    trace_rig_write(journal, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 hot", 12);
    size_t files = trace_rig_files(rig);
    assert_ok(trace_open(rig->path[0], &source, &test_error));
    assert_int_equal(source->info.allocs, 1);
    trace_close(source);
    assert_int_equal(trace_rig_files(rig), files);
}

/* An export that is truncated anywhere is refused or read, without a crash. */
TRACE_TEST(cut_exports)
{
    struct trace_rig *rig = *state;
    static const char *const statements[] = {"PRAGMA page_size = 512", nsys_export_2024,
                                             MEMORY("1", PID, "0", "4096", "8", "2", "0", "0"),
                                             NULL};
    nsys_export_make(rig->path[0], statements);
    size_t count, opened = 0, cuts = 0;
    char *bytes = trace_rig_read(rig->path[0], &count);
    for (size_t left = 100; left < count; left += 509, cuts++) {
        struct trace_source *source;
        struct ar_error error = {""};
        trace_rig_write(rig->path[1], bytes, left);
        if (trace_open(rig->path[1], &source, &error) == AR_OK) {
            trace_close(source);
            opened++;
        } else {
            assert_int_equal(strncmp(error.text, rig->path[1], strlen(rig->path[1])), 0);
        }
    }
    free(bytes);
    assert_true(cuts > 10 && opened < cuts);
}
