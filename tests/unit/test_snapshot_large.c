/* Long generated snapshots: their cost and their traces. With a file's name, entries and frames
 * this program writes one instead (test_snapshot_large FILE EVENTS FRAMES), with a name alone it
 * reads it. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/snapshot_maker.h"
#include "tests/support/test.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/import_report.h"
#include "workloads/trace/trace.h"

#define EVENTS 600000u

static struct trace_source *open_made(const struct snapshot_maker_options *options, char path[64])
{
    struct trace_source *source;
    strcpy(path, "/tmp/allocrig-snapshot-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snapshot_maker_write(path, options);
    assert_ok(trace_open(path, &source, &test_error));
    (void)unlink(path);
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
static uint64_t resident_bytes(uint64_t events)
{
    char path[64] = "/tmp/allocrig-snapshot-XXXXXX";
    const struct snapshot_maker_options options = {.seed = 1, .events = events};
    struct rusage usage;
    int status, file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snapshot_maker_write(path, &options);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_snapshot_large", path, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    (void)unlink(path);
    assert_int_equal(status, 0);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* 100 bytes an entry; not under the sanitizers, which keep freed memory. */
TEST(test_memory_is_bounded)
{
    const char *variant = getenv("TEST_VARIANT");
    bool sanitized = variant && strcmp(variant, "san") == 0;
    uint64_t few = resident_bytes(1000), many = resident_bytes(EVENTS);
    assert_true(sanitized || many < few + UINT64_C(100) * EVENTS);
}

TEST(test_frames_become_tags)
{
    char path[64];
    const struct snapshot_maker_options options = {.seed = 2, .events = 5000, .frames = 40};
    CLOSED(close_trace) struct trace_source *source = open_made(&options, path);
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
    assert_true(tagged > source->info.allocs * 9 / 10);
}

/* A ring buffer that lost its head: the blocks live then exist at the start. */
TEST(test_head_is_missing)
{
    char path[64];
    const struct snapshot_maker_options whole = {.seed = 3, .events = 30000};
    const struct snapshot_maker_options tail = {.seed = 3, .events = 10000, .dropped = 20000};
    struct trace_source *all = open_made(&whole, path), *part = open_made(&tail, path);
    assert_false(all->report->begins_in_the_middle);
    assert_true(part->report->begins_in_the_middle);
    assert_true(part->report->unmatched_frees > 0);
    assert_int_equal(part->report->double_frees, 0);
    assert_int_equal(part->report->guess_count, 0);
    assert_int_equal(all->info.allocs - all->info.frees, part->info.allocs - part->info.frees);
    trace_close(all);
    trace_close(part);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return read_file(argv[1]);
    if (argc == 4) {
        snapshot_maker_write(argv[1], &(struct snapshot_maker_options){
                                          .seed = 1,
                                          .events = strtoull(argv[2], NULL, 10),
                                          .frames = (unsigned)strtoul(argv[3], NULL, 10)});
        return 0;
    }
    return test_run(__FILE__);
}
