/* Compares every recording in workloads/data with the policy that imitates its allocator: all rows,
 * segments and statistics agree. Recordings with one change must differ at that event. */
#include <dirent.h>

#include <zlib.h>

#include "allocators/spec.h"
#include "sim/fidelity/fidelity.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/trace/trace.h"

#define FOLDER     "workloads/data"
#define MOST_FILES 64

/* The result of a file, with the settings and statistics of `original`. */
static void run(const char *path, const char *original, struct fidelity_result *result)
{
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(sidecar_close) struct sidecar sidecar = {0};
    CLOSED(trace_stats_close) struct trace_stats stats;
    struct fidelity_stat items[256];
    CLOSED(ar_spec_close) struct ar_spec policy;
    char text[1024];
    if (trace_open_recording(path, &source, &test_error) ||
        sidecar_read(original, &source->info, &sidecar, &test_error) ||
        sidecar_stats_read(original, &stats, &test_error) ||
        fidelity_default_spec(&source->info, text, sizeof text, &test_error) ||
        ar_spec_parse(text, &policy, &test_error))
        fail_msg("%s", test_error.text);
    assert_true(stats.count < COUNT(items));
    for (size_t i = 0; i < stats.count; i++)
        items[i] = (struct fidelity_stat){stats.items[i].name, stats.items[i].value};
    const struct fidelity config = {
        .policy = &policy, .source = source, .stats = items, .stat_count = stats.count, .seed = 1};
    assert_ok(fidelity_run(&config, result, &test_error));
}

static void test_recording(void **state)
{
    char path[512];
    CLOSED(fidelity_result_close) struct fidelity_result result;
    snprintf(path, sizeof path, FOLDER "/%s", (const char *)*state);
    run(path, path, &result);
    if (result.difference.found)
        fail_msg("event %" PRIu64 ": the policy %s, the recording %s", result.difference.event,
                 result.difference.policy, result.difference.recording);
    for (size_t i = 0; i < result.figure_count; i++)
        if (!result.figures[i].agrees)
            fail_msg("%s is %" PRIu64 ", recorded %" PRIu64, result.figures[i].name,
                     result.figures[i].replayed, result.figures[i].recorded);
    assert_true(result.agrees);
    assert_true(result.figure_count >= 88);
    assert_true(result.rows && result.rows == result.rows_met);
    assert_true(result.made && result.made == result.made_met);
    assert_int_equal(result.freed, result.freed_met);
    assert_int_equal(result.peak_reserved_bytes, result.recorded_peak_reserved_bytes);
    assert_int_equal(result.refusals, 0);
    assert_int_equal(result.replays, 1);
    bool releases = strncmp(*state, "resnet50", 8) == 0;
    bool graphs = strncmp(*state, "graphs", 6) == 0;
    bool pages = strstr(*state, "expandable") != NULL;
    assert_int_equal(result.release_count, releases ? 136 : graphs ? 2 + pages : 0);
    assert_int_equal(result.unseen_releases, graphs ? 4 - pages : 0);
}

/* A copy of a recording with the line `number` changed: its address moved, or (`moved` 0) the
 * line left out. The .json is that of the original. */
static void write_changed(const char *path, const char *from, uint64_t number, uint64_t moved)
{
    gzFile in = gzopen(from, "rb");
    FILE *out = fopen(path, "w");
    char line[256];
    assert_true(in && out);
    for (uint64_t at = 1; gzgets(in, line, sizeof line); at++) {
        char *address = strchr(line, ',');
        if (at != number) {
            fputs(line, out);
        } else if (moved) {
            char *rest;
            uint64_t value = strtoull(address + 1, &rest, 10);
            fprintf(out, "%.*s,%" PRIu64 "%s", (int)(address - line), line, value + moved, rest);
        }
    }
    gzclose(in);
    assert_int_equal(fclose(out), 0);
}

/* The nth line that begins with `action`. */
static uint64_t line_of(const char *path, const char *action, unsigned nth)
{
    gzFile in = gzopen(path, "rb");
    char line[256];
    uint64_t found = 0;
    assert_non_null(in);
    for (uint64_t at = 1; !found && gzgets(in, line, sizeof line); at++)
        if (strncmp(line, action, strlen(action)) == 0 && line[strlen(action)] == ',' && !nth--)
            found = at;
    gzclose(in);
    assert_true(found);
    return found;
}

