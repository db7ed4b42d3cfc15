/* The plug-in as PyTorch and CuPy call it, on the stand-in for the driver: blocks, streams, graphs,
 * cards, what it says and writes. Streams are the stand-in's, so that a test decides what they are
 * busy with. */
#include <signal.h>

#if HAVE_CUDA

#include <sys/wait.h>
#include <unistd.h>

#include "sim/replay/timing.h"
#include "tests/support/cuda_stand_in/stand_in.h"
#include "tests/support/plugin_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/trace/source.h"
#include "workloads/trace/trace.h"

#define AR_MIB   UINT64_C(1048576)
#define FAR_OFF  (UINT64_C(3600) * 1000000000) /* nanoseconds that no test lives to see */
#define CHECK    PLUGIN_CHECK
#define NO_VALUE UINT64_MAX

/* A file in the test's folder. */
static const char *file_of(const char *name)
{
    static char paths[4][512];
    static int next;
    const char *folder = getenv("TEST_TMP");
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder && *folder ? folder : "/tmp", name);
    return path;
}

static const char *setting(const char *name, const char *value)
{
    static char texts[8][640];
    static int next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "%s=%s", name, value);
    return text;
}

static void run_under(const char *policy, void (*body)(const struct plugin_rig *rig))
{
    const char *settings[] = {setting("ALLOCRIG_POLICY", policy), NULL};
    if (plugin_rig_run(settings, NULL, body) != 0)
        fail_msg("under %s", policy);
}

static void run_under_each(const char *const *policies, void (*body)(const struct plugin_rig *rig))
{
    for (; *policies; policies++)
        run_under(*policies, body);
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void body_blocks(const struct plugin_rig *rig)
{
    CHECK(rig->figure(0, "requests") == NO_VALUE);
    CHECK(rig->malloc(0, 0, NULL) == NULL);
    char *first = rig->malloc(1000, 0, NULL), *second = rig->malloc((ssize_t)(5 * AR_MIB), 0, NULL);
    CHECK(first && second && (first + 1000 <= second || second + 5 * AR_MIB <= first));
    CHECK((uintptr_t)first % 256 == 0 && (uintptr_t)second % 256 == 0);
    CHECK(rig->figure(0, "live_bytes") == 1000 + 5 * AR_MIB);
    CHECK(rig->figure(0, "physical_bytes") >= 6 * AR_MIB);
    size_t segment_bytes = 0;
    char *segment = rig->base_alloc(first, &segment_bytes);
    CHECK(segment <= first && first + 1000 <= segment + segment_bytes);
    rig->free(NULL, 0, 0, NULL);
    rig->free(second, (ssize_t)(5 * AR_MIB), 0, NULL);
    rig->free(first, 1000, 0, NULL);
    CHECK(rig->figure(0, "live_bytes") == 0 && rig->figure(0, "frees") == 2);
    CHECK(rig->figure(0, "peak_live_bytes") == 1000 + 5 * AR_MIB);
    rig->reset_peaks(0);
    CHECK(rig->figure(0, "peak_live_bytes") == 0);
    rig->empty_cache();
    CHECK(rig->figure(0, "no such figure") == NO_VALUE);
}

TEST(blocks_come_and_go)
{
    const char *const policies[] = {"torch", "vmm", "slab", "checked+tlsf", "direct", NULL};
    run_under_each(policies, body_blocks);
}

static void body_trim(const struct plugin_rig *rig)
{
    void *block = rig->malloc((ssize_t)(100 * AR_MIB), 0, NULL);
    rig->free(block, 0, 0, NULL);
    CHECK(rig->figure(0, "physical_bytes") >= 100 * AR_MIB);
    rig->empty_cache();
    CHECK(rig->figure(0, "physical_bytes") == 0);
}

TEST(an_emptied_cache_is_the_cards_again)
{
    const char *const policies[] = {"torch", "vmm", "checked+torch", NULL};
    run_under_each(policies, body_trim);
}

/* ---- no memory ------------------------------------------------------------------------------ */

static void body_no_memory(const struct plugin_rig *rig)
{
    CHECK(rig->malloc((ssize_t)(4096 * AR_MIB), 0, NULL) == NULL);
    CHECK(rig->malloc(-1, 0, NULL) == NULL);
    CHECK(rig->cupy_malloc(NULL, 4096 * AR_MIB, 0) == NULL);
    CHECK(rig->figure(0, "failed") == 2);
    void *block = rig->malloc((ssize_t)(100 * AR_MIB), 0, NULL);
    CHECK(block);
    rig->free(block, 0, 0, NULL);
    rig->empty_cache();
    rig->memory_fraction(0.05, 0);
    CHECK(rig->malloc((ssize_t)(200 * AR_MIB), 0, NULL) == NULL);
    CHECK(rig->malloc((ssize_t)(60 * AR_MIB), 0, NULL) != NULL);
    rig->memory_fraction(1, 0);
    CHECK(rig->malloc((ssize_t)(200 * AR_MIB), 0, NULL) != NULL);
}

TEST(what_does_not_fit_is_said)
{
    const char *errors = file_of("errors");
    const char *const policies[] = {"torch", "vmm", "async", "direct", NULL};
    for (int i = 0; policies[i]; i++) {
        const char *settings[] = {setting("ALLOCRIG_POLICY", policies[i]),
                                  "STAND_IN_BYTES=2147483648", NULL};
        assert_int_equal(plugin_rig_run(settings, errors, body_no_memory), 0);
        const char *said = plugin_rig_text(errors);
        assert_non_null(strstr(said, "CUDA out of memory. Tried to allocate 4096.00 MiB. GPU 0"));
        assert_non_null(strstr(said, "which is no size"));
    }
}

static void body_refused(const struct plugin_rig *rig)
{
    CHECK(rig->malloc(1000, 0, NULL) == NULL);
    CHECK(rig->cupy_malloc(NULL, 1000, 0) == NULL);
    rig->free((void *)rig, 1000, 0, NULL);
    rig->record_stream((void *)rig, NULL);
    rig->empty_cache();
    rig->mark("step");
    CHECK(rig->figure(0, "requests") == NO_VALUE);
}

TEST(a_bad_setting_is_said)
{
    static const struct {
        const char *setting, *sentence;
    } cases[] = {
        {"ALLOCRIG_POLICY=trch", "allocrig: ALLOCRIG_POLICY=trch: there is no policy \"trch\""},
        {"ALLOCRIG_POLICY=torch:limt=3", "limt"},
        {"ALLOCRIG_POLICY=null", "policy null hands out addresses without memory"},
        {"ALLOCRIG_POLICY=checked+", "ALLOCRIG_POLICY=checked+"},
        {"STAND_IN_CARDS=0", "sees no card"},
    };
    const char *errors = file_of("errors");
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *settings[] = {"ALLOCRIG_POLICY=torch", cases[i].setting, NULL};
        assert_int_equal(plugin_rig_run(settings, errors, body_refused), 0);
        if (!strstr(plugin_rig_text(errors), cases[i].sentence))
            fail_msg("%s: %s", cases[i].setting, plugin_rig_text(errors));
    }
}

