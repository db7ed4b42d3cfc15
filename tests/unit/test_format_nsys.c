/* Exports of Nsight Systems: memory, kernels and streams; older versions; errors; and
 * databases that want more than to be read. */
#include <unistd.h>

#include "tests/support/format_rig.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"

#include <sqlite3.h>

/* Makes a database of SQL, in which "2024;" is the tables of an export of that year. */
static void make(const char *path, const char *text)
{
    struct cases tables = {0};
    sqlite3 *database;
    const char *rest = strstr(text, "2024;");
    FREED char *all = NULL;
    if (asprintf(&all, "%.*s%s%s", rest ? (int)(rest - text) : 0, text,
                 rest ? cases_text(&tables, "format_nsys", "export_of_2024") : "",
                 rest ? rest + 5 : text) < 0)
        fail();
    (void)unlink(path);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    if (sqlite3_exec(database, all, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(database));
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

FORMAT_MADE_CASES("format_nsys", memory_kernels_and_streams, make)
FORMAT_MADE_CASES("format_nsys", early_versions, make)
FORMAT_MADE_CASES("format_nsys", enumerations_tell_numbers, make)
FORMAT_MADE_CASES("format_nsys", umpire_writes_databases_too, make)
FORMAT_MADE_REFUSES("format_nsys", bad_exports_are_refused, make)
FORMAT_MADE_REFUSES("format_nsys", hostile_databases_run_nothing, make) /* beyond rows */

/* An export with one block. */
static void make_one(const char *path, const char *before)
{
    struct cases text = {0};
    char all[1024];
    snprintf(all, sizeof all, "%s%s", before, cases_text(&text, "format_nsys", "one_block"));
    make(path, all);
}

/* A journal next to the file, and its contents after a crash, are ignored. */
TRACE_TEST(other_files_are_not_touched)
{
    struct trace_rig *rig = *state;
    char journal[128];
    make_one(rig->path[0], "");
    (void)snprintf(journal, sizeof journal, "%s-journal", rig->path[0]);
    trace_rig_write(journal, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 hot", 12);
    size_t files = trace_rig_files(rig);
    struct trace_source *source = trace_rig_source(rig->path[0]);
    assert_int_equal(source->info.allocs, 1);
    trace_close(source);
    assert_int_equal(trace_rig_files(rig), files);
}

/* Pages that hold no rows are refused in the words of SQLite, with what is there. */
TRACE_TEST(damage_is_told)
{
    static const char malformed[] = ": database disk image is malformed";
    struct trace_rig *rig = *state;
    struct trace_source *source;
    for (size_t page = 512; page <= 4096; page *= 8) {
        char before[40], told[256];
        size_t count;
        snprintf(before, sizeof before, "PRAGMA page_size = %zu; ", page);
        make_one(rig->path[0], before);
        FREED char *bytes = trace_rig_read(rig->path[0], &count);
        memset(bytes + page, 0xff, count - page); /* the first page has the names of few tables */
        trace_rig_write(rig->path[1], bytes, count);
        snprintf(told, sizeof told, "%s: %s%s", rig->path[1],
                 page == 512 ? "its list of tables" : "ENUM_CUDA_MEM_KIND", malformed);
        assert_says(trace_open(rig->path[1], &source, &test_error), AR_FORMAT, told);
    }
}

/* An export that is truncated anywhere is refused or read, without a crash. */
TRACE_TEST(cut_exports)
{
    struct trace_rig *rig = *state;
    make_one(rig->path[0], "PRAGMA page_size = 512; ");
    size_t count, opened = 0, cuts = 0;
    char *bytes = trace_rig_read(rig->path[0], &count);
    for (size_t left = 100; left < count; left += 509, cuts++) {
        struct trace_source *source;
        trace_rig_write(rig->path[1], bytes, left);
        if (trace_open(rig->path[1], &source, &test_error) == AR_OK) {
            trace_close(source);
            opened++;
        } else {
            assert_int_equal(strncmp(test_error.text, rig->path[1], strlen(rig->path[1])), 0);
        }
    }
    free(bytes);
    assert_true(cuts > 10 && opened < cuts);
}