static void check_changed(const char *from, const char *action, unsigned nth, uint64_t moved)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(fidelity_result_close) struct fidelity_result result;
    uint64_t number = line_of(from, action, nth);
    write_changed(rig.path[0], from, number, moved);
    run(rig.path[0], from, &result);
    if (!result.difference.found || (moved && result.difference.line != number))
        fail_msg("%s %u of %s, line %" PRIu64 ": line %" PRIu64 " is named", action, nth, from,
                 number, result.difference.line);
    assert_false(result.agrees);
    assert_true(result.rows_met < result.rows);
}

static void test_moved_address(void **state)
{
    static const char plain[] = FOLDER "/resnet50_train.default.csv.gz";
    static const char pages[] = FOLDER "/resnet50_train.expandable.csv.gz";
    static const char streams[] = FOLDER "/side_streams.default.csv.gz";
    for (unsigned nth = 0; nth < 700; nth += 393 / (unsigned)test_amount(3, 3)) {
        check_changed(plain, "alloc", 10 * nth, 512);
        check_changed(streams, "alloc", nth, 512);
        check_changed(streams, "free_requested", nth, 512);
        check_changed(plain, "segment_alloc", nth / 2, 512);
        check_changed(plain, "segment_free", nth / 2, 512);
        check_changed(pages, "segment_map", nth / 2, 512);
        check_changed(pages, "segment_unmap", nth / 4, 512);
    }
}

/* A copy of a recording without what its .json says of pools. */
static void check_pools_inferred(const char *from)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(fidelity_result_close) struct fidelity_result result;
    write_changed(rig.path[0], from, 0, 0);
    run(rig.path[0], from, &result);
    assert_true(result.agrees);
    assert_true(result.rows == 292 && result.rows_met == 292);
}

/* Private pools of which neither the rows nor a .json tell: PyTorch has a range of addresses for
 * each pool, and passes over free blocks of other pools. */
static void test_pools_inferred(void **state)
{
    check_pools_inferred(FOLDER "/graphs.expandable.csv.gz");
    check_pools_inferred(FOLDER "/graphs.default.csv.gz");
}

static void test_left_out(void **state)
{
    check_changed(FOLDER "/resnet50_train.default.csv.gz", "segment_free", 20, 0);
    check_changed(FOLDER "/resnet50_train.default.csv.gz", "segment_alloc", 40, 0);
    check_changed(FOLDER "/lora_recompute.limit5.csv.gz", "segment_free", 3, 0);
}

#define POOL_BEGIN                                                                                 \
    "# allocrig-trace 1\n# recorder: torch 2.11.0\nt,0\n!,segment_alloc,2097152,2097152,0\n"       \
    "a,0,1024,pool=1\n!,alloc,2097152\nf,0\n"

static void check_pool(const char *text, bool agrees, size_t releases)
{
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(fidelity_result_close) struct fidelity_result result;
    trace_rig_write(rig.path[0], text, strlen(text));
    run(rig.path[0], rig.path[1], &result);
    assert_int_equal(result.agrees, agrees);
    assert_int_equal(result.release_count, releases);
}

/* A private pool keeps its segments through a release, unless it has been given up. */
static void test_private_pool(void **state)
{
    check_pool(POOL_BEGIN "c\na,1,1024\n", false, 0);
    check_pool(POOL_BEGIN "c\n", true, 0);
    check_pool(POOL_BEGIN "c\n!,segment_free,2097152,2097152,0\n", true, 0);
    check_pool(POOL_BEGIN "c,pool=1\n!,segment_free,2097152,2097152,0\n", true, 0);
    check_pool(POOL_BEGIN "c,pool=1\n", false, 0);
    check_pool(POOL_BEGIN "!,segment_free,2097152,2097152,0\n", true, 1);
}

/* With a threshold of 0.5 memory is released above half of the limit, which is not recorded. 50 MiB
 * were held when 20 MiB were requested, and a free segment of 30 MiB was kept: the limit is 100 MiB
 * or more. Later that segment was released, and not the younger one of stream 1, so it was the
 * allocator's own release. */