static void body_once(const struct plugin_rig *rig)
{
    CHECK(rig->malloc(1000, 0, NULL) == NULL);
    CHECK(rig->driver->held[STAND_IN_HELD_context] == 0);
    CHECK(rig->malloc(1000, 0, NULL) != NULL);
}

TEST(a_card_that_could_not_be_opened_is_tried_again)
{
    const char *settings[] = {"STAND_IN_FAIL=cuMemGetInfo:1", NULL}, *errors = file_of("errors");
    assert_int_equal(plugin_rig_run(settings, errors, body_once), 0);
    assert_non_null(strstr(plugin_rig_text(errors), "cuMemGetInfo"));
}

static void body_unknown(const struct plugin_rig *rig)
{
    char *block = rig->malloc(1000, 0, NULL);
    rig->free(block, 0, 0, NULL);
    rig->free(block, 0, 0, NULL);
    rig->free(block + 8, 0, 0, NULL);
    CHECK(rig->figure(0, "unknown") == 2 && rig->figure(0, "frees") == 1);
}

TEST(a_bad_free_is_said_once)
{
    const char *settings[] = {NULL}, *errors = file_of("errors");
    assert_int_equal(plugin_rig_run(settings, errors, body_unknown), 0);
    const char *said = strstr(plugin_rig_text(errors), "where no block starts");
    assert_non_null(said);
    assert_null(strstr(said + 1, "where no block starts"));
}

/* ---- streams -------------------------------------------------------------------------------- */

static struct stand_in_stream busy_stream(void)
{
    return (struct stand_in_stream){.tail_ns = latency_clock_ns() + FAR_OFF};
}

