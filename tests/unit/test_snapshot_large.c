/* Long generated snapshots: their cost and their traces. With a file's name, events and frames this
 * program writes one instead (test_snapshot_large FILE EVENTS FRAMES), with a name alone it reads
 * it. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/snapshot_layouts.h"
#include "tests/support/snapshot_runs.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/import_report.h"
#include "workloads/trace/trace.h"

#define EVENTS 150000u

/* Writes the history of a run of that many requests and frees. Returns the number of entries. */
static size_t write_large(const char *path, uint64_t events, unsigned frames, size_t dropped)
{
    char workload[80];
    CLOSED(run_snapshot_close) struct run_snapshot run;
    const struct snapshot_layout_options options = {
        .form = SNAPSHOT_PICKLE_4, .library_frames = frames, .dropped = dropped};
    snprintf(workload, sizeof workload, "random:target=1GiB,max=8MiB,events=%" PRIu64, events);
    snapshot_run(&run, "torch", workload);
    snapshot_layout_write(path, &snapshot_layouts[snapshot_layout_count - 3], &run.image, &options);
    return run.image.entry_count;
}

static struct trace_source *open_large(uint64_t events, unsigned frames, size_t dropped)
{
    struct temporary_file file = temporary_file("");
    (void)write_large(file.path, events, frames, dropped);
    struct trace_source *source = snapshot_open(file.path, NULL, "a large snapshot");
    (void)unlink(file.path);
    return source;
}

/* Reads a snapshot in a process of its own, so that the process has no other memory. */
static int read_file(const char *path)
{
    struct trace_source *source;
    if (trace_open(path, &source, &test_error))
        return 1;
    bool all = source->report->records > 0;
    trace_close(source);
    return all ? 0 : 1;
}

/* The peak memory of a process that reads a snapshot of that many entries. */
static uint64_t resident_bytes(uint64_t events, size_t *entries)
{
    struct temporary_file file = temporary_file("");
    struct rusage usage;
    int status;
    *entries = write_large(file.path, events, 0, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_snapshot_large", file.path, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    (void)unlink(file.path);
    assert_int_equal(status, 0);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* 100 bytes an entry; not under the sanitizers, which keep freed memory. */
TEST(test_memory_is_bounded)
{
    const char *variant = getenv("TEST_VARIANT");
    bool sanitized = variant && strcmp(variant, "san") == 0;
    size_t entries;
    uint64_t few = resident_bytes(1000, &entries), many = resident_bytes(EVENTS, &entries);
    assert_true(entries > EVENTS);
    assert_true(sanitized || many < few + 100 * entries);
}

TEST(test_frames_become_tags)
{
    CLOSED(close_trace) struct trace_source *source = open_large(5000, 39, 0);
    const struct trace_event *events;
    size_t count, tagged = 0;
    while (trace_next(source, &events, &count, &test_error) == AR_OK && count)
        for (size_t i = 0; i < count; i++) {
            const struct trace_attributes *keys = trace_attributes_of(source, events[i].attributes);
            if (events[i].kind != TRACE_ALLOC || !keys->tag)
                continue;
            assert_memory_equal(keys->tag, "train.py:", 9);
            tagged++;
        }
    assert_int_equal(tagged, source->info.allocs);
}

/* A ring buffer that lost its head: the blocks live then exist at the start. */
TEST(test_head_is_missing)
{
    CLOSED(close_trace) struct trace_source *all = open_large(20000, 0, 0);
    CLOSED(close_trace) struct trace_source *part = open_large(20000, 0, 20000);
    assert_false(all->report->begins_in_the_middle);
    assert_true(part->report->begins_in_the_middle);
    assert_true(part->report->unmatched_frees > 0);
    assert_int_equal(part->report->double_frees, 0);
    assert_int_equal(part->report->guess_count, 0);
    assert_int_equal(all->info.allocs - all->info.frees, part->info.allocs - part->info.frees);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return read_file(argv[1]);
    if (argc != 4)
        return test_run(__FILE__);
    (void)write_large(argv[1], strtoull(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10),
                      0);
    return 0;
}