static void test_least_limit(void **state)
{
    static const char text[] =
        "# allocrig-trace 1\n# recorder: torch 2.11.0\n# conf: garbage_collection_threshold:0.5\n"
        "t,0\n!,segment_alloc,1073741824,31457280,0\na,0,31457280\n!,alloc,1073741824\n"
        "!,segment_alloc,1207959552,10485760,0\na,1,10485760\n!,alloc,1207959552\n"
        "!,segment_alloc,1342177280,10485760,0\na,2,10485760\n!,alloc,1342177280\nf,0\n"
        "!,segment_alloc,1476395008,20971520,1\na,3,20971520,1\n!,alloc,1476395008\nf,3\n"
        "!,segment_free,1073741824,31457280,0\n"
        "!,segment_alloc,1610612736,41943040,0\na,4,41943040\n!,alloc,1610612736\n";
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(fidelity_result_close) struct fidelity_result result;
    trace_rig_write(rig.path[0], text, sizeof text - 1);
    run(rig.path[0], rig.path[1], &result);
    assert_true(result.agrees);
    assert_int_equal(result.limit_bytes, 100 * AR_MIB);
}

/* Snapshots of random programs, one for each fault of the inference that they showed: tests/golden/
 * data/README.md. */
static void test_random(void **state)
{
    static const char *const names[] = {
        "changed_limit",       "changed_settings",         "changed_to_pages_and_back",
        "collected",           "collected_and_captured",   "deleted_pools",
        "deleted_pools_pages", "deleted_pools_pending",    "divided_at_the_end",
        "failure_of_its_pool", "fraction_of_unknown_card", "largest_of_a_stream",
        "lent_to_a_request",   "order_of_release",         "range_used_again",
        "refused_in_range",    "rest_grows_pages",         "start_whole_pages",
        "whole_blocks",        "whole_blocks_pages",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[512];
        CLOSED(fidelity_result_close) struct fidelity_result result;
        snprintf(path, sizeof path, "tests/golden/data/random/%s.pickle.gz", names[i]);
        run(path, path, &result);
        if (!result.agrees)
            fail_msg("%s, event %" PRIu64 ": the policy %s, the recording %s", names[i],
                     result.difference.event, result.difference.policy,
                     result.difference.recording);
        assert_true(result.rows > 1000 && result.rows == result.rows_met);
        assert_true(result.end_blocks && result.end_blocks == result.end_blocks_met);
        assert_int_equal(result.limit_bytes != 0, strstr(names[i], "unknown_card") != NULL ||
                                                      strncmp(names[i], "collected", 9) == 0);
    }
}

/* Under ASan nothing is left after a search of the limit that finds none. */
static void test_limit_not_found(void **state)
{
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(ar_spec_close) struct ar_spec policy;
    CLOSED(fidelity_result_close) struct fidelity_result result;
    (void)state;
    if (trace_open_recording("tests/golden/data/random/deleted_pools_pending.pickle.gz", &source,
                             &test_error) ||
        ar_spec_parse("torch:garbage_collection_threshold=0.6,roundup_power2_divisions=4", &policy,
                      &test_error))
        fail_msg("%s", test_error.text);
    const struct fidelity config = {.policy = &policy, .source = source, .seed = 1};
    assert_int_equal(fidelity_run(&config, &result, &test_error), AR_OK);
    assert_true(result.difference.found && !result.limit_bytes);
}

static int is_recording(const struct dirent *entry)
{
    return strstr(entry->d_name, ".csv") != NULL;
}

int main(void)
{
    struct dirent **files;
    struct CMUnitTest tests[MOST_FILES];
    int count = scandir(FOLDER, &files, is_recording, alphasort);
    if (count <= 0 || count + 7 > MOST_FILES) {
        fprintf(stderr, "no recordings in %s, or too many\n", FOLDER);
        return 1;
    }
    for (int i = 0; i < count; i++)
        tests[i] =
            (struct CMUnitTest){files[i]->d_name, test_recording, NULL, NULL, files[i]->d_name};
    tests[count] = (struct CMUnitTest)cmocka_unit_test(test_moved_address);
    tests[count + 1] = (struct CMUnitTest)cmocka_unit_test(test_left_out);
    tests[count + 2] = (struct CMUnitTest)cmocka_unit_test(test_private_pool);
    tests[count + 3] = (struct CMUnitTest)cmocka_unit_test(test_pools_inferred);
    tests[count + 4] = (struct CMUnitTest)cmocka_unit_test(test_random);
    tests[count + 5] = (struct CMUnitTest)cmocka_unit_test(test_least_limit);
    tests[count + 6] = (struct CMUnitTest)cmocka_unit_test(test_limit_not_found);
    int failed = _cmocka_run_group_tests("fidelity", tests, (size_t)count + 7, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
    return failed;
}