static void body_record_stream(const struct plugin_rig *rig)
{
    struct stand_in_stream own = {0}, other = busy_stream(), third = {0};
    void *block = rig->malloc((ssize_t)(50 * AR_MIB), 0, &own);
    rig->record_stream(block, &own); /* its own: nothing to be told */
    CHECK(rig->figure(0, "uses") == 0);
    rig->free(block, 0, 0, &own);
    CHECK(rig->malloc((ssize_t)(50 * AR_MIB), 0, &own) == block);
    rig->record_stream(block, &other);
    CHECK(rig->figure(0, "uses") == 1);
    rig->free(block, 0, 0, &own);
    /* The other stream is busy for an hour: the block is not available. */
    void *next = rig->malloc((ssize_t)(50 * AR_MIB), 0, &own);
    CHECK(next && next != block);
    /* What is done already does not hold it back. */
    rig->record_stream(next, &third);
    rig->free(next, 0, 0, &own);
    CHECK(rig->malloc((ssize_t)(50 * AR_MIB), 0, &own) == next);
}

TEST(record_stream_keeps_a_block)
{
    const char *const policies[] = {"torch", "vmm", "torch:expandable_segments=true", NULL};
    run_under_each(policies, body_record_stream);
}

/* A policy that knows no streams: whoever gets the memory waits, on its stream, for the streams
 * that used it. */
static void body_order(const struct plugin_rig *rig)
{
    struct stand_in_stream own = busy_stream(), next = {0}, user = {0}, last = {0};
    uint64_t busy_ns = own.tail_ns;
    void *block = rig->malloc((ssize_t)(50 * AR_MIB), 0, &own);
    rig->free(block, 0, 0, &own);
    CHECK(rig->malloc((ssize_t)(50 * AR_MIB), 0, &next) == block);
    CHECK(next.tail_ns >= busy_ns);
    user.tail_ns = busy_ns + FAR_OFF;
    rig->record_stream(block, &user);
    rig->free(block, 0, 0, &next);
    CHECK(rig->malloc((ssize_t)(50 * AR_MIB), 0, &last) == block);
    CHECK(last.tail_ns >= busy_ns + FAR_OFF && own.tail_ns == busy_ns);
}

TEST(other_policies_are_ordered_by_events)
{
    const char *const policies[] = {"best-fit", "growth", "slab", "tlsf", "checked+growth", NULL};
    run_under_each(policies, body_order);
}

/* Blocks that were freed before there was a second stream. */
static void body_second(const struct plugin_rig *rig)
{
    struct stand_in_stream busy = busy_stream(), second = {0};
    void *block = rig->malloc((ssize_t)(50 * AR_MIB), 0, &busy);
    rig->free(block, 0, 0, &busy);
    (void)rig->malloc((ssize_t)(50 * AR_MIB), 0, &second);
    CHECK(second.tail_ns >= busy.tail_ns);
}

static void body_single(const struct plugin_rig *rig)
{
    for (int i = 0; i < 100; i++)
        rig->free(rig->malloc(1000 + i, 0, NULL), 0, 0, NULL);
    CHECK(rig->driver->calls[STAND_IN_event_record] == 0);
    CHECK(rig->driver->calls[STAND_IN_stream_wait_event] == 0);
    CHECK(rig->figure(0, "streams") == 1);
}

TEST(one_stream_needs_no_events)
{
    const char *const policies[] = {"torch", "growth", "vmm", "slab", NULL};
    run_under_each(policies, body_single);
    run_under("growth", body_second);
}

/* ---- contexts and graphs -------------------------------------------------------------------- */

static void body_context(const struct plugin_rig *rig)
{
    uint64_t before = rig->driver->calls[STAND_IN_thread_exchange_capture_mode];
    void *block = rig->malloc((ssize_t)(50 * AR_MIB), 0, NULL);
    CHECK(rig->driver->references == 1);
    uint64_t after = rig->driver->calls[STAND_IN_thread_exchange_capture_mode];
    CHECK(after > before && (after - before) % 2 == 0);
    /* Served without the driver: no context is asked for either. */
    uint64_t sets = rig->driver->calls[STAND_IN_ctx_set_current];
    uint64_t gets = rig->driver->calls[STAND_IN_ctx_get_current];
    rig->free(block, 0, 0, NULL);
    CHECK(rig->malloc((ssize_t)(50 * AR_MIB), 0, NULL) == block);
    CHECK(rig->driver->calls[STAND_IN_ctx_set_current] == sets);
    CHECK(rig->driver->calls[STAND_IN_ctx_get_current] == gets);
    CHECK(rig->driver->calls[STAND_IN_thread_exchange_capture_mode] == after);
}

TEST(the_driver_is_asked_only_for_memory)
{
    run_under("torch", body_context);
}

static const struct allocrig_pool_id pool = {0, 7};

static void body_graph_held(const struct plugin_rig *rig)
{
    struct stand_in_stream stream = {0}, other = {0};
    void *before = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    CHECK(rig->malloc(1000, 0, &other));
    rig->free(before, 0, 0, &stream);
    rig->begin_pool(0, pool, NULL);
    stream.captured = true;
    void *first = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    rig->record_stream(first, &other);
    rig->free(first, 0, 0, &stream);
    void *second = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    CHECK(first && second && first != second);
    stream.captured = false;
    rig->end_pool(0, pool);
    /* The graph may be replayed: its blocks stay its own, freed or not. */
    rig->free(second, 0, 0, &stream);
    void *later = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    CHECK(later && later != first && later != second);
    rig->release_pool(0, pool);
    void *after = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    CHECK(after == first || after == second);
    CHECK(rig->figure(0, "failed") == 0);
}

TEST(a_graph_keeps_its_blocks)
{
    const char *const policies[] = {"best-fit", "growth", "vmm", "slab", NULL};
    run_under_each(policies, body_graph_held);
}

static void body_graph_pool(const struct plugin_rig *rig)
{
    struct stand_in_stream stream = {0}, other = {0};
    void *before = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    rig->free(before, 0, 0, &stream);
    rig->begin_pool(0, pool, NULL);
    stream.captured = true;
    void *first = rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream);
    CHECK(first && first != before);
    rig->free(first, 0, 0, &stream);
    CHECK(rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream) == first);
    /* A use on a captured stream: its event has to wait for the end of the capture. */
    void *used = rig->malloc((ssize_t)(30 * AR_MIB), 0, &other);
    rig->record_stream(used, &stream);
    rig->free(used, 0, 0, &other);
    CHECK(rig->malloc((ssize_t)(30 * AR_MIB), 0, &other) != used);
    stream.captured = false;
    rig->end_pool(0, pool);
    CHECK(rig->malloc((ssize_t)(10 * AR_MIB), 0, &stream) == before);
    rig->free(first, 0, 0, &stream);
    rig->release_pool(0, pool);
    rig->empty_cache();
    CHECK(rig->figure(0, "failed") == 0);
}

TEST(a_policy_with_pools_reuses_inside_of_them)
{
    run_under("torch", body_graph_pool);
}

static void body_cards(const struct plugin_rig *rig)
{
    void *first = rig->malloc(1000, 0, NULL),
         *second = rig->malloc((ssize_t)(30 * AR_MIB), 1, NULL);
    struct stand_in_stream stream = {0};
    CHECK(first && second);
    CHECK(rig->figure(0, "live_bytes") == 1000 && rig->figure(1, "live_bytes") == 30 * AR_MIB);
    rig->record_stream(second, &stream);
    CHECK(rig->figure(0, "uses") == 0 && rig->figure(1, "uses") == 1);
    rig->free(second, 0, 1, NULL);
    CHECK(rig->figure(1, "live_bytes") == 0);
    CHECK(rig->malloc(1000, 2, NULL) == NULL && rig->malloc(1000, -1, NULL) == NULL);
    CHECK(rig->malloc(1000, 9999, NULL) == NULL);
}

TEST(each_card_has_a_policy)
{
    const char *settings[] = {"STAND_IN_CARDS=2", NULL}, *errors = file_of("errors");
    assert_int_equal(plugin_rig_run(settings, errors, body_cards), 0);
    assert_non_null(strstr(plugin_rig_text(errors), "there is no card 2"));
    assert_non_null(strstr(plugin_rig_text(errors), "there is no GPU 9999"));
}

/* ---- what it writes ------------------------------------------------------------------------- */

static void ask(const struct plugin_rig *rig)
{
    struct stand_in_stream stream = {0};
    void *first = rig->malloc(1000, 0, NULL),
         *second = rig->malloc((ssize_t)(3 * AR_MIB), 0, &stream);
    CHECK(rig->malloc(0, 0, NULL) == NULL);
    rig->record_stream(second, NULL);
    rig->record_stream(second, NULL);
    rig->free(second, 0, 0, &stream);
    CHECK(rig->malloc((ssize_t)(AR_MIB << 30), 0, NULL) == NULL);
    rig->mark("step");
    rig->free(first, 0, 0, &stream);
    rig->empty_cache();
    CHECK(rig->cupy_malloc(&stream, 77, 0) != NULL);
}

static void body_ask(const struct plugin_rig *rig)
{
    ask(rig);
}

static void body_crash(const struct plugin_rig *rig)
{
    ask(rig);
    (void)kill(getpid(), SIGKILL);
}

/* The lines of a recording without the times and the header. */
static void lines_of(const char *path, char *lines)
{
    char text[1 << 14];
    snprintf(text, sizeof text, "%s", plugin_rig_text(path));
    *lines = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (*line != '#' && *line != 't' && strncmp(line, "!,oom,", 6) != 0)
            strcat(strcat(lines, line), " ");
}

static void check_recording(const char *path)
{
    char lines[1 << 14];
    lines_of(path, lines);
    assert_string_equal(lines,
                        "a,0,1000 a,1,3145728,1 u,1,0 u,1,0 r,1 p,2,1125899906842624 r,2 m,step "
                        "r,0,1 c a,3,77,1 ");
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    assert_int_equal(source->info.allocs, 3);
    assert_int_equal(source->info.probes, 1);
    assert_int_equal(source->info.streams, 2);
    assert_int_equal(source->info.steps, 1);
    assert_string_equal(source->info.conf, "torch:max_split_size_mb=64");
}

TEST(what_was_asked_for_is_recorded)
{
    const char *path = file_of("plugin.trace"), *errors = file_of("errors");
    const char *settings[] = {"ALLOCRIG_POLICY=torch:max_split_size_mb=64",
                              setting("ALLOCRIG_TRACE", path), NULL};
    assert_int_equal(plugin_rig_run(settings, errors, body_ask), 0);
    check_recording(path);
    assert_int_equal(plugin_rig_run(settings, errors, body_crash), 128 + SIGKILL);
    check_recording(path);
}

static void body_fork(const struct plugin_rig *rig)
{
    void *block = rig->malloc(1000, 0, NULL);
    int status = 0;
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) {
        rig->free(block, 0, 0, NULL);
        CHECK(rig->malloc(1000, 0, NULL) == NULL);
        rig->record_stream(block, NULL);
        exit(0);
    }
    CHECK(waitpid(process, &status, 0) == process && status == 0);
    rig->free(block, 0, 0, NULL);
    CHECK(rig->malloc(2000, 0, NULL) != NULL);
}

TEST(a_forked_child_changes_nothing)
{
    const char *trace = file_of("fork.trace"), *stats = file_of("fork.json");
    const char *errors = file_of("errors");
    char lines[1 << 14];
    const char *settings[] = {setting("ALLOCRIG_TRACE", trace), setting("ALLOCRIG_STATS", stats),
                              NULL};
    assert_int_equal(plugin_rig_run(settings, errors, body_fork), 0);
    lines_of(trace, lines);
    assert_string_equal(lines, "a,0,1000 r,0 a,1,2000 ");
    assert_non_null(strstr(plugin_rig_text(stats), "\"requests\": 2,"));
    assert_non_null(strstr(plugin_rig_text(errors), "this process was forked"));
}

TEST(statistics_are_written_at_exit)
{
    const char *stats = file_of("stats.json"), *errors = file_of("errors");
    const char *settings[] = {"ALLOCRIG_POLICY=checked+torch", setting("ALLOCRIG_STATS", stats),
                              "ALLOCRIG_VERBOSE=1", NULL};
    assert_int_equal(plugin_rig_run(settings, errors, body_ask), 0);
    static const char *const parts[] = {
        "\"schema\": \"allocrig.plugin/1\"",
        "\"policy\": \"checked+torch\"",
        "\"name\": \"Stand-in 0\"",
        "\"requests\": 4,",
        "\"frees\": 2,",
        "\"uses\": 2,",
        "\"failed\": 1,",
        "\"live_bytes\": 77,",
        "\"peak_live_bytes\": 3146728,",
        "\"streams\": 2,",
        "\"policy_failures\": 1,",
        "\"alloc\": {\"calls\":",
        "\"alloc_ns\": {\"p50\":",
        "\"free_ns\": {\"p50\":",
    };
    const char *text = plugin_rig_text(stats);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("%s is not in %s", parts[i], text);
    const char *said = plugin_rig_text(errors);
    assert_non_null(strstr(said, "GPU 0 under checked+torch: 4 requests, 2 frees, 1 not served"));
}

static void body_late(const struct plugin_rig *rig)
{
    CHECK(rig->malloc(1000, 0, NULL) != NULL);
}

TEST(a_file_that_cannot_be_written_stops_nobody)
{
    const char *settings[] = {"ALLOCRIG_TRACE=/nowhere/x", "ALLOCRIG_STATS=/nowhere/y", NULL};
    const char *errors = file_of("errors");
    assert_int_equal(plugin_rig_run(settings, errors, body_late), 0);
    assert_non_null(
        strstr(plugin_rig_text(errors), "/nowhere/x (ALLOCRIG_TRACE) cannot be written"));
    assert_non_null(
        strstr(plugin_rig_text(errors), "ALLOCRIG_STATS: /nowhere/y: cannot be written"));
}

#else

#include "tests/support/test.h"

TEST(there_is_no_cuda_h)
{
    skip();
}

#endif
